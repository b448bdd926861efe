"""What models share that give a row one score among ordered cutpoints, and no probabilities.

The score has a curve by :mod:`echelon.models.score_map`, whose one number is fitted on rows that
the scores have not seen: validation rows, or every row by a fit without it.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from echelon.curve import RankCurve
from echelon.data.kinds.base import TABLE
from echelon.data.kinds.tabular import TableEncoder
from echelon.data.labels import Labels
from echelon.data.rows import Rows
from echelon.data.schema import RawTable
from echelon.data.splits import count_units, folds
from echelon.models.base import CurveClassifier
from echelon.models.document import Described
from echelon.models.features import (
    Matrix,
    describe_encoder,
    encoded,
    fit_encoder,
    rebuild_encoder,
    require_table,
)
from echelon.models.graph import Graph
from echelon.models.score_map import ScoreCurve, fit_scale
from echelon.networks.rebuilding import rebuild

_CHUNK = 8_192  # rows whose curves are computed at once
_FOLDS = 3
_ENCODER, _SCORE = "encoder.", "score."
_CUTPOINTS, _SCALE = "cutpoints", "scale"


class Scored(NamedTuple):
    """What was learnt: from features (n, d) to scores (n,), and the cutpoints (K-1,) among them."""

    score: nn.Module
    cutpoints: Matrix

    @torch.no_grad()
    def scores(self, features: Matrix) -> Matrix:
        """(n,) of features (n, d)."""
        scores: Matrix = self.score(torch.from_numpy(features)).numpy()
        return scores

    def distances(self, features: Matrix) -> Matrix:
        """Cutpoints minus scores, (n, K-1)."""
        return self.cutpoints - self.scores(features)[:, None]


class ScoredClassifier(CurveClassifier):
    """A model of one score among cutpoints; a subclass gives :meth:`learn` and :meth:`empty_score`.

    Attributes
    ----------
    scored_ : Scored
    scale_ : float
        a of P(y <= k) = F(a (b_k - f)).
    """

    scored_: Scored
    scale_: float

    @abstractmethod
    def learn(
        self,
        features: Matrix,
        ranks: NDArray[np.int64],
        weight: Matrix | None,
        num_classes: int,
        seed: int,
    ) -> Scored:
        """Fit features; every weight is above 0."""

    @abstractmethod
    def empty_score(self, document: dict[str, Any], tensors: dict[str, Tensor]) -> nn.Module:
        """The score that a file describes, before the tensors are put into it; nothing is trusted.

        It is called more than once, and must not allocate more than the tensors take.
        """

    def describe_score(self) -> dict[str, Any]:
        """What :meth:`empty_score` must know beside the tensors, as values of JSON."""
        return {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # One score for all ranks cannot follow classes that lie in no order.
        tags.classifier_tags.poor_score = True
        return tags

    # ---- fitting -----------------------------------------------------------------------------

    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Fit the score; its curve is fitted on the validation rows or, without any, by folds."""
        require_table(rows, self)
        rows = _counting(rows)
        encoder = fit_encoder(rows)
        features = encoded(encoder, rows.table)
        scored = self.learn(features, rows.ranks, rows.weight, labels.num_classes, seed)
        if validation is not None:
            distances = scored.distances(encoded(encoder, validation.table))
            self.take_unseen(distances, validation.ranks, validation.weight)
        else:
            self._take_folds(rows, features, labels.num_classes, seed)
        self.encoder_, self.scored_ = encoder, scored

    def take_unseen(
        self, distances: Matrix, ranks: NDArray[np.int64], weight: Matrix | None
    ) -> None:
        """Fit the scale of the curve on rows that the scores have not seen."""
        self.scale_ = fit_scale(distances, ranks, weight)

    def fit_again(self, rows: Rows, labels: Labels, seed: int) -> None:
        """Fit the score to all rows; the scale of its curve stays that of the held-out rows."""
        rows = _counting(rows)
        encoder = fit_encoder(rows)
        features = encoded(encoder, rows.table)
        self.scored_ = self.learn(features, rows.ranks, rows.weight, labels.num_classes, seed)
        self.encoder_ = encoder

    def _take_folds(self, rows: Rows, features: Matrix, num_classes: int, seed: int) -> None:
        """Every row by a fit without it."""
        distances = np.zeros((len(rows), num_classes - 1))
        number = min(_FOLDS, count_units(rows.table, rows.groups))
        if number < 2:  # rows that are all alike say nothing of others
            self.take_unseen(distances[:0], rows.ranks[:0], None)
            return
        generator = np.random.default_rng(seed)
        fold_of = folds(rows.table, number, groups=rows.groups, generator=generator)
        for fold in range(number):
            out = fold_of == fold
            weight = None if rows.weight is None else rows.weight[~out]
            fit = self.learn(features[~out], rows.ranks[~out], weight, num_classes, seed)
            distances[out] = fit.distances(features[out])
        self.take_unseen(distances, rows.ranks, rows.weight)

    # ---- predicting --------------------------------------------------------------------------

    def scores(self, X: Any) -> Matrix:  # noqa: N803
        """The score of each row, (n,), which the cutpoints of `scored_` divide into ranks."""
        check_is_fitted(self, "labels_")
        return self.scored_.scores(encoded(self.encoder_, self.schema_.read(X)))

    @torch.no_grad()
    def curves_of_rows(self, table: RawTable) -> Iterator[RankCurve]:
        """The curves of rows by their scores."""
        curve = ScoreCurve(self.scored_.cutpoints, self.scale_)
        for start in range(0, max(len(table), 1), _CHUNK):
            features = encoded(self.encoder_, table.rows(slice(start, start + _CHUNK)))
            scores = self.scored_.score(torch.from_numpy(features))
            yield RankCurve(curve(scores))

    def add_to_graph(self, graph: Graph) -> str:
        """The encoding of the columns, the score and the map to its curve."""
        curve = ScoreCurve(self.scored_.cutpoints, self.scale_)
        whole = _FromCells(self.encoder_, self.scored_.score, curve)
        return graph.module_of_cells(whole, (TABLE,))

    # ---- files -------------------------------------------------------------------------------

    def describe_model(self) -> Described:
        """The encoding of the columns, the score, its cutpoints and the scale of its curve."""
        tensors = {f"{_ENCODER}{k}": v for k, v in describe_encoder(self.encoder_).items()}
        tensors |= {f"{_SCORE}{k}": v for k, v in self.scored_.score.state_dict().items()}
        tensors[_CUTPOINTS] = torch.from_numpy(self.scored_.cutpoints)
        tensors[_SCALE] = torch.tensor([self.scale_], dtype=torch.float64)
        return Described(self.describe_score(), tensors)

    def rebuild_model(self, described: Described) -> None:
        """The model that a file describes, which is not trusted."""
        document, tensors = described
        groups: dict[str, dict[str, Tensor]] = {_ENCODER: {}, _SCORE: {}}
        for name, tensor in tensors.items():
            prefix = f"{name.partition('.')[0]}."
            if prefix in groups:
                groups[prefix][name.removeprefix(prefix)] = tensor
            elif name not in (_CUTPOINTS, _SCALE):
                raise ValueError(f"there is no place for the tensor {name!r}")
        encoder = rebuild_encoder(groups[_ENCODER], self.schema_)
        score = rebuild(lambda: self.empty_score(document, groups[_SCORE]), groups[_SCORE])
        cutpoints = finite_vector(tensors[_CUTPOINTS], self.labels_.num_classes - 1, _CUTPOINTS)
        (scale,) = finite_vector(tensors[_SCALE], 1, _SCALE)
        if (np.diff(cutpoints) < 0).any() or not scale > 0:
            raise ValueError("its cutpoints must ascend, and its scale be above 0")
        self._require_fit(encoder, score)
        self.encoder_, self.scale_ = encoder, float(scale)
        self.scored_ = Scored(score, cutpoints)

    def _require_fit(self, encoder: TableEncoder, score: nn.Module) -> None:
        try:
            score(torch.zeros(1, encoder.num_features, dtype=torch.float64))
        except RuntimeError:
            raise ValueError("its score does not fit its columns") from None


def finite_vector(tensor: Tensor, length: int, name: str) -> Matrix:
    """A vector of numbers from a file, which is not trusted."""
    if tensor.dtype != torch.float64 or tensor.shape != (length,):
        raise ValueError(f"its {name} must be {length} numbers; it has {tuple(tensor.shape)}")
    if not bool(torch.isfinite(tensor).all()):
        raise ValueError(f"its {name} must be finite")
    values: Matrix = tensor.numpy()
    return values


def _counting(rows: Rows) -> Rows:
    """The rows whose weight is above 0."""
    return rows if rows.weight is None else rows.select(rows.weight > 0)


class _FromCells(nn.Module):
    """From numbers and codes to log-probabilities."""

    def __init__(self, encoder: TableEncoder, score: nn.Module, curve: ScoreCurve) -> None:
        super().__init__()
        self.encoder, self.score, self.curve = encoder, score, curve

    def forward(self, cells: dict[str, tuple[Tensor, Tensor]]) -> Tensor:
        logs: Tensor = self.curve(self.score(self.encoder(*cells[TABLE]).double()))
        return logs
