"""Reliability and the maps that mend it, against scikit-learn and against the curve's own."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from echelon.curve import CalibrationMap, RankCurve
from echelon.data import make_friedman
from echelon.evaluation.calibration import (
    CALIBRATIONS,
    apply_calibration,
    calibration_error,
    calibration_summary,
    fit_calibration,
    pool_adjacent_violators,
    reliability,
)


def true_and_distorted(n: int = 4000, power: float = 2.5):
    """Ranks, their true probabilities, and the same made too sure."""
    data = make_friedman(n, num_classes=6, seed=3)
    true = data.bayes_probabilities
    sure = np.maximum(true, 1e-12) ** power
    return data.ranks, true, sure / sure.sum(axis=1, keepdims=True)


def test_true_probabilities_are_reliable_and_distorted_ones_are_not() -> None:
    truth, true, distorted = true_and_distorted()
    assert calibration_error(truth, true) < 0.01
    assert calibration_error(truth, distorted) > 0.02
    assert calibration_error(truth, true, of="probabilities") < 0.01
    table = reliability(truth, true)
    assert table.rows.sum() == len(truth) * 5
    assert np.abs(table.predicted - table.observed).max() < 0.05


def test_the_error_equals_a_plain_loop() -> None:
    truth, _, p = true_and_distorted(200)
    expected = []
    for k in range(5):
        exceedance = np.array([sum(row[k + 1 :]) for row in p])
        total = 0.0
        for b in range(10):
            inside = [i for i, e in enumerate(exceedance) if min(int(e * 10), 9) == b]
            if inside:
                gap = np.mean(exceedance[inside]) - np.mean([truth[i] > k for i in inside])
                total += len(inside) / len(truth) * abs(gap)
        expected.append(total)
    assert calibration_error(truth, p) == pytest.approx(np.mean(expected))


def test_temperature_finds_the_power_that_distorted() -> None:
    truth, _, distorted = true_and_distorted(20_000)
    assert fit_calibration(truth, distorted, "temperature").temperature == pytest.approx(
        2.5, rel=0.05
    )


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=40))
def test_pooling_equals_scikit_learn(rows) -> None:
    x = np.array([a / 10 for a, _ in rows])
    y = np.array([b for _, b in rows])
    at, values = pool_adjacent_violators(x, y)
    assert (np.diff(values) > 0).all()
    steps = IsotonicRegression().fit(x, y.astype(float)).predict(x)
    assert sorted({round(v, 9) for v in steps}) == pytest.approx(values.tolist(), abs=1e-8)
    for place, value in zip(at, values, strict=True):
        assert x[np.isclose(steps, value)].mean() == pytest.approx(place)


@pytest.mark.parametrize("kind", CALIBRATIONS)
def test_a_map_mends_what_was_distorted_on_other_rows(kind) -> None:
    truth, _, distorted = true_and_distorted()
    summary = calibration_summary(truth, distorted, kind)
    assert summary["after"]["calibration_error"] < 0.6 * summary["before"]["calibration_error"]
    for name in ("ranked_probability_score", "log_score"):
        assert summary["after"][name] < summary["before"][name]


@pytest.mark.parametrize("kind", CALIBRATIONS)
@pytest.mark.parametrize("n", [1, 2, 30, 2000])
def test_the_curve_applies_the_same_map_and_it_stays_a_distribution(kind, n) -> None:
    truth, _, distorted = true_and_distorted(2000)
    fit = fit_calibration(truth[:n], distorted[:n], kind)
    found = apply_calibration(distorted, fit)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    curve = RankCurve(torch.from_numpy(distorted).log()).calibrated(
        CalibrationMap(
            torch.tensor(fit.temperature), torch.from_numpy(fit.values), torch.tensor(fit.smoothing)
        )
    )
    np.testing.assert_allclose(curve.probabilities.numpy(), found, atol=1e-7)
    assert np.isfinite(curve.log_probabilities.numpy()).all()
    exceedance = curve.exceedance
    assert bool((exceedance.diff(dim=-1) <= 1e-12).all())


def test_isotonic_never_makes_a_rank_impossible() -> None:
    p = np.tile([0.2, 0.3, 0.5], (10, 1))
    fit = fit_calibration(np.zeros(10), p, "isotonic")
    assert (apply_calibration(p, fit) > 0.01).all()


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ValueError, match="calibration must be one of 'temperature', 'isotonic'"):
        fit_calibration([0], [[0.5, 0.5]], "platt")
    with pytest.raises(ValueError, match="of must be"):
        reliability([0], [[0.5, 0.5]], of="labels")
    with pytest.raises(ValueError, match="bins must be at least 1"):
        reliability([0], [[0.5, 0.5]], bins=0)
