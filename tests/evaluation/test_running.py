"""Metrics of parts that add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon.evaluation import RunningScores, metrics
from tests.evaluation.test_metrics import distributions


@given(distributions(), st.integers(0, 12))
def test_parts_add_up_to_the_whole(case, place: int) -> None:
    truth, probabilities, weight = case
    prediction = probabilities.argmax(1)
    k = probabilities.shape[1]
    expected = metrics.all_scores(truth, prediction, probabilities, sample_weight=weight)
    parts = [RunningScores(k), RunningScores(k)]
    for part, rows in zip(parts, (slice(0, place), slice(place, None)), strict=True):
        part.update(
            truth[rows],
            prediction=prediction[rows],
            probabilities=probabilities[rows],
            sample_weight=None if weight is None else weight[rows],
        )
    found = (parts[0] + parts[1]).compute()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-9), name
    summed = RunningScores.from_state(parts[0].state() + parts[1].state(), k)
    assert summed.compute() == found


def test_running_scores_refuse_what_they_cannot_use() -> None:
    running = RunningScores(3)
    with pytest.raises(ValueError, match="there are no rows yet"):
        running.compute()
    with pytest.raises(ValueError, match="needs prediction="):
        running.update([0])
    with pytest.raises(ValueError, match="do not add up"):
        running + RunningScores(4)
    with pytest.raises(ValueError, match="state must have the shape"):
        RunningScores.from_state([1.0], 3)
