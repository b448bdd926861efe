"""Weights of mixtures: against grids, SciPy and the conditions of a minimum, and for few rows."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from echelon.evaluation import metrics
from echelon.models.mixing import minimise_on_simplex, mixture_weights

SCORES = ("rps", "log")
seeds = st.integers(0, 2**31)


def members_and_ranks(
    m: int, n: int, num_classes: int, seed: int = 0, worst: float = 4.0
) -> tuple[np.ndarray, np.ndarray]:
    """Curves that see the truth through noise, up to `worst` times that of the first."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n, num_classes)) * 1.5
    spread = 0.7 * np.geomspace(worst**-0.5, worst**0.5, m)[:, None, None]
    logits = truth + spread * rng.normal(size=(m, n, num_classes))
    p, best = (np.exp(z) / np.exp(z).sum(-1, keepdims=True) for z in (logits, truth))
    ranks = (rng.random((n, 1)) > best.cumsum(1)[:, :-1]).sum(1)
    return p, ranks


def mean_score(p: np.ndarray, ranks: np.ndarray, a: np.ndarray, score: str, w=None) -> float:
    mixed = np.tensordot(a, p, 1)
    w = np.full(len(ranks), 1 / len(ranks)) if w is None else w / w.sum()
    if score == "log":
        return float(-(w @ np.log(mixed[np.arange(len(ranks)), ranks])))
    errors = mixed.cumsum(1)[:, :-1] - (ranks[:, None] <= np.arange(p.shape[2] - 1))
    return float(w @ (errors**2).sum(1))


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("seed", range(4))
def test_no_place_of_a_grid_is_better(score: str, seed: int) -> None:
    p, ranks = members_and_ranks(3, 60, 4, seed)
    found = mixture_weights(p, ranks, score=score, shrink=0)
    best = mean_score(p, ranks, found, score)
    steps = 50
    grid = [
        np.array([i, j, steps - i - j]) / steps
        for i, j in itertools.product(range(steps + 1), repeat=2)
        if i + j <= steps
    ]
    scores = [mean_score(p, ranks, a, score) for a in grid]
    assert best <= min(scores) + 1e-12
    assert np.abs(found - grid[int(np.argmin(scores))]).max() < 0.05


@pytest.mark.parametrize("score", SCORES)
@given(seed=seeds, m=st.integers(1, 8), n=st.integers(1, 60), num_classes=st.integers(2, 6))
def test_weights_meet_the_conditions_of_a_minimum(
    score: str, seed: int, m: int, n: int, num_classes: int
) -> None:
    """No direction to a single member falls; for a convex score that is the minimum."""
    p, ranks = members_and_ranks(m, n, num_classes, seed)
    w = np.random.default_rng(seed).uniform(0.1, 2.0, n)
    a = mixture_weights(p, ranks, score=score, shrink=0, weight=w)
    assert a.min() >= 0
    assert a.sum() == pytest.approx(1, abs=1e-12)
    here = mean_score(p, ranks, a, score, w)
    for member in np.eye(m):
        step = 1e-5
        there = mean_score(p, ranks, (1 - step) * a + step * member, score, w)
        assert (there - here) / step > -1e-4


@given(seed=seeds, m=st.integers(1, 12), rank=st.integers(1, 12))
def test_the_simplex_solver_has_no_gap(seed: int, m: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(rank, m))
    bend, slope = root.T @ root + 1e-6 * np.eye(m), rng.normal(size=m)
    a = minimise_on_simplex(bend, slope)
    derivative = bend @ a + slope
    assert a @ derivative - derivative.min() < 1e-8  # an upper bound of what is left to gain


def test_the_solver_equals_scipy() -> None:
    p, ranks = members_and_ranks(6, 200, 5, 1)
    found = mixture_weights(p, ranks, shrink=0)
    theirs = optimize.minimize(
        lambda a: mean_score(p, ranks, a, "rps"),
        np.full(6, 1 / 6),
        method="SLSQP",
        bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(found, theirs.x, atol=1e-4)
    assert mean_score(p, ranks, found, "rps") <= theirs.fun + 1e-12


def test_the_score_is_that_of_the_metrics() -> None:
    p, ranks = members_and_ranks(2, 50, 4)
    a = np.array([0.3, 0.7])
    mixed = np.tensordot(a, p, 1)
    expected = metrics.ranked_probability_score(ranks, mixed)
    assert mean_score(p, ranks, a, "rps") == pytest.approx(expected)
    assert mean_score(p, ranks, a, "log") == pytest.approx(metrics.log_score(ranks, mixed))


@pytest.mark.parametrize("score", SCORES)
def test_members_that_are_alike_share_their_weight(score: str) -> None:
    p, ranks = members_and_ranks(2, 300, 4)
    found = mixture_weights(p[[0, 1, 0, 0]], ranks, score=score)
    np.testing.assert_allclose(found[[2, 3]], found[0], atol=1e-6)
    np.testing.assert_allclose(
        mixture_weights(p[[0, 0, 0]], ranks, score=score), np.full(3, 1 / 3), atol=1e-9
    )
    without = mixture_weights(p[[0, 1, 0]], ranks, score=score, shrink=0)
    pair = mixture_weights(p, ranks, score=score, shrink=0)
    assert without[0] + without[2] == pytest.approx(pair[0], abs=1e-4)


@pytest.mark.parametrize("score", SCORES)
def test_the_order_of_members_and_rows_does_not_matter(score: str) -> None:
    p, ranks = members_and_ranks(5, 80, 4)
    found = mixture_weights(p, ranks, score=score)
    order, rows = [3, 1, 4, 0, 2], np.random.default_rng(0).permutation(80)
    moved = mixture_weights(p[order][:, rows], ranks[rows], score=score)
    np.testing.assert_allclose(moved, found[order], atol=1e-7)


@pytest.mark.parametrize("score", SCORES)
def test_weights_of_rows_are_copies(score: str) -> None:
    p, ranks = members_and_ranks(3, 40, 4)
    times = np.random.default_rng(0).integers(0, 4, 40)
    weighted = mixture_weights(p, ranks, score=score, weight=times, shrink=0)
    copied = mixture_weights(np.repeat(p, times, 1), np.repeat(ranks, times), score=score, shrink=0)
    np.testing.assert_allclose(weighted, copied, atol=1e-6)


@pytest.mark.parametrize("score", SCORES)
def test_few_rows_are_believed_little_and_many_wholly(score: str) -> None:
    p, ranks = members_and_ranks(4, 20_000, 4)
    moved = {0.0: [], 1.0: []}
    for start in range(0, 200, 5):
        rows = slice(start, start + 5)
        for shrink, distances in moved.items():
            few = mixture_weights(p[:, rows], ranks[rows], score=score, shrink=shrink)
            distances.append(np.abs(few - 0.25).max())
    assert np.mean(moved[1.0]) < 0.5 * np.mean(moved[0.0])
    many = mixture_weights(p, ranks, score=score)
    np.testing.assert_allclose(many, mixture_weights(p, ranks, score=score, shrink=0), atol=0.02)
    strong = mixture_weights(p, ranks, score=score, shrink=1e9)
    np.testing.assert_allclose(strong, 0.25, atol=1e-4)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("m", "n"), [(3, 30), (8, 60), (8, 300)])
@pytest.mark.parametrize("worst", [2.0, 6.0])
def test_shrunk_weights_are_better_on_new_rows(score: str, m: int, n: int, worst: float) -> None:
    """Better than the minimum on few rows; than equal weights, where members differ much.

    Where equal weights are nearly the best there are, little is lost to them.
    """
    new = {"none": [], "default": [], "equal": []}
    for seed in range(20):
        p, ranks = members_and_ranks(m, n + 1000, 4, seed, worst=worst)
        fitted, tested = (p[:, :n], ranks[:n]), (p[:, n:], ranks[n:])
        weights = {
            "none": mixture_weights(*fitted, score=score, shrink=0),
            "default": mixture_weights(*fitted, score=score),
            "equal": np.full(m, 1 / m),
        }
        for name, a in weights.items():
            new[name].append(mean_score(*tested, a, score))
    mean = {name: np.mean(scores) for name, scores in new.items()}
    assert mean["default"] < mean["none"] * (1.0 if worst == 2.0 else 1.005)
    assert mean["default"] < mean["equal"] * (1.015 if worst == 2.0 else 1.0)


def test_an_impossible_event_of_a_member_is_survived() -> None:
    p, ranks = members_and_ranks(2, 50, 3)
    p[0, 0] = 0.0
    p[0, 0, (ranks[0] + 1) % 3] = 1.0
    found = mixture_weights(p, ranks, score="log")
    assert found[0] > 0
    both = np.stack([p[0], p[0]])
    assert np.isfinite(mixture_weights(both, ranks, score="log")).all()


def test_one_member_has_all_the_weight() -> None:
    p, ranks = members_and_ranks(1, 5, 3)
    np.testing.assert_array_equal(mixture_weights(p, ranks), [1.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": np.full((3, 4), 0.25)}, r"\(members, n, K\).*got \(3, 4\)"),
        ({"probabilities": np.full((2, 3, 4), 0.3)}, "those of member 0 are not"),
        ({"probabilities": np.full((2, 3, 4), np.nan)}, "those of member 0 are not"),
        ({"ranks": [0, 1]}, "3 rows and ranks 2"),
        ({"ranks": [0, 1, 4]}, r"0\.\.3; got 0 to 4"),
        ({"score": "mae"}, "score must be one of 'rps', 'log'; got 'mae'"),
        ({"shrink": -1.0}, "shrink must be a finite number, not below 0; got -1.0"),
    ],
)
def test_what_is_refused(change: dict, message: str) -> None:
    good = {"probabilities": np.full((2, 3, 4), 0.25), "ranks": [0, 1, 2]}
    with pytest.raises(ValueError, match=message):
        mixture_weights(**{**good, **change})
