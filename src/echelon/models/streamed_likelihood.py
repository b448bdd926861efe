"""The exact linear model on rows that are read from files: what each slice adds is added up.

Every step of the way to the maximum is one pass over the rows. Means, spreads and which columns
depend on others come from a first pass, by a triangular factor that takes in slice after slice and
is as exact as that of all rows at once.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from echelon.data.rows import Rows
from echelon.data.survey import Survey
from echelon.models.cumulative import CumulativeFit, in_raw_units
from echelon.models.likelihood_ascent import (
    CONSTANT,
    Ascent,
    Likelihood,
    independent_columns,
)
from echelon.models.links import Array, link_of


class _Part(NamedTuple):
    """Features (n, d), ranks and weights (n,) of one slice."""

    x: Array
    ranks: NDArray[np.int64]
    weight: Array


class _Sums(NamedTuple):
    """What one pass adds up at one place: log-likelihood, gradient and information."""

    value: float
    gradient: Array
    information: Array


def fit_streamed(
    known: Survey,
    matrix: Callable[[Any], Array],
    kept_rows: Callable[[Rows], Any] | None,
    *,
    link: str,
    ridge: float,
    smoothing: float,
) -> tuple[CumulativeFit, Array, Array]:
    """The fit of largest likelihood to the training rows of a source.

    Parameters
    ----------
    known : Survey
    matrix : callable
        From a table of rows to features (n, d).
    kept_rows : callable, optional
        Which rows to take, (n,); all of them without.
    link, ridge, smoothing
        As for :func:`echelon.models.cumulative.fit_cumulative`; `smoothing` is what a class
        without rows counts for, where there is one.

    Returns
    -------
    fit : CumulativeFit
    spreads : array, shape (d,)
        The standard deviation of each feature.
    counts : array, shape (K,)
        What the rows of each class weigh.
    """
    problem = StreamedLikelihood(known, matrix, kept_rows, link, ridge, smoothing)
    maximum = problem.maximise(*problem.start())
    return in_raw_units(problem, maximum), problem.scale, problem.mass


class StreamedLikelihood(Ascent):
    """A log-likelihood whose rows are read again at every place that is asked for."""

    def __init__(
        self,
        known: Survey,
        matrix: Callable[[Any], Array],
        kept_rows: Callable[[Rows], Any] | None,
        link: str,
        ridge: float,
        smoothing: float,
    ) -> None:
        if not (np.isfinite(ridge) and ridge >= 0):
            raise ValueError(f"ridge must be a finite number, not below 0; got {ridge!r}")
        self.link, self.ridge = link_of(link), float(ridge)
        self.num_classes = known.stream.labels.num_classes
        self._known, self._matrix, self._kept_rows = known, matrix, kept_rows
        self._measure()
        self.smoothing = 0.0 if self.mass.all() else smoothing
        self._last: tuple[Array, _Sums] | None = None

    def _parts(self) -> Iterator[_Part]:
        """The training rows, slice by slice, of which each counts."""
        for _, rows, hashes in self._known.stream:
            rows = rows.select(self._known.is_training(hashes))
            if self._kept_rows is not None:
                rows = rows.select(self._kept_rows(rows))
            if rows.weight is not None:
                rows = rows.select(rows.weight > 0)
            if len(rows):
                weight = np.ones(len(rows)) if rows.weight is None else rows.weight
                yield _Part(self._matrix(rows.table), rows.ranks, weight)

    def _measure(self) -> None:
        """Means, spreads, the mass of each rank, and which columns are fitted."""
        shown = self._matrix(self._known.table)
        middle = shown.mean(axis=0)
        unit = shown.std(axis=0)
        unit[unit == 0] = 1.0
        factor = np.zeros((0, shown.shape[1] + 1))
        self.mass, self.num_rows = np.zeros(self.num_classes), 0
        for part in self._parts():
            self.mass += np.bincount(part.ranks, part.weight, self.num_classes)
            self.num_rows += len(part.ranks)
            ones = np.ones((len(part.x), 1))
            columns = np.hstack([ones, (part.x - middle) / unit]) * np.sqrt(part.weight)[:, None]
            factor = linalg.qr(np.vstack([factor, columns]), mode="r", check_finite=False)[0]
            factor = factor[: shown.shape[1] + 1]
        if not self.num_rows:
            raise ValueError("no row is left to learn from: all have missing cells, or no weight")
        total = float(self.mass.sum())
        means, centred = factor[0, 1:] / factor[0, 0], factor[1:, 1:]
        spread = np.sqrt((centred**2).sum(axis=0) / total)
        spread[spread < CONSTANT] = 0.0
        self.centre, self.scale = middle + unit * means, unit * spread
        self.kept = self.scale > 0
        standard = centred[:, self.kept] / spread[self.kept]
        if self.ridge == 0 and standard.size:
            self.kept[self.kept] = independent_columns(standard)
            standard = centred[:, self.kept] / spread[self.kept]
        self._factor = standard

    def start(self) -> tuple[Array, Array]:
        """No coefficients, and cutpoints from the shares of the classes."""
        mass = self.mass + self.smoothing
        return np.zeros(self.width), self.link.quantile(np.cumsum(mass)[:-1] / mass.sum())

    @property
    def mean_weight(self) -> float:
        """What a row counts for on average."""
        return float(self.mass.sum()) / self.num_rows

    def _in_memory(self, part: _Part) -> Likelihood:
        """A slice as rows in memory, without a penalty."""
        order = np.argsort(part.ranks, kind="stable")
        x = (part.x[order][:, self.kept] - self.centre[self.kept]) / self.scale[self.kept]
        ranks, weight = part.ranks[order], part.weight[order]
        starts = np.searchsorted(ranks, np.arange(self.num_classes + 1))
        return Likelihood(
            self.link, x, ranks, weight, weight, starts, self.num_classes, 0.0, 0.0,
            self.centre, self.scale, self.kept,
        )  # fmt: skip

    @cached_property
    def _smoothing_rows(self) -> _Part:
        """A row with mean features of each class."""
        ranks = np.arange(self.num_classes)
        x = np.tile(self.centre, (self.num_classes, 1))
        return _Part(x, ranks, np.full(self.num_classes, self.smoothing))

    def _at(self, beta: Array, cuts: Array) -> _Sums:
        """All sums at one place; those of the last one are remembered."""
        place = np.append(beta, cuts)
        if self._last is not None and np.array_equal(self._last[0], place):
            return self._last[1]
        p, size = self.width, self.width + self.num_classes - 1
        value, gradient, information = 0.0, np.zeros(size), np.zeros((size, size))
        with_smoothing = [self._smoothing_rows] if self.smoothing else []
        for parts in (self._parts(), with_smoothing):
            for part in parts:
                rows = self._in_memory(part)
                added, slope, terms = rows.derivatives(beta, cuts)
                value, gradient = value + added, gradient + slope
                information += rows.information(terms)
        value -= self.ridge / 2 * float(beta @ beta)
        gradient[:p] -= self.ridge * beta
        information[range(p), range(p)] += self.ridge
        self._last = place, _Sums(value, gradient, information)
        return self._last[1]

    def value(self, beta: Array, cuts: Array) -> float:
        """The penalised log-likelihood."""
        return self._at(beta, cuts).value

    def derivatives(self, beta: Array, cuts: Array) -> tuple[float, Array, Array]:
        """The penalised log-likelihood, its gradient (p+K-1,), and the information."""
        sums = self._at(beta, cuts)
        return sums.value, sums.gradient, sums.information

    def information(self, terms: Array) -> Array:
        """The information, which came with the derivatives."""
        return terms

    def spread(self) -> Array:
        """The weighted squares and products of the standardised columns, (p, p)."""
        products: Array = self._factor.T @ self._factor
        return products

    def null_curvature(self) -> float:
        """How much the log-likelihood of an average row bends without any coefficient."""
        ranks = np.flatnonzero(self.mass + self.smoothing)
        x = np.tile(self.centre, (len(ranks), 1))
        rows = self._in_memory(_Part(x, ranks, (self.mass + self.smoothing)[ranks]))
        _, _, terms = rows.derivatives(*self.start())
        return float(-(rows.weight @ terms.shift_shift) / rows.weight.sum())

    def of_rows(self, beta: Array, cuts: Array) -> tuple[float, Array, int]:
        """Of the rows alone: their log-likelihood, the mass of each rank (K,), how many count."""
        total = self._at(beta, cuts).value + self.ridge / 2 * float(beta @ beta)
        if self.smoothing:
            total -= self._in_memory(self._smoothing_rows).value(beta, cuts)
        return total, self.mass, self.num_rows
