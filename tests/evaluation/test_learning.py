"""Overfitting and underfitting: found where they were made, with their cause."""

import numpy as np
import pytest

from echelon.evaluation.learning import FitRecord, diagnose_fit, validation_curve

GENERATOR = np.random.default_rng(0)
TRUE = GENERATOR.dirichlet(np.ones(4) * 0.4, size=600)
RANKS = (TRUE.cumsum(axis=1) < GENERATOR.random((600, 1))).sum(axis=1).clip(max=3)
NOTHING = np.tile(np.bincount(RANKS, minlength=4) / 600, (600, 1))


def falling_then_rising(best: int, last: int) -> list[dict[str, float]]:
    return [
        {"epoch": e, "loss": 1 / e, "validation_mae": 1 + abs(e - best) / best}
        for e in range(1, last + 1)
    ]


def found(record: FitRecord, p=TRUE) -> dict[str, tuple[str, str]]:
    return {one.code: (one.state, one.message) for one in diagnose_fit(RANKS, p, record)}


@pytest.mark.parametrize(
    ("record", "cause"),
    [
        (FitRecord(falling_then_rising(5, 20), None, {"ranked_probability_score": 0.0}),
         "training for too long"),
        (FitRecord(training={"ranked_probability_score": 0.0, "rows": 90, "columns": 40},
                   better_simple="cumulative link"), "short table, 90 rows for 40 columns"),
        (FitRecord(training={"ranked_probability_score": 0.0, "rows": 9000, "columns": 4},
                   better_simple="cumulative link"), "too flexible"),
    ],
)  # fmt: skip
def test_overfitting_is_a_problem_with_its_cause(record, cause) -> None:
    state, message = found(record)["overfitting"]
    assert state == "problem"
    assert "knows its training rows by heart" in message
    assert cause in message


def test_a_gap_alone_and_an_epoch_that_was_kept_are_no_problem() -> None:
    gap = found(FitRecord(training={"ranked_probability_score": 0.0}))["overfitting"]
    assert gap[0] == "fine"
    assert "no simpler model was better" in gap[1]
    kept = found(FitRecord(falling_then_rising(5, 20), 5))["overfitting"]
    assert kept[0] == "fine"
    assert "That epoch was kept, so it did no harm" in kept[1]


def test_underfitting_names_training_that_ended_early_a_better_model_or_poor_columns() -> None:
    early = found(FitRecord(falling_then_rising(99, 20), 20))["underfitting"]
    assert early[0] == "notice"
    assert "training that ended too early" in early[1]
    beaten = found(FitRecord(better_simple="cumulative link"))["underfitting"]
    assert beaten[0] == "problem"
    assert "cumulative link, a simple model, predicts better" in beaten[1]
    empty = found(FitRecord(), NOTHING)["underfitting"]
    assert empty[0] == "notice"
    assert "say little about the target" in empty[1]


def test_without_evidence_nothing_is_said_and_a_sound_fit_is_fine() -> None:
    assert found(FitRecord()) == {}
    sound = found(FitRecord(falling_then_rising(18, 20), 18))
    assert {state for state, _ in sound.values()} == {"fine"}


def test_a_curve_of_a_metric_of_which_more_is_better_is_turned() -> None:
    curve = validation_curve([{"round": n, "accuracy": n / 10} for n in (1, 3, 2)])
    assert (curve.best, curve.step) == (1, "round")
    assert validation_curve([{"epoch": 1, "loss": 2.0}]) is None
