"""Comparisons: right about methods that are equal, and about such that are not."""

import itertools

import numpy as np
import pytest
from scipy import stats

from echelon.evaluation.comparison import (
    _critical,
    _two_sided,
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


# What a seed does to all rows, and to single ones; what a method does to single rows.
SETTINGS = [(0.0, 1.0, 0.0), (0.05, 1.0, 0.0), (0.2, 1.0, 0.0), (1.0, 0.3, 0.0), (0.1, 0.5, 0.5)]


def share_called_different(seeds: int, methods: int, setting, draws: int, n: int = 100) -> float:
    """How often equal methods have a pair that is called different, after Holm's correction."""
    generator = np.random.default_rng(seeds * 1000 + methods)
    seed_sd, row_sd, own_sd = setting
    different = 0
    for _ in range(draws):
        shared = generator.exponential(size=n)
        tables = {
            f"m{i}": losses(
                generator, seeds, shared + own_sd * generator.normal(size=n), seed_sd, row_sd
            )
            for i in range(methods)
        }
        different += any(one.verdict == "different" for one in compare(tables))
    return different / draws


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("seeds", "methods"), [(2, 2), (2, 4), (3, 4), (5, 4)])
def test_equal_methods_are_rarely_called_different(seeds: int, methods: int, setting) -> None:
    """No more often than 0.05, within three standard errors; with 13.5 % it would fail."""
    draws = 200
    found = share_called_different(seeds, methods, setting, draws)
    assert found <= 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5


def test_a_variance_from_few_seeds_in_one_method_alone() -> None:
    """Only one of two methods has seeds that matter: its few seeds are all that is known."""
    generator = np.random.default_rng(7)
    different = 0
    for _ in range(300):
        shared = generator.exponential(size=400)
        tables = {
            "restless": losses(generator, 2, shared, 0.3, 0.5),
            "calm": losses(generator, 2, shared, 0.0, 0.5),
        }
        different += compare(tables)[0].verdict == "different"
    assert different / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


def test_a_difference_of_four_standard_errors_is_found() -> None:
    """Being careful must not mean being silent: 5 seeds, 1,000 rows."""
    generator = np.random.default_rng(8)
    found = 0
    error = (2 * (0.02**2 / 5 + 0.3**2 / 5000)) ** 0.5
    for _ in range(100):
        shared = generator.exponential(size=1000)
        tables = {"a": losses(generator, 5, shared, 0.02, 0.3)}
        tables["b"] = losses(generator, 5, shared + 4 * error, 0.02, 0.3)
        found += compare(tables)[0].verdict == "different"
    assert found >= 75


def test_the_critical_value_of_one_part_is_that_of_t() -> None:
    for freedom in (1, 4, 99):
        assert _critical(0.05, [(3.0, freedom), (0.0, 7)]) == pytest.approx(
            stats.t.isf(0.025, freedom)
        )
        for t in (0.1, 2.0, 9.0):
            assert _two_sided(t, [(2.0, freedom)]) == pytest.approx(2 * stats.t.sf(t, freedom))
    assert 1.98 < _critical(0.05, [(1.0, 1), (1.0, 99)]) < 12.8


def test_the_standard_error_has_both_parts() -> None:
    generator = np.random.default_rng(1)
    shared = generator.exponential(size=2000)
    means = []
    for _ in range(300):
        pair = [losses(generator, 4, shared, 0.05, 1.0).mean() for _ in range(2)]
        means.append(pair[0] - pair[1])
    tables = {name: losses(generator, 400, shared, 0.05, 1.0) for name in "ab"}
    few = [compare({n: t[4 * i : 4 * i + 4] for n, t in tables.items()})[0] for i in range(60)]
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
