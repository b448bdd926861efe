"""Scorers: one for every metric of the table, and nothing kept beside it."""

import pickle

import pytest

from echelon.evaluation import scorers
from echelon.evaluation.metrics import METRICS
from echelon.evaluation.scorers import neg_mae


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
