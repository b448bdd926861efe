"""Convex mixtures of curves: the weights of members that predict rows none of them was fitted on.

Invariant: both scores are convex in the weights, so that a place where no member has a smaller
derivative than the mixture itself is the minimum; the distance to it is known at every step.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from echelon.models.arguments import as_ranks, as_weight
from echelon.models.links import Array

Score = Literal["rps", "log"]

_SCORES = ("rps", "log")
_FLOOR = 1e-12  # of a probability, so that one impossible event does not decide everything
_SPREAD_OF_WEIGHTS = (0.5, 3.0)  # the least and the most, in weights of equal members
_CELLS = 4_000_000  # numbers of all members that are looked at at once
_MAX_STEPS = 100  # Newton steps for the log score; it takes about five
_GAP = 1e-12  # how far above the minimum the mean score may stay, as a share of its scale


def mixture_weights(
    probabilities: ArrayLike,
    ranks: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    score: Score = "rps",
    shrink: float = 1.0,
) -> Array:
    """The weights of a mixture of curves with the smallest mean score, drawn towards equal ones.

    The mean score plus a penalty on the squared distance to equal weights is minimised over all
    weights that are not negative and sum to 1. The penalty weighs a normal prior around equal
    weights against what the rows say. How much the rows say is measured by how their derivatives
    of the score scatter, and how far weights lie from equal ones by how much larger the mean
    derivative at equal weights is than this scatter explains (between 0.5/m and 3/m): so a few
    rows hardly move the weights unless a member is plainly worse, many rows decide alone, and
    members that are alike share their weight.

    Parameters
    ----------
    probabilities : array-like, shape (m, n, K)
        P(y = k) of each member, for rows that it was not fitted on.
    ranks : array-like, shape (n,)
    weight : array-like, shape (n,), optional
        What each row counts for.
    score : {"rps", "log"}
        The ranked probability score, or -log P(y).
    shrink : float
        How many times the penalty counts: 0 for the minimum on these very rows, which a few
        hundred rows of several like members do not deserve.

    Returns
    -------
    array, shape (m,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet(np.ones(3), size=500)
    >>> ranks = (rng.random((500, 1)) > truth.cumsum(1)).sum(1)
    >>> useless = np.full((500, 3), 1 / 3)
    >>> mixture_weights([truth, useless], ranks).round(1)
    array([1., 0.])
    >>> mixture_weights([truth, truth], ranks).round(3)
    array([0.5, 0.5])
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 3 or not p.size or p.shape[2] < 2:
        raise ValueError(
            f"probabilities must have the shape (members, n, K) with K at least 2; got {p.shape}"
        )
    members, n, num_classes = p.shape
    y = as_ranks(ranks, num_classes, length=n)
    w = as_weight(weight, n)
    if score not in _SCORES:
        raise ValueError(f"score must be one of {', '.join(map(repr, _SCORES))}; got {score!r}")
    if not (np.isfinite(shrink) and shrink >= 0):
        raise ValueError(f"shrink must be a finite number, not below 0; got {shrink!r}")
    for member in range(members):
        sums = p[member].sum(1)
        if not (
            np.isfinite(sums).all() and p[member].min() >= 0 and np.allclose(sums, 1, atol=1e-3)
        ):
            raise ValueError(
                f"probabilities must be non-negative and sum to 1 in every row; those of member "
                f"{member} are not. Leave out members and rows without a distribution"
            )
    w = w / w.sum()
    equal = np.full(members, 1 / members)
    if members == 1:
        return equal
    if score == "rps":
        bend, noise = _bend_and_noise_of_rps(p, y, w)
        penalty = _penalty(bend, noise, bend @ equal, w, shrink)
        return minimise_on_simplex(bend + penalty * np.eye(members), -penalty * equal)
    of_rank = np.maximum(p[:, np.arange(n), y].T, _FLOOR)  # (n, m)
    return _least_log_score(of_rank, w, shrink)


def _bend_and_noise_of_rps(p: Array, ranks: np.ndarray, w: Array) -> tuple[Array, Array]:
    """Second derivatives of the mean score, and the noise of the first at equal weights, (m, m).

    As weights sum to 1, the error of a mixture is the mixture of its members' errors, so that the
    score is a quadratic form of the weights.
    """
    members, n, num_classes = p.shape
    form = np.zeros((members, members))
    slopes = np.empty((n, members))
    step = max(1, _CELLS // (members * num_classes))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        at_most = p[:, rows].cumsum(2)[:, :, :-1]
        errors = at_most - (ranks[rows, None] <= np.arange(num_classes - 1))  # (m, rows, K-1)
        weighted = (errors * np.sqrt(w[rows])[:, None]).reshape(members, -1)
        form += weighted @ weighted.T
        slopes[rows] = 2 * np.einsum("mrk,rk->rm", errors, errors.mean(0))
    return 2 * form, _covariance(slopes, w)


def _covariance(slopes: Array, w: Array) -> Array:
    """The covariance of the rows' derivatives, (m, m)."""
    deviations = slopes - w @ slopes
    covariance: Array = (deviations * w[:, None]).T @ deviations
    return covariance


def _penalty(bend: Array, noise: Array, slope: Array, w: Array, shrink: float) -> float:
    """The precision of the prior over that of the rows, on the scale of the mean score.

    `bend` (m, m) and `slope` (m,) are derivatives of the mean score at equal weights, `noise` the
    covariance of a row's. All are looked at where weights can move, orthogonally to their sum.
    """
    members = len(bend)
    move = np.eye(members) - 1 / members
    bend, noise, slope = move @ bend @ move, move @ noise @ move, move @ slope
    curvature = float(np.trace(bend))
    if curvature <= 0:  # members that are all alike: any penalty makes them equal
        return 1.0
    rows = 1 / float(w @ w)  # how many equal weights say as much
    # For weights of a spread s, a derivative has the mean square s^2 tr(bend^2) + tr(noise) / n.
    explained = float(slope @ slope - np.trace(noise) / rows) / float(np.trace(bend @ bend))
    low, high = (share / members for share in _SPREAD_OF_WEIGHTS)
    variance = float(np.clip(explained, low**2, high**2))
    # The last term is tiny: without it members that are alike would have no one best weight.
    return shrink * float(np.trace(noise)) / curvature / rows / variance + 1e-12 * curvature


def _least_log_score(of_rank: Array, w: Array, shrink: float) -> Array:
    """Weights of the smallest penalised mean -log P(y), from P(y) of each member, (n, m).

    Newton's quadratic model is minimised on the simplex, and the step halved if it overshoots.
    """
    members = of_rank.shape[1]
    equal = np.full(members, 1 / members)
    weights = equal
    ratios = of_rank / (of_rank @ weights)[:, None]
    bend = (ratios * w[:, None]).T @ ratios
    penalty = _penalty(bend, _covariance(ratios, w), -(w @ ratios), w, shrink)

    def value(candidate: Array) -> float:
        mixed = np.maximum(of_rank @ candidate, np.finfo(float).tiny)
        return float(-(w @ np.log(mixed)) + penalty / 2 * ((candidate - equal) ** 2).sum())

    current = value(weights)
    for _ in range(_MAX_STEPS):
        ratios = of_rank / np.maximum(of_rank @ weights, np.finfo(float).tiny)[:, None]
        slope = -(w @ ratios) + penalty * (weights - equal)
        if float(slope @ weights - slope.min()) < _GAP:
            break
        bend = (ratios * w[:, None]).T @ ratios + penalty * np.eye(members)
        move = minimise_on_simplex(bend, slope - bend @ weights) - weights
        fall = float(slope @ move)
        length = 1.0
        while length > 1e-10:
            after = value(weights + length * move)
            if after <= current + 1e-4 * length * fall + 1e-15 * abs(current):
                break
            length /= 2
        else:
            break
        weights, current = weights + length * move, after
        if -fall < _GAP:
            break
    return _on_simplex(weights)


def minimise_on_simplex(bend: Array, slope: Array) -> Array:
    """The minimum of a' bend a / 2 + slope . a over a >= 0 that sum to 1, (m,).

    An active set: the exact minimum over the members that are in; one that would become negative
    leaves on the way there, and the one outside that would lower the value most comes in, until
    none would. `bend` (m, m) is positive definite.

    Examples
    --------
    >>> minimise_on_simplex(np.diag([1.0, 3.0]), np.zeros(2))
    array([0.75, 0.25])
    >>> minimise_on_simplex(np.eye(3), np.array([0.0, 0.2, 9.0])).round(3)
    array([0.6, 0.4, 0. ])
    """
    members = len(slope)
    scale = float(np.abs(bend).max() + np.abs(slope).max())
    first = int((np.diag(bend) / 2 + slope).argmin())
    inside = np.zeros(members, dtype=bool)
    inside[first] = True
    weights = inside.astype(np.float64)
    for _ in range(100 * members):
        target = _minimum_of_members(bend, slope, inside)
        negative = inside & (target <= 0)
        if negative.any():
            # as far towards the target as no weight is below 0; whoever gets there first leaves
            shares = weights[negative] / (weights[negative] - target[negative])
            share = float(shares.min())
            weights = weights + share * (target - weights)
            leaving = np.flatnonzero(negative)[shares <= share]
            inside[leaving] = False
            weights[~inside] = 0.0
            continue
        weights = target
        derivative = bend @ weights + slope
        gain = derivative - float(derivative @ weights)
        gain[inside] = 0.0
        if gain.min() >= -1e-13 * scale:
            break
        inside[gain.argmin()] = True
    return _on_simplex(weights)


def _on_simplex(weights: Array) -> Array:
    """Weights without what rounding left below 0 and in their sum."""
    weights = np.maximum(weights, 0.0)
    total: float = weights.sum()
    return weights / total


def _minimum_of_members(bend: Array, slope: Array, inside: np.ndarray) -> Array:
    """The minimum over the members inside, of any sign, that sum to 1; 0 for the others."""
    places = np.flatnonzero(inside)
    number = len(places)
    system = np.zeros((number + 1, number + 1))
    system[:number, :number] = bend[np.ix_(places, places)]
    system[number, :number] = system[:number, number] = 1.0
    right = np.append(-slope[places], 1.0)
    try:
        solution = np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(system, right, rcond=None)[0]
    target = np.zeros(len(slope))
    target[places] = solution[:number]
    return target
