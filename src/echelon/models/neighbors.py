"""The model that asks neighbours, by a metric that was learnt from the ranks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from echelon.curve import RankCurve
from echelon.data.labels import Labels
from echelon.data.rows import Rows
from echelon.data.schema import RawTable
from echelon.models.arguments import is_whole
from echelon.models.base import CurveClassifier
from echelon.models.document import Described, typed
from echelon.models.features import (
    Matrix,
    describe_encoder,
    encoded,
    fit_encoder,
    rebuild_encoder,
    require_table,
)
from echelon.models.metric_learning import LearntMap, learn_by_chains, learn_by_gradient
from echelon.models.predicting import Decision
from echelon.spaces import Between, OneOf, Space

_ANCHORS = {"gradient": 1_000, "chains": 200, "none": 2}
METRICS = tuple(_ANCHORS)
VOTES = ("uniform", "distance")
_NUMBERS = (3, 5, 9, 15, 25, 40)  # of neighbours, among which is chosen
_CHUNK = 4_000_000  # distances that are computed at once
_JUDGED = 2_000  # rows that choose the number of neighbours
_ENCODER = "encoder."


class Neighbors(NamedTuple):
    """Who decided for each row, the nearest first.

    Attributes
    ----------
    rows : array of int, shape (n, k)
        Their places among the rows of the fit.
    distances : array, shape (n, k)
        By the metric of the model.
    labels : array, shape (n, k)
    """

    rows: NDArray[np.int64]
    distances: Matrix
    labels: NDArray[Any]


class MetricNeighbors(CurveClassifier):
    """The nearest rows of the fit by a learnt metric, of which the median decides.

    The explanation of a prediction is the rows that made it: :meth:`neighbors`. The probability of
    a rank is (its votes + 1/K) / (all votes + 1). Columns are standardised. A prediction looks at
    every row of the fit, and a saved model holds them all.

    Parameters
    ----------
    metric : {"gradient", "chains", "none"}
        How the metric is learnt: rows of nearer ranks are to be nearer, by a gradient (Nguyen's
        LODML); the most chains of neighbours whose ranks move away with their distance, by
        evolution (CMOML of Suarez, Garcia and Herrera), which is slow; or the columns as they are.
    n_neighbors : int, optional
        How many are asked; without it that of 3, 5, 9, 15, 25 and 40 with the best ranked
        probability score, of validation rows or else of each row by the others.
    votes : {"uniform", "distance"}
        Whether all neighbours have one vote, or near ones more, by one over their distance.
    anchors : int, optional
        The most rows that the metric is learnt from, drawn at random; all rows are neighbours.
        Without it 1,000 for "gradient", and 200 for "chains", each of whose steps takes time that
        grows with their square.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings; any other label then raises.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label; see :class:`echelon.OrdinalClassifier`.
    class_weight : mapping from label to weight, or "balanced", optional
        Multiplies votes, as other weights do.
    validation_fraction : float
        Share of the rows that are held out to choose the number of neighbours and the cut-points of
        the decision "kappa"; 0 for none.
    random_state : int, RandomState or None
        The seed of the anchors and of the evolution.
    time_limit : float, optional
        The most seconds that learning the metric takes; what is best by then is taken.
    verbose : int
        Whether a fit shows its progress; this model has none to show.

    Attributes
    ----------
    map_ : array, shape (d', d)
        Distances are those after it, of encoded columns.
    measure_ : tuple of float
        What the metric was learnt by, before and after: the mean loss of triplets, or the mean
        number of chains a row.
    n_neighbors_ : int
        How many neighbours decide.

    Examples
    --------
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(200, num_classes=4)
    >>> model = MetricNeighbors(n_neighbors=5, random_state=0).fit(data.features, data.ranks)
    >>> model.neighbors(data.features[:2]).labels.shape
    (2, 5)
    """

    kind: ClassVar[str] = "neighbors"
    space: ClassVar[Space] = {
        "metric": OneOf(("gradient", "none")),
        "n_neighbors": Between(3, 60, log=True, whole=True),
        "votes": OneOf(("uniform", "distance")),
    }

    def __init__(
        self,
        metric: str = "gradient",
        n_neighbors: int | None = None,
        *,
        votes: str = "uniform",
        anchors: int | None = None,
        classes: Sequence[Any] | None = None,
        decision: Decision = None,
        class_weight: Mapping[Any, float] | str | None = None,
        validation_fraction: float = 0.0,
        random_state: Any = None,
        time_limit: float | None = 30.0,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.n_neighbors = n_neighbors
        self.votes = votes
        self.anchors = anchors
        self.classes = classes
        self.decision = decision
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.time_limit = time_limit
        self.verbose = verbose

    # ---- fitting -----------------------------------------------------------------------------

    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Learn the metric, and choose how many neighbours are asked."""
        require_table(rows, self)
        self._check()
        self._take(rows, labels, fit_encoder(rows))
        learnt = self._learn(seed)
        self.map_, self.measure_ = learnt.matrix, (learnt.start, learnt.measure)
        self._mapped = self._features @ self.map_.T
        self.n_neighbors_ = self._choose(validation, seed)

    def fit_again(self, rows: Rows, labels: Labels, seed: int) -> None:
        """All rows are neighbours, by the metric that most of them made."""
        self._take(rows, labels, self.encoder_)
        self._mapped = self._features @ self.map_.T

    def _take(self, rows: Rows, labels: Labels, encoder: Any) -> None:
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        self._places: NDArray[np.int64] = np.flatnonzero(weight > 0)
        self._votes: Matrix = weight[self._places] / weight[self._places].mean()
        self._rank_of: NDArray[np.int64] = rows.ranks[self._places]
        self._features: Matrix = encoded(encoder, rows.table)[self._places]
        self._num_classes, self.encoder_ = labels.num_classes, encoder

    def _check(self) -> None:
        for name, known in (("metric", METRICS), ("votes", VOTES)):
            value = getattr(self, name)
            if value not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}"
                )
        number = self.n_neighbors
        if number is not None and not is_whole(number):
            raise ValueError(f"n_neighbors must be a whole number of at least 1; got {number!r}")
        anchors = self.anchors
        if anchors is not None and not is_whole(anchors, 2):
            raise ValueError(f"anchors must be a whole number of at least 2; got {anchors!r}")

    def _learn(self, seed: int) -> LearntMap:
        x, ranks = self._features, self._rank_of
        most = _ANCHORS[self.metric] if self.anchors is None else self.anchors
        if len(ranks) > most:
            chosen = np.random.default_rng(seed).choice(len(ranks), most, replace=False)
            x, ranks = x[chosen], ranks[chosen]
        if self.metric == "none" or len(np.unique(ranks)) < 2:
            return LearntMap(np.eye(x.shape[1]), 0.0, 0.0, 0)
        if self.metric == "gradient":
            return learn_by_gradient(x, ranks, time_limit=self.time_limit)
        return learn_by_chains(x, ranks, seed=seed, time_limit=self.time_limit)

    def _choose(self, validation: Rows | None, seed: int) -> int:
        """The number of neighbours whose curves of rows that are not their own are best."""
        if self.n_neighbors is not None:
            return min(self.n_neighbors, len(self._rank_of))
        leaves_one_out = validation is None
        most = len(self._rank_of) - leaves_one_out
        numbers = [number for number in _NUMBERS if number <= most] or [max(most, 1)]
        weight: Matrix | None
        if validation is None:
            judged = np.arange(len(self._rank_of))
            if len(judged) > _JUDGED:
                judged = np.random.default_rng(seed).choice(judged, _JUDGED, replace=False)
            mapped, ranks, weight = self._mapped[judged], self._rank_of[judged], self._votes[judged]
        else:
            mapped = encoded(self.encoder_, validation.table) @ self.map_.T
            ranks, weight = validation.ranks, validation.weight
        if len(numbers) == 1 or len(ranks) == 0:
            return numbers[0]
        # A row is its own nearest neighbour, at a distance of 0: leave one out.
        near, distances = self._nearest(mapped, numbers[-1] + leaves_one_out)
        if leaves_one_out:
            near, distances = _without_self(near, distances, judged)
        above = ranks[:, None] > np.arange(self._num_classes - 1)
        scores = []
        for number in numbers:
            shares = self._shares(near[:, :number], distances[:, :number])
            missed = ((1 - shares.cumsum(1)[:, :-1] - above) ** 2).sum(1)
            scores.append(float(np.average(missed, weights=weight)))
        return numbers[int(np.argmin(scores))]

    # ---- predicting --------------------------------------------------------------------------

    def _nearest(self, mapped: Matrix, number: int) -> tuple[NDArray[np.int64], Matrix]:
        """Places and distances of the nearest rows of the fit, (n, k) both."""
        number = min(number, len(self._rank_of))
        step = max(1, _CHUNK // len(self._rank_of))
        places, distances = [np.zeros((0, number), np.int64)], [np.zeros((0, number))]
        for start in range(0, len(mapped), step):
            lengths = cdist(mapped[start : start + step], self._mapped)
            near = np.argpartition(lengths, number - 1, axis=1)[:, :number]
            away = np.take_along_axis(lengths, near, 1)
            order = np.lexsort((near, away), axis=1)
            places.append(np.take_along_axis(near, order, 1))
            distances.append(np.take_along_axis(away, order, 1))
        return np.concatenate(places), np.concatenate(distances)

    def _counts(self, near: NDArray[np.int64], distances: Matrix) -> Matrix:
        """The votes for each rank, (n, K); k in all where rows have no weights."""
        votes = np.ones_like(distances)
        if self.votes == "distance":
            with np.errstate(divide="ignore"):
                votes = 1 / distances
            # who is at no distance decides alone
            endless = np.isinf(votes)
            votes = np.where(endless.any(1, keepdims=True), endless, votes)
            votes = votes * (votes.shape[1] / votes.sum(1, keepdims=True))
        votes = votes * self._votes[near]
        counts = np.zeros((len(near), self._num_classes))
        for place in range(near.shape[1]):
            counts[np.arange(len(near)), self._rank_of[near[:, place]]] += votes[:, place]
        return counts

    def _shares(self, near: NDArray[np.int64], distances: Matrix) -> Matrix:
        """P(y = k), (n, K)."""
        counts = self._counts(near, distances)
        smoothed: Matrix = (counts + 1 / self._num_classes) / (counts.sum(1, keepdims=True) + 1)
        return smoothed

    def curves_of_rows(self, table: RawTable) -> Iterator[RankCurve]:
        """The shares of the ranks among the neighbours."""
        mapped = encoded(self.encoder_, table) @ self.map_.T
        shares = self._shares(*self._nearest(mapped, self.n_neighbors_))
        yield RankCurve(torch.from_numpy(np.log(shares)))

    def neighbors(self, X: Any, number: int | None = None) -> Neighbors:  # noqa: N803
        """The rows of the fit that decide for each row, as its explanation.

        Parameters
        ----------
        X
            Rows, as for ``fit``.
        number : int, optional
            How many, instead of as many as are asked.
        """
        check_is_fitted(self, "labels_")
        mapped = encoded(self.encoder_, self.schema_.read(X)) @ self.map_.T
        near, distances = self._nearest(mapped, self.n_neighbors_ if number is None else number)
        labels = self.labels_.from_ranks(self._rank_of[near].ravel()).reshape(near.shape)
        return Neighbors(self._places[near], distances, labels)

    def outcome(self) -> dict[str, Any]:
        """The number of neighbours, and the measure of the metric before and after."""
        return {"n_neighbors": self.n_neighbors_, "measure": list(self.measure_)}

    # ---- files -------------------------------------------------------------------------------

    def describe_model(self) -> Described:
        """The rows, the metric and the encoding of the columns."""
        tensors = {f"{_ENCODER}{k}": v for k, v in describe_encoder(self.encoder_).items()}
        tensors |= {name: torch.from_numpy(values) for name, values in self._arrays().items()}
        document = {"n_neighbors": self.n_neighbors_, "measure": list(self.measure_)}
        return Described(document, tensors)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "features": self._features,
            "ranks": self._rank_of,
            "places": self._places,
            "votes": self._votes,
            "map": self.map_,
        }

    def rebuild_model(self, described: Described) -> None:
        """The model that a file describes, which is not trusted."""
        document, tensors = described
        of_encoder = {
            k.removeprefix(_ENCODER): v for k, v in tensors.items() if k.startswith(_ENCODER)
        }
        encoder = rebuild_encoder(of_encoder, self.schema_)
        rest = {name: v.numpy() for name, v in tensors.items() if not name.startswith(_ENCODER)}
        if set(rest) != {"features", "ranks", "places", "votes", "map"}:
            raise ValueError("it lacks a tensor of neighbours or has one too many")
        n, d = len(rest["ranks"]), encoder.num_features
        if rest["map"].ndim != 2 or not n:
            raise ValueError("its neighbours are none")
        shapes = {"features": (n, d), "ranks": (n,), "places": (n,), "votes": (n,)}
        shapes["map"] = (len(rest["map"]), d)
        for name, values in rest.items():
            kind = np.int64 if name in ("ranks", "places") else np.float64
            if values.shape != shapes[name] or values.dtype != kind:
                raise ValueError(f"its {name} must be of the shape {shapes[name]}")
            least = -np.inf if name in ("features", "map") else 0
            if not np.isfinite(values).all() or (values < least).any():
                raise ValueError(f"its {name} hold what cannot be")
        if rest["ranks"].max() >= self.labels_.num_classes:
            raise ValueError("its ranks do not fit its classes")
        number = typed(document["n_neighbors"], int, "n_neighbors")
        if not 1 <= number <= n:
            raise ValueError(f"it must ask 1 to {n} neighbours; got {number}")
        before, after = typed(document["measure"], list, "measure")
        self._check()
        self.encoder_, self._num_classes = encoder, self.labels_.num_classes
        self._features, self._rank_of, self._places = (
            rest["features"],
            rest["ranks"],
            rest["places"],
        )
        self._votes, self.map_ = rest["votes"], rest["map"]
        self._mapped = self._features @ self.map_.T
        self.n_neighbors_, self.measure_ = number, (float(before), float(after))


def _without_self(
    near: NDArray[np.int64], distances: Matrix, places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Matrix]:
    """Neighbours (n, k+1) but for the row itself, or the last where twins crowd it out."""
    is_self = near == places[:, None]
    is_self[~is_self.any(1), -1] = True
    shape = len(near), near.shape[1] - 1
    return near[~is_self].reshape(shape), distances[~is_self].reshape(shape)
