"""Do the columns act alike at every threshold? Brant's test and the likelihood-ratio test.

Equal slopes are what gives one odds ratio for a column. Brant (1990) fits every threshold alone, as
a binary model, and asks whether the K-1 slopes of a column differ more than chance would have them;
the likelihood-ratio test fits the slopes of all thresholds jointly and compares likelihoods.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from echelon.models.cumulative import fit_cumulative
from echelon.models.likelihood_ascent import solve
from echelon.models.links import Array, link_of
from echelon.models.partial import fit_partial

MOST_PARAMETERS = 1500  # of the fit with all slopes free, beyond which a test takes too long


class ChiSquare(NamedTuple):
    """A test: its statistic, degrees of freedom and p-value; None where it cannot be had."""

    statistic: float | None
    degrees: int
    p_value: float | None

    @classmethod
    def of(cls, statistic: float, degrees: int) -> "ChiSquare":
        """A statistic that is chi-square distributed where the hypothesis holds."""
        if degrees < 1 or not np.isfinite(statistic):
            return cls(None, degrees, None)
        value = max(float(statistic), 0.0)
        return cls(value, degrees, float(stats.chi2.sf(value, degrees)))


@dataclass(frozen=True)
class ProportionalityTest:
    """A test of equal slopes: overall, of each term, and why there is none."""

    overall: ChiSquare | None
    terms: Mapping[str, ChiSquare]
    note: str = ""

    def document(self) -> dict[str, Any]:
        """As values of JSON."""
        return {
            "overall": None if self.overall is None else self.overall._asdict(),
            "terms": {name: test._asdict() for name, test in self.terms.items()},
            "note": self.note,
        }


@dataclass(frozen=True)
class SlopeRows:
    """The rows of a fit.

    Parameters
    ----------
    x : array, shape (n, d)
        Independent features.
    ranks : array of int, shape (n,)
    num_classes : int
    link : str
    weight : array, shape (n,)
    terms : mapping from name to places of features
        What is tested.
    free : sequence of int
        Features whose slopes are free in the fit, of which nothing is tested.
    """

    x: Array
    ranks: NDArray[np.int64]
    num_classes: int
    link: str
    weight: Array
    terms: Mapping[str, Sequence[int]]
    free: Sequence[int] = ()

    @property
    def tested(self) -> list[int]:
        """The features of all terms."""
        return sorted({place for places in self.terms.values() for place in places})

    @property
    def is_too_large(self) -> bool:
        """Whether a test would take too long."""
        return bool((self.num_classes - 1) * (self.x.shape[1] + 1) > MOST_PARAMETERS)

    def nothing_to_test(self) -> str:
        """Why there is no test; empty where there can be one."""
        if self.num_classes < 3:
            return "two classes have one threshold, so that there is nothing to test"
        if not self.tested:
            return "there is no column to test"
        if self.is_too_large:
            return f"not done, as it takes more than {MOST_PARAMETERS:,} parameters"
        return ""


def brant_test(
    rows: SlopeRows,
    *,
    are_copies: bool = True,
    groups: NDArray[np.int64] | None = None,
    robust: bool = False,
) -> ProportionalityTest:
    """Brant's Wald test of equal slopes (Brant 1990), here for every link.

    Parameters
    ----------
    rows : SlopeRows
    are_copies : bool
        Whether weights count rows.
    groups : array of int, shape (n,), optional
    robust : bool
        Take the covariance of the slopes from the rows, or groups, instead of from the model.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> latent = x[:, 0] + rng.logistic(size=2000) * np.exp(0.4 * x[:, 1])
    >>> ranks = np.digitize(latent, [-1.0, 1.0])
    >>> rows = SlopeRows(x, ranks, 3, "logit", np.ones(2000), {"mean": [0], "spread": [1]})
    >>> found = brant_test(rows)
    >>> found.overall.degrees, bool(found.terms["spread"].p_value < 1e-9)
    (2, True)
    """
    if note := rows.nothing_to_test():
        return ProportionalityTest(None, {}, note)
    centred = (rows.x - rows.x.mean(0)) / rows.x.std(0)
    p, num_cuts = centred.shape[1], rows.num_classes - 1
    design = np.column_stack([-centred, np.ones(len(centred))])  # of slopes and the constant
    link = link_of(rows.link)
    slopes, parts = [], []
    for k in range(num_cuts):
        above = (rows.ranks > k).astype(np.int64)
        fit = fit_cumulative(centred, above, 2, link=rows.link, weight=rows.weight)
        if fit.separated or fit.aliased or not fit.converged:
            return ProportionalityTest(
                None, {}, f"a column divides the rows at threshold {k + 1} without error"
            )
        end = fit.cutpoints[0] - centred @ fit.coefficients
        log_below, log_above = link.log_cdf(end), link.log_survival(end)
        log_density = link.log_density(end)
        slopes.append(fit.coefficients)
        parts.append((np.exp(log_density - log_below), np.exp(log_density - log_above)))
    breads = [
        solve((design * (rows.weight * low * high)[:, None]).T @ design, np.eye(p + 1))
        for low, high in parts
    ]
    covariance = np.zeros((num_cuts * p, num_cuts * p))
    if robust or groups is not None:
        covariance = _from_rows(rows, design, parts, breads, are_copies, groups)
    else:
        for k in range(num_cuts):
            for m in range(k, num_cuts):
                # f_k f_m / ((1 - F_k) F_m), the covariance of the two thresholds' scores
                mixed = rows.weight * parts[k][1] * parts[m][0]
                block = (breads[k] @ ((design * mixed[:, None]).T @ design) @ breads[m])[:p, :p]
                covariance[k * p : k * p + p, m * p : m * p + p] = block
                covariance[m * p : m * p + p, k * p : k * p + p] = block.T
    by_cut = np.array(slopes)  # (K-1, p)

    def wald(places: Sequence[int]) -> ChiSquare:
        """Whether the slopes of some features differ from those of the first threshold."""
        chosen = [k * p + j for k in range(num_cuts) for j in places]
        some = len(places)
        contrast = np.hstack(
            [-np.tile(np.eye(some), (num_cuts - 1, 1)), np.eye((num_cuts - 1) * some)]
        )
        difference = contrast @ by_cut[:, list(places)].reshape(-1)
        spread = contrast @ covariance[np.ix_(chosen, chosen)] @ contrast.T
        return ChiSquare.of(float(difference @ solve(spread, difference)), len(difference))

    return ProportionalityTest(
        wald(rows.tested), {name: wald(places) for name, places in rows.terms.items()}
    )


def _from_rows(
    rows: SlopeRows,
    design: Array,
    parts: Sequence[tuple[Array, Array]],
    breads: Sequence[Array],
    are_copies: bool,
    groups: NDArray[np.int64] | None,
) -> Array:
    """The covariance of the slopes of all thresholds by what each row moves them."""
    p = design.shape[1] - 1
    moved = []
    for k, (low, high) in enumerate(parts):
        slope = np.where(rows.ranks <= k, low, -high)
        moved.append(((design * slope[:, None]) @ breads[k])[:, :p])
    influence = np.concatenate(moved, axis=1)
    if groups is None:
        factor = np.sqrt(rows.weight) if are_copies else rows.weight
        influence = influence * factor[:, None]
        count = float(rows.weight.sum()) if are_copies else float(len(influence))
    else:
        summed = np.zeros((int(groups.max()) + 1, influence.shape[1]))
        np.add.at(summed, groups, influence * rows.weight[:, None])
        influence, count = summed, float(len(np.unique(groups)))
    covariance: Array = influence.T @ influence * count / (count - 1)
    return covariance


def likelihood_ratio_test(rows: SlopeRows, log_likelihood: float) -> ProportionalityTest:
    """Twice the rise of the log-likelihood when slopes are free, of all features and of each term.

    Parameters
    ----------
    rows : SlopeRows
    log_likelihood : float
        Of the fit with equal slopes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 1))
    >>> ranks = np.digitize(x[:, 0] + rng.logistic(size=500), [-1.0, 1.0])
    >>> equal = fit_cumulative(x, ranks, 3).log_likelihood
    >>> rows = SlopeRows(x, ranks, 3, "logit", np.ones(500), {"x": [0]})
    >>> found = likelihood_ratio_test(rows, equal)
    >>> found.overall.degrees, bool(found.overall.p_value > 0.05)
    (1, True)
    """
    if note := rows.nothing_to_test():
        return ProportionalityTest(None, {}, note)
    unsound = []

    def rise(name: str, places: Sequence[int]) -> ChiSquare:
        degrees = (rows.num_classes - 2) * len(places)
        free = sorted({*rows.free, *places})
        fit = fit_partial(
            rows.x, rows.ranks, rows.num_classes, free, link=rows.link, weight=rows.weight
        )
        if fit.separated or not fit.converged:
            unsound.append(name)
            return ChiSquare(None, degrees, None)
        return ChiSquare.of(2 * (fit.log_likelihood - log_likelihood), degrees)

    overall = rise("all columns", rows.tested)
    single = len(rows.terms) == 1
    terms = {name: overall if single else rise(name, places) for name, places in rows.terms.items()}
    note = f"no finite fit with free slopes of {', '.join(unsound)}" if unsound else ""
    return ProportionalityTest(overall, terms, note)
