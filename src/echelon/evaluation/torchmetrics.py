"""Every metric of METRICS as a metric of torchmetrics (extra `metrics`).

Invariant: the states are sums, of the same table and the same losses that
:mod:`echelon.evaluation.running` keeps, so that batches and devices of any size add up to the
metric of all rows.
"""

import zlib
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from echelon.curve import RankCurve
from echelon.evaluation._joint import Joint
from echelon.evaluation.metrics import metric as row_of
from echelon.extras import require

__all__ = ["CurveMetric"]

if TYPE_CHECKING:
    from torchmetrics import Metric
else:
    Metric = require("torchmetrics", "metrics of torchmetrics").Metric


class CurveMetric(Metric):
    """A metric of predicted curves, collected batch by batch and over devices.

    It goes wherever a metric of torchmetrics goes: into a loop, a ``MetricCollection``, or
    ``self.log`` of a LightningModule.

    Parameters
    ----------
    name : str
        One of ``echelon.evaluation.metrics.METRICS``, such as ``"mae"``,
        ``"quadratic_weighted_kappa"`` or ``"ranked_probability_score"``.
    num_classes : int
        The number of ranks, K.
    decision : {"median", "mean", "mode"}, or numbers of shape (K, K) or (K-1,)
        How a metric of labels reads a label off a curve; see :meth:`RankCurve.label`.
    ignore_index : int, optional
        What stands for "no label"; such rows do not count.
    **options
        Options of ``torchmetrics.Metric``.

    Examples
    --------
    >>> metric = CurveMetric("mae", num_classes=3)
    >>> curve = RankCurve(torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]).log())
    >>> metric.update(curve, torch.tensor([0, 1]))
    >>> metric.compute()
    tensor(0.5000)
    """

    full_state_update = False
    is_differentiable = False
    table: Tensor
    losses: Tensor

    def __init__(
        self,
        name: str,
        num_classes: int,
        *,
        decision: Any = "median",
        ignore_index: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if num_classes < 2:
            raise ValueError(f"num_classes must be at least 2; got {num_classes}")
        self.row = row_of(name)
        self.num_classes = num_classes
        self.decision = decision
        self.ignore_index = ignore_index
        # the weight of each pair of true and predicted rank; and the loss of all rows, their weight
        table = torch.zeros(num_classes, num_classes, dtype=torch.float64)
        self.add_state("table", default=table, dist_reduce_fx="sum")
        self.add_state("losses", torch.zeros(2, dtype=torch.float64), dist_reduce_fx="sum")
        # A collection takes metrics for one whose states are equal after the first batch. Here they
        # may be so by chance, so a state tells apart what is not the same.
        self.add_state("rule", self._rule(), dist_reduce_fx="max")

    @property
    def higher_is_better(self) -> bool:  # type: ignore[override]
        """Whether more is better."""
        return self.row.higher_is_better

    def update(
        self, preds: RankCurve | Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        """Add rows.

        Parameters
        ----------
        preds : RankCurve, or Tensor of shape (..., K)
            Curves, or the probabilities of every rank.
        target : Tensor, shape (...)
            The true ranks.
        sample_weight : Tensor, shape (...), optional
            What each row counts for.
        """
        curve = preds if isinstance(preds, RankCurve) else RankCurve(preds.log())
        logs = curve.log_probabilities.detach()
        self._require_shapes(logs, target)
        rows = RankCurve(logs.reshape(-1, self.num_classes))
        ranks = target.reshape(-1).long()
        weight = torch.ones(len(ranks), dtype=torch.float64, device=ranks.device)
        if sample_weight is not None:
            weight = sample_weight.reshape(-1).to(weight)
        if self.ignore_index is not None:
            kept = (ranks != self.ignore_index).nonzero().reshape(-1)
            rows, ranks, weight = rows.rows(kept), ranks[kept], weight[kept]
        if not len(ranks):
            return
        if bool(((ranks < 0) | (ranks >= self.num_classes)).any()):
            raise ValueError(
                f"target must lie in 0..{self.num_classes - 1}; got {int(ranks.min())} to "
                f"{int(ranks.max())}"
            )
        if self.row.of_labels:
            pairs = ranks * self.num_classes + rows.label(self.decision)
            counts = torch.zeros_like(self.table).reshape(-1).index_add_(0, pairs, weight)
            # not in place: after an epoch in inference mode that is not allowed
            self.table = self.table + counts.reshape(self.table.shape)
        else:
            assert self.row.row_losses is not None
            # one implementation of each score: that of numpy
            values, _ = self.row.row_losses(
                ranks.cpu().numpy(), rows.probabilities.double().cpu().numpy()
            )
            total = torch.as_tensor(values).to(weight) @ weight
            self.losses = self.losses + torch.stack([total, weight.sum()])

    def compute(self) -> Tensor:
        """The metric of all rows so far; NaN where there are none."""
        if self.row.of_joint is not None:
            joint = Joint.of_ranks(self.table.cpu().numpy())
            value = self.row.of_joint(joint) if joint.weight.any() else float("nan")
        else:
            total, weight = self.losses.tolist()
            value = total / weight if weight else float("nan")
        return torch.tensor(value, device=self.device)

    def _rule(self) -> Tensor:
        """A number for what is counted: by which decision, or by which loss."""
        said = self.decision
        decision = said if isinstance(said, str) else torch.as_tensor(said).tolist()
        counted = decision if self.row.of_labels else self.row.name
        text = repr((counted, self.ignore_index))
        return torch.tensor(zlib.crc32(text.encode()), dtype=torch.float64)

    def _require_shapes(self, logs: Tensor, target: Tensor) -> None:
        if logs.shape != (*target.shape, self.num_classes):
            raise ValueError(
                f"preds must be a curve or probabilities of the shape "
                f"{(*target.shape, self.num_classes)}, as target has {tuple(target.shape)} and "
                f"there are {self.num_classes} classes; got {tuple(logs.shape)}"
            )
