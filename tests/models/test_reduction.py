"""Any classifier as an ordinal model: what it is given, and what becomes of its answers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

import echelon
from echelon import OrdinalReduction
from echelon.data import make_friedman
from echelon.evaluation import metrics
from echelon.functional import margin_loss
from echelon.models.features import encoded
from echelon.models.interior_point import Demands, minimise
from echelon.models.schemes import SCHEMES


@pytest.fixture(scope="module")
def data():
    return make_friedman(200, num_classes=4, seed=1)


class Noting(ClassifierMixin, BaseEstimator):
    """Answers a half, and keeps what it was given."""

    def __init__(self, takes_gaps: bool = False, random_state: int | None = None) -> None:
        self.takes_gaps = takes_gaps
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.takes_gaps
        return tags

    def fit(self, X, y):  # noqa: N803
        self.given_, self.classes_ = np.asarray(X), np.unique(y)
        return self

    def predict_proba(self, X):  # noqa: N803
        return np.full((len(X), 2), 0.5)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_with_two_classes_it_is_the_classifier(data, scheme: str) -> None:
    ranks = (data.ranks > 1).astype(int)
    model = OrdinalReduction(GaussianNB(), scheme).fit(data.features, ranks)
    matrix = encoded(model._encoder, model.schema_.read(data.features))
    plain = GaussianNB().fit(matrix, ranks)
    np.testing.assert_allclose(
        model.predict_proba(data.features), plain.predict_proba(matrix), atol=1e-6
    )


@pytest.mark.parametrize("takes_gaps", [False, True])
def test_gaps_are_filled_only_for_who_cannot_take_them(takes_gaps: bool) -> None:
    frame = pd.DataFrame({"x": [1.0, np.nan, 3.0, 5.0] * 10, "kind": ["a", "b", None, "a"] * 10})
    model = OrdinalReduction(Noting(takes_gaps), "independent").fit(frame, [1, 2, 3, 2] * 10)
    given = model.classifiers_[0].given_
    if takes_gaps:  # the numbers as they are, and one-hot categories
        np.testing.assert_array_equal(given[:4], [[1, 1, 0], [np.nan, 0, 1], [3, 0, 0], [5, 1, 0]])
    else:  # and an indicator of the gaps
        assert given.shape[1] == 1 + 1 + 2
        assert np.isfinite(given).all()
        assert given[:4, 1].tolist() == [0, 1, 0, 0]


def test_the_seed_reaches_a_classifier_without_one(data) -> None:
    forest = RandomForestClassifier(5)
    one, same, other = (
        OrdinalReduction(forest, random_state=seed)
        .fit(data.features, data.ranks)
        .predict_proba(data.features)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert forest.random_state is None
    own = OrdinalReduction(Noting(random_state=7), random_state=0).fit(data.features, data.ranks)
    assert own.classifiers_[0].random_state == 7


def test_the_users_classifier_is_cloned_and_the_default_is_a_logistic_regression(data) -> None:
    given = HistGradientBoostingClassifier(max_iter=5)
    OrdinalReduction(given).fit(data.features, data.ranks)
    assert not hasattr(given, "classes_")
    plain = OrdinalReduction().fit(data.features, data.ranks)
    assert isinstance(plain.classifiers_[0], LogisticRegression)
    assert (np.abs(plain.predict(data.features) - data.ranks)).mean() < 0.7


def rajaram(**options) -> OrdinalReduction:
    machine = LinearSVC(loss="hinge", fit_intercept=False, tol=1e-7, max_iter=10**6, **options)
    return OrdinalReduction(
        machine, "augmented", train_cost="zero_one", threshold="one_hot", random_state=0
    )


def test_rajaram_is_the_margin_at_immediate_thresholds(data) -> None:
    """With thresholds that are penalised, as coefficients of columns of 10."""
    model = rajaram(C=0.3).fit(data.features, data.ranks)
    x = encoded(model._encoder, model.schema_.read(data.features))
    answers = model.fitted_.task_logits(x)
    above = data.ranks[:, None] - np.arange(3)
    sign = np.where(above > 0, 1.0, -1.0) * ((above == 0) | (above == 1))
    penalty = np.ones(x.shape[1] + 3)
    demands = Demands(x, sign, np.full(sign.shape, 0.3), 10 * np.eye(3), penalty, ordered=False)
    found = minimise(demands, 1e-11)
    w, cutpoints = found.point[:-3], demands.cutpoints(found.point)
    np.testing.assert_allclose(answers, (x @ w)[:, None] - cutpoints, atol=1e-3)
    logits = np.column_stack([cutpoints[0] - x @ w, np.zeros((len(x), 3))])
    logits[:, 1:3] = np.log(np.expm1(np.diff(cutpoints)))
    loss = margin_loss(
        torch.from_numpy(logits),
        torch.from_numpy(data.ranks),
        thresholds="immediate",
        reduction="sum",
    )
    assert found.objective == pytest.approx(found.point @ found.point / 2 + 0.3 * float(loss))


def test_scores_get_a_curve_whose_median_is_the_count(data, tmp_path: Path) -> None:
    for estimator in (LinearSVC(), SVC(C=2.0)):
        model = OrdinalReduction(estimator, random_state=0).fit(data.features, data.ranks)
        assert model.scheme_ == "augmented"
        new = make_friedman(300, num_classes=4, seed=2)
        features = model._features(model.schema_.read(new.features))
        counted = (model.fitted_.task_logits(features) > 0).sum(1)
        assert (model.predict(new.features) == counted).all()
        assert model.fitted_.scale != 1.0
        mended = metrics.ranked_probability_score(new.ranks, model.predict_proba(new.features))
        plain = OrdinalReduction(random_state=0).fit(data.features, data.ranks)
        other = metrics.ranked_probability_score(new.ranks, plain.predict_proba(new.features))
        assert mended < 1.1 * other
    linear = rajaram().fit(data.features, data.ranks)
    linear.save(tmp_path / "model")
    loaded = echelon.load(tmp_path / "model")
    assert loaded.train_cost == "zero_one"
    expected = linear.predict_proba(data.features)
    np.testing.assert_array_equal(loaded.predict_proba(data.features), expected)


def test_costs_of_zero_and_one_train_the_neighbouring_thresholds(data) -> None:
    """The classifier of a threshold then sees the two ranks beside it, and no other."""
    model = OrdinalReduction(Noting(), "independent", train_cost="zero_one")
    model.fit(data.features, data.ranks)
    counts = np.bincount(data.ranks)
    for k, classifier in enumerate(model.classifiers_):
        assert len(classifier.given_) == counts[k] + counts[k + 1]


def test_costs_weigh_the_tasks(data) -> None:
    logistic = LogisticRegression(), "independent"
    squared = OrdinalReduction(*logistic, train_cost="squared", random_state=0)
    squared.fit(data.features, data.ranks)
    matrix = encoded(squared._encoder, squared.schema_.read(data.features))
    for k, classifier in enumerate(squared.classifiers_):
        weight = np.abs(2 * (data.ranks - k) - 1)
        plain = LogisticRegression().fit(matrix, data.ranks > k, sample_weight=weight)
        np.testing.assert_allclose(classifier.coef_, plain.coef_, atol=1e-6)
    ranks = np.arange(4)
    matrix = (ranks[:, None] - ranks) ** 2
    same = OrdinalReduction(*logistic, train_cost=matrix, random_state=0)
    same.fit(data.features, data.ranks)
    expected = squared.predict_proba(data.features)
    np.testing.assert_array_equal(same.predict_proba(data.features), expected)
    absolute = OrdinalReduction(train_cost="absolute").fit(data.features, data.ranks)
    assert absolute.fitted_.scale == 1.0


def test_weights_of_rows_and_of_costs_are_multiplied(data) -> None:
    weight = np.random.default_rng(0).random(200)
    held = OrdinalReduction(
        LogisticRegression(), "augmented", train_cost="squared", validation_fraction=0.25,
        random_state=0,
    ).fit(data.features, data.ranks, sample_weight=weight)  # fmt: skip
    assert held.cutpoints_ is not None
    assert np.isfinite(held.predict_proba(data.features)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_cost": "cubic"}, "train_cost must be one of 'absolute', 'squared', 'zero_one'"),
        ({"train_cost": np.ones((3, 3))}, r"of the shape \(4, 4\)"),
        ({"train_cost": "zero_one", "scheme": "conditional"}, "choose scheme='augmented'"),
        ({"threshold": "ordinal"}, "coding must be one of auto, numeric, one_hot"),
    ],
)
def test_costs_and_thresholds_that_there_are_not(data, options: dict, message: str) -> None:
    model = OrdinalReduction(**{"scheme": "augmented", **options})
    with pytest.raises(ValueError, match=message):
        model.fit(data.features, data.ranks)
