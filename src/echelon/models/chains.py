"""Chains of neighbours: how well distances follow the order of the ranks (Suarez et al. 2021).

The neighbours of a row, the nearest first, are in order where ranks move away from its own the
farther they lie. A chain is a subsequence of neighbours in which they never come back. The more
chains, the better the metric.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from echelon.models.links import Array


def count_chains(differences: NDArray[np.int64], length: int) -> Array:
    """How many chains there are in each sequence of differences of ranks, (n,).

    Chains never fall in the differences that are at least 0, or never rise in those that are at
    most 0; those of zeros alone are counted once.

    Parameters
    ----------
    differences : array of int, shape (n, m)
        The rank of a row minus those of its neighbours, the nearest first.
    length : int
        c, how many neighbours make a chain.

    Examples
    --------
    >>> count_chains(np.array([[0, 1, 2, 1], [0, 2, -1, -1]]), 2)
    array([5., 4.])
    """
    rising = _count_rising(differences, differences >= 0, length)
    falling = _count_rising(-differences, differences <= 0, length)
    zeros = (differences == 0).sum(1)
    twice = np.array([math.comb(number, length) for number in range(differences.shape[1] + 1)])
    chains: Array = rising + falling - twice[zeros]
    return chains


def _count_rising(values: NDArray[np.int64], taken: NDArray[np.bool_], length: int) -> Array:
    """Subsequences of so many taken values that never fall, (n,)."""
    size = values.shape[1]
    before = np.tril(np.ones((size, size), dtype=bool), -1)  # later by earlier
    follows = (values[:, None, :] <= values[:, :, None]) & before
    follows &= taken[:, :, None] & taken[:, None, :]
    steps = follows.astype(np.float64)  # (n, later, earlier)
    counts = taken.astype(np.float64)
    for _ in range(length - 1):
        counts = np.einsum("nij,nj->ni", steps, counts)
    totals: Array = counts.sum(1)
    return totals


def chain_objective(
    mapped: Array, ranks: NDArray[np.int64], *, neighborhood: int, length: int
) -> float:
    """The number of chains of all rows, for rows (n, d') that were mapped by a metric.

    Each row takes its nearest rows, itself among them, as its sequence.
    """
    size = min(neighborhood, len(ranks))
    distances = cdist(mapped, mapped)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :size]
    return float(count_chains(ranks[:, None] - ranks[nearest], length).sum())
