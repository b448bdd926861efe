"""Whether probabilities can be believed, and maps that mend them.

Reliability compares what was predicted with how often it happened. A map is fitted here and applied
by :meth:`echelon.RankCurve.calibrated`.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.evaluation import metrics
from echelon.evaluation._arguments import read_probabilities

CALIBRATIONS = ("temperature", "isotonic")
GRID = 101  # points at which an isotonic map is stored

Kind = Literal["temperature", "isotonic"]


class Reliability(NamedTuple):
    """Bins of predicted probability: the mean prediction, how often it came true, and how many."""

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    rows: NDArray[np.float64]


class CalibrationFit(NamedTuple):
    """A fitted map: `temperature`, or the `values` (K-1, GRID) of an isotonic map on an even grid.

    `smoothing` is the share of the unmapped distribution that an isotonic map mixes in, so that
    nothing becomes impossible because a few rows never showed it.
    """

    kind: Kind
    temperature: float
    values: NDArray[np.float64]
    smoothing: float


def reliability(
    truth: ArrayLike,
    probabilities: ArrayLike,
    *,
    of: Literal["exceedance", "probabilities"] = "exceedance",
    bins: int = 10,
) -> Reliability:
    """How often events came true that were predicted with about the same probability.

    Parameters
    ----------
    truth : array-like, shape (n,)
        Ranks.
    probabilities : array-like, shape (n, K)
    of : {"exceedance", "probabilities"}
        The events: y > k for every threshold k, or y = k for every class k.
    bins : int
        Of equal width; empty ones are left out.

    Examples
    --------
    >>> reliability([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    Reliability(predicted=array([0.5]), observed=array([0.5]), rows=array([2.]))
    """
    predicted, happened = _events(truth, probabilities, of)
    return _bin(predicted.reshape(-1), happened.reshape(-1), bins)


def calibration_error(
    truth: ArrayLike,
    probabilities: ArrayLike,
    *,
    of: Literal["exceedance", "probabilities"] = "exceedance",
    bins: int = 10,
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
    predicted, happened = _events(truth, probabilities, of)
    errors = []
    for k in range(predicted.shape[1]):
        one = _bin(predicted[:, k], happened[:, k], bins)
        errors.append(np.average(np.abs(one.predicted - one.observed), weights=one.rows))
    return float(np.mean(errors))


def fit_calibration(truth: ArrayLike, probabilities: ArrayLike, kind: Kind) -> CalibrationFit:
    """Fit a map on rows that the model was not trained on.

    Parameters
    ----------
    truth : array-like, shape (n,)
        Ranks.
    probabilities : array-like, shape (n, K)
    kind : {"temperature", "isotonic"}
        One number that makes all distributions wider or narrower; or, for every threshold, an
        increasing function of P(y > k), which needs more rows.
    """
    ranks, p, _ = read_probabilities(truth, probabilities, None, None, None)
    require_kind(kind)
    num_classes = p.shape[1]
    if kind == "temperature":
        return CalibrationFit(kind, _fit_temperature(ranks, p), np.zeros((num_classes - 1, 0)), 0.0)
    exceedance = exceedance_of(p)
    values = np.stack([_fit_isotonic(exceedance[:, k], ranks > k) for k in range(num_classes - 1)])
    return CalibrationFit(kind, 1.0, values, 1 / (len(ranks) + 1))


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
    grid = np.linspace(0, 1, fit.values.shape[1])
    mapped = np.stack(
        [np.interp(exceedance[:, k], grid, fit.values[k]) for k in range(len(fit.values))], axis=1
    )
    ordered = -np.sort(-mapped, axis=1)
    edges = np.concatenate([np.ones((len(p), 1)), ordered, np.zeros((len(p), 1))], axis=1)
    mended: NDArray[np.float64] = -np.diff(edges, axis=1)
    return (1 - fit.smoothing) * mended + fit.smoothing * p


def calibration_summary(
    truth: ArrayLike, probabilities: ArrayLike, kind: Kind, *, seed: int = 0
) -> dict[str, dict[str, float]]:
    """What a map changes: scores before and after, the latter on rows that did not fit the map.

    The rows are split in two, and each half is mapped by a map that was fitted on the other.
    """
    ranks, p, _ = read_probabilities(truth, probabilities, None, None, None)
    after = p.copy()
    if len(ranks) >= 2:
        half = np.random.default_rng(seed).permutation(len(ranks)) % 2 == 0
        for rows in (half, ~half):
            after[rows] = apply_calibration(p[rows], fit_calibration(ranks[~rows], p[~rows], kind))
    return {name: _scores(ranks, some) for name, some in (("before", p), ("after", after))}


def exceedance_of(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(y > k), (n, K-1), of probabilities (n, K)."""
    exceedance: NDArray[np.float64] = probabilities[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    return exceedance.clip(0, 1)


def _scores(ranks: NDArray[np.int64], p: NDArray[np.float64]) -> dict[str, float]:
    return {
        "calibration_error": calibration_error(ranks, p),
        "ranked_probability_score": metrics.ranked_probability_score(ranks, p),
        "log_score": metrics.log_score(ranks, p),
    }


def _events(
    truth: ArrayLike, probabilities: ArrayLike, of: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    ranks, p, _ = read_probabilities(truth, probabilities, None, None, None)
    if of == "exceedance":
        return exceedance_of(p), ranks[:, None] > np.arange(p.shape[1] - 1)
    if of == "probabilities":
        return p, ranks[:, None] == np.arange(p.shape[1])
    raise ValueError(f"of must be 'exceedance' or 'probabilities'; got {of!r}")


def _bin(predicted: NDArray[np.float64], happened: NDArray[np.bool_], bins: int) -> Reliability:
    if bins < 1:
        raise ValueError(f"bins must be at least 1; got {bins}")
    place = np.minimum((predicted * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins).astype(np.float64)
    filled = count > 0
    sums = [np.bincount(place, weights=some, minlength=bins) for some in (predicted, happened)]
    means = [one[filled] / count[filled] for one in sums]
    return Reliability(means[0], means[1], count[filled])


def _log(p: NDArray[np.float64]) -> NDArray[np.float64]:
    logs: NDArray[np.float64] = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    return logs


def _fit_temperature(ranks: NDArray[np.int64], p: NDArray[np.float64]) -> float:
    """The temperature with the lowest log score, which is convex in its inverse."""
    logs = _log(p)
    own = logs[np.arange(len(ranks)), ranks]

    def loss(inverse: float) -> float:
        scaled = inverse * logs
        top = scaled.max(axis=1)
        normaliser = top + np.log(np.exp(scaled - top[:, None]).sum(axis=1))
        return float((normaliser - inverse * own).mean())

    low, high = np.log(0.05), np.log(20.0)  # of the inverse temperature; golden section
    ratio = (5**0.5 - 1) / 2
    while high - low > 1e-6:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if loss(np.exp(left)) <= loss(np.exp(right)):
            high = right
        else:
            low = left
    return float(np.exp(-(low + high) / 2))


def _fit_isotonic(
    predicted: NDArray[np.float64], happened: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """An increasing map from [0, 1] to itself on an even grid."""
    at, shares = pool_adjacent_violators(predicted, happened)
    at, shares = np.array([0.0, *at, 1.0]), np.array([0.0, *shares, 1.0])
    values: NDArray[np.float64] = np.interp(np.linspace(0, 1, GRID), at, shares)
    return values


def pool_adjacent_violators(
    x: NDArray[np.float64], y: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The increasing step function nearest to y: the mean x and the value of each of its steps."""
    order = np.argsort(x, kind="stable")
    places, first = np.unique(x[order], return_index=True)
    count = np.diff(np.append(first, len(order))).astype(np.float64)
    share = np.add.reduceat(y[order].astype(np.float64), first) / count
    blocks: list[list[float]] = []  # value, weight and mean place of each
    for value, weight, place in zip(share.tolist(), count.tolist(), places.tolist(), strict=True):
        blocks.append([value, weight, place])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (v, w, a), (u, q, b) = blocks[-2], blocks[-1]
            blocks[-2:] = [[(v * w + u * q) / (w + q), w + q, (a * w + b * q) / (w + q)]]
    table = np.array(blocks)
    return table[:, 2], table[:, 0]
