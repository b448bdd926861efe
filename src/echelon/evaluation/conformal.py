"""Prediction intervals with a guarantee: split conformal prediction on ordered classes.

The interval of a row holds the ranks that conform at least as well as a threshold says. What that
means is one of three scores: the probability of a rank, the ranked probability score that it would
have, or the mass of the window that reaches it. The threshold comes from rows that were used for
nothing else. If those and the new rows are exchangeable, the interval contains the truth with at
least the wished probability, on average over rows, whatever the model is worth.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.evaluation.arguments import read_probabilities

# By which share probabilities of one row may differ between float32 and float64, and between
# batches of different sizes.
ROUNDING = 1e-4


SCORES = ("probability", "rps", "window")


class ConformalRows(NamedTuple):
    """Conformity, true rank and weight, (n,) each, of the rows that were kept for intervals."""

    scores: NDArray[np.float64]
    ranks: NDArray[np.int64]
    weight: NDArray[np.float64]


def conformity(probabilities: ArrayLike, score: str = "probability") -> NDArray[np.float64]:
    """The largest threshold at which each rank is still in the interval, (n, K).

    Ranks that are as probable as the mode, but for rounding, are modes too: which of them comes
    first must not hang on the precision of a prediction. No interval is empty: the mode, or with
    ``"rps"`` the median, conforms infinitely well.

    Parameters
    ----------
    probabilities : array-like, shape (n, K)
    score : {"probability", "rps", "window"}
        ``"probability"``: a rank lies in the hull of those that are probable enough, if one at or
        below it and one at or above it are. ``"rps"``: K - 1 less the ranked probability score of
        the row if this rank were the truth. ``"window"``: 2 less the mass of the window that first
        reaches the rank, where windows grow from the mode to the more probable side; of a
        distribution with one mode they are the shortest of their mass.

    Examples
    --------
    >>> conformity([[0.1, 0.6, 0.05, 0.25]])
    array([[0.1 ,  inf, 0.25, 0.25]])
    >>> conformity([[0.1, 0.6, 0.3]], "window").round(3)
    array([[1. ,  inf, 1.1]])
    """
    require_score(score)
    p = np.asarray(probabilities, dtype=np.float64)
    return _CONFORMITY[score](p)


def _of_probability(p: NDArray[np.float64]) -> NDArray[np.float64]:
    lifted = np.where(_are_modes(p), np.inf, p)
    from_below = np.maximum.accumulate(lifted, axis=1)
    from_above = np.maximum.accumulate(lifted[:, ::-1], axis=1)[:, ::-1]
    scores: NDArray[np.float64] = np.minimum(from_below, from_above)
    return scores


def _of_rps(p: NDArray[np.float64]) -> NDArray[np.float64]:
    below = np.cumsum(p, axis=1)[:, :-1]  # P(y <= k)
    # With the truth at k, a threshold below it costs the square of P(y <= j), others of P(y > j).
    lower, upper = np.square(below), np.square(1 - below)
    nothing = np.zeros((len(p), 1))
    before = np.concatenate([nothing, np.cumsum(lower, axis=1)], axis=1)
    after = np.concatenate([np.cumsum(upper[:, ::-1], axis=1)[:, ::-1], nothing], axis=1)
    costs = before + after
    # The score falls to the median and rises after it.
    is_median = costs <= costs.min(axis=1, keepdims=True) + ROUNDING
    scores: NDArray[np.float64] = np.where(is_median, np.inf, p.shape[1] - 1 - costs)
    return scores


def _of_window(p: NDArray[np.float64]) -> NDArray[np.float64]:
    rows, num_classes = np.arange(len(p)), p.shape[1]
    scores = np.full(p.shape, np.inf)
    walled = np.pad(p, ((0, 0), (1, 1)), constant_values=-1.0)  # nothing lies beyond the ranks
    modes = _are_modes(p)
    low = modes.argmax(axis=1)
    high = num_classes - 1 - modes[:, ::-1].argmax(axis=1)  # of several modes the hull
    inside = (np.arange(num_classes) >= low[:, None]) & (np.arange(num_classes) <= high[:, None])
    mass = (p * inside).sum(axis=1)
    for _ in range(num_classes - 1):
        left, right = walled[rows, low], walled[rows, high + 2]
        # Equal neighbours, but for rounding, come together: neither before the other.
        is_tie = np.abs(left - right) <= ROUNDING * np.maximum(left, right)
        goes_left = (left >= 0) & ((left > right) | is_tie)
        goes_right = (right >= 0) & ((right > left) | is_tie)
        mass = mass + np.where(goes_left, left, 0.0) + np.where(goes_right, right, 0.0)
        low, high = low - goes_left, high + goes_right
        scores[rows[goes_left], low[goes_left]] = 2 - mass[goes_left]
        scores[rows[goes_right], high[goes_right]] = 2 - mass[goes_right]
    return scores


def _are_modes(p: NDArray[np.float64]) -> NDArray[np.bool_]:
    is_mode: NDArray[np.bool_] = p >= p.max(axis=1, keepdims=True) * (1 - ROUNDING)
    return is_mode


_CONFORMITY: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "probability": _of_probability,
    "rps": _of_rps,
    "window": _of_window,
}


def require_score(score: str) -> None:
    """Raise unless a conformal score is known."""
    if score not in SCORES:
        raise ValueError(f"score must be one of {', '.join(map(repr, SCORES))}; got {score!r}")


def calibration_scores(
    truth: ArrayLike, probabilities: ArrayLike, score: str = "probability"
) -> NDArray[np.float64]:
    """The conformity of the true rank of each row, (n,)."""
    ranks, p, _ = read_probabilities(truth, probabilities, None, None, None)
    scores: NDArray[np.float64] = conformity(p, score)[np.arange(len(ranks)), ranks]
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
        The share of new rows whose interval shall hold the true class.
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
    probabilities: ArrayLike,
    thresholds: float | NDArray[np.float64],
    score: str = "probability",
) -> NDArray[np.int64]:
    """The lowest and the highest rank of each interval, (n, 2).

    Parameters
    ----------
    probabilities : array-like, shape (n, K)
    thresholds : float or array of shape (K,)
        Of :func:`threshold` or :func:`class_thresholds`.
    score : {"probability", "rps", "window"}
        The one that the thresholds are of; see :func:`conformity`.

    Examples
    --------
    >>> intervals([[0.1, 0.6, 0.05, 0.25]], 0.2)
    array([[1, 3]])
    """
    # The same row may have been calibrated in another precision: a tie with the threshold is in.
    inside = conformity(probabilities, score) >= np.asarray(thresholds) * (1 - ROUNDING)
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
