"""Every metric against scikit-learn, scipy or a plain double loop, and what they refuse."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as theirs

from echelon.evaluation import metrics

NUM_CLASSES = 7

OF_LABELS = [name for name, row in metrics.METRICS.items() if row.of_labels]
OF_DISTRIBUTIONS = [name for name, row in metrics.METRICS.items() if not row.of_labels]


@st.composite
def cases(draw) -> tuple[list[int], list[int], list[int] | None]:
    """Ranks of 7 classes, most of them absent, with whole weights, so that rows can be repeated."""
    allowed = draw(st.lists(st.integers(0, NUM_CLASSES - 1), min_size=1, max_size=4, unique=True))
    size = draw(st.integers(1, 25))
    lists = {"min_size": size, "max_size": size}
    truth = draw(st.lists(st.sampled_from(allowed), **lists))
    prediction = draw(st.lists(st.integers(0, NUM_CLASSES - 1), **lists))
    weight = draw(st.none() | st.lists(st.integers(0, 4), **lists).filter(any))
    return truth, prediction, weight


def mean(values, weight) -> float:
    return float(np.average(values, weights=weight))


def per_class(truth, prediction, weight, loss: Callable[[int, int], float]) -> list[float]:
    weight = [1] * len(truth) if weight is None else weight
    result = []
    for k in set(truth):
        rows = [
            (loss(t, p), w) for t, p, w in zip(truth, prediction, weight, strict=True) if t == k
        ]
        if total := sum(w for _, w in rows):
            result.append(sum(value * w for value, w in rows) / total)
    return result


def kappa(power: str):
    def reference(truth, prediction, weight) -> float:
        labels = range(NUM_CLASSES)
        kept = [w != 0 for w in weight] if weight else [True] * len(truth)
        seen = {v for t, p, k in zip(truth, prediction, kept, strict=True) if k for v in (t, p)}
        if len(seen) == 1:
            return 1.0  # where scikit-learn gives NaN
        return theirs.cohen_kappa_score(
            truth, prediction, labels=labels, weights=power, sample_weight=weight
        )

    return reference


def repeated(values, weight) -> np.ndarray:
    return np.repeat(values, 1 if weight is None else weight)


def association(function):
    def reference(truth, prediction, weight) -> float:
        t, p = repeated(truth, weight), repeated(prediction, weight)
        if len(set(t)) == 1 or len(set(p)) == 1:
            return 0.0  # where scipy gives NaN
        return function(t, p).statistic

    return reference


def concordance(truth, prediction, weight) -> float:
    rows = list(zip(repeated(truth, weight), repeated(prediction, weight), strict=True))
    scores = [
        0.5 if p == q else float((p < q) == (t < u))
        for (t, p), (u, q) in itertools.combinations(rows, 2)
        if t != u
    ]
    return float(np.mean(scores)) if scores else 0.5


REFERENCES = {
    "mae": lambda t, p, w: theirs.mean_absolute_error(t, p, sample_weight=w),
    "rmse": lambda t, p, w: theirs.root_mean_squared_error(t, p, sample_weight=w),
    "accuracy": lambda t, p, w: theirs.accuracy_score(t, p, sample_weight=w),
    "accuracy_within": lambda t, p, w: mean(
        [abs(a - b) <= 1 for a, b in zip(t, p, strict=True)], w
    ),
    "amae": lambda t, p, w: np.mean(per_class(t, p, w, lambda a, b: abs(a - b))),
    "mmae": lambda t, p, w: max(per_class(t, p, w, lambda a, b: abs(a - b))),
    "minimum_sensitivity": lambda t, p, w: min(per_class(t, p, w, lambda a, b: a == b)),
    "linear_weighted_kappa": kappa("linear"),
    "quadratic_weighted_kappa": kappa("quadratic"),
    "kendall_tau": association(stats.kendalltau),
    "spearman": association(stats.spearmanr),
    "concordance_index": concordance,
}


def test_every_metric_of_labels_has_a_reference() -> None:
    assert set(REFERENCES) == set(OF_LABELS)


@pytest.mark.parametrize("name", sorted(REFERENCES))
@given(case=cases())
def test_equals_its_reference(name: str, case) -> None:
    truth, prediction, weight = case
    function = getattr(metrics, name)
    found = function(truth, prediction, num_classes=NUM_CLASSES, sample_weight=weight)
    assert found == pytest.approx(REFERENCES[name](*case), abs=1e-9)
    # The number of classes checks, and never changes a value.
    assert found == function(truth, prediction, sample_weight=weight)


@given(cases())
def test_the_confusion_matrix_equals_scikit_learns(case) -> None:
    truth, prediction, weight = case
    expected = theirs.confusion_matrix(
        truth, prediction, labels=range(NUM_CLASSES), sample_weight=weight
    )
    found = metrics.confusion_matrix(
        truth, prediction, num_classes=NUM_CLASSES, sample_weight=weight
    )
    np.testing.assert_allclose(found, expected)


@st.composite
def distributions(draw) -> tuple[list[int], np.ndarray, list[float] | None]:
    size, k = draw(st.integers(1, 12)), draw(st.integers(2, 6))
    rows = st.lists(st.floats(0.01, 1), min_size=k, max_size=k)
    raw = np.array(draw(st.lists(rows, min_size=size, max_size=size)))
    truth = draw(st.lists(st.integers(0, k - 1), min_size=size, max_size=size))
    weight = draw(
        st.none()
        | st.lists(st.floats(0, 3), min_size=size, max_size=size).filter(lambda w: sum(w) > 0.1)
    )
    return truth, raw / raw.sum(1, keepdims=True), weight


@given(distributions())
def test_scores_of_distributions_equal_a_double_loop(case) -> None:
    truth, probabilities, weight = case
    ranked, logarithmic = [], []
    for t, row in zip(truth, probabilities, strict=True):
        total = 0.0
        for k in range(len(row) - 1):
            total += (sum(row[: k + 1]) - (1.0 if t <= k else 0.0)) ** 2
        ranked.append(total)
        logarithmic.append(-np.log(row[t]))
    found = metrics.ranked_probability_score(truth, probabilities, sample_weight=weight)
    assert found == pytest.approx(mean(ranked, weight))
    found = metrics.log_score(truth, probabilities, sample_weight=weight)
    assert found == pytest.approx(mean(logarithmic, weight))


@given(distributions())
def test_a_sure_prediction_has_its_absolute_error_as_ranked_probability_score(case) -> None:
    truth, probabilities, weight = case
    labels = probabilities.argmax(1)
    sure = np.eye(probabilities.shape[1])[labels]
    found = metrics.ranked_probability_score(truth, sure, sample_weight=weight)
    assert found == pytest.approx(metrics.mae(truth, labels, sample_weight=weight))


def test_an_impossible_truth_has_an_infinite_log_score() -> None:
    assert metrics.log_score([1], [[1.0, 0.0]]) == np.inf
    both = [[1.0, 0.0], [1.0, 0.0]]
    assert metrics.log_score([1, 0], both, sample_weight=[0, 1]) == 0.0
