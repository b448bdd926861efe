"""Partial proportional odds: columns whose coefficient differs from threshold to threshold.

P(y <= k) = F(c_k - x.b_k), where some columns have one coefficient for all thresholds (b_kj = b_j)
and the others, the free ones, one for each (Peterson and Harrell 1990). The likelihood is as
concave as with equal slopes, on the rows' own intervals; what is new is that the lines of two
thresholds may cross away from the rows that were seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from echelon.models.arguments import as_features
from echelon.models.likelihood_ascent import (
    Likelihood,
    RowTerms,
    curve_of_ends,
    interval_terms,
    log_interval,
    solve,
)
from echelon.models.links import Array, link_of

_MAX_STEPS = 100
_SMALL_GAIN = 1e-10
_FLAT = 1e-6  # curvature along a direction, as a share of that without features
_NARROWEST = 1e-30  # distance of two thresholds that crossed and were put in order


def slope_places(num_features: int, free: Sequence[int], num_classes: int) -> NDArray[np.int64]:
    """Which parameter is the slope of each feature at each threshold, (K-1, d).

    Parameters are the coefficients in the order of the features, K-1 of them for a free one, and
    then the K-1 cut-points.

    Examples
    --------
    >>> slope_places(3, [1], 4).tolist()
    [[0, 1, 4], [0, 2, 4], [0, 3, 4]]
    """
    is_free = np.zeros(num_features, dtype=bool)
    is_free[list(free)] = True
    sizes = np.where(is_free, num_classes - 1, 1)
    starts = np.append(0, np.cumsum(sizes)[:-1])[:num_features]
    steps = np.arange(num_classes - 1)[:, None] * is_free
    return (starts + steps).astype(np.int64)


@dataclass(frozen=True)
class PartialFit:
    """A fitted cumulative link model of d features and K ranks, some of its slopes free.

    Attributes
    ----------
    link : str
    slopes : array, shape (K-1, d)
        The coefficient of each feature at each threshold; 0 for aliased features.
    centre : array, shape (d,)
        The means of the features.
    centred_cutpoints : array, shape (K-1,)
        For features from which the means were subtracted; they need not ascend.
    free : tuple of int
        The features with a coefficient for each threshold.
    covariance : array, shape (m, m)
        Of the parameters in the order of :func:`slope_places`; NaN for aliased features.
    log_likelihood, null_log_likelihood, iterations, converged, aliased, separated, num_rows
        As in :class:`echelon.models.cumulative.CumulativeFit`.
    crossed : int
        Rows of the fit at which P(y <= k) falls with k for some k, and was put in order.
    """

    link: str
    slopes: Array
    centre: Array
    centred_cutpoints: Array
    free: tuple[int, ...]
    covariance: Array
    log_likelihood: float
    null_log_likelihood: float
    iterations: int
    converged: bool
    aliased: tuple[int, ...]
    separated: bool
    num_rows: int
    crossed: int

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.centred_cutpoints) + 1

    @property
    def cutpoints(self) -> Array:
        """The cut-points in the units of the features, (K-1,)."""
        cutpoints: Array = self.centred_cutpoints + self.slopes @ self.centre
        return cutpoints

    @property
    def coefficients(self) -> Array:
        """The mean coefficient of each feature over the thresholds, (d,)."""
        coefficients: Array = self.slopes.mean(axis=0)
        return coefficients

    def ends(self, features: ArrayLike) -> Array:
        """Where the ranks meet for each row, (n, K-1), as fitted: they may cross."""
        x = as_features(features, columns=len(self.centre))
        ends: Array = self.centred_cutpoints - (x - self.centre) @ self.slopes.T
        return ends

    def log_probabilities(self, features: ArrayLike) -> Array:
        """log P(y = k), (n, K); thresholds that cross are put in order."""
        ends = np.sort(self.ends(features), axis=1)
        widths = np.maximum(np.diff(ends, axis=1), _NARROWEST)
        return curve_of_ends(link_of(self.link), ends, widths)


def fit_partial(
    features: ArrayLike,
    ranks: ArrayLike,
    num_classes: int,
    free: Sequence[int],
    *,
    link: str = "logit",
    weight: ArrayLike | None = None,
) -> PartialFit:
    """The largest likelihood with a coefficient for each threshold of the free features.

    Parameters
    ----------
    features, ranks, num_classes, link, weight
        As for :func:`echelon.models.cumulative.fit_cumulative`; every rank needs a row.
    free : sequence of int
        Places of features.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4000, 2))
    >>> ranks = np.digitize(x[:, 0] + rng.logistic(size=4000) * np.exp(x[:, 1] / 3), [-1.0, 1.0])
    >>> fit_partial(x, ranks, 3, [1]).slopes.round(1)  # more spread: both outer classes gain
    array([[ 1.1, -0.3],
           [ 1.1,  0.2]])
    """
    problem = Likelihood.of(features, ranks, num_classes, link, weight, 0.0, 0.0)
    kept = np.flatnonzero(problem.kept)
    is_free = np.isin(kept, list(free))
    likelihood = _PartialLikelihood(problem, is_free)
    equal = problem.maximise(*problem.start())
    theta = likelihood.from_equal(equal.beta, equal.cuts)
    theta, information, iterations, converged = likelihood.maximise(theta)
    separated = likelihood.is_flat(information)
    # from standardised to raw units
    d, num_cuts = len(problem.kept), num_classes - 1
    scale, centre = problem.scale[kept], problem.centre[kept]
    slopes = np.zeros((num_cuts, d))
    slopes[:, kept] = theta[likelihood.places] / scale
    all_places = slope_places(d, free, num_classes)
    size = int(all_places.max(initial=-1)) + 1 + num_cuts
    length = len(theta)
    jacobian = np.zeros((size, length))
    for k in range(num_cuts):
        jacobian[all_places[k, kept], likelihood.places[k]] = 1 / scale
        cut = size - num_cuts + k
        jacobian[cut, length - num_cuts + k] = 1.0
        jacobian[cut, likelihood.places[k]] += centre / scale
    covariance = np.full((size, size), np.nan)
    known = np.abs(jacobian).any(axis=1)
    inverse = solve(information, np.eye(length))
    covariance[np.ix_(known, known)] = (jacobian @ inverse @ jacobian.T)[np.ix_(known, known)]
    value, terms = likelihood.value(theta), likelihood.ends(theta)
    mass = np.bincount(problem.ranks, problem.weight, num_classes)
    return PartialFit(
        link=link,
        slopes=slopes,
        centre=problem.centre,
        centred_cutpoints=theta[length - num_cuts :],
        free=tuple(int(place) for place in sorted(free)),
        covariance=covariance,
        log_likelihood=value,
        null_log_likelihood=float(mass @ np.log(mass / mass.sum())),
        iterations=iterations,
        converged=converged,
        aliased=tuple(np.flatnonzero(~problem.kept).tolist()),
        separated=separated,
        num_rows=len(problem.ranks),
        crossed=int((np.diff(terms, axis=1) <= 0).any(axis=1).sum()),
    )


class _PartialLikelihood:
    """The likelihood of standardised rows, with a slope for each threshold of the free columns."""

    def __init__(self, problem: Likelihood, is_free: NDArray[np.bool_]) -> None:
        self.problem, self.num_cuts = problem, problem.num_classes - 1
        self.equal, self.free = np.flatnonzero(~is_free), np.flatnonzero(is_free)
        self.places = slope_places(problem.width, self.free.tolist(), problem.num_classes)
        self.size = int(self.places.max(initial=-1)) + 1 + self.num_cuts
        self.cuts = np.arange(self.size - self.num_cuts, self.size)
        # what a threshold's own parameters are multiplied by: its cut-point, its free slopes
        self.design = np.column_stack([np.ones(len(problem.x)), -problem.x[:, self.free]])
        self.x = problem.x[:, self.equal]

    def from_equal(self, beta: Array, cuts: Array) -> Array:
        """The parameters of equal slopes."""
        theta = np.zeros(self.size)
        theta[self.places] = beta
        theta[self.cuts] = cuts
        return theta

    def ends(self, theta: Array) -> Array:
        """Where the ranks meet for each row, (n, K-1)."""
        ends: Array = theta[self.cuts] - self.problem.x @ theta[self.places].T
        return ends

    def _intervals(self, theta: Array) -> tuple[Array, Array, Array]:
        """The ends of each row's own interval, 0 for an infinite one, and its width."""
        ends, ranks = self.ends(theta), self.problem.ranks
        rows, nothing = np.arange(len(ranks)), np.zeros((len(ranks), 1))
        lower = np.concatenate([nothing, ends], axis=1)[rows, ranks]
        upper = np.concatenate([ends, nothing], axis=1)[rows, ranks]
        inner = (ranks > 0) & (ranks < self.num_cuts)
        return lower, upper, np.where(inner, upper - lower, 1.0)

    def value(self, theta: Array) -> float:
        """The log-likelihood; minus infinity where a row's own thresholds cross."""
        lower, upper, widths = self._intervals(theta)
        if widths.min() <= 0:
            return -np.inf
        problem = self.problem
        logs = log_interval(problem.link, lower, upper, widths, problem.ranks, self.num_cuts)
        return float(problem.weight @ logs)

    def derivatives(self, theta: Array) -> tuple[Array, Array]:
        """Gradient (m,) and information (m, m)."""
        problem = self.problem
        lower, upper, widths = self._intervals(theta)
        logs = log_interval(problem.link, lower, upper, widths, problem.ranks, self.num_cuts)
        terms = interval_terms(problem.link, lower, upper, logs, problem.ranks, self.num_cuts)
        weighted = RowTerms(*(problem.weight * term for term in terms))
        gradient, information = np.zeros(self.size), np.zeros((self.size, self.size))
        shared = self.places[0, self.equal] if self.num_cuts else np.zeros(0, dtype=np.int64)
        gradient[shared] = -weighted.shift @ self.x
        information[np.ix_(shared, shared)] = -(self.x * weighted.shift_shift[:, None]).T @ self.x
        for rank in range(problem.num_classes):
            rows = slice(problem.starts[rank], problem.starts[rank + 1])
            design, x = self.design[rows], self.x[rows]
            above = None if rank == self.num_cuts else self._block(rank)
            below = None if rank == 0 else self._block(rank - 1)
            for block, slope, cross, bend in (
                (above, weighted.upper, weighted.shift_upper, weighted.upper_upper),
                (below, weighted.lower, weighted.shift_lower, weighted.lower_lower),
            ):
                if block is None:
                    continue
                gradient[block] += slope[rows] @ design
                mixed = (x * cross[rows, None]).T @ design
                information[np.ix_(shared, block)] += mixed
                information[np.ix_(block, shared)] += mixed.T
                information[np.ix_(block, block)] -= (design * bend[rows, None]).T @ design
            if above is not None and below is not None:
                between = -(design * weighted.upper_lower[rows, None]).T @ design
                information[np.ix_(above, below)] += between
                information[np.ix_(below, above)] += between.T
        return gradient, information

    def _block(self, k: int) -> NDArray[np.int64]:
        """The places of a threshold's own parameters: its cut-point, its free slopes."""
        return np.append(self.cuts[k], self.places[k, self.free])

    def maximise(self, theta: Array) -> tuple[Array, Array, int, bool]:
        """Newton steps from where no row's thresholds cross."""
        small = _SMALL_GAIN * float(self.problem.weight.mean())
        value = self.value(theta)
        gradient, information = self.derivatives(theta)
        for iteration in range(1, _MAX_STEPS + 1):
            step = solve(information, gradient)
            gain = float(gradient @ step)
            length = 1.0
            widths, moved_widths = self._intervals(theta)[2], self._intervals(theta + step)[2]
            closing = float(((moved_widths - widths) / widths).min())
            if closing < -0.9:
                length = -0.9 / closing
            for _ in range(30):
                moved = theta + length * step
                rise = self.value(moved) - value
                if rise >= 1e-4 * length * gain - 1e-13 * abs(value):
                    break
                length /= 2
            else:
                return theta, information, iteration, gain < 1e3 * small
            theta, value = moved, self.value(moved)
            gradient, information = self.derivatives(theta)
            if gain < small and length == 1.0:
                return theta, information, iteration, True
        return theta, information, _MAX_STEPS, False

    def is_flat(self, information: Array) -> bool:
        """Whether the likelihood hardly bends somewhere, beside its bends without features."""
        beta, cuts = self.problem.start()
        _, without = self.derivatives(self.from_equal(beta, cuts))
        without[np.diag_indices(self.size)] *= 1 + 1e-12
        try:
            least = float(linalg.eigh(information, without, eigvals_only=True)[0])
        except linalg.LinAlgError:
            return True
        return least < _FLAT
