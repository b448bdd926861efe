"""What a classifier is told before it gets a row for each threshold."""

import types

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
)
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from echelon.models.schemes import SCHEMES, choose_scheme, fit_scheme
from tests.models.test_schemes import exact, made


def test_constraints_of_the_user_are_kept() -> None:
    x, ranks = made(300, 5)
    up = HistGradientBoostingClassifier(max_iter=20, monotonic_cst=[1, 0, 0])
    fit = fit_scheme(up, "augmented", x, ranks, 5)
    assert list(fit.classifiers[0].monotonic_cst) == [1, 0, 0, -1]
    line = np.zeros((50, 3))
    line[:, 0] = np.linspace(-3, 3, 50)
    assert np.diff(fit.task_probabilities(line), axis=0).min() >= 0
    conditional = fit_scheme(up, "conditional_augmented", x, ranks, 5)
    assert list(conditional.classifiers[0].monotonic_cst) == [1, 0, 0, 0]
    by_name = HistGradientBoostingClassifier(max_iter=5, monotonic_cst={"a": 1})
    frame = pd.DataFrame(x, columns=["a", "b", "threshold"])
    named = fit_scheme(by_name, "augmented", frame, ranks, 5).classifiers[0]
    assert named.monotonic_cst == {"a": 1, "threshold_": -1}
    with pytest.raises(ValueError, match="constraints by name need columns with names"):
        fit_scheme(by_name, "augmented", x, ranks, 5)


def test_weights_for_a_classifier_without_them_are_refused() -> None:
    x, ranks = made(50)
    with pytest.raises(ValueError, match=r"KNeighborsClassifier takes none: choose another"):
        fit_scheme(KNeighborsClassifier(), "independent", x, ranks, 4, weight=np.ones(50))
    piped = make_pipeline(StandardScaler(), exact())
    fit_scheme(piped, "independent", x, ranks, 4, weight=np.ones(50))


def test_early_stopping_of_its_own_accord_is_off() -> None:
    x, ranks = made(100)
    auto = HistGradientBoostingClassifier(max_iter=5)
    assert auto.early_stopping == "auto"
    assert fit_scheme(auto, "augmented", x, ranks, 4).classifiers[0].early_stopping is False
    # and where rows stay single it is the classifier's business
    assert fit_scheme(auto, "conditional", x, ranks, 4).classifiers[0].early_stopping == "auto"


def test_lightgbm_stops_on_rows_it_is_given() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    x, ranks = rng.normal(size=(300, 4)), rng.integers(0, 5, 300)
    classifier = lightgbm.LGBMClassifier(
        n_estimators=300, early_stopping_round=10, verbose=-1, n_jobs=1, random_state=0
    )
    for scheme in SCHEMES:
        fit = fit_scheme(classifier, scheme, x, ranks, 5, weight=np.ones(300))
        assert fit.classifiers[0].best_iteration_ < 60
    assert fit.classifiers[0].min_child_samples > 20


@pytest.mark.parametrize(
    "classifier",
    [
        MLPClassifier(early_stopping=True),
        SGDClassifier(loss="log_loss", early_stopping=True),
        GradientBoostingClassifier(n_iter_no_change=5),
        CalibratedClassifierCV(LinearSVC()),
        GridSearchCV(exact(), {"C": [0.1, 1.0]}),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_classifiers_that_divide_their_rows_are_refused(classifier) -> None:
    x, ranks = made(100)
    with pytest.raises(ValueError, match=r"copies of a row stand on both sides.*'conditional'"):
        fit_scheme(classifier, "augmented", x, ranks, 4)
    assert choose_scheme(classifier) == "independent"


def test_leaves_grow_with_the_copies() -> None:
    x, ranks = made(200, 5)
    tree = DecisionTreeClassifier(min_samples_leaf=10, min_samples_split=0.1)
    fitted = fit_scheme(tree, "augmented", x, ranks, 5).classifiers[0]
    assert fitted.min_samples_leaf == 40
    assert fitted.min_samples_split == 0.1  # a share of the rows


class Xgboost(ClassifierMixin, BaseEstimator):
    """What XGBoost's classifier looks like from outside: notes what it was given."""

    __module__ = "xgboost.sklearn"

    def __init__(
        self, min_child_weight=None, monotone_constraints=None, early_stopping_rounds=None
    ) -> None:
        self.min_child_weight = min_child_weight
        self.monotone_constraints = monotone_constraints
        self.early_stopping_rounds = early_stopping_rounds

    def fit(self, X, y, *, sample_weight=None, eval_set=None, verbose=True):  # noqa: N803
        self.given_ = types.SimpleNamespace(eval_set=eval_set, verbose=verbose)
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):  # noqa: N803
        return np.full((len(X), 2), 0.5)


def test_xgboost_is_told_by_its_own_names() -> None:
    x, ranks = made(100)
    signed = Xgboost(monotone_constraints="(0,1,0)", early_stopping_rounds=5)
    fitted = fit_scheme(signed, "auto", x, ranks, 4).classifiers[0]
    assert fitted.monotone_constraints == [0, 1, 0, -1]
    assert fitted.min_child_weight == 3.0
    held, labels = fitted.given_.eval_set[0]
    assert fitted.given_.verbose is False
    assert held.shape == (45, 4)  # 15 rows, three times each
    assert set(labels) == {0, 1}
    assert fit_scheme(Xgboost(), "auto", x, ranks, 4).classifiers[0].given_.eval_set is None
