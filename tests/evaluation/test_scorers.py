"""Scorers: one for every metric of the table, and nothing kept beside it."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from echelon import OrdinalClassifier
from echelon.evaluation import metrics, scorers
from echelon.evaluation.metrics import METRICS
from echelon.evaluation.scorers import neg_mae
from tests.models.test_predicting import NAMES, rows


def test_there_is_a_scorer_for_every_metric_under_its_name() -> None:
    names = [name if row.higher_is_better else f"neg_{name}" for name, row in METRICS.items()]
    assert list(scorers.SCORERS) == names
    assert set(names) <= set(dir(scorers))
    for name in names:
        scorer = getattr(scorers, name)
        assert scorer is scorers.SCORERS[name]
        assert repr(scorer) == f"echelon.evaluation.scorers.{name}"
    assert neg_mae is scorers.neg_mae
    assert repr(pickle.loads(pickle.dumps(neg_mae))) == repr(neg_mae)  # for other processes


def test_what_is_no_scorer_is_named_with_those_there_are() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'mae'; its scorers are neg_mae, neg_"):
        _ = scorers.mae
    assert not hasattr(scorers, "__wrapped__")


@pytest.fixture(scope="module")
def fitted() -> OrdinalClassifier:
    model = OrdinalClassifier(
        classes=NAMES, random_state=0, device="cpu", settings={"max_epochs": 8, "refit": False}
    )
    return model.fit(*rows(1500, 0))


@pytest.fixture
def model(fitted: OrdinalClassifier) -> OrdinalClassifier:
    return copy.deepcopy(fitted)


@pytest.mark.parametrize("name", sorted(metrics.METRICS))
def test_every_metric_has_a_scorer_that_knows_the_order_of_strings(fitted, name) -> None:
    table, truth = rows(200, 4)
    higher = metrics.METRICS[name].higher_is_better
    scorer = getattr(scorers, name if higher else f"neg_{name}")
    weight = np.random.default_rng(0).random(200)
    of_labels = metrics.METRICS[name].of_labels
    predicted = fitted.predict(table) if of_labels else fitted.predict_proba(table)
    expected = getattr(metrics, name)(truth, predicted, classes=NAMES, sample_weight=weight)
    assert scorer(fitted, table, truth, sample_weight=weight) == (expected if higher else -expected)
    assert repr(scorer).endswith(name)


def test_scorers_work_where_scikit_learn_takes_them() -> None:
    table, truth = rows(240, 0)
    quick = OrdinalClassifier(
        classes=NAMES, settings={"max_epochs": 1}, random_state=0, device="cpu"
    )
    pipeline = make_pipeline(FunctionTransformer(), quick)
    found = cross_val_score(
        pipeline, table, truth, scoring=scorers.neg_ranked_probability_score, cv=2
    )
    assert found.shape == (2,)
    assert (found < 0).all()
    tried = {"settings": [{"max_epochs": 1}, {"max_epochs": 2}]}
    search = GridSearchCV(quick, tried, scoring=scorers.neg_mae, cv=2)
    assert search.fit(table, truth).best_score_ < 0


@pytest.mark.parametrize("name", sorted(metrics.METRICS))
@pytest.mark.parametrize("falling", [False, True])
def test_a_class_that_only_the_test_rows_hold_is_scored(name: str, falling: bool) -> None:
    """As a fold may hold all rows of a rare class; the score was NaN."""
    features = np.random.default_rng(0).normal(size=(40, 2))
    classes = [9, 4, 1] if falling else None
    model = OrdinalClassifier(
        classes=classes, settings={"max_epochs": 1}, random_state=0, device="cpu"
    )
    model.fit(features, np.array([1, 4, 9, 4] * 10))
    scorer = getattr(scorers, name if metrics.METRICS[name].higher_is_better else f"neg_{name}")
    assert np.isfinite(scorer(model, features, np.array([1, 5, 9, 12] * 10)))


def test_an_unseen_class_takes_its_place_in_the_order() -> None:
    model = OrdinalClassifier(settings={"max_epochs": 1}, random_state=0, device="cpu")
    model.fit(np.arange(40.0)[:, None], np.repeat([1, 4], 20))
    model.predict = lambda X: np.array([1, 4])  # noqa: N803
    assert scorers.neg_mae(model, None, [3, 3]) == -1.0  # 1, 3, 4: one rank from either


def test_a_scorer_refuses_what_has_no_order(fitted) -> None:
    with pytest.raises(ValueError, match="has no classes_"):
        scorers.neg_mae(object(), None, [0])
    with pytest.raises(ValueError, match="metric must be one of"):
        scorers.OrdinalScorer("f1")
    with pytest.raises(ValueError, match=r"place of the label .*3.* neither rise nor fall"):
        scorers.with_unseen(np.array([1, 5, 2]), np.array([3]))
