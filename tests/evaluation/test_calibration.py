"""Reliability and the maps that mend it, against scikit-learn and against the curve's own."""

from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from echelon.curve import CalibrationMap, RankCurve
from echelon.data import make_friedman
from echelon.evaluation import calibration, metrics
from echelon.evaluation.calibration import (
    CALIBRATIONS,
    _mapped,
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


@given(
    st.lists(
        st.tuples(st.integers(0, 10), st.booleans(), st.integers(0, 3)), min_size=1, max_size=40
    ).filter(lambda rows: any(weight for _, _, weight in rows))
)
def test_isotonic_maps_equal_scikit_learn(rows) -> None:
    """Weighted, between the steps and beyond them too."""
    x = np.array([a / 10 for a, _, _ in rows])
    y = np.array([b for _, b, _ in rows])
    weight = np.array([w for _, _, w in rows], dtype=float)
    fit = fit_calibration(y.astype(int), np.stack([1 - x, x], 1), "isotonic", sample_weight=weight)
    asked = np.linspace(0, 1, 201)
    found = _mapped(asked, fit, 0)
    reference = IsotonicRegression(out_of_bounds="clip")
    reference.fit(x[weight > 0], y[weight > 0].astype(float), sample_weight=weight[weight > 0])
    np.testing.assert_allclose(found, reference.predict(asked), atol=1e-6)  # it rounds its knots


def test_pooling_keeps_the_ends_of_every_step() -> None:
    x, y = np.array([0.1, 0.2, 0.3, 0.4, 0.9]), np.array([0, 1, 0, 1, 1])
    steps = pool_adjacent_violators(x, y, np.ones(5))
    assert steps.value.tolist() == [0, 0.5, 1]
    assert steps.first.tolist() == [0.1, 0.2, 0.4]
    assert steps.last.tolist() == [0.1, 0.3, 0.9]


def rare_shares(n: int, seed: int, rare: int) -> tuple[float, float, float]:
    """How often a rare class occurs, the top or the lowest, and what maps of other rows say."""
    generator = np.random.default_rng(seed)
    score = generator.normal(size=2 * n)
    above = 1 / (1 + np.exp(6.5 - score))  # P(y > 1), 0.003 on average
    ranks = (generator.random(2 * n) < 0.3).astype(int)
    ranks[generator.random(2 * n) < above] = 2
    p = np.stack([(1 - above) * 0.7, (1 - above) * 0.3, above], axis=1)
    if rare == 0:
        ranks, p = 2 - ranks, p[:, ::-1]
    fit = fit_calibration(ranks[:n], p[:n], "isotonic")
    reference = IsotonicRegression(out_of_bounds="clip").fit(above[:n], ranks[:n] == rare)
    found = apply_calibration(p[n:], fit)[:, rare].mean()
    return (ranks[n:] == rare).mean(), found, reference.predict(above[n:]).mean()


@pytest.mark.parametrize("rare", [0, 2])
def test_rare_classes_stay_rare(rare: int) -> None:
    """The share that a map gives a class is that of the rows it was fitted on."""
    shares = np.array([rare_shares(20_000, seed, rare) for seed in range(5)])
    happened, found, reference = shares.mean(axis=0)
    error = np.sqrt(2 * happened / (5 * 20_000))  # of both halves
    assert abs(found - happened) < 3 * error
    # but for what smoothing mixes in, and for ramps that are not quite vertical
    np.testing.assert_allclose(found, reference, atol=1e-4)


def test_a_truth_that_was_held_for_impossible_does_not_move_the_temperature() -> None:
    truth, _, distorted = true_and_distorted(1000)
    plain = fit_calibration(truth, distorted, "temperature").temperature
    impossible = np.zeros((1, 6))
    impossible[0, 1] = 1.0
    found = fit_calibration(
        np.append(truth, 4), np.concatenate([distorted, impossible]), "temperature"
    )
    assert found.temperature == pytest.approx(plain, rel=1e-6)
    alone = fit_calibration([4], impossible, "temperature")
    assert alone.temperature == 1.0


@pytest.mark.parametrize("kind", CALIBRATIONS)
def test_a_whole_weight_is_repeating_the_row(kind) -> None:
    truth, _, distorted = true_and_distorted(300)
    weight = np.random.default_rng(0).integers(0, 4, size=300)
    again = np.repeat(np.arange(300), weight)
    weighted = fit_calibration(truth, distorted, kind, sample_weight=weight)
    repeated = fit_calibration(truth[again], distorted[again], kind)
    for one, other in zip(weighted[1:-1], repeated[1:-1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    for of in ("exceedance", "probabilities"):
        assert calibration_error(truth, distorted, of=of, sample_weight=weight) == pytest.approx(
            calibration_error(truth[again], distorted[again], of=of)
        )


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
        CalibrationMap(*(torch.as_tensor(values) for values in fit[1:]))
    )
    np.testing.assert_allclose(curve.probabilities.numpy(), found, atol=1e-7)
    assert np.isfinite(curve.log_probabilities.numpy()).all()
    exceedance = curve.exceedance
    with mock.patch("torch.compiler.is_exporting", return_value=True):  # a graph searches nothing
        exported = RankCurve(torch.from_numpy(distorted).log()).calibrated(
            CalibrationMap(*(torch.as_tensor(values) for values in fit[1:]))
        )
    torch.testing.assert_close(exported.probabilities, curve.probabilities)
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


# ---- maps that help or are left out --------------------------------------------------------------


def drawn(rows: int, power: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranks drawn from distributions, and the distributions with a power of sureness."""
    generator = np.random.default_rng(seed)
    true = generator.dirichlet(np.ones(4), size=rows)
    ranks = (true.cumsum(axis=1) < generator.random((rows, 1))).sum(axis=1).clip(max=3)
    told = true**power
    return ranks, told / told.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("kind", "rows"), [("temperature", 300), ("isotonic", 1500)])
def test_a_map_is_found_to_help_where_it_does_and_seldom_elsewhere(kind, rows) -> None:
    """Beyond one standard error by chance: 16 %, less as a map of few rows does harm."""
    sure = [calibration.trial_of_calibration(*drawn(rows, 3.0, s), kind).helps for s in range(20)]
    true = [calibration.trial_of_calibration(*drawn(60, 1.0, s), kind).helps for s in range(100)]
    assert np.mean(sure) >= 0.9
    assert np.mean(true) <= 0.16 + 2 * np.sqrt(0.16 * 0.84 / 100)


def test_what_a_trial_says_is_measured_on_rows_that_did_not_fit_the_map() -> None:
    ranks, told = drawn(60, 1.0, 3)
    trial = calibration.trial_of_calibration(ranks, told, "isotonic")
    fit = calibration.fit_calibration(ranks, told, "isotonic")
    flattered = metrics.log_score(ranks, calibration.apply_calibration(told, fit))
    assert trial.summary["after"]["log_score"] > flattered
    assert trial.summary == calibration.calibration_summary(ranks, told, "isotonic")


def test_a_truth_that_was_impossible_and_is_no_longer_is_a_help() -> None:
    """And rows without weight have no say in it."""
    ranks = np.array([0, 1] * 20)
    told = np.tile([1.0, 0.0], (40, 1))
    after = np.tile([0.5, 0.5], (40, 1))
    weight = np.ones(40)
    assert calibration._falls_clearly(ranks, told, after, weight)
    assert not calibration._falls_clearly(ranks, after, told, weight)
    assert not calibration._falls_clearly(ranks, told, after, np.where(ranks == 1, 0.0, weight))
