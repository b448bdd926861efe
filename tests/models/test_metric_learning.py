"""Learnt metrics: their measures, computed naively, fall or rise, and noise columns shrink."""

import time

import numpy as np
import pytest

from echelon.models.chains import chain_objective
from echelon.models.metric_learning import learn_by_chains, learn_by_gradient


def rows(n: int = 120, noise_columns: int = 3, seed: int = 0):
    """One column that says everything and some that say nothing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1 + noise_columns))
    return x, np.digitize(x[:, 0], [-0.8, 0.0, 0.8])


def naive_triplet_loss(x: np.ndarray, ranks: np.ndarray, metric: np.ndarray) -> float:
    def away(i: int, j: int) -> float:
        return (x[i] - x[j]) @ metric @ (x[i] - x[j])

    terms = []
    for i in range(len(x)):
        others = sorted(
            (j for j in range(len(x)) if j != i), key=lambda j: np.sum((x[i] - x[j]) ** 2)
        )
        friends = [j for j in others if ranks[j] == ranks[i]][:5]
        strangers = [j for j in others if ranks[j] != ranks[i]][:15]
        pairs = [(j, far) for j in friends for far in strangers]
        pairs += [
            (j, far) for j in strangers for far in strangers
            if ranks[i] < ranks[j] < ranks[far] or ranks[i] > ranks[j] > ranks[far]
        ]  # fmt: skip
        terms += [max(0.0, 1 + away(i, j) - away(i, far)) for j, far in pairs]
    return 0.01 * np.trace(metric) + np.mean(terms)


def test_the_gradient_lowers_the_loss_of_triplets() -> None:
    x, ranks = rows(40)
    learnt = learn_by_gradient(x, ranks)
    assert learnt.start == pytest.approx(naive_triplet_loss(x, ranks, np.eye(4)))
    metric = learnt.matrix.T @ learnt.matrix
    assert learnt.measure == pytest.approx(naive_triplet_loss(x, ranks, metric), rel=1e-6)
    assert learnt.measure < 0.8 * learnt.start


def test_columns_that_say_nothing_shrink() -> None:
    x, ranks = rows()
    for learnt in (
        learn_by_gradient(x, ranks),
        learn_by_chains(x[:60], ranks[:60], seed=0, generations=6),
    ):
        weight = np.diag(learnt.matrix.T @ learnt.matrix)
        assert weight[0] > 1.2 * weight[1:].mean()


def test_chains_never_end_below_their_start() -> None:
    x, ranks = rows(40)
    learnt = learn_by_chains(x, ranks, seed=1, generations=1)
    naive = chain_objective(x @ learnt.matrix.T, ranks, neighborhood=50, length=3) / 40
    assert learnt.measure == pytest.approx(naive)
    assert learnt.start == pytest.approx(chain_objective(x, ranks, neighborhood=50, length=3) / 40)
    assert learnt.measure >= learnt.start
    again = learn_by_chains(x, ranks, seed=1, generations=1)
    np.testing.assert_array_equal(again.matrix, learnt.matrix)


def test_the_time_limit_ends_both_with_what_there_is() -> None:
    x, ranks = rows(100)
    begun = time.monotonic()
    chains = learn_by_chains(x, ranks, seed=0, time_limit=0.2)
    gradient = learn_by_gradient(x, ranks, time_limit=0.0)
    assert time.monotonic() - begun < 3
    assert chains.measure >= chains.start
    np.testing.assert_allclose(gradient.matrix.T @ gradient.matrix, np.eye(4), atol=1e-9)


def test_one_rank_has_no_triplets() -> None:
    x, _ = rows(10)
    learnt = learn_by_gradient(x, np.zeros(10, dtype=np.int64))
    np.testing.assert_array_equal(learnt.matrix, np.eye(4))
