"""The likelihood of the cumulative link model, its derivatives, and the way to its maximum.

Invariant: the log-likelihood of these links is concave in the coefficients and the cutpoints, so
that damped Newton steps reach the one maximum from anywhere the cutpoints are ordered. Columns are
standardised here.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize

from echelon.models.arguments import as_features, as_ranks, as_weight
from echelon.models.links import Array, Link, link_of

_MAX_STEPS = 200  # Newton takes about ten; only separated data, without a maximum, takes more
_SMALL_GAIN = 1e-10  # what the last step could still add to the log-likelihood, in nats
CONSTANT = 1e-13  # a spread below this share of the largest number is rounding
_ALIASED = 1e-7  # the rest of a column, after those before it, as a share of its spread
_FLAT = 1e-6  # curvature along a direction, as a share of that without features
_CELLS = 2_000_000  # numbers that one array of a prediction holds at most
_BLOCK = 65_536  # rows that are weighted at once for the information


class RowTerms(NamedTuple):
    """Of each row, (n,): log P(y) and its derivatives.

    `shift` moves both ends of the row's interval, `upper` and `lower` one of them. Second
    derivatives are named by the two that move. Along the shift they are no differences of large
    numbers, however narrow the interval is.
    """

    log_probability: Array
    shift: Array
    upper: Array
    lower: Array
    shift_shift: Array
    shift_upper: Array
    shift_lower: Array
    upper_upper: Array
    lower_lower: Array
    upper_lower: Array


def row_terms(link: Link, eta: Array, ranks: NDArray[np.int64], cuts: Array) -> RowTerms:
    """log P(y) of each row and its derivatives, at scores (n,) and cutpoints (K-1,)."""
    lower, upper, log_probability = row_intervals(link, eta, ranks, cuts)
    return interval_terms(link, lower, upper, log_probability, ranks, len(cuts))


def interval_terms(
    link: Link,
    lower: Array,
    upper: Array,
    log_probability: Array,
    ranks: NDArray[np.int64],
    num_cuts: int,
) -> RowTerms:
    """The derivatives of rows whose intervals are known, as :func:`row_intervals` gives them."""
    # density over probability, and its slope; 0 at an end that is infinite
    ends = []
    for end, is_there in ((lower, ranks > 0), (upper, ranks < num_cuts)):
        place = end[is_there]
        ratio, bent = np.zeros(len(ranks)), np.zeros(len(ranks))
        ratio[is_there] = np.exp(link.log_density(place) - log_probability[is_there])
        bent[is_there] = link.slope(place) * ratio[is_there]
        ends.append((ratio, bent))
    (at_lower, bent_lower), (at_upper, bent_upper) = ends
    shift = at_upper - at_lower
    return RowTerms(
        log_probability,
        shift=shift,
        upper=at_upper,
        lower=-at_lower,
        shift_shift=bent_upper - bent_lower - shift**2,
        shift_upper=bent_upper - at_upper * shift,
        shift_lower=-bent_lower + at_lower * shift,
        upper_upper=bent_upper - at_upper**2,
        lower_lower=-bent_lower - at_lower**2,
        upper_lower=at_upper * at_lower,
    )


def row_intervals(
    link: Link, eta: Array, ranks: NDArray[np.int64], cuts: Array
) -> tuple[Array, Array, Array]:
    """The ends of each row's interval (an infinite one is a 0) and its log-probability, (n,)."""
    lower = np.append(0.0, cuts)[ranks] - eta
    upper = np.append(cuts, 0.0)[ranks] - eta
    widths = np.concatenate([[1.0], np.diff(cuts), [1.0]])[ranks]
    return lower, upper, log_interval(link, lower, upper, widths, ranks, len(cuts))


def log_interval(
    link: Link,
    lower: Array,
    upper: Array,
    widths: Array,
    ranks: NDArray[np.int64],
    num_cuts: int,
) -> Array:
    """The log-probability of each row's interval, (n,), from its ends and its width."""
    first, last = ranks == 0, ranks == num_cuts
    middle = ~(first | last)
    logs = np.empty(len(ranks))
    logs[first] = link.log_cdf(upper[first])
    logs[last] = link.log_survival(lower[last])
    logs[middle] = link.log_interval(lower[middle], upper[middle], widths[middle])
    return logs


def curve_of_scores(link: Link, eta: Array, cuts: Array) -> Array:
    """log P(y = k), (n, K), of scores (n,)."""
    logs = np.empty((len(eta), len(cuts) + 1))
    widths = np.diff(cuts)
    step = max(1, _CELLS // len(cuts))
    for start in range(0, len(eta), step):
        rows = slice(start, start + step)
        ends = cuts - eta[rows, None]  # (rows, K-1)
        logs[rows] = curve_of_ends(link, ends, np.broadcast_to(widths, (len(ends), len(widths))))
    return logs


def curve_of_ends(link: Link, ends: Array, widths: Array) -> Array:
    """log P(y = k), (n, K), from where the ranks meet, (n, K-1), and how far apart, (n, K-2)."""
    logs = np.empty((len(ends), ends.shape[1] + 1))
    logs[:, 0] = link.log_cdf(ends[:, 0])
    logs[:, -1] = link.log_survival(ends[:, -1])
    logs[:, 1:-1] = link.log_interval(ends[:, :-1], ends[:, 1:], widths)
    return logs


class Maximum(NamedTuple):
    """Coefficients of standardised columns and cutpoints, the information there, and the way."""

    beta: Array
    cuts: Array
    information: Array
    iterations: int
    converged: bool


class Ascent(ABC):
    """A log-likelihood that can be climbed, whether its rows are in memory or read again and again.

    `kept` are the columns that are fitted, `centre` and `scale` (d,) the means and the spreads of
    all of them.
    """

    link: Link
    num_classes: int
    ridge: float
    smoothing: float
    centre: Array
    scale: Array
    kept: NDArray[np.bool_]

    @property
    def width(self) -> int:
        """Columns that are fitted."""
        return int(self.kept.sum())

    @property
    @abstractmethod
    def mean_weight(self) -> float:
        """What a row counts for on average."""

    @abstractmethod
    def value(self, beta: Array, cuts: Array) -> float:
        """The penalised log-likelihood."""

    @abstractmethod
    def derivatives(self, beta: Array, cuts: Array) -> tuple[float, Array, Any]:
        """The penalised log-likelihood, its gradient (p+K-1,), and what the information needs."""

    @abstractmethod
    def information(self, terms: Any) -> Array:
        """Minus the second derivatives of the penalised log-likelihood, (p+K-1, p+K-1)."""

    @abstractmethod
    def spread(self) -> Array:
        """The weighted squares and products of the standardised columns, (p, p)."""

    @abstractmethod
    def null_curvature(self) -> float:
        """How much the log-likelihood of an average row bends without any coefficient."""

    @abstractmethod
    def of_rows(self, beta: Array, cuts: Array) -> tuple[float, Array, int]:
        """Of the rows alone: their log-likelihood, the mass of each rank (K,), how many count."""

    def maximise(self, beta: Array, cuts: Array) -> Maximum:
        """Newton steps, halved where they would lower the likelihood or disorder the cutpoints."""
        p, small = self.width, _SMALL_GAIN * self.mean_weight
        value, gradient, terms = self.derivatives(beta, cuts)
        information = self.information(terms)
        for iteration in range(1, _MAX_STEPS + 1):
            step = solve(information, gradient)
            gain = float(gradient @ step)
            length = 1.0
            closing = np.diff(step[p:]) / np.diff(cuts)
            if len(closing) and closing.min() < -0.9:
                length = -0.9 / float(closing.min())
            for _ in range(30):
                moved = beta + length * step[:p], cuts + length * step[p:]
                rise = self.value(*moved) - value
                # Near the maximum the rise is below the rounding of the sum.
                if rise >= 1e-4 * length * gain - 1e-13 * abs(value):
                    break
                length /= 2
            else:
                return Maximum(beta, cuts, information, iteration, gain < 1e3 * small)
            beta, cuts = moved
            value, gradient, terms = self.derivatives(beta, cuts)
            information = self.information(terms)
            if gain < small and length == 1.0:
                return Maximum(beta, cuts, information, iteration, True)
        return Maximum(beta, cuts, information, _MAX_STEPS, False)

    def is_flat(self, maximum: Maximum) -> bool:
        """Whether the likelihood hardly bends along some direction of the coefficients.

        Its curvature there, over the spread of the features along that direction, is compared
        with what it is without any coefficient: a nearly collinear column has as little spread as
        it has curvature and is not meant, a column that predicts a class without error is, also
        where it concerns a single row.
        """
        p = self.width
        if p == 0:
            return False
        slopes, mixed = maximum.information[:p, :p], maximum.information[:p, p:]
        schur = slopes - mixed @ solve(maximum.information[p:, p:], mixed.T)
        spread = self.spread()
        spread[range(p), range(p)] *= 1 + 1e-12
        curvature = float(linalg.eigh(schur, spread, eigvals_only=True)[0])
        return curvature < _FLAT * self.null_curvature()


@dataclass(frozen=True)
class Likelihood(Ascent):
    """Standardised rows, sorted by rank, and the penalty.

    `x` (n, p) holds the kept columns only; `of_data` says what of `weight`, (n,) both, is not
    smoothing. The rows of rank k stand between ``starts[k]`` and ``starts[k+1]``.
    """

    link: Link
    x: Array
    ranks: NDArray[np.int64]
    weight: Array
    of_data: Array
    starts: NDArray[np.int64]
    num_classes: int
    ridge: float
    smoothing: float
    centre: Array
    scale: Array
    kept: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        features: ArrayLike,
        ranks: ArrayLike,
        num_classes: int,
        link: str,
        weight: ArrayLike | None,
        ridge: float,
        smoothing: float,
    ) -> "Likelihood":
        """Rows read, checked, sorted by rank and standardised."""
        row = link_of(link)
        y = as_ranks(ranks, num_classes)
        x = as_features(features, rows=len(y))
        given = as_weight(weight, len(y))
        for name, value in (("ridge", ridge), ("smoothing", smoothing)):
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number, not below 0; got {value!r}")
        counts = given > 0
        x, y, given = x[counts], y[counts], given[counts]
        empty = np.flatnonzero(np.bincount(y, minlength=num_classes) == 0)
        if len(empty) and smoothing == 0:
            raise ValueError(
                f"every rank 0..{num_classes - 1} needs a row, as its cutpoints would merge; there "
                f"is none of rank {', '.join(map(str, empty[:10]))}. Leave those classes out, or "
                f"pass smoothing=0.5 to give every class half a row"
            )
        order = np.argsort(y, kind="stable")
        x, y, given = x[order], y[order], given[order]
        z, centre, scale = _standardise(x, given)
        kept = scale > 0
        if ridge == 0:
            kept[kept] = independent_columns(z[:, kept] * np.sqrt(given)[:, None])
        z = z[:, kept]
        weights, of_data = given, given
        if smoothing > 0:
            places = np.searchsorted(y, np.arange(num_classes), side="right")
            z = np.insert(z, places, 0.0, axis=0)
            y = np.insert(y, places, np.arange(num_classes))
            weights = np.insert(given, places, smoothing)
            of_data = np.insert(given, places, 0.0)
        starts = np.searchsorted(y, np.arange(num_classes + 1))
        return cls(
            row,
            np.ascontiguousarray(z),
            y,
            weights,
            of_data,
            starts,
            num_classes,
            float(ridge),
            float(smoothing),
            centre,
            scale,
            kept,
        )

    @property
    def mean_weight(self) -> float:
        """What a row counts for on average."""
        return float(self.weight.mean())

    def spread(self) -> Array:
        """The weighted squares and products of the standardised columns, (p, p)."""
        products: Array = (self.x * self.weight[:, None]).T @ self.x
        return products

    def null_curvature(self) -> float:
        """How much the log-likelihood of an average row bends without any coefficient."""
        _, _, terms = self.derivatives(*self.start())
        return float(-(self.weight @ terms.shift_shift) / self.weight.sum())

    def of_rows(self, beta: Array, cuts: Array) -> tuple[float, Array, int]:
        """Of the rows alone: their log-likelihood, the mass of each rank (K,), how many count."""
        _, _, logs = row_intervals(self.link, self.x @ beta, self.ranks, cuts)
        mass = np.bincount(self.ranks, self.of_data, self.num_classes).astype(np.float64)
        return float(self.of_data @ logs), mass, int((self.of_data > 0).sum())

    def with_ridge(self, ridge: float) -> "Likelihood":
        """The same rows under another penalty."""
        return Likelihood(**{**self.__dict__, "ridge": ridge})

    def standardised(self, features: Array) -> Array:
        """Other rows (n, d) in the units of `x`, (n, p)."""
        return (features[:, self.kept] - self.centre[self.kept]) / self.scale[self.kept]

    def start(self) -> tuple[Array, Array]:
        """No coefficients, and cutpoints from the shares of the classes."""
        mass = np.bincount(self.ranks, self.weight, self.num_classes)
        shares = np.cumsum(mass)[:-1] / mass.sum()
        return np.zeros(self.width), self.link.quantile(shares)

    def value(self, beta: Array, cuts: Array) -> float:
        """The penalised log-likelihood."""
        _, _, logs = row_intervals(self.link, self.x @ beta, self.ranks, cuts)
        return float(self.weight @ logs - self.ridge / 2 * (beta @ beta))

    def derivatives(self, beta: Array, cuts: Array) -> tuple[float, Array, RowTerms]:
        """The penalised log-likelihood, its gradient (p+K-1,) and the terms of the rows."""
        terms = row_terms(self.link, self.x @ beta, self.ranks, cuts)
        value = float(self.weight @ terms.log_probability - self.ridge / 2 * (beta @ beta))
        slope = -(self.weight * terms.shift) @ self.x - self.ridge * beta
        at_cuts = self._by_rank(terms.upper)[:-1] + self._by_rank(terms.lower)[1:]
        return value, np.concatenate([slope, at_cuts]), terms

    def information(self, terms: RowTerms) -> Array:
        """Minus the second derivatives of the penalised log-likelihood, (p+K-1, p+K-1)."""
        p, cut = self.width, np.arange(self.num_classes - 1)
        information = np.zeros((p + len(cut), p + len(cut)))
        bends = np.sqrt(self.weight * np.maximum(-terms.shift_shift, 0.0))
        for start in range(0, len(bends), _BLOCK):
            block = self.x[start : start + _BLOCK] * bends[start : start + _BLOCK, None]
            information[:p, :p] += block.T @ block
        information[range(p), range(p)] += self.ridge
        upper, lower = self.weight * terms.shift_upper, self.weight * terms.shift_lower
        for k, (start, end) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            if k < len(cut):
                information[:p, p + k] += upper[start:end] @ self.x[start:end]
            if k > 0:
                information[:p, p + k - 1] += lower[start:end] @ self.x[start:end]
        information[p:, :p] = information[:p, p:].T
        diagonal = self._by_rank(terms.upper_upper)[:-1] + self._by_rank(terms.lower_lower)[1:]
        between = self._by_rank(terms.upper_lower)[1:-1]
        information[p + cut, p + cut] = -diagonal
        information[p + cut[:-1], p + cut[1:]] = -between
        information[p + cut[1:], p + cut[:-1]] = -between
        return information

    def _by_rank(self, terms: Array) -> Array:
        """Weighted sums over the rows of each rank, (K,)."""
        sums = np.bincount(self.ranks, self.weight * terms, self.num_classes)
        return sums.astype(np.float64)

    def approach(self, beta: Array, cuts: Array) -> tuple[Array, Array]:
        """A place near the maximum, by L-BFGS on coefficients, first cutpoint and log steps."""
        p, scale = self.width, 1 / self.weight.sum()

        def unpacked(packed: Array) -> tuple[Array, Array, Array]:
            steps = np.exp(np.clip(packed[p + 1 :], -30.0, 30.0))
            return packed[:p], packed[p] + np.append(0.0, np.cumsum(steps)), steps

        def loss(packed: Array) -> tuple[float, Array]:
            coefficients, cutpoints, steps = unpacked(packed)
            value, gradient, _ = self.derivatives(coefficients, cutpoints)
            onwards = gradient[p:][::-1].cumsum()[::-1]  # a step moves all cutpoints after it
            packed_gradient = np.concatenate([gradient[:p], onwards[:1], onwards[1:] * steps])
            return -value * scale, -packed_gradient * scale

        with np.errstate(over="ignore"):
            minimum = optimize.minimize(
                loss,
                np.concatenate([beta, cuts[:1], np.log(np.diff(cuts))]),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 200, "maxcor": 30, "ftol": 1e-10, "gtol": 1e-6},
            )
        coefficients, cutpoints, _ = unpacked(minimum.x)
        if self.value(coefficients, cutpoints) > self.value(beta, cuts):
            return coefficients, cutpoints
        return beta, cuts


def solve(matrix: Array, right: Array) -> Array:
    """The solution of a positive definite system, made so by force where it is not quite."""
    diagonal = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    scaled = matrix / diagonal / diagonal[:, None]
    right = (right.T / diagonal).T
    for extra in (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0):
        try:
            factor = linalg.cho_factor(scaled + extra * np.eye(len(scaled)))
        except linalg.LinAlgError:
            continue
        solution: Array = (linalg.cho_solve(factor, right).T / diagonal).T
        return solution
    raise AssertionError("a matrix with a unit diagonal is positive definite when 1 is added")


def _standardise(x: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Columns with mean 0 and spread 1, the means and the spreads; a spread of 0 if constant."""
    magnitude = np.abs(x).max(0, initial=0.0)
    magnitude[magnitude == 0] = 1.0
    z = x / magnitude  # so that no square overflows
    shares = weight / weight.sum()
    mean = shares @ z
    z -= mean
    spread = np.sqrt(shares @ z**2)
    spread[spread < CONSTANT] = 0.0
    z /= np.where(spread > 0, spread, 1.0)
    return z, mean * magnitude, spread * magnitude


def independent_columns(x: Array) -> NDArray[np.bool_]:
    """Which columns are no linear function of those before them, (p,).

    After a QR decomposition the columns of R have the same lengths and angles in p dimensions;
    there each is taken apart from the ones that were kept.
    """
    kept = np.zeros(x.shape[1], dtype=bool)
    if not x.size:
        return kept
    r = linalg.qr(x, mode="r", check_finite=False)[0][: x.shape[1]]
    basis = np.zeros((len(r), min(r.shape)))
    for column in range(r.shape[1]):
        count = int(kept.sum())
        if count == basis.shape[1]:
            break
        rest = r[:, column].copy()
        length = np.linalg.norm(rest)
        for _ in range(2):  # the second time takes away what rounding left
            rest -= basis[:, :count] @ (basis[:, :count].T @ rest)
        if np.linalg.norm(rest) > _ALIASED * length:
            basis[:, count] = rest / np.linalg.norm(rest)
            kept[column] = True
    return kept
