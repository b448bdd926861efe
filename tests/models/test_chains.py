"""Chains of neighbours against brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon.models.chains import chain_objective, count_chains


def brute_force(sequence: list[int], length: int) -> int:
    """Every subsequence that keeps to one side and never comes back, once."""
    found = 0
    for places in combinations(range(len(sequence)), length):
        chain = [sequence[place] for place in places]
        rises = all(value >= 0 for value in chain) and chain == sorted(chain)
        falls = all(value <= 0 for value in chain) and chain == sorted(chain, reverse=True)
        found += rises or falls
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9), st.integers(1, 4))
def test_chains_are_counted_as_one_would_by_hand(sequence: list[int], length: int) -> None:
    found = count_chains(np.array([sequence, sequence[::-1]]), length)
    assert found.tolist() == [
        brute_force(sequence, length), brute_force(sequence[::-1], length),
    ]  # fmt: skip


@pytest.mark.parametrize("neighborhood", [5, 12, 100])
def test_the_objective_is_that_of_a_naive_count(neighborhood: int) -> None:
    rng = np.random.default_rng(0)
    x, ranks = rng.normal(size=(12, 3)), rng.integers(4, size=12)
    total = 0
    for i in range(12):
        nearest = sorted(range(12), key=lambda j: np.linalg.norm(x[i] - x[j]))[:neighborhood]
        total += brute_force([int(ranks[i] - ranks[j]) for j in nearest], 3)
    assert chain_objective(x, ranks, neighborhood=neighborhood, length=3) == total


def test_ranks_that_follow_the_distance_have_the_most_chains() -> None:
    line = np.arange(10.0)[:, None]
    ordered = chain_objective(line, np.arange(10), neighborhood=10, length=3)
    mixed = np.random.default_rng(0).permutation(10)
    assert ordered > chain_objective(line, mixed, neighborhood=10, length=3)
