"""Any classifier as an ordinal model: what it is given, and what becomes of its answers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from echelon import OrdinalReduction
from echelon.data import make_friedman
from echelon.models.features import encoded
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
