"""Sorting networks, comparator by comparator and against all right permutations."""

import itertools
import math

import numpy as np
import pytest
import torch
from diffsort import DiffSortNet
from scipy.stats import norm

from echelon.functional import diffsort_loss
from echelon.functional._sorting import _RELAXATIONS, relaxed_sort
from echelon.methods import method
from tests.functional.test_pairs import with_map

SHARES = {
    "cauchy": lambda v: math.atan(v) / math.pi + 0.5,
    "logistic": lambda v: 1 / (1 + math.exp(-v)),
    "logistic_phi": lambda v: 1 / (1 + math.exp(-v)),
    "reciprocal": lambda v: v / (2 * (2 + abs(v))) + 0.5,
    "gaussian": norm.cdf,
    "optimal": lambda v: v + 0.5 if abs(v) <= 0.25 else (v > 0) - 1 / (16 * v),
}


def comparators(network: str, n: int) -> list[tuple[int, int]]:
    """From the places of the lower and the higher value, in the order of their layers."""
    if network == "odd_even":
        return [(i, i + 1) for layer in range(n) for i in range(layer % 2, n - 1, 2)]
    found, k = [], 2
    while k <= n:
        j = k // 2
        while j >= 1:
            for i in range(n):
                if i & j == 0:
                    found.append((i, i + j) if i & k == 0 else (i + j, i))
            j //= 2
        k *= 2
    return found


def sorted_one_by_one(x, network: str, distribution: str, steepness: float):
    """The values and the matrix, comparator by comparator."""
    n, x = len(x), np.array(x)
    matrix = np.eye(n)
    for a, b in comparators(network, n):
        difference = x[b] - x[a]
        if distribution == "logistic_phi":
            difference /= (abs(difference) + 1e-10) ** 0.25
        alpha = SHARES[distribution](steepness * difference)
        for rows in (x, matrix):
            low, high = rows[..., a].copy(), rows[..., b].copy()
            rows[..., a] = alpha * low + (1 - alpha) * high
            rows[..., b] = (1 - alpha) * low + alpha * high
    return x, matrix


@pytest.mark.parametrize("distribution", SHARES)
@pytest.mark.parametrize(("network", "n"), [("odd_even", 7), ("odd_even", 8), ("bitonic", 8)])
def test_equals_the_comparators_one_by_one(network: str, n: int, distribution: str) -> None:
    assert SHARES.keys() == _RELAXATIONS.keys()
    x = torch.randn(3, n, dtype=torch.float64)
    found = relaxed_sort(x, network, distribution, 3.0)
    for row, matrix in zip(x, found, strict=True):
        values, expected = sorted_one_by_one(row.numpy(), network, distribution, 3.0)
        np.testing.assert_allclose(matrix, expected, atol=1e-12)
        np.testing.assert_allclose(row @ matrix, values, atol=1e-12)
    for sums in (found.sum(1), found.sum(2)):  # doubly stochastic
        torch.testing.assert_close(sums, torch.ones_like(sums))


@pytest.mark.parametrize("network", ["odd_even", "bitonic"])
def test_a_steep_network_sorts(network: str) -> None:
    # The steps of a permutation: two numbers that are nearly equal would need a steeper network.
    x = torch.stack([torch.randperm(16) for _ in range(20)]).double()
    found = relaxed_sort(x, network, "logistic", 1e6)
    torch.testing.assert_close((x.unsqueeze(1) @ found).squeeze(1), x.sort(1).values)


@pytest.mark.parametrize("ranks", [[0, 1, 2, 3], [2, 0, 2, 1], [1, 1, 0, 1], [2, 2, 2, 2]])
def test_ties_may_stand_in_any_order(ranks: list[int]) -> None:
    """The target is the mean over all permutations that sort the ranks."""
    right = [p for p in itertools.permutations(range(4)) if sorted(ranks) == [ranks[i] for i in p]]
    target = sum(np.eye(4)[list(p)].T for p in right) / len(right)
    score = torch.randn(4, dtype=torch.float64)
    shares = relaxed_sort(score.unsqueeze(0))[0].numpy().clip(1e-6, 1 - 1e-6)
    expected = -(target * np.log(shares) + (1 - target) * np.log1p(-shares)).mean()
    found = diffsort_loss(with_map(score, 4), torch.tensor(ranks), list_size=4)
    assert found.item() == pytest.approx(expected, abs=1e-12)


def test_no_row_is_left_out_where_lists_do_not_come_out_even() -> None:
    logits = with_map(torch.randn(11), 3).requires_grad_()
    for list_size in (2, 4, 16):
        (gradient,) = torch.autograd.grad(
            diffsort_loss(logits, torch.arange(11) % 3, list_size=list_size), logits
        )
        assert (gradient[:, 0] != 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"network": "bubble"}, "network must be one of 'odd_even', 'bitonic'; got 'bubble'"),
        ({"distribution": "uniform"}, "distribution must be one of 'cauchy'.*; got 'uniform'"),
        ({"steepness": 0.0}, "steepness must be a number above 0; got 0"),
        ({"list_size": 1}, "list_size must be a whole number from 2 to 256; got 1"),
        ({"list_size": 6, "network": "bitonic"}, "power of 2 for the bitonic network; got 6"),
    ],
)
def test_refuses_what_it_cannot_do(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method("diffsort", 3, **options)


@pytest.mark.parametrize(
    "distribution", ["logistic", "logistic_phi", "cauchy", "reciprocal", "optimal"]
)
@pytest.mark.parametrize("network", ["odd_even", "bitonic"])
@pytest.mark.parametrize("n", [4, 8])
def test_equals_the_authors_package(network: str, n: int, distribution: str) -> None:
    torch.manual_seed(n)
    scores = torch.randn(6, n).double()
    theirs = DiffSortNet(network, n, steepness=10.0, distribution=distribution)
    _, expected = theirs(scores)
    found = relaxed_sort(scores, network, distribution, 10.0)
    # the package adds 1e-10 to a denominator of its optimal relaxation
    tolerance = 1e-9 if distribution == "optimal" else 1e-12
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)
