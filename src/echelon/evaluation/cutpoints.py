"""Cut-points on the expected rank that make the quadratic weighted kappa as large as possible."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from echelon.evaluation.arguments import as_vector, as_weight

_FOLDS = 5  # of rows, each cut by what the others say
_ROUNDS = 100  # far more than the ascent needs; it ends when a round changes nothing


def fit_cutpoints(
    truth: ArrayLike,
    expected_rank: ArrayLike,
    num_classes: int,
    *,
    smooth: bool = False,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """K-1 ascending cut-points; the label is the number of them below the expected rank.

    Starts with rounding, 0.5, 1.5, .., and moves one cut-point after the other to its best place
    between its neighbours until none moves, so the kappa on these rows is never below that of
    rounding.

    K-1 free numbers fit the noise of a few thousand rows: the kappa of other rows then falls below
    that of rounding. With `smooth`, what the rows say is first reduced to a straight line, the
    truth as a function of the expected rank, and kappa is that of the line.

    Parameters
    ----------
    truth : array-like, shape (n,)
        Ranks, or labels if `classes` are given.
    expected_rank : array-like, shape (n,)
    num_classes : int
    smooth : bool
    sample_weight : array-like, shape (n,), optional
        What each row counts for; without it, each counts alike.

    Examples
    --------
    >>> fit_cutpoints([0, 0, 1, 1], [0.6, 0.7, 0.8, 0.9], 2).round(2)
    array([0.75])
    """
    ranks = as_vector("truth", truth)
    means = as_vector("expected_rank", expected_rank, length=len(ranks))
    weight = (
        np.ones(len(ranks))
        if sample_weight is None
        else as_weight(sample_weight, length=len(ranks))
    )
    target = _line(means, ranks, weight) if smooth else ranks
    order = np.argsort(means, kind="stable")
    places, first = np.unique(means[order], return_index=True)
    # A label is the sum over cut-points of 1{mean above it}, and its square that of 2k+1 times it:
    # so everything in kappa is a sum over cut-points of what lies above each of them.
    tail = [
        np.append(np.cumsum(values[order][::-1])[::-1], 0.0)[np.append(first, len(order))]
        for values in (weight, weight * target)
    ]
    # candidate j lies below places[j]; the last lies above all of them
    middles = (places[1:] + places[:-1]) / 2
    candidates = np.concatenate([[min(-0.5, places[0] - 0.5)], middles, [places[-1] + 0.5]])
    chosen = np.searchsorted(places, np.arange(num_classes - 1) + 0.5, side="right")
    total, truth_sum, truth_square = weight.sum(), weight @ ranks, weight @ ranks**2
    odd = 2 * np.arange(num_classes - 1) + 1

    for _ in range(_ROUNDS):
        before = chosen.copy()
        for k in range(num_classes - 1):
            low = chosen[k - 1] if k > 0 else 0
            high = chosen[k + 1] if k < num_classes - 2 else len(places)
            others = np.delete(np.arange(num_classes - 1), k)
            options = np.arange(low, high + 1)
            p_sum = tail[0][chosen[others]].sum() + tail[0][options]
            p_square = odd[others] @ tail[0][chosen[others]] + odd[k] * tail[0][options]
            product = tail[1][chosen[others]].sum() + tail[1][options]
            observed = truth_square + p_square - 2 * product
            chance = truth_square + p_square - 2 * truth_sum * p_sum / total
            with np.errstate(invalid="ignore", divide="ignore"):
                loss = np.where(chance > 0, observed / chance, np.inf)
            best = options[loss.argmin()]
            if loss[best - low] < loss[chosen[k] - low] - 1e-12:
                chosen[k] = best
        if (chosen == before).all():
            break
    rounding = np.searchsorted(places, np.arange(num_classes - 1) + 0.5, side="right")
    # A cut-point that stayed where rounding has it keeps its round value.
    result: NDArray[np.float64] = np.where(
        chosen == rounding, np.arange(num_classes - 1) + 0.5, candidates[chosen]
    )
    return np.maximum.accumulate(result)


class TunedKappa(NamedTuple):
    """A quadratic weighted kappa with the ends of its interval."""

    kappa: float
    low: float
    high: float


def tuned_kappa(
    truth: ArrayLike,
    expected_rank: ArrayLike,
    num_classes: int,
    *,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
) -> TunedKappa | None:
    """The kappa that cut-points tuned on rows like these have on other rows, with an interval.

    The kappa of the rows that cut-points were tuned on is too good. Here every row is cut by
    cut-points of the other four fifths, and the interval is that of these labels (by the
    derivatives of kappa for each row). None where there are too few rows
    to tell, or one class only.

    Parameters
    ----------
    truth : array-like, shape (n,)
        Ranks, or labels if `classes` are given.
    expected_rank : array-like, shape (n,)
    num_classes : int
    sample_weight : array-like, shape (n,), optional
        What each row counts for; without it, each counts alike.
    confidence : float

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> expected = generator.uniform(0, 3, size=500)
    >>> truth = (expected + generator.normal(size=500)).round().clip(0, 3)
    >>> [round(value, 2) for value in tuned_kappa(truth, expected, 4)]
    [0.65, 0.6, 0.7]
    """
    ranks = as_vector("truth", truth)
    means = as_vector("expected_rank", expected_rank, length=len(ranks))
    weight = (
        np.ones(len(ranks))
        if sample_weight is None
        else as_weight(sample_weight, length=len(ranks))
    )
    if len(ranks) < 2 * _FOLDS or (ranks == ranks[0]).all():
        return None
    fold = np.random.default_rng(0).permutation(len(ranks)) % _FOLDS
    labels = np.empty(len(ranks))
    for number in range(_FOLDS):
        mine, others = fold == number, fold != number
        if not weight[others].any():
            return None
        cuts = fit_cutpoints(
            ranks[others], means[others], num_classes, smooth=True, sample_weight=weight[others]
        )
        labels[mine] = (means[mine, None] > cuts).sum(axis=1)
    share = weight / weight.sum()
    mean, label_mean = share @ ranks, share @ labels
    observed = (ranks - labels) ** 2
    chance = ranks**2 + labels**2 - 2 * (ranks * label_mean + labels * mean - mean * label_mean)
    if not share @ chance > 0:
        return None
    ratio = (share @ observed) / (share @ chance)
    derivatives = (observed - ratio * chance) / (share @ chance)  # their mean is 0
    error = float(np.sqrt((share**2) @ derivatives**2))
    reach = float(norm.ppf((1 + confidence) / 2)) * error
    kappa = 1 - float(ratio)
    return TunedKappa(kappa, max(-1.0, kappa - reach), min(1.0, kappa + reach))


def _line(
    x: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The values of the least-squares line of y on x."""
    centred = x - np.average(x, weights=weight)
    spread = weight @ centred**2
    slope = (weight @ (centred * y)) / spread if spread > 0 else 0.0
    fitted: NDArray[np.float64] = np.average(y, weights=weight) + slope * centred
    return fitted
