"""Drift by counts: as many false alarms as the level says, and real changes found."""

import numpy as np
import pytest

from echelon.evaluation.drift import (
    adjusted,
    beyond_p_value,
    count_change,
    coverage_p_value,
    worse_p_value,
)


@pytest.mark.parametrize("ordered", [True, False])
def test_the_rate_of_false_alarms_is_the_level(ordered: bool) -> None:
    """Rare cells among frequent ones, and fewer rows than a normal approximation would need."""
    generator = np.random.default_rng(5)
    values = []
    for seed in range(100):
        shares = generator.dirichlet(np.full(8, 0.5))
        before, now = generator.multinomial(300, shares), generator.multinomial(80, shares)
        missing = tuple(generator.binomial((300, 80), 0.05))
        values.append(
            count_change(before, now, missing=missing, ordered=ordered, seed=seed).p_value
        )
    assert 8 <= (np.array(values) < 0.2).sum() <= 32  # 20 expected, and three standard errors


def test_noise_is_what_95_of_100_draws_stay_below() -> None:
    generator = np.random.default_rng(0)
    shares = np.full(10, 0.1)
    noise = count_change(generator.multinomial(1000, shares), np.full(10, 50)).noise
    shares_of = [generator.multinomial(rows, shares, 2000) / rows for rows in (1000, 500)]
    distances = np.abs((shares_of[0] - shares_of[1]).cumsum(axis=1)).max(axis=1)
    assert np.mean(distances < noise) == pytest.approx(0.95, abs=0.02)


def test_what_is_far_off_has_a_value_far_below_one_over_the_draws() -> None:
    assert count_change([500, 500], [100, 400]).p_value < 1e-15  # a bound, and no draw
    assert count_change([1000, 0], [950, 50], ordered=False).p_value < 1e-6
    change = count_change([1000], [900], missing=(0, 100))
    assert change.place == -1
    assert change.p_value < 1e-6


def test_many_new_categories_of_a_row_each_are_seen_together() -> None:
    before = np.append(np.full(4, 250), np.zeros(40, dtype=int))
    now = np.append(np.full(4, 65), np.ones(40, dtype=int))
    change = count_change(before, now, ordered=False)
    assert change.p_value < 0.001
    assert change.place == 44


def test_as_many_rows_as_nobody_could_draw_one_by_one() -> None:
    assert count_change([10**9, 10**9], [500, 500]).p_value > 0.5
    assert count_change([10**9, 10**9], [600, 400]).p_value < 1e-6


def test_values_beyond_all_others_are_rare_by_the_rank_alone() -> None:
    generator = np.random.default_rng(1)
    below = above = 0
    for _ in range(2000):
        draws = generator.permutation(30)
        new, old = draws[:10], draws[10:]
        below += (new < old.min()).sum() >= 3
        above += (new > old.max()).sum() >= 3
    assert beyond_p_value(0, 3, 20, 10) == pytest.approx(2 * above / 2000, abs=0.02)
    assert beyond_p_value(3, 0, 20, 10) == pytest.approx(2 * below / 2000, abs=0.02)
    assert beyond_p_value(0, 10, 20, 10) > 0


def test_scores_and_coverage_alarm_on_one_side() -> None:
    assert worse_p_value(0.6, 0.5, 400, 0.5, 400) < 0.01
    assert worse_p_value(0.4, 0.5, 400, 0.5, 400) > 0.99
    assert worse_p_value(0.5, 0.0, 5, 0.4, 5) == 0.0
    assert coverage_p_value(400, 400, 0.9, 50) > 0.99
    assert coverage_p_value(0, 5, 0.9, 3) == 1.0  # of three rows, every interval holds everything
    # few rows for the threshold leave its coverage open, so that the same share says less
    assert coverage_p_value(160, 200, 0.9, 20) > 10 * coverage_p_value(160, 200, 0.9, 2000)


def test_weights_share_the_level() -> None:
    assert adjusted([0.01, 0.01], [1.0, 0.25]) == pytest.approx([0.0125, 0.05])


@pytest.mark.parametrize(
    ("before", "now"), [([1, 2], [1]), ([1, -2], [1, 2]), ([0, 0], [1, 2]), ([1], [0])]
)
def test_what_are_no_counts_is_refused(before, now) -> None:
    with pytest.raises(ValueError, match="counts must be"):
        count_change(before, now)
