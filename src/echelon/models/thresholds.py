"""Extended examples: pairs of a row and a threshold.

Where there are many thresholds, a row takes a sample of them: the thresholds around its rank are
divided into strata whose widths double with the distance from it (1, 1, 2, 4, ... on both sides),
one threshold is drawn from each and counts for the whole stratum. The nearest thresholds decide the
curve and are all there, and any sum over the sample is an unbiased estimate of the sum over all
thresholds. A row has about 2 log2(K) examples then. Rows that are too many for that take three: the
two thresholds beside the rank, and one that stands for all others.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class ThresholdPairs(NamedTuple):
    """Pairs of a row and a threshold, (m,) each; `weight` is how many pairs each stands for."""

    row: Integers
    threshold: Integers
    weight: Floats


def threshold_pairs(
    ranks: Integers, num_classes: int, most: int, generator: np.random.Generator
) -> ThresholdPairs:
    """All pairs of a row and a threshold; where they are more than `most`, a sample of each row's.

    Parameters
    ----------
    ranks : array, shape (n,)
    num_classes : int
        K; the thresholds are 0..K-2.
    most : int
    generator : numpy.random.Generator
        For the sample.

    Returns
    -------
    ThresholdPairs
        Ordered by row and threshold.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> threshold_pairs(np.array([0, 2]), 3, 100, generator).threshold
    array([0, 1, 0, 1])
    >>> threshold_pairs(np.array([0]), 100, 50, generator).weight
    array([ 1.,  1.,  2.,  4.,  8., 16., 32., 35.])
    """
    count = num_classes - 1
    if count * len(ranks) <= most:
        row = np.repeat(np.arange(len(ranks)), count)
        threshold = np.tile(np.arange(count), len(ranks))
        return ThresholdPairs(row, threshold, np.ones(len(row)))
    edges = [0, *(2**power for power in range(count.bit_length() + 1))]  # of distances
    drawn: list[tuple[Integers, Integers, Integers]] = []  # rows, thresholds, sizes of strata
    for side, room in ((-1, ranks), (1, count - ranks)):  # thresholds below the rank, and above
        for nearest, end in pairwise(edges):
            size = np.minimum(end, room) - nearest
            row = np.flatnonzero(size > 0)
            distance = nearest + np.floor(generator.random(len(row)) * size[row]).astype(np.int64)
            threshold = ranks[row] + (distance if side == 1 else -1 - distance)
            drawn.append((row, threshold, size[row]))
    row, threshold, size = (np.concatenate(values) for values in zip(*drawn, strict=True))
    in_order = np.lexsort((threshold, row))
    return ThresholdPairs(row[in_order], threshold[in_order], size[in_order].astype(np.float64))


def pairs_a_row(num_classes: int) -> Integers:
    """How many pairs :func:`few_threshold_pairs` makes of a row of each rank, (K,), at most 3.

    Examples
    --------
    >>> pairs_a_row(5)
    array([2, 3, 3, 3, 2])
    """
    ranks, count = np.arange(num_classes), num_classes - 1
    beside = (ranks > 0).astype(np.int64) + (ranks < count)
    return np.asarray(beside + (count > beside), dtype=np.int64)


def few_threshold_pairs(
    ranks: Integers, num_classes: int, generator: np.random.Generator
) -> ThresholdPairs:
    """Pairs of a row with the thresholds beside its rank, and with one of the others.

    The third stands for all others, so that any sum over the pairs is an unbiased estimate of the
    sum over all thresholds.

    Parameters
    ----------
    ranks : array, shape (n,)
    num_classes : int
        K; the thresholds are 0..K-2.
    generator : numpy.random.Generator

    Examples
    --------
    >>> pairs = few_threshold_pairs(np.array([0, 2]), 5, np.random.default_rng(0))
    >>> pairs.row, pairs.threshold, pairs.weight
    (array([0, 0, 1, 1, 1]), array([0, 2, 0, 1, 2]), array([1., 3., 2., 1., 1.]))
    """
    count = num_classes - 1
    low = np.maximum(ranks - 1, 0)  # the first threshold beside the rank
    high = np.minimum(ranks, count - 1)  # and the last
    others = count - (high - low + 1)
    drawn = np.floor(generator.random(len(ranks)) * others).astype(np.int64)
    drawn += np.where(drawn >= low, high - low + 1, 0)
    row = np.arange(len(ranks))
    wide, more = high > low, others > 0
    rows = np.concatenate([row, row[wide], row[more]])
    threshold = np.concatenate([low, high[wide], drawn[more]])
    weight = np.concatenate([np.ones(len(row) + int(wide.sum())), others[more]])
    in_order = np.lexsort((threshold, rows))
    return ThresholdPairs(rows[in_order], threshold[in_order], weight[in_order])
