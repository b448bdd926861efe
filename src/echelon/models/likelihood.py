"""The linear model of the field: proportional odds and its kin, fitted exactly."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from echelon.curve import RankCurve
from echelon.data.kinds.base import TABLE
from echelon.data.kinds.numbers import TableEncoder
from echelon.data.labels import Labels
from echelon.data.rows import Rows
from echelon.data.tables import RawTable
from echelon.evaluation.explanation import OwnContributions
from echelon.functional import clm_log_probabilities
from echelon.models.base import CurveClassifier
from echelon.models.cumulative import CumulativeFit, fit_cumulative
from echelon.models.document import Described, typed
from echelon.models.features import (
    describe_encoder,
    encoded,
    fit_encoder,
    rebuild_encoder,
    require_table,
)
from echelon.models.graph import Graph
from echelon.models.links import link_of
from echelon.models.predicting import Decision

_CHUNK = 65_536  # rows whose curves are computed at once
_ABSENT = 0.5  # what a class without rows counts for, so that it keeps a probability
_NARROWEST = 1e-30  # distance of two cut-points in a graph
_ENCODER = "encoder."
_ARRAYS = ("coefficients", "centre", "centred_cutpoints")


class CumulativeLinkModel(CurveClassifier):
    """The cumulative link model of largest likelihood: P(y <= k) = F(c_k - x.beta).

    Numbers are standardised, gaps take the place of the median and are marked by a column of their
    own, categories are one-hot; columns that depend on others are found and left out.

    Parameters
    ----------
    link : {"logit", "probit", "cloglog"}
        F: proportional odds, ordered probit, or proportional hazards.
    ridge : float
        A penalty of ridge/2 times the squared length of the coefficients of standardised columns;
        0 is the exact fit.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings; any other label then raises.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label; see :class:`echelon.OrdinalClassifier`.
    class_weight : mapping from label to weight, or "balanced", optional
    validation_fraction : float
        Share of the rows that are held out for the cut-points of the decision "kappa", before the
        model is fitted to all rows; 0 for none.
    random_state : int, RandomState or None
        Which rows are held out; the fit itself has nothing random.
    verbose : int

    Attributes
    ----------
    fitted_ : echelon.models.cumulative.CumulativeFit
        Coefficients and cut-points of the encoded columns, with their covariance.

    Examples
    --------
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(500, num_classes=3)
    >>> model = CumulativeLinkModel().fit(data.features, data.ranks)
    >>> largest = max(model.coefficients().items(), key=lambda pair: abs(pair[1]))
    >>> largest[0]
    'x3'
    """

    kind: ClassVar[str] = "cumulative_link"

    def __init__(
        self,
        link: str = "logit",
        ridge: float = 0.0,
        *,
        classes: Sequence[Any] | None = None,
        decision: Decision = None,
        class_weight: Mapping[Any, float] | str | None = None,
        validation_fraction: float = 0.0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.link = link
        self.ridge = ridge
        self.classes = classes
        self.decision = decision
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # One score for all ranks cannot follow classes that lie in no order.
        tags.classifier_tags.poor_score = True
        return tags

    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Maximise the likelihood of all rows; validation rows are not used."""
        require_table(rows, self)
        encoder = fit_encoder(rows)
        counted = rows.ranks if rows.weight is None else rows.ranks[rows.weight > 0]
        is_whole = len(np.unique(counted)) == labels.num_classes
        fitted = fit_cumulative(
            encoded(encoder, rows.table),
            rows.ranks,
            labels.num_classes,
            link=self.link,
            weight=rows.weight,
            ridge=self.ridge,
            smoothing=0.0 if is_whole else _ABSENT,
        )
        self.encoder_, self.fitted_ = encoder, fitted

    def curves_of_rows(self, table: RawTable) -> Iterator[RankCurve]:
        """The curves of rows by the link."""
        for start in range(0, max(len(table), 1), _CHUNK):
            chunk = table.rows(slice(start, start + _CHUNK))
            logs = self.fitted_.log_probabilities(encoded(self.encoder_, chunk))
            yield RankCurve(torch.from_numpy(logs))

    def contributions_of_rows(self, table: RawTable) -> OwnContributions:
        """What each column adds to the score of a row, from that of mean features on."""
        parts = (encoded(self.encoder_, table) - self.fitted_.centre) * self.fitted_.coefficients
        owners = self.encoder_.feature_owners(self.schema_)
        names = tuple(column.name for column in self.schema_.columns)
        added = np.zeros((len(table), len(names), 1))
        for feature, owner in enumerate(owners):
            added[:, names.index(owner), 0] += parts[:, feature]
        return OwnContributions(
            "the score, from that of the mean row on", names, np.zeros((len(table), 1)), added
        )

    def add_to_graph(self, graph: Graph) -> str:
        """The encoding of the columns, the score and the link."""
        return graph.module_of_cells(_LogProbabilities(self.encoder_, self.fitted_), (TABLE,))

    def coefficients(self) -> dict[str, float]:
        """What each encoded column adds to the score; a larger score means a higher rank.

        Numbers are in units of their standard deviation.
        """
        check_is_fitted(self, "labels_")
        names = self.encoder_.feature_names(self.schema_)
        return dict(zip(names, self.fitted_.coefficients.tolist(), strict=True))

    def outcome(self) -> dict[str, Any]:
        """The coefficients."""
        return {"coefficients": self.coefficients()}

    def describe_model(self) -> Described:
        """Coefficients, cut-points and the encoding of the columns."""
        fitted = self.fitted_
        tensors = {f"{_ENCODER}{k}": v for k, v in describe_encoder(self.encoder_).items()}
        tensors |= {name: torch.from_numpy(getattr(fitted, name)) for name in _ARRAYS}
        tensors["covariance"] = torch.from_numpy(fitted.covariance)
        document = {
            name: getattr(fitted, name)
            for name in (
                "link", "log_likelihood", "null_log_likelihood", "iterations", "converged",
                "aliased", "separated", "ridge", "smoothing", "num_rows",
            )
        }  # fmt: skip
        return Described(document, tensors)

    def rebuild_model(self, described: Described) -> None:
        """The model that a file describes, which is not trusted."""
        document, tensors = described
        own = {k.removeprefix(_ENCODER): v for k, v in tensors.items() if k.startswith(_ENCODER)}
        encoder = rebuild_encoder(own, self.schema_)
        if len(tensors) != len(own) + len(_ARRAYS) + 1:
            raise ValueError("it has tensors that have no place in a cumulative link model")
        arrays = {name: _vector(tensors[name], name) for name in _ARRAYS}
        width, cuts = encoder.num_features, arrays["centred_cutpoints"]
        if len(arrays["coefficients"]) != width or len(arrays["centre"]) != width:
            raise ValueError(f"it must have {width} coefficients, one for each encoded column")
        if len(cuts) != self.labels_.num_classes - 1 or (np.diff(cuts) < 0).any():
            raise ValueError("its cut-points do not fit its classes")
        link_of(typed(document["link"], str, "link"))
        size = width + len(cuts)
        covariance = tensors["covariance"]
        if covariance.dtype != torch.float64 or covariance.shape != (size, size):
            raise ValueError("its covariance does not fit its coefficients")
        aliased = tuple(typed(place, int, "column") for place in document["aliased"])
        self.encoder_ = encoder
        self.fitted_ = CumulativeFit(
            **arrays,
            link=document["link"],
            covariance=covariance.numpy(),
            aliased=aliased,
            log_likelihood=float(document["log_likelihood"]),
            null_log_likelihood=float(document["null_log_likelihood"]),
            iterations=typed(document["iterations"], int, "iterations"),
            converged=typed(document["converged"], bool, "converged"),
            separated=typed(document["separated"], bool, "separated"),
            ridge=float(document["ridge"]),
            smoothing=float(document["smoothing"]),
            num_rows=typed(document["num_rows"], int, "num_rows"),
        )


class _LogProbabilities(nn.Module):
    """From numbers and codes to log-probabilities, in float64 where ONNX has it."""

    def __init__(self, encoder: TableEncoder, fitted: CumulativeFit) -> None:
        super().__init__()
        self.encoder = encoder
        self.link: Any = fitted.link
        for name in ("centre", "coefficients"):
            self.register_buffer(name, torch.from_numpy(getattr(fitted, name)))
        cuts = fitted.centred_cutpoints
        widths = np.maximum(np.diff(cuts), _NARROWEST)
        # the number whose softplus is the width
        steps = widths + np.log(-np.expm1(-widths))
        self.register_buffer("first", torch.from_numpy(cuts[:1].copy()))
        self.register_buffer("steps", torch.from_numpy(steps))

    def forward(self, cells: dict[str, tuple[Tensor, Tensor]]) -> Tensor:
        features = self.encoder(*cells[TABLE]).double()
        score = (features - self.get_buffer("centre")) @ self.get_buffer("coefficients")
        first = self.get_buffer("first") - score.unsqueeze(-1)  # (n, 1)
        steps = self.get_buffer("steps").expand(first.shape[0], -1)  # (n, K-2)
        logits = torch.cat([first, steps], -1)
        if self.link == "probit":  # onnxruntime knows its distribution function in float32 alone
            logits = logits.float()
        return clm_log_probabilities(logits, link=self.link)


def _vector(tensor: Tensor, name: str) -> Any:
    if tensor.dtype != torch.float64 or tensor.dim() != 1 or not bool(tensor.isfinite().all()):
        raise ValueError(f"its {name} must be a vector of numbers")
    return tensor.numpy()
