"""Whether probabilities can be believed, and maps that mend them.

Reliability compares what was predicted with how often it happened. A map is fitted here and applied
by :meth:`echelon.RankCurve.calibrated`.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.evaluation import metrics
from echelon.evaluation.arguments import read_probabilities

CALIBRATIONS = ("temperature", "isotonic")
_RAMP = 0.05

Kind = Literal["temperature", "isotonic"]


class Reliability(NamedTuple):
    """Bins of predicted probability: the mean prediction, how often it came true, and how many."""

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    rows: NDArray[np.float64]


class CalibrationFit(NamedTuple):
    """A fitted map: `temperature`, or an increasing function of P(y > k) for each threshold k.

    The function of threshold k starts at ``base[k]``, (K-1,), and rises by ``rise[k, j]`` between
    ``left[k, j]`` and ``left[k, j] + 1 / steepness[k, j]``, (K-1, m) each, and nowhere else. m is 0
    for a temperature. `smoothing` is the share of the unmapped distribution that is mixed in, so
    that nothing becomes impossible because a few rows never showed it.
    """

    kind: Kind
    temperature: float
    base: NDArray[np.float64]
    left: NDArray[np.float64]
    steepness: NDArray[np.float64]
    rise: NDArray[np.float64]
    smoothing: float


def reliability(
    truth: ArrayLike,
    probabilities: ArrayLike,
    *,
    of: Literal["exceedance", "probabilities"] = "exceedance",
    bins: int = 10,
    sample_weight: ArrayLike | None = None,
) -> Reliability:
    """How often events came true that were predicted with about the same probability.

    Parameters
    ----------
    truth : array-like, shape (n,)
        The true ranks.
    probabilities : array-like, shape (n, K)
        P(y = k) of each row.
    of : {"exceedance", "probabilities"}
        The events: y > k for every threshold k, or y = k for every class k.
    bins : int
        The number of bins of equal width; empty ones are left out.
    sample_weight : array-like, shape (n,), optional
        What each row counts for; without it, each counts alike.

    Examples
    --------
    >>> reliability([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    Reliability(predicted=array([0.5]), observed=array([0.5]), rows=array([2.]))
    """
    predicted, happened, weight = _events(truth, probabilities, of, sample_weight)
    every = np.broadcast_to(weight[:, None], predicted.shape)
    return _bin(predicted.reshape(-1), happened.reshape(-1), every.reshape(-1), bins)


def calibration_error(
    truth: ArrayLike,
    probabilities: ArrayLike,
    *,
    of: Literal["exceedance", "probabilities"] = "exceedance",
    bins: int = 10,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The ordinal expected calibration error.

    For every threshold (or class), the mean over its rows of how far the bin's mean prediction is
    from the bin's observed share; then the mean over thresholds. Arguments as in
    :func:`reliability`.

    Examples
    --------
    >>> calibration_error([0, 0], [[0.2, 0.8], [0.2, 0.8]])
    0.8
    """
    predicted, happened, weight = _events(truth, probabilities, of, sample_weight)
    errors = []
    for k in range(predicted.shape[1]):
        table = _bin(predicted[:, k], happened[:, k], weight, bins)
        errors.append(np.average(np.abs(table.predicted - table.observed), weights=table.rows))
    return float(np.mean(errors))


def fit_calibration(
    truth: ArrayLike,
    probabilities: ArrayLike,
    kind: Kind,
    *,
    sample_weight: ArrayLike | None = None,
) -> CalibrationFit:
    """Fit a map on rows that the model was not trained on.

    Parameters
    ----------
    truth : array-like, shape (n,)
        The true ranks.
    probabilities : array-like, shape (n, K)
        P(y = k) of each row.
    kind : {"temperature", "isotonic"}
        One number that makes all distributions wider or narrower; or, for every threshold, an
        increasing function of P(y > k), which needs more rows: the steps of isotonic regression,
        with straight lines between them.
    sample_weight : array-like, shape (n,), optional
        What each row counts for; without it, each counts alike.
    """
    ranks, p, given = read_probabilities(truth, probabilities, None, None, sample_weight)
    require_kind(kind)
    weight = np.ones(len(ranks)) if given is None else given
    tasks = p.shape[1] - 1
    if kind == "temperature":
        nothing = np.zeros((tasks, 0))
        temperature = _fit_temperature(ranks, p, weight)
        return CalibrationFit(
            kind, temperature, np.zeros(tasks), nothing, nothing, nothing, smoothing=0.0
        )
    exceedance = exceedance_of(p)
    steps = [pool_adjacent_violators(exceedance[:, k], ranks > k, weight) for k in range(tasks)]
    ramps = [_ramps(step) for step in steps]
    size = max(1, *(len(left) for left, _, _ in ramps))
    # Filled up with ramps beyond 1, where no probability lies, that rise by nothing.
    left = np.full((tasks, size), 2.0)
    steepness, rise = np.ones((tasks, size)), np.zeros((tasks, size))
    for k, (start, width, height) in enumerate(ramps):
        left[k, : len(start)], rise[k, : len(start)] = start, height
        steepness[k, : len(start)] = 1 / width
    base = np.array([step.value[0] for step in steps])
    return CalibrationFit(kind, 1.0, base, left, steepness, rise, smoothing=1 / (len(ranks) + 1))


def require_kind(kind: str) -> None:
    """Raise unless a kind of map is known."""
    if kind not in CALIBRATIONS:
        raise ValueError(
            f"calibration must be one of {', '.join(map(repr, CALIBRATIONS))}; got {kind!r}"
        )


def apply_calibration(probabilities: ArrayLike, fit: CalibrationFit) -> NDArray[np.float64]:
    """Mapped probabilities (n, K), as the curve maps them."""
    p = np.asarray(probabilities, dtype=np.float64)
    if fit.kind == "temperature":
        logs = _log(p) / fit.temperature
        powers = np.exp(logs - logs.max(axis=1, keepdims=True))
        scaled: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
        return scaled
    exceedance = exceedance_of(p)
    mapped = np.stack([_mapped(exceedance[:, k], fit, k) for k in range(len(fit.base))], axis=1)
    ordered = -np.sort(-mapped, axis=1)
    edges = np.concatenate([np.ones((len(p), 1)), ordered, np.zeros((len(p), 1))], axis=1)
    mended: NDArray[np.float64] = -np.diff(edges, axis=1)
    return (1 - fit.smoothing) * mended + fit.smoothing * p


def _mapped(
    exceedance: NDArray[np.float64], fit: CalibrationFit, threshold: int
) -> NDArray[np.float64]:
    left, rise = fit.left[threshold], fit.rise[threshold]
    before = np.concatenate([[0.0], np.cumsum(rise)])  # what has risen before each step
    place = np.searchsorted(left, exceedance)  # how many steps have begun
    step = np.maximum(place - 1, 0)
    share = ((exceedance - left[step]) * fit.steepness[threshold][step]).clip(0, 1)
    mapped: NDArray[np.float64] = fit.base[threshold] + before[step] + share * rise[step]
    return mapped


def calibration_summary(
    truth: ArrayLike,
    probabilities: ArrayLike,
    kind: Kind,
    *,
    sample_weight: ArrayLike | None = None,
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """What a map changes: scores before and after, the latter on rows that did not fit the map.

    The rows are split in two, and each half is mapped by a map that was fitted on the other.
    """
    return trial_of_calibration(
        truth, probabilities, kind, sample_weight=sample_weight, seed=seed
    ).summary


class CalibrationTrial(NamedTuple):
    """What a map did to rows that it was not fitted on.

    `summary` has the scores before and after. `helps` says whether the ranked probability score did
    not rise, and the log score fell by more than a standard error of its fall.
    """

    summary: dict[str, dict[str, float]]
    helps: bool


def trial_of_calibration(
    truth: ArrayLike,
    probabilities: ArrayLike,
    kind: Kind,
    *,
    sample_weight: ArrayLike | None = None,
    seed: int = 0,
) -> CalibrationTrial:
    """Try a map on rows of its own: each half is mapped by a map fitted on the other.

    Arguments as in :func:`fit_calibration`.

    Examples
    --------
    >>> sure = np.tile([0.01, 0.99], (400, 1))  # of what happens three times in four
    >>> trial_of_calibration(np.arange(400) % 4 > 0, sure, "temperature").helps
    True
    """
    ranks, p, given = read_probabilities(truth, probabilities, None, None, sample_weight)
    weight = np.ones(len(ranks)) if given is None else given
    after = p.copy()
    if len(ranks) >= 2:
        half = np.random.default_rng(seed).permutation(len(ranks)) % 2 == 0
        for rows in (half, ~half):
            if weight[~rows].any():
                fit = fit_calibration(ranks[~rows], p[~rows], kind, sample_weight=weight[~rows])
                after[rows] = apply_calibration(p[rows], fit)
    summary = {
        name: _scores(ranks, distributions, weight)
        for name, distributions in (("before", p), ("after", after))
    }
    rps = "ranked_probability_score"
    no_worse = summary["after"][rps] <= summary["before"][rps]
    return CalibrationTrial(summary, bool(no_worse and _falls_clearly(ranks, p, after, weight)))


def _falls_clearly(
    ranks: NDArray[np.int64],
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> bool:
    """Whether the log score falls by more than a standard error of its fall."""
    rows = np.arange(len(ranks))
    own_before, own_after = before[rows, ranks], after[rows, ranks]
    counted = weight > 0
    if ((own_before <= 0) & (own_after > 0) & counted).any():  # what was impossible has happened
        return not ((own_before > 0) & (own_after <= 0) & counted).any()
    counted &= own_before > 0  # what stays impossible says nothing
    if counted.sum() < 2:
        return False
    with np.errstate(divide="ignore"):
        fall = np.log(own_after[counted]) - np.log(own_before[counted])
    if not np.isfinite(fall).all():
        return False
    share = weight[counted] / weight[counted].sum()
    mean = float(share @ fall)
    error = float(np.sqrt((share**2) @ (fall - mean) ** 2))
    return mean > error


def exceedance_of(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(y > k), (n, K-1), of probabilities (n, K)."""
    exceedance: NDArray[np.float64] = probabilities[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    return exceedance.clip(0, 1)


def _scores(
    ranks: NDArray[np.int64], p: NDArray[np.float64], weight: NDArray[np.float64]
) -> dict[str, float]:
    return {
        "calibration_error": calibration_error(ranks, p, sample_weight=weight),
        "ranked_probability_score": metrics.ranked_probability_score(
            ranks, p, sample_weight=weight
        ),
        "log_score": metrics.log_score(ranks, p, sample_weight=weight),
    }


def _events(
    truth: ArrayLike, probabilities: ArrayLike, of: str, sample_weight: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    ranks, p, given = read_probabilities(truth, probabilities, None, None, sample_weight)
    weight = np.ones(len(ranks)) if given is None else given
    if of == "exceedance":
        return exceedance_of(p), ranks[:, None] > np.arange(p.shape[1] - 1), weight
    if of == "probabilities":
        return p, ranks[:, None] == np.arange(p.shape[1]), weight
    raise ValueError(f"of must be 'exceedance' or 'probabilities'; got {of!r}")


def _bin(
    predicted: NDArray[np.float64],
    happened: NDArray[np.bool_],
    weight: NDArray[np.float64],
    bins: int,
) -> Reliability:
    if bins < 1:
        raise ValueError(f"bins must be at least 1; got {bins}")
    place = np.minimum((predicted * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, weights=weight, minlength=bins).astype(np.float64)
    filled = count > 0
    sums = [
        np.bincount(place, weights=weight * values, minlength=bins)
        for values in (predicted, happened)
    ]
    means = [total[filled] / count[filled] for total in sums]
    return Reliability(means[0], means[1], count[filled])


def _log(p: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.log(p)
    return logs


def _fit_temperature(
    ranks: NDArray[np.int64], p: NDArray[np.float64], weight: NDArray[np.float64]
) -> float:
    """The temperature with the lowest log score, which is convex in its inverse.

    A row whose truth was held for impossible stays so at every temperature and cannot say which is
    better, so it is left out.
    """
    possible = p[np.arange(len(ranks)), ranks] > 0
    ranks, p, weight = ranks[possible], p[possible], weight[possible]
    if not weight.any():
        return 1.0
    logs = _log(p)
    of_truth = logs[np.arange(len(ranks)), ranks]

    def loss(inverse: float) -> float:
        scaled = inverse * logs
        top = scaled.max(axis=1)
        normaliser = top + np.log(np.exp(scaled - top[:, None]).sum(axis=1))
        return float(np.average(normaliser - inverse * of_truth, weights=weight))

    low, high = np.log(0.05), np.log(20.0)  # of the inverse temperature; golden section
    ratio = (5**0.5 - 1) / 2
    while high - low > 1e-6:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if loss(np.exp(left)) <= loss(np.exp(right)):
            high = right
        else:
            low = left
    return float(np.exp(-(low + high) / 2))


def _ramps(
    steps: "Steps",
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Where a step function rises, each time from a place, over a width, by a height; (m,) each.

    It rises between the last place of a step and the first of the next, in a straight line. Where
    these are nearly the same, it rises over a twentieth of the distance to 0 or 1 instead: in
    float32 a row would otherwise be on one side of a jump, and on the other in float64. (Near 1 it
    is 0.002 at least, as numbers there have no more digits than elsewhere.)
    """
    middle = (steps.last[:-1] + steps.first[1:]) / 2
    least = np.maximum(_RAMP * np.minimum(middle, 1 - middle), _RAMP / 25 * middle)
    width = np.maximum(steps.first[1:] - steps.last[:-1], least)
    height, start = np.diff(steps.value), middle - width / 2
    # Ramps may overlap, and are added up between all of their ends.
    ends = np.unique(np.concatenate([start, start + width]))
    risen = ((ends[:, None] - start) / width).clip(0, 1) @ height
    rises = np.diff(risen) > 0
    return ends[:-1][rises], np.diff(ends)[rises], np.diff(risen)[rises]


class Steps(NamedTuple):
    """An increasing step function: the value of each step, and its first and last place."""

    value: NDArray[np.float64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]


def pool_adjacent_violators(
    x: NDArray[np.float64], y: NDArray[Any], weight: NDArray[np.float64]
) -> Steps:
    """The increasing step function of x that is nearest to y in the weighted mean square.

    Parameters
    ----------
    x, y, weight : array, shape (n,)

    Examples
    --------
    >>> x, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    >>> pool_adjacent_violators(x, y, np.ones(4)).value
    array([0. , 0.5, 1. ])
    """
    counted = weight > 0
    x, y, weight = x[counted], y[counted].astype(np.float64), weight[counted]
    places, group = np.unique(x, return_inverse=True)
    total = np.bincount(group, weights=weight)
    share = np.bincount(group, weights=weight * y) / total
    blocks: list[list[float]] = []  # value, weight, first and last place of each
    for value, size, place in zip(share.tolist(), total.tolist(), places.tolist(), strict=True):
        blocks.append([value, size, place, place])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (v, w, first, _), (u, q, _, last) = blocks[-2], blocks[-1]
            blocks[-2:] = [[(v * w + u * q) / (w + q), w + q, first, last]]
    table = np.array(blocks)
    return Steps(table[:, 0], table[:, 2], table[:, 3])
