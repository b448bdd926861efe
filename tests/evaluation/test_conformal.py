"""Intervals against their definition, and the guarantee as the exact statement that it is."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon.evaluation import conformal

COVERAGES = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])


@st.composite
def distributions(draw, rows: int = 6):
    k = draw(st.integers(2, 6))
    raw = draw(
        st.lists(st.lists(st.integers(1, 20), min_size=k, max_size=k), min_size=1, max_size=rows)
    )
    p = np.array(raw, dtype=float)
    return p / p.sum(axis=1, keepdims=True)


@given(distributions(), st.floats(0, 1))
def test_an_interval_is_the_hull_of_the_probable_ranks_with_the_mode(p, t) -> None:
    for row, (low, high) in zip(p, conformal.intervals(p, t), strict=True):
        members = [k for k in range(len(row)) if row[k] >= min(t, row.max()) * (1 - 1e-4)]
        assert (low, high) == (min(members), max(members))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=60), COVERAGES)
def test_of_n_plus_1_rows_the_wished_share_is_covered_by_the_others(scores, coverage) -> None:
    """Exchangeable rows are this average over which of them is the new one."""
    covered = sum(
        score >= conformal.threshold(scores[:i] + scores[i + 1 :], coverage)
        for i, score in enumerate(scores)
    )
    assert covered >= coverage * len(scores) - 1e-6


@given(st.lists(st.floats(0, 1), min_size=100, max_size=200, unique=True), COVERAGES)
def test_no_more_is_covered_than_needed(scores, coverage) -> None:
    covered = sum(
        score >= conformal.threshold(scores[:i] + scores[i + 1 :], coverage)
        for i, score in enumerate(scores)
    )
    assert covered <= coverage * len(scores) + 1 + 1e-6


@given(distributions(rows=40), st.data(), COVERAGES)
def test_the_truth_is_inside_exactly_where_its_score_reaches_the_threshold(p, data, cover) -> None:
    truth = np.array(
        data.draw(st.lists(st.integers(0, p.shape[1] - 1), min_size=len(p), max_size=len(p)))
    )
    scores = conformal.calibration_scores(truth, p)
    limit = conformal.threshold(scores, cover)
    found = conformal.intervals(p, limit)
    inside = (found[:, 0] <= truth) & (truth <= found[:, 1])
    np.testing.assert_array_equal(inside, scores >= limit)


@given(distributions(), st.sampled_from(["rps", "window"]))
def test_ranks_conform_less_and_less_away_from_the_middle(p, score) -> None:
    """So that a set of ranks is an interval, whatever the threshold."""
    for row in conformal.conformity(p, score):
        assert np.isinf(row.max())
        rises = np.diff(np.where(np.isinf(row), 1e9, row))
        has_fallen = np.cumsum(rises < -1e-9) > 0
        assert not (has_fallen & (rises > 1e-9)).any()


@given(distributions())
def test_the_rps_score_is_the_ranked_probability_score(p) -> None:
    found = conformal.conformity(p, "rps")
    for row, scores in zip(p, found, strict=True):
        for k, value in enumerate(scores):
            level = np.arange(len(row) - 1) >= k
            rps = ((np.cumsum(row)[:-1] - level) ** 2).sum()
            if np.isfinite(value):
                assert value == pytest.approx(len(row) - 1 - rps)


def test_windows_grow_to_the_more_probable_side() -> None:
    found = conformal.conformity([[0.05, 0.2, 0.4, 0.25, 0.1]], "window")
    np.testing.assert_allclose(found, [[1.0, 1.15, np.inf, 1.35, 1.05]])
    # equal neighbours come together, and rounding does not part them
    for tiny in (-1e-9, 0, 1e-9):
        found = conformal.conformity([[0.3 + tiny, 0.4, 0.3 - tiny]], "window")
        np.testing.assert_allclose(found, [[1.0, np.inf, 1.0]], atol=1e-6)


@pytest.mark.parametrize("score", conformal.SCORES)
@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_every_score_covers_what_it_promises(score, coverage) -> None:
    """Few different rows, so that ties abound, and 500 draws of those for calibration."""
    generator = np.random.default_rng(3)
    kinds = generator.dirichlet(np.ones(6), size=12)
    believed = generator.dirichlet(np.ones(6), size=12) * 0.3 + 0.7 * kinds  # a model that errs
    each = conformal.conformity(believed, score)
    shares = []
    for _ in range(500):
        row = generator.integers(12, size=200)
        truth = (kinds[row].cumsum(1) < generator.random((200, 1))).sum(1).clip(max=5)
        limit = conformal.threshold(each[row, truth], coverage)
        ends = conformal.intervals(believed, limit, score)
        ranks = np.arange(6)
        inside = (ranks >= ends[:, :1]) & (ranks <= ends[:, 1:])
        shares.append((kinds * inside).sum(1).mean())  # exact, over all rows to come
    error = np.std(shares, ddof=1) / len(shares) ** 0.5
    assert np.mean(shares) > coverage - 2 * error


def test_an_unknown_score_is_named() -> None:
    with pytest.raises(ValueError, match="score must be one of 'probability', 'rps', 'window'"):
        conformal.conformity([[0.5, 0.5]], "aps")


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=1, max_size=40), COVERAGES)
def test_weights_are_how_many_rows_each_stands_for(rows, coverage) -> None:
    scores, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    found = conformal.threshold(scores, coverage, sample_weight=weight)
    plain = conformal.threshold(scores, coverage)
    assert conformal.threshold(scores, coverage, sample_weight=np.full(len(rows), 3.0)) == plain
    if not weight.any():
        assert found == -math.inf
        return
    allowed = (1 - coverage) * (weight.sum() + weight.mean())
    assert weight[scores < found].sum() <= allowed + 1e-6
    # and the next score up would be too high
    higher = scores[(scores > found) & (weight > 0)]
    if len(higher):
        assert weight[scores <= higher.min()].sum() > allowed - 1e-6


def test_equal_probabilities_are_modes_alike() -> None:
    """Rounding decides nothing: not which rank is the mode, and not a tie with the threshold."""
    p = np.array([[0.4, 0.4, 0.2], [0.4, 0.2, 0.4]])
    tiny = np.array([[-1e-8, 1e-8, 0], [-1e-8, 0, 1e-8]])
    for moved in (p, p + tiny, p - tiny):
        assert conformal.conformity(moved).tolist()[1] == [math.inf] * 3
        assert conformal.intervals(moved, math.inf).tolist() == [[0, 1], [0, 2]]
        assert conformal.intervals(moved, 0.2).tolist() == [[0, 2], [0, 2]]


def test_too_few_rows_let_every_rank_in() -> None:
    assert conformal.required_rows(0.9) == 9
    assert conformal.threshold(np.ones(8), 0.9) == -math.inf
    assert conformal.threshold(np.ones(9), 0.9) == 1.0
    assert conformal.intervals([[0.9, 0.05, 0.05]], -math.inf).tolist() == [[0, 2]]


def test_class_thresholds_hold_within_each_class() -> None:
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 3, size=3000)
    sharp = np.array([0.5, 2.0, 5.0])[truth]  # some classes are told apart better than others
    logits = sharp[:, None] * (np.arange(3) == truth[:, None]) + generator.normal(size=(3000, 3))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    half = np.arange(3000) < 1500
    scores = conformal.calibration_scores(truth[half], p[half])
    limits = conformal.class_thresholds(scores, truth[half], 0.9, 3)
    found = conformal.intervals(p[~half], limits)
    inside = (found[:, 0] <= truth[~half]) & (truth[~half] <= found[:, 1])
    for k in range(3):
        assert inside[truth[~half] == k].mean() > 0.9 - 4 * math.sqrt(0.09 / 500)


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 90, float("nan")])
def test_a_coverage_lies_between_0_and_1(coverage) -> None:
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
        conformal.threshold([0.5], coverage)
