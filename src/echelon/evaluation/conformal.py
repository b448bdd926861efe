"""Prediction intervals with a guarantee: split conformal prediction on ordered classes.

The interval of a row is the hull of the ranks whose probability is at least a threshold, and it
always contains the mode. The threshold comes from rows that were used for nothing else. If those
and the new rows are exchangeable, the interval contains the truth with at least the wished
probability, on average over rows, whatever the model is worth.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.evaluation.arguments import read_probabilities

# By which share probabilities of one row may differ between float32 and float64, and between
# batches of different sizes.
ROUNDING = 1e-4


class ConformalRows(NamedTuple):
    """Conformity, true rank and weight, (n,) each, of the rows that were kept for intervals."""

    scores: NDArray[np.float64]
    ranks: NDArray[np.int64]
    weight: NDArray[np.float64]


def conformity(probabilities: ArrayLike) -> NDArray[np.float64]:
    """The largest threshold at which each rank is still in the interval, (n, K).

    A rank lies in the hull if some rank at or below it and some at or above it are probable enough.
    The mode always does: infinity. Ranks that are as probable as the mode, but for rounding, are
    modes too: which of them comes first must not hang on the precision of a prediction.

    Examples
    --------
    >>> conformity([[0.1, 0.6, 0.05, 0.25]])
    array([[0.1 ,  inf, 0.25, 0.25]])
    """
    p = np.asarray(probabilities, dtype=np.float64)
    is_mode = p >= p.max(axis=1, keepdims=True) * (1 - ROUNDING)
    lifted = np.where(is_mode, np.inf, p)
    from_below = np.maximum.accumulate(lifted, axis=1)
    from_above = np.maximum.accumulate(lifted[:, ::-1], axis=1)[:, ::-1]
    scores: NDArray[np.float64] = np.minimum(from_below, from_above)
    return scores


def calibration_scores(truth: ArrayLike, probabilities: ArrayLike) -> NDArray[np.float64]:
    """The conformity of the true rank of each row, (n,)."""
    ranks, p, _ = read_probabilities(truth, probabilities, None, None, None)
    scores: NDArray[np.float64] = conformity(p)[np.arange(len(ranks)), ranks]
    return scores


def threshold(
    scores: ArrayLike, coverage: float, *, sample_weight: ArrayLike | None = None
) -> float:
    """The threshold for a coverage; -infinity, which lets all ranks in, for want of rows.

    With n scores it is the one at place ``floor((1 - coverage) (n + 1))`` from below. With weights
    it is the highest score such that the scores up to it have at most the share 1 - coverage of the
    weight of all rows and a new one, which is taken to weigh as much as they do on average.

    Parameters
    ----------
    scores : array-like, shape (n,)
    coverage : float
    sample_weight : array-like, shape (n,), optional
        How many rows each stands for.

    Examples
    --------
    >>> scores = [0.5, 0.4, 0.3, 0.2, 0.1, 0.6, 0.7, 0.8, 0.9]
    >>> threshold(scores, coverage=0.8)
    0.2
    >>> threshold(scores, coverage=0.8, sample_weight=[1, 1, 1, 1, 3, 1, 1, 1, 1])
    -inf
    """
    require_coverage(coverage)
    values = np.asarray(scores, dtype=np.float64)
    weight = np.ones(len(values))
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64)
        if not weight.any():
            return -math.inf
        weight = weight / weight.mean()
    order = np.argsort(values, kind="stable")
    # 0.1 * 10 may come out as 0.9999..., which must count as 1
    allowed = (1 - coverage) * (len(values) + 1) + 1e-9
    place = int(np.searchsorted(np.cumsum(weight[order]), allowed, side="right"))
    return float(values[order][place - 1]) if place >= 1 else -math.inf


def class_thresholds(
    scores: ArrayLike,
    truth: ArrayLike,
    coverage: float,
    num_classes: int,
    *,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """A threshold for each class, (K,), from the rows whose truth it is.

    Then every class is covered with the wished probability, not only the average row. A class
    with few rows gets -infinity: it is in every interval.
    """
    values, ranks = np.asarray(scores, dtype=np.float64), np.asarray(truth)
    weight = np.ones(len(values)) if sample_weight is None else np.asarray(sample_weight)
    return np.array(
        [
            threshold(values[ranks == k], coverage, sample_weight=weight[ranks == k])
            for k in range(num_classes)
        ]
    )


def intervals(
    probabilities: ArrayLike, thresholds: float | NDArray[np.float64]
) -> NDArray[np.int64]:
    """The lowest and the highest rank of each interval, (n, 2).

    Parameters
    ----------
    probabilities : array-like, shape (n, K)
    thresholds : float or array of shape (K,)
        Of :func:`threshold` or :func:`class_thresholds`.

    Examples
    --------
    >>> intervals([[0.1, 0.6, 0.05, 0.25]], 0.2)
    array([[1, 3]])
    """
    # The same row may have been calibrated in another precision: a tie with the threshold is in.
    inside = conformity(probabilities) >= np.asarray(thresholds) * (1 - ROUNDING)
    lowest = inside.argmax(axis=1)
    highest = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
    return np.stack([lowest, highest], axis=1)


def required_rows(coverage: float) -> int:
    """How many calibration rows a coverage needs before intervals can leave a rank out."""
    require_coverage(coverage)
    return math.ceil(1 / (1 - coverage) - 1 - 1e-9)


def require_coverage(coverage: float) -> None:
    """Raise unless a coverage lies between 0 and 1."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must lie between 0 and 1, such as 0.9; got {coverage}")
