"""Extended examples: pairs of a row and a threshold.

Where there are many thresholds, a row takes a sample of them: the thresholds around its rank are
divided into strata whose widths double with the distance from it (1, 1, 2, 4, ... on both sides),
one threshold is drawn from each and counts for the whole stratum. The nearest thresholds decide the
curve and are all there, and any sum over the sample is an unbiased estimate of the sum over all
thresholds. A row has about 2 log2(K) examples then.
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
