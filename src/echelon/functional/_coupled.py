"""What losses that compare the rows of a batch share: what they refuse, and their sums and counts.

No row of such a loss has a loss of its own, so there is no ``reduction="none"``, no soft label and
no batch that is spread over devices.
"""

import torch
from torch import Tensor

from echelon.functional._labels import LossParts, Weights, finish, read
from echelon.functional._precision import as_float
from echelon.functional._scores import curve_of_score_fit


def read_coupled(
    method: str,
    logits: Tensor,
    ranks: Tensor,
    *,
    sample_weight: Weights | None,
    class_weight: Weights | None,
    ignore_index: int | None,
    reduction: str,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Logits (N, K), ranks (N,) and weights (N,), if any, of one batch on one device."""
    _require_one_flat_batch(method, as_float(logits), reduction)
    logits, labels = read(
        logits,
        ranks,
        as_float(logits).shape[-1],
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    if labels.ranks is None:
        raise ValueError(
            f"{method} couples rows by their ranks, so soft labels have no meaning; pass integer "
            f"ranks"
        )
    return logits, labels.ranks, labels.weight


def finish_score(
    logits: Tensor, ranks: Tensor, weight: Tensor | None, parts: LossParts, reduction: str
) -> Tensor:
    """A loss of scores, with what fits their curve beside it: a ratio of its own, of value 0.

    The logits (N, K) are the score and those of its curve.
    """
    fit = curve_of_score_fit(logits, ranks, weight)
    if reduction == "mean" and weight is None and len(logits):
        # The common case, kept short: every operator here costs microseconds.
        return parts.mean() + fit / len(logits)
    total = torch.stack([parts.total, fit])
    count = torch.stack([parts.count, row_count(logits, weight)])
    return finish(LossParts(total, count), reduction)


def row_count(logits: Tensor, weight: Tensor | None) -> Tensor:
    """What the rows of logits (N, J) count together."""
    return logits.new_full((), len(logits)) if weight is None else weight.sum()


def _require_one_flat_batch(method: str, logits: Tensor, reduction: str) -> None:
    couples = f"{method} couples the rows of a batch"
    if reduction == "none":
        raise ValueError(
            f"{couples}, so a row has no loss of its own; use reduction='mean' or 'sum'"
        )
    if logits.dim() != 2:
        raise ValueError(
            f"{couples}, so logits must be (N, K); got {tuple(logits.shape)}: flatten them if all "
            f"positions may be compared with each other"
        )
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return
    if distributed.get_world_size() > 1:
        raise ValueError(
            f"{couples}, and pairs across devices would be missed; train on one device or choose "
            f"another method"
        )
