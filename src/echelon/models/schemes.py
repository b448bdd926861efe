"""Any binary classifier as an ordinal one: the four schemes of the reduction.

Task k asks whether y > k. A scheme says whose tasks these are (every row trains every task, or
CORN's conditional subsets) and whether K-1 classifiers learn them or one does, to which the
threshold is a column (Frank and Hall 2001; Li and Lin 2007; Shi et al.).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone

from echelon.curve import RankCurve
from echelon.methods import Method, method
from echelon.models import classifiers as about
from echelon.models.arguments import as_ranks, as_weight
from echelon.models.links import Array

_CLIP = 1e-7  # nothing is impossible because a classifier never saw it
_CHUNK = 500_000  # extended rows that are predicted at once
CODINGS = ("numeric", "one_hot")


class Scheme(NamedTuple):
    """A way of learning the binary tasks: whose they are, and whether one classifier has them."""

    name: str
    summary: str
    method: str
    shared: bool


SCHEMES: Mapping[str, Scheme] = MappingProxyType(
    {
        scheme.name: scheme
        for scheme in (
            Scheme("independent", "a classifier per threshold (Frank and Hall)", "ornn", False),
            Scheme(
                "conditional",
                "a classifier per threshold on the rows that reach it (CORN)",
                "corn",
                False,
            ),
            Scheme(
                "augmented", "one classifier, the threshold a column (Li and Lin)", "ornn", True
            ),
            Scheme(
                "conditional_augmented",
                "one classifier on CORN's subsets, the threshold a column",
                "corn",
                True,
            ),
        )
    }
)


@dataclass(frozen=True)
class SchemeFit:
    """Fitted binary classifiers, and how their probabilities become a curve.

    Attributes
    ----------
    scheme : str
    num_classes : int
    classifiers : tuple
        One, or K-1 of them: a fitted classifier, or a probability where there was nothing to fit.
    reached : array of bool, shape (K-1,)
        Which thresholds any row trained; a shared classifier says nothing of the others, whose
        probability is 1/2.
    preprocessing : transformer, optional
        The fitted steps of a pipeline before its classifier.
    coding : {"numeric", "one_hot"}, optional
        How the threshold stands in the rows of a shared classifier.
    threshold_scale : float
        What stands for the 1 of one-hot columns.
    scale : float
        What the logits are multiplied by in the curve; 1 where the answers are probabilities.
    """

    scheme: str
    num_classes: int
    classifiers: tuple[Any, ...]
    reached: NDArray[np.bool_]
    preprocessing: Any | None = None
    coding: str | None = None
    threshold_scale: float = 1.0
    scale: float = 1.0

    @property
    def method(self) -> Method:
        """The method whose tasks were learned and whose curve is read."""
        return method(SCHEMES[self.scheme].method, self.num_classes)

    def task_probabilities(self, features: Any) -> Array:
        """The classifiers' own answers, (n, K-1), before they are made a curve.

        P(y > k), or P(y > k given y >= k) in the conditional schemes.
        """
        rows = features
        if self.preprocessing is not None:
            rows = self.preprocessing.transform(rows)
        n, num_tasks = _length(rows), self.num_classes - 1
        answers = np.empty((n, num_tasks))
        if self.coding is None:
            for k, classifier in enumerate(self.classifiers):
                answers[:, k] = _probability(classifier, rows)
            return answers
        step = max(1, _CHUNK // num_tasks)
        for start in range(0, n, step):
            places = np.arange(start, min(n, start + step))
            pairs = np.repeat(places, num_tasks), np.tile(np.arange(num_tasks), len(places))
            extended = _extended(rows, *pairs, num_tasks, self.coding, self.threshold_scale)
            probabilities = _probability(self.classifiers[0], extended)
            answers[places] = probabilities.reshape(len(places), num_tasks)
        answers[:, ~self.reached] = 0.5
        return answers

    def curve(self, features: Any) -> RankCurve:
        """The distribution over ranks of each row: by the chain rule, or of sorted exceedances."""
        return self.method.curve(torch.from_numpy(self.scale * self.task_logits(features)))

    def task_logits(self, features: Any) -> Array:
        """The logits of the classifiers' own answers, (n, K-1)."""
        answers = self.task_probabilities(features).clip(_CLIP, 1 - _CLIP)
        return np.asarray(np.log(answers) - np.log1p(-answers))

    def log_probabilities(self, features: Any) -> Array:
        """log P(y = k), (n, K).

        A rank between two equal exceedances, which trees often give, has the probability 1e-7
        instead of 0.
        """
        logs: Array = self.curve(features).log_probabilities.numpy()
        low = (logs < np.log(_CLIP)).any(1)
        if low.any():
            raised = np.maximum(logs[low], np.log(_CLIP))
            logs[low] = raised - np.log(np.exp(raised).sum(1, keepdims=True))
        return logs


def choose_scheme(estimator: Any) -> str:
    """The scheme that suits a classifier, for ``scheme="auto"``.

    Boosted trees that take a monotone constraint share what they learn across thresholds as
    `augmented`. Single trees and forests lose by that constraint; they and all others share as
    `conditional_augmented`, whose curve is consistent without it. Linear models have too few
    coefficients to share them and get `conditional`. What divides its rows by itself must not see
    copies of them and gets `independent`. Scores, which are no probabilities, can be sorted and not
    multiplied: who gives no more gets `augmented`.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    >>> choose_scheme(HistGradientBoostingClassifier()), choose_scheme(RandomForestClassifier())
    ('augmented', 'conditional_augmented')
    """
    _, classifier = about.apart(estimator)
    if about.divides_rows(classifier):
        return "independent"
    if not about.gives_probabilities(classifier):
        return "augmented"
    if about.is_linear(classifier):
        return "conditional"
    if about.takes_monotone(classifier) and not about.is_unboosted(classifier):
        return "augmented"
    return "conditional_augmented"


def fit_scheme(
    estimator: Any,
    scheme: str,
    features: Any,
    ranks: ArrayLike,
    num_classes: int,
    *,
    weight: ArrayLike | None = None,
    validation: tuple[Any, ArrayLike] | tuple[Any, ArrayLike, ArrayLike | None] | None = None,
    coding: str = "auto",
    threshold_scale: float = 10.0,
    task_weight: Array | None = None,
) -> SchemeFit:
    """Fit clones of a classifier to the binary tasks of the ranks.

    Parameters
    ----------
    estimator : classifier
        Anything in the manner of scikit-learn with `predict_proba`, or at least
        `decision_function`, whose sigmoid then stands for a probability; or a pipeline that ends
        in one: the steps before it are fitted once, on the rows themselves.
    scheme : {"auto", "independent", "conditional", "augmented", "conditional_augmented"}
    features : array, DataFrame or sparse matrix, shape (n, d)
        Passed on as they are: categories and missing values are the classifier's business.
    ranks : array-like, shape (n,)
    num_classes : int
        K, at least 2. With two, every scheme is the classifier itself.
    weight : array-like, shape (n,), optional
        For classifiers whose fit takes `sample_weight`.
    validation : (features, ranks) or (features, ranks, weight), optional
        Rows for classifiers that stop early on rows they are given; if there are none, some are
        held back, before rows are extended.
    coding : {"auto", "numeric", "one_hot"}
        How the threshold stands in the rows of a shared classifier: as one number, which trees can
        divide, or as a column for each, which a linear model needs.
    threshold_scale : float
        What stands for the 1 of one-hot columns: the larger, the less a penalty on the
        coefficients holds the thresholds.
    task_weight : array, shape (K, K-1), optional
        What the pair of a rank and a threshold counts for; see
        :func:`echelon.models.train_costs.task_weights`. Not for the conditional schemes, whose
        answers must be probabilities.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> fit = fit_scheme(LogisticRegression(), "conditional", x, [0, 0, 1, 1, 2, 2], 3)
    >>> np.exp(fit.log_probabilities(x)).argmax(1)
    array([0, 0, 1, 1, 2, 2])
    """
    about.require_answers(estimator)
    y = as_ranks(ranks, num_classes, length=_length(features))
    given = None if weight is None else as_weight(weight, len(y))
    if scheme == "auto":
        scheme = choose_scheme(estimator)
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be one of auto, {', '.join(SCHEMES)}; got {scheme!r}")
    if coding not in ("auto", *CODINGS):
        raise ValueError(f"coding must be one of auto, {', '.join(CODINGS)}; got {coding!r}")
    own_probabilities = about.gives_probabilities(estimator) and task_weight is None
    if SCHEMES[scheme].method != "ornn" and not own_probabilities:
        raise ValueError(
            f"{scheme} multiplies probabilities, which neither scores nor weighted tasks give; "
            f"choose scheme='augmented' or 'independent'"
        )
    if given is not None and (given == 0).any():
        there = np.flatnonzero(given > 0)
        features, y, given = _take(features, there), y[there], given[there]

    before, classifier = about.apart(estimator)
    row = SCHEMES[scheme]
    shared = row.shared and num_classes > 2  # with one threshold there is nothing to share
    if shared and about.divides_rows(classifier):
        raise ValueError(
            f"{scheme} makes K-1 rows of each, which a classifier must not divide again, or copies "
            f"of a row stand on both sides; {type(classifier).__name__} does so as it is: turn off "
            f"its early stopping or cross-validation, or choose scheme='conditional'"
        )
    held = None if validation is None else _checked_validation(validation, num_classes)
    if held is None and about.wants_validation(classifier):
        features, y, given, held = _hold_back(classifier, features, y, given)
    preprocessing = None
    if before is not None:
        preprocessing = clone(before)
        features = preprocessing.fit_transform(features, y)
        if held is not None:
            held = preprocessing.transform(held[0]), *held[1:]

    tasks = method(row.method, num_classes)
    targets, active = _tasks(tasks, y)
    held_targets, held_active = (targets, active) if held is None else _tasks(tasks, held[1])
    counted = _PairWeights.of(given, y, task_weight)
    of_held = counted if held is None else _PairWeights.of(held[2], held[1], task_weight)
    active, held_active = active & counted.above_zero, held_active & of_held.above_zero
    reached: NDArray[np.bool_] = np.asarray(active.any(0))
    if not shared:
        fitted = []
        for k in range(num_classes - 1):
            every = np.full(len(y), k)
            weights = counted.at(np.arange(len(y)), every)
            rows = _rows_of_task(features, weights, targets[:, k], active[:, k])
            of_validation = None
            if held is not None:
                of_task = held_targets[:, k], held_active[:, k]
                every = np.full(len(held[1]), k)
                weights = of_held.at(np.arange(len(held[1])), every)
                of_validation = _rows_of_task(held[0], weights, *of_task)
            fitted.append(_fit(clone(classifier), *rows, of_validation))
        return SchemeFit(scheme, num_classes, tuple(fitted), reached, preprocessing=preprocessing)

    if coding == "auto":
        coding = "one_hot" if about.is_linear(classifier) else "numeric"
    num_tasks = num_classes - 1
    falls = coding == "numeric" and row.method == "ornn" and about.takes_monotone(classifier)
    if falls and about.is_unboosted(classifier) and _has_missing(features):
        falls = False  # sorting mends what the constraint cannot prevent
    pairs, thresholds = np.nonzero(active)
    extended = _extended(features, pairs, thresholds, num_tasks, coding, threshold_scale)
    of_validation = None
    if held is not None:
        places, at = np.nonzero(held_active)
        of_validation = (
            _extended(held[0], places, at, num_tasks, coding, threshold_scale),
            held_targets[places, at].astype(np.int64),
            of_held.at(places, at),
        )
    prepared = about.for_extended_rows(
        classifier,
        copies=len(pairs) / len(y),
        threshold_columns=num_tasks if coding == "one_hot" else 1,
        num_columns=_width(features),
        column_names=list(extended.columns) if hasattr(extended, "columns") else None,
        falls=falls,
        validation=held is not None,
    )
    fitted_one = _fit(
        prepared,
        extended,
        targets[pairs, thresholds].astype(np.int64),
        counted.at(pairs, thresholds),
        of_validation,
    )
    return SchemeFit(
        scheme,
        num_classes,
        (fitted_one,),
        reached,
        preprocessing=preprocessing,
        coding=coding,
        threshold_scale=threshold_scale,
    )


_Held = tuple[Any, NDArray[np.int64], Array | None]


class _PairWeights(NamedTuple):
    """What pairs of a row and a threshold count for: the row's weight times that of its task."""

    of_rows: Array | None
    of_tasks: Array | None  # (n, K-1)

    @classmethod
    def of(
        cls, weight: Array | None, ranks: NDArray[np.int64], task_weight: Array | None
    ) -> "_PairWeights":
        return cls(weight, None if task_weight is None else task_weight[ranks])

    @property
    def above_zero(self) -> Any:
        """Which pairs count, (n, K-1) or one for all."""
        return np.True_ if self.of_tasks is None else self.of_tasks > 0

    def at(self, rows: NDArray[np.int64], thresholds: NDArray[np.int64]) -> Array | None:
        """Of some pairs, or nothing where all that count do so alike."""
        weight = None if self.of_rows is None else self.of_rows[rows]
        if self.of_tasks is None or np.isin(self.of_tasks, (0.0, 1.0)).all():
            return weight
        targets: Array = self.of_tasks[rows, thresholds]
        return targets if weight is None else weight * targets


def _tasks(tasks: Method, ranks: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Targets and activity of each row and task, (n, K-1) both."""
    targets, active = tasks.tasks(torch.from_numpy(ranks))
    return targets.numpy(), active.numpy()


def _rows_of_task(
    features: Any, weight: Array | None, targets: NDArray[np.bool_], active: NDArray[np.bool_]
) -> _Held:
    """The rows that train a task, with targets and activity (n,): rows, labels and weights."""
    if active.all():
        return features, targets.astype(np.int64), weight
    rows = np.flatnonzero(active)
    weights = None if weight is None else weight[rows]
    return _take(features, rows), targets[rows].astype(np.int64), weights


def _fit(
    classifier: Any,
    features: Any,
    labels: NDArray[np.int64],
    weight: Array | None,
    validation: _Held | None,
) -> Any:
    """The fitted classifier, or a probability where all labels are alike."""
    if len(np.unique(labels)) < 2:
        return float((labels.sum() + 0.5) / (len(labels) + 1))
    if validation is not None and len(validation[1]) == 0:
        validation = None
    classifier.fit(features, labels, **about.fit_arguments(classifier, weight, validation))
    return classifier


def _probability(classifier: Any, features: Any) -> Array:
    """P(label 1) of each row, (n,)."""
    if isinstance(classifier, float):
        return np.full(_length(features), classifier)
    return about.positive_probability(classifier, features)


def _checked_validation(validation: Sequence[Any], num_classes: int) -> _Held:
    features, ranks, *rest = validation
    y = as_ranks(ranks, num_classes, length=_length(features))
    weight = rest[0] if rest else None
    return features, y, None if weight is None else as_weight(weight, len(y))


def _hold_back(
    classifier: Any, features: Any, ranks: NDArray[np.int64], weight: Array | None
) -> tuple[Any, NDArray[np.int64], Array | None, _Held | None]:
    """Rows to fit, and rows of every rank to stop on, divided before anything is extended."""
    share = about.validation_share(classifier)
    seed = classifier.get_params(deep=False).get("random_state")
    rng = np.random.default_rng(seed if isinstance(seed, int) else 0)
    # every 1/share-th row in the order of the ranks, from a random start
    order = np.lexsort((rng.random(len(ranks)), ranks))
    out = np.zeros(len(ranks), dtype=bool)
    out[order] = np.diff(np.floor(share * np.arange(len(ranks) + 1) + rng.random())) > 0
    if not out.any() or out.all():
        out[:] = False
        out[order[len(order) // 2]] = len(order) > 1
    kept, held = np.flatnonzero(~out), np.flatnonzero(out)
    parts = [
        (_take(features, rows), ranks[rows], None if weight is None else weight[rows])
        for rows in (kept, held)
    ]
    return *parts[0], parts[1] if len(held) else None


def _extended(
    features: Any,
    rows: NDArray[np.int64],
    thresholds: NDArray[np.int64],
    num_tasks: int,
    coding: str,
    scale: float,
) -> Any:
    """The given rows, each with its threshold in one column or in K-1 columns behind the others."""
    if coding == "one_hot":
        extra = np.zeros((len(rows), num_tasks))
        extra[np.arange(len(rows)), thresholds] = scale
    else:
        extra = thresholds[:, None].astype(np.float64)
    taken = _take(features, rows)
    if hasattr(features, "iloc"):
        taken = taken.copy()
        for place, name in enumerate(_new_names(list(features.columns), extra.shape[1])):
            taken[name] = extra[:, place]
        return taken
    if sparse.issparse(features):
        return sparse.hstack([taken, sparse.csr_matrix(extra)], format="csr")
    return np.concatenate([taken, extra.astype(taken.dtype)], axis=1)


def _new_names(taken: list[Any], number: int) -> list[Any]:
    """Names for threshold columns that no column has, of the same type."""
    if all(isinstance(name, str) for name in taken):
        stem = "threshold"
        while any(name.startswith(stem) for name in taken):
            stem += "_"
        return [stem] if number == 1 else [f"{stem}{k}" for k in range(number)]
    highest = max((name for name in taken if isinstance(name, int)), default=-1)
    return [highest + 1 + k for k in range(number)]


def _take(features: Any, rows: NDArray[np.int64]) -> Any:
    if hasattr(features, "iloc"):
        return features.iloc[rows].reset_index(drop=True)
    if sparse.issparse(features):
        return features.tocsr()[rows]
    return np.asarray(features)[rows]


def _length(features: Any) -> int:
    shape = getattr(features, "shape", None)
    return int(shape[0]) if shape is not None else len(features)


def _width(features: Any) -> int:
    shape: tuple[int, ...] = features.shape if hasattr(features, "shape") else np.shape(features)
    return int(shape[1])


def _has_missing(features: Any) -> bool:
    if hasattr(features, "isna"):
        return bool(features.isna().to_numpy().any())
    values = features.data if sparse.issparse(features) else np.asarray(features)
    return values.dtype.kind == "f" and bool(np.isnan(values).any())
