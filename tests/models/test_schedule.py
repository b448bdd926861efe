"""Who may take how long: shares of a limit, what was taken before, and what is too short."""

import pytest

from echelon.models.schedule import Schedule


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """A clock that stands still unless a test moves it."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_without_a_limit_everything_is_allowed(clock) -> None:
    schedule = Schedule(None, folds=5)
    schedule.took["boosting"] = 1e9
    assert schedule.seconds("boosting", is_last=True) is None
    assert schedule.allows_fold()
    assert schedule.allows("boosting")
    assert not schedule.was_short


def test_the_last_model_of_the_first_fold_gets_what_the_others_leave(clock) -> None:
    schedule = Schedule(60.0, folds=5)  # 12 seconds a fold
    assert schedule.seconds("linear", is_last=False) == pytest.approx(6)
    clock[0] += 1
    schedule.took["linear"] = 1.0
    assert schedule.seconds("boosting", is_last=False) == pytest.approx(5.5)
    clock[0] += 3
    schedule.took["boosting"] = 3.0
    assert schedule.seconds("network", is_last=True) == pytest.approx(8)
    clock[0] += 8
    schedule.took["network"] = 8.0
    assert schedule.seconds("network", is_last=True) == pytest.approx(12)  # with a margin
    assert schedule.allows_fold()
    assert not schedule.was_short


def test_what_cannot_be_done_is_left_out_and_said(clock) -> None:
    schedule = Schedule(10.0, folds=5)
    clock[0] += 1.8
    schedule.took["boosting"] = 1.8
    assert schedule.seconds("network", is_last=True) == 0
    assert schedule.was_short
    clock[0] += 7
    assert not schedule.allows_fold()
    assert not schedule.allows("boosting")


def test_the_only_model_is_always_begun(clock) -> None:
    assert Schedule(0.01, folds=5).seconds("network", is_last=True) == 1.0


def test_what_is_probably_left(clock) -> None:
    schedule = Schedule(60.0, folds=5)
    assert schedule.expected(5) == 60  # nothing is known but the limit
    clock[0] += 3
    schedule.took["boosting"] = 3.0
    assert schedule.expected(4) == 12
    assert schedule.expected(40) == 57
    assert Schedule(None, folds=5).expected(5) == float("inf")
