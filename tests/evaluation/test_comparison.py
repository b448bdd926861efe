"""Comparisons: right about methods that are equal, and about such that are not."""

import itertools

import numpy as np
import pytest
from scipy import stats

from echelon.evaluation.comparison import (
    compare,
    corrected_resampled_t,
    row_losses,
    summarise,
    wilcoxon,
)


def losses(generator, seeds: int, shared: np.ndarray, seed_sd: float, row_sd: float) -> np.ndarray:
    """What rows have in common, what a seed adds to all rows, and what it adds to single ones."""
    of_seed = seed_sd * generator.normal(size=(seeds, 1))
    return shared + of_seed + row_sd * generator.normal(size=(seeds, len(shared)))


@pytest.mark.parametrize(("seed_sd", "row_sd"), [(0.02, 0.3), (0.005, 0.5)])
def test_a_method_is_rarely_called_different_from_itself(seed_sd, row_sd) -> None:
    generator = np.random.default_rng(0)
    different = 0
    for number in range(500):
        shared = generator.exponential(size=400)
        tables = {name: losses(generator, 5, shared, seed_sd, row_sd) for name in "ab"}
        found = compare(tables, resamples=200, seed=number)[0]
        different += found.verdict == "different"
    assert 0.02 <= different / 500 <= 0.08


def test_the_standard_error_has_both_parts() -> None:
    generator = np.random.default_rng(1)
    shared = generator.exponential(size=2000)
    means = []
    for _ in range(300):
        pair = [losses(generator, 4, shared, 0.05, 1.0).mean() for _ in range(2)]
        means.append(pair[0] - pair[1])
    tables = {name: losses(generator, 400, shared, 0.05, 1.0) for name in "ab"}
    few = [
        compare({n: t[4 * i : 4 * i + 4] for n, t in tables.items()}, resamples=300)[0]
        for i in range(60)
    ]
    assert np.sqrt(np.mean([one.se**2 for one in few])) == pytest.approx(np.std(means), rel=0.15)
    assert np.sqrt(np.mean([one.se_seeds**2 for one in few])) == pytest.approx(
        0.05 * np.sqrt(2 / 4), rel=0.2
    )
    assert few[0].se == pytest.approx(np.hypot(few[0].se_seeds, few[0].se_rows))


def test_a_clear_difference_is_called_one_and_says_which_is_better() -> None:
    generator = np.random.default_rng(2)
    shared = generator.exponential(size=500)
    tables = {
        "good": losses(generator, 5, shared, 0.01, 0.2),
        "bad": losses(generator, 5, shared + 0.2, 0.01, 0.2),
    }
    found = compare(tables)[0]
    assert found.verdict == "different"
    assert found.low < found.mean < found.high < 0
    assert found.sentence.startswith("good is better than bad by 0.2")
    assert found.effect < -0.5


def test_one_seed_cannot_tell_but_a_constant_needs_no_seeds() -> None:
    generator = np.random.default_rng(3)
    shared = generator.exponential(size=500)
    several = losses(generator, 5, shared, 0.01, 0.1)
    found = compare({"a": several, "b": several[:1]})[0]
    assert found.verdict == "cannot tell"
    assert "one seed cannot tell" in found.sentence
    assert np.isnan(found.p_value)
    found = compare({"a": several, "constant": shared + 0.5}, without_seeds=["constant"])[0]
    assert found.verdict == "different"


def test_equal_predictions_are_within_noise() -> None:
    same = np.tile(np.random.default_rng(4).random(50), (3, 1))
    assert compare({"a": same, "b": same})[0].verdict == "within noise"


def test_holm_equals_its_definition() -> None:
    generator = np.random.default_rng(5)
    shared = generator.exponential(size=300)
    tables = {f"m{i}": losses(generator, 5, shared + 0.02 * i, 0.01, 0.3) for i in range(4)}
    found = compare(tables)
    assert len(found) == 6
    raw = sorted(one.p_value for one in found)
    expected = list(itertools.accumulate((min(1, (6 - i) * p) for i, p in enumerate(raw)), max))
    by_raw = sorted(found, key=lambda one: one.p_value)
    assert [one.p_adjusted for one in by_raw] == pytest.approx(expected)


def test_corrected_t_equals_the_formula() -> None:
    d = np.array([0.1, 0.3, -0.05, 0.2, 0.15])
    t, p = corrected_resampled_t(d, 0.25)
    expected = d.mean() / np.sqrt((1 / 5 + 0.25 / 0.75) * d.var(ddof=1))
    assert t == pytest.approx(expected)
    assert p == pytest.approx(2 * stats.t.sf(abs(expected), 4))
    assert abs(t) < abs(stats.ttest_1samp(d, 0).statistic)
    assert corrected_resampled_t([0.0, 0.0], 0.5) == (0.0, 1.0)


def test_wilcoxon_speaks_from_six_pairs_on() -> None:
    d = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert wilcoxon(d[:5]) is None
    assert wilcoxon(d) == pytest.approx(stats.wilcoxon(d).pvalue)
    assert wilcoxon(np.zeros(6)) == 1.0


def test_summaries() -> None:
    (one, alone) = summarise({"a": [1.0, 3.0], "b": [2.0]}, "mae")
    assert (one.mean, one.sd, one.runs) == (2.0, pytest.approx(2**0.5), 2)
    assert np.isnan(alone.sd)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("mae", [1.0, 2.0]),
        ("squared_error", [1.0, 4.0]),
        ("accuracy", [1.0, 1.0]),
        ("ranked_probability_score", [0.25 + 0.0625, 0.25 + 0.5625]),
    ],
)
def test_losses_of_rows(metric, expected) -> None:
    p = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]
    assert row_losses(metric, [0, 2], [1, 0], p).tolist() == pytest.approx(expected)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ValueError, match="on the same rows"):
        compare({"a": np.ones((2, 3)), "b": np.ones((2, 4))})
    with pytest.raises(ValueError, match="must be finite"):
        compare({"a": np.ones((2, 3)), "b": np.full((2, 3), np.inf)})
    with pytest.raises(ValueError, match="metric must be"):
        row_losses("kappa", [0], [0])
    with pytest.raises(ValueError, match="needs probabilities"):
        row_losses("ranked_probability_score", [0], [0])
    with pytest.raises(ValueError, match="at least 2 splits"):
        corrected_resampled_t([0.1], 0.2)
    with pytest.raises(ValueError, match="test_share"):
        corrected_resampled_t([0.1, 0.2], 20)
