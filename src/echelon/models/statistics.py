"""The statistics of a fitted cumulative link model, kept and saved with it.

What is kept is enough for a summary at any level and with any of the errors, so that a loaded model
has its summary without its rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from echelon.data.rows import Rows
from echelon.models.cumulative import CumulativeFit
from echelon.models.design import Design
from echelon.models.effects import Effects, average_effects
from echelon.models.estimates import Estimates
from echelon.models.likelihood_ascent import solve
from echelon.models.links import Array
from echelon.models.partial import PartialFit
from echelon.models.proportionality import (
    ChiSquare,
    SlopeRows,
    brant_test,
    likelihood_ratio_test,
)
from echelon.models.summary import RATIO_NAMES, Summary

ERRORS = ("observed", "robust", "clustered")
WEIGHTS = ("none", "frequency", "sampling")


@dataclass(frozen=True)
class Statistics:
    """What is known of a fit beside its predictions.

    Attributes
    ----------
    estimates : Estimates
        With the covariances of all kinds of errors that there are.
    counts : array, shape (K,)
        What the rows of each class count for.
    rows, dropped, groups, weights
        As in :class:`echelon.models.summary.Summary`.
    log_likelihood, null_log_likelihood : float
    iterations, crossed : int
    converged, separated : bool
    aliased : tuple of int
        Features.
    free : tuple of int
        Features with a slope for each threshold.
    tests : mapping or None
        The document of both tests of proportional odds.
    effects : Effects or None
    """

    estimates: Estimates
    counts: Array
    rows: int
    dropped: int
    groups: int | None
    weights: str
    log_likelihood: float
    null_log_likelihood: float
    iterations: int
    crossed: int
    converged: bool
    separated: bool
    aliased: tuple[int, ...]
    free: tuple[int, ...]
    tests: Mapping[str, Any] | None = None
    effects: Effects | None = None

    @classmethod
    def of(
        cls, fit: CumulativeFit | PartialFit, x: Array, rows: Rows, *, weights: str, dropped: int
    ) -> "Statistics":
        """The estimates of a fit with all errors that its rows allow; no tests yet."""
        estimates = Estimates.of(fit)
        weight = np.ones(len(x)) if rows.weight is None else rows.weight
        groups = _numbered(rows.groups)
        covariances = dict(estimates.covariances)
        if not fit.separated:
            with np.errstate(all="ignore"):  # units of 1e150 have no squares
                scores = estimates.row_scores(x, rows.ranks)
                copies = _are_copies(weights)
                covariances["robust"] = estimates.sandwich(scores, weight, copies, None)
                if groups is not None:
                    covariances["clustered"] = estimates.sandwich(scores, weight, copies, groups)
        return cls(
            replace(estimates, covariances=covariances),
            np.bincount(rows.ranks, weight, fit.num_classes).astype(np.float64),
            rows=int((weight > 0).sum()),
            dropped=dropped,
            groups=None if groups is None else int(groups.max()) + 1,
            weights=weights,
            log_likelihood=fit.log_likelihood,
            null_log_likelihood=fit.null_log_likelihood,
            iterations=fit.iterations,
            crossed=getattr(fit, "crossed", 0),
            converged=fit.converged,
            separated=fit.separated,
            aliased=fit.aliased,
            free=getattr(fit, "free", ()),
        )

    @classmethod
    def of_sums(cls, fit: CumulativeFit, counts: Array, dropped: int) -> "Statistics":
        """What a fit alone says, of rows that count alike and are not there any more.

        `counts` are the rows of each class, (K,). Errors are by the observed information.
        """
        return cls(
            Estimates.of(fit),
            counts,
            rows=fit.num_rows,
            dropped=dropped,
            groups=None,
            weights="none",
            log_likelihood=fit.log_likelihood,
            null_log_likelihood=fit.null_log_likelihood,
            iterations=fit.iterations,
            crossed=0,
            converged=fit.converged,
            separated=fit.separated,
            aliased=fit.aliased,
            free=(),
        )

    def with_tests(self, x: Array, rows: Rows, design: Design) -> "Statistics":
        """The same with both tests of proportional odds and the average marginal effects."""
        weight = np.ones(len(x)) if rows.weight is None else rows.weight
        kept = [j for j in range(x.shape[1]) if j not in self.aliased]
        place = {j: i for i, j in enumerate(kept)}
        terms = {
            name: [place[j] for j in places if j in place and j not in self.free]
            for name, places in design.terms.items()
        }
        counted = weight > 0
        tested = SlopeRows(
            x[counted][:, kept],
            rows.ranks[counted],
            len(self.counts),
            self.estimates.link,
            weight[counted],
            {name: places for name, places in terms.items() if places},
            [place[j] for j in self.free if j in place],
        )
        if self.separated:
            reason = "classes that are divided without error allow no test"
            documents: dict[str, Any] = {
                name: {"overall": None, "terms": {}, "note": reason}
                for name in ("brant", "likelihood_ratio")
            }
        else:
            groups = _numbered(rows.groups)
            brant = brant_test(
                tested,
                are_copies=_are_copies(self.weights),
                groups=None if groups is None else _numbered(groups[counted]),
                robust=self.weights == "sampling",
            )
            documents = {"brant": brant.document()}
            if self.default_errors == "observed":
                ratio = likelihood_ratio_test(tested, self.log_likelihood)
                documents["likelihood_ratio"] = ratio.document()
            else:
                note = "a likelihood ratio needs rows that are independent and count alike"
                documents["likelihood_ratio"] = {"overall": None, "terms": {}, "note": note}
        effects = average_effects(self.estimates, design, rows.schema, rows.table, weight)
        return replace(self, tests=documents, effects=effects)

    # ---- what is said ------------------------------------------------------------------------

    @property
    def default_errors(self) -> str:
        """Clustered where rows have groups, robust for sampling weights, else observed."""
        if self.groups is not None:
            return "clustered"
        return "robust" if self.weights == "sampling" else "observed"

    @property
    def observations(self) -> float:
        """What all rows count for."""
        return float(self.counts.sum()) if self.weights == "frequency" else float(self.rows)

    def covariance(self, errors: str | None) -> tuple[str, Array]:
        """The kind of errors, which may be asked for, and the covariance of the parameters."""
        chosen = self.default_errors if errors is None else errors
        known = self.estimates.covariances
        if self.separated:
            return "observed", np.full_like(known["observed"], np.nan)
        if chosen not in known:
            more = "; clustered ones need groups in the fit" if chosen == "clustered" else ""
            raise ValueError(f"errors must be one of {', '.join(known)}{more}; got {errors!r}")
        return chosen, known[chosen]

    def summary(
        self,
        design: Design,
        labels: Sequence[Any],
        errors: str | None = None,
        level: float = 0.95,
    ) -> Summary:
        """All of it as tables."""
        kind, covariance = self.covariance(errors)
        z = interval_width(level)
        theta, places = self.estimates.theta, self.estimates.places
        deviation = np.sqrt(np.diag(covariance))
        names, cut_names = design.feature_names(), _cut_names(labels)
        coefficients = []
        for j, feature in enumerate(design.features):
            if j in self.aliased:
                continue
            for k, place in enumerate(places[:, j] if j in self.free else places[:1, j]):
                row: dict[str, Any] = {
                    "name": feature.name,
                    "term": feature.term,
                    "threshold": cut_names[k] if j in self.free else None,
                    **_wald_row(theta[place], deviation[place], z),
                }
                coefficients.append(row | _ratio(row, self.estimates.link))
        cutpoints = [
            {"name": name, **{
                key: value
                for key, value in _wald_row(theta[place], deviation[place], z).items()
                if key in ("estimate", "error", "lower", "upper")
            }}
            for name, place in zip(cut_names, self.estimates.cut_places, strict=True)
        ]  # fmt: skip
        effects = None
        if self.effects is not None:
            effects = [
                {"column": change.column, "change": change.words, "class": str(labels[k]),
                 **_renamed(_wald_row(float(value), float(error), z))}
                for change, values, deviations in zip(
                    self.effects.changes, self.effects.estimates,
                    self._effect_errors(covariance), strict=True,
                )
                for k, (value, error) in enumerate(zip(values, deviations, strict=True))
            ]  # fmt: skip
        known, num_cuts = int(self.estimates.known.sum()), self.estimates.num_cuts
        has_likelihood = self.weights != "sampling"
        ratio = ChiSquare.of(2 * (self.log_likelihood - self.null_log_likelihood), known - num_cuts)
        log_n = float(np.log(self.observations))
        return Summary(
            link=self.estimates.link,
            errors=kind,
            level=level,
            rows=self.rows,
            dropped=self.dropped,
            weights=self.weights,
            observations=self.observations,
            groups=self.groups,
            classes={
                str(label): float(n) for label, n in zip(labels, self.counts, strict=True)
            },
            fit={
                "log_likelihood": self.log_likelihood,
                "null_log_likelihood": self.null_log_likelihood,
                "aic": 2 * known - 2 * self.log_likelihood if has_likelihood else None,
                "bic": log_n * known - 2 * self.log_likelihood if has_likelihood else None,
                "mcfadden": 1 - self.log_likelihood / self.null_log_likelihood
                if has_likelihood
                else None,
                "parameters": known,
                "iterations": self.iterations,
                "converged": self.converged,
                "separated": self.separated,
            },
            likelihood_ratio=ratio._asdict()
            if has_likelihood and self.groups is None and not self.separated
            else None,
            wald=self._wald(covariance),
            coefficients=coefficients,
            cutpoints=cutpoints,
            references=design.references,
            aliased=[names[j] for j in self.aliased],
            proportional_odds=self.tests,
            effects=effects,
            notes=self._notes(design, kind),
        )  # fmt: skip

    def _effect_errors(self, covariance: Array) -> Array:
        assert self.effects is not None
        if self.separated:
            return np.full_like(self.effects.estimates, np.nan)
        return self.effects.errors(covariance)

    def _wald(self, covariance: Array) -> dict[str, Any] | None:
        """Whether any slope differs from 0, by the chosen errors."""
        slopes = self.estimates.known.copy()
        slopes[self.estimates.cut_places] = False
        size = int(slopes.sum())
        too_few = self.groups is not None and self.groups <= size
        if self.separated or size == 0 or too_few:
            return None
        values = self.estimates.theta[slopes]
        if not np.isfinite(covariance[np.ix_(slopes, slopes)]).all():
            return None
        statistic = float(values @ solve(covariance[np.ix_(slopes, slopes)], values))
        return ChiSquare.of(statistic, size)._asdict()

    def _notes(self, design: Design, kind: str) -> list[str]:
        names, notes = design.feature_names(), []
        if design.references:
            pairs = (f"{column} = {value}" for column, value in design.references.items())
            notes.append(f"categories are compared with {', '.join(pairs)}")
        if self.aliased:
            listed = ", ".join(names[j] for j in self.aliased)
            notes.append(f"left out, as a linear function of other columns or constant: {listed}")
        if self.separated:
            notes.append(
                "some column, or several together, divides classes without error: the likelihood "
                "has no maximum, estimates grow with every step, and there are no errors and no "
                "p-values; leave the column out, or fit with ridge above 0"
            )
        elif not self.converged:
            notes.append("the fit did not converge")
        if self.weights == "frequency":
            notes.append("frequency weights: a row of weight w stands for w equal rows")
        elif self.weights == "sampling":
            notes.append(
                "sampling weights: a row stands for more of the population and is still one row; "
                "errors are robust, and there is no likelihood to compare"
            )
        if kind == "clustered" and self.groups is not None and self.groups < 30:
            notes.append(f"errors by {self.groups} groups are too small as a rule; 30 are a few")
        if self.crossed:
            notes.append(
                f"thresholds cross at {self.crossed:,} rows of the fit, where probabilities are "
                f"put in order"
            )
        far = [name for name, reach in zip(design.names, design.reach.tolist(), strict=True)
               if np.isfinite(reach)]  # fmt: skip
        if far:
            notes.append(f"numbers far from all others count as the nearest of them in: "
                         f"{', '.join(far)}")  # fmt: skip
        for name, test in (self.tests or {}).items():
            if test["note"]:
                title = "Brant's test" if name == "brant" else "the likelihood-ratio test of slopes"
                notes.append(f"{title}: {test['note']}")
        if self.tests is None:
            notes.append(
                "no tests of proportional odds and no marginal effects: fit with tests=True"
            )
        return notes


def interval_width(level: float) -> float:
    """How many standard errors an interval of some level reaches to either side."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, such as 0.95; got {level!r}")
    return float(stats.norm.ppf((1 + level) / 2))


def probability_intervals(
    probabilities: Array, gradients_errors: Array, level: float
) -> tuple[Array, Array]:
    """The ends of intervals on the scale of log-odds, which stay between 0 and 1."""
    inside = np.clip(probabilities, 1e-12, 1 - 1e-12)
    centre = np.log(inside / (1 - inside))
    reach = interval_width(level) * gradients_errors / (inside * (1 - inside))
    return 1 / (1 + np.exp(-(centre - reach))), 1 / (1 + np.exp(-(centre + reach)))


def _are_copies(weights: str) -> bool:
    return weights != "sampling"


def _numbered(groups: NDArray[Any] | None) -> NDArray[np.int64] | None:
    if groups is None:
        return None
    places, names = pd.factorize(np.asarray(groups), use_na_sentinel=False)
    return places.astype(np.int64) if len(names) > 1 else None


def _cut_names(labels: Sequence[Any]) -> list[str]:
    return [f"{low} | {high}" for low, high in pairwise(labels)]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _wald_row(estimate: float, error: float, z: float) -> dict[str, float | None]:
    """An estimate with its error, z, p-value and interval; None where there is no error."""
    is_known = bool(np.isfinite(error)) and error > 0
    score = estimate / error if is_known else np.nan
    return {
        "estimate": _finite(estimate),
        "error": _finite(error),
        "z": _finite(score),
        "p_value": _finite(2 * stats.norm.sf(abs(score))),
        "lower": _finite(estimate - z * error),
        "upper": _finite(estimate + z * error),
    }


def _renamed(row: dict[str, float | None]) -> dict[str, float | None]:
    return {("effect" if key == "estimate" else key): value for key, value in row.items()}


def _ratio(row: Mapping[str, Any], link: str) -> dict[str, float | None]:
    """exp(b) of the logit link, exp(-b) of the hazards."""
    if link not in RATIO_NAMES:
        return {"ratio": None, "ratio_lower": None, "ratio_upper": None}
    sign = 1.0 if link == "logit" else -1.0
    ends = ("lower", "upper") if sign > 0 else ("upper", "lower")
    with np.errstate(over="ignore"):
        values = [
            None if row[key] is None else _finite(np.exp(sign * row[key]))
            for key in ("estimate", *ends)
        ]
    return dict(zip(("ratio", "ratio_lower", "ratio_upper"), values, strict=True))
