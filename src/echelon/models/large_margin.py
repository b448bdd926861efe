"""One score with large margins among cutpoints, solved to the end by an interior-point method.

The problem is 1/2 |w|^2 + sum of C max(0, 1 - s (x.w - b_k)) over pairs of a row and a threshold,
where s is 1 if the rank is above k and -1 otherwise (Chu and Keerthi 2005; Shashua and Levin 2003;
Lin and Li 2012). All thresholds of a row share its features, so that a step solves a system of as
many unknowns as there are features, whatever the number of classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.models.arguments import as_features, as_ranks, as_weight
from echelon.models.interior_point import Demands, minimise
from echelon.models.links import Array

_CERTAIN = 5.0  # how far from every cutpoint the one score lies where there is but one class


class Form(NamedTuple):
    """A formulation: which pairs count, and what holds the cutpoints."""

    name: str
    summary: str
    immediate: bool = False  # a row is compared with the cutpoints beside its rank alone
    ordered: bool = False  # the order of the cutpoints is demanded, as nothing else gives it
    penalised: bool = False  # the cutpoints are those of a penalised model, around a free centre


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        form.name: form
        for form in (
            Form("implicit", "every row against every cutpoint (SVORIM)"),
            Form("explicit", "a row against its neighbours (SVOREX)", immediate=True, ordered=True),
            Form("reduction", "the reduction to one binary machine (RED-SVM)", penalised=True),
        )
    }
)


@dataclass(frozen=True)
class MarginFit:
    """What was found.

    Attributes
    ----------
    coefficients : array, shape (d,)
        w.
    cutpoints : array, shape (K-1,)
        b, ascending.
    duals : array, shape (n,)
        What each row gives: w is the sum of dual times features; 0 but for rounding where all
        margins of a row are kept.
    objective : float
        With the slacks that these need; of the constrained problem.
    gap : float
        By how much the objective lies above a bound from below, relative to it.
    steps : int
    """

    coefficients: Array
    cutpoints: Array
    duals: Array
    objective: float
    gap: float
    steps: int


def fit_margin(
    features: ArrayLike,
    ranks: ArrayLike,
    num_classes: int,
    *,
    form: str = "implicit",
    C: float = 1.0,  # noqa: N803
    weight: ArrayLike | None = None,
    tolerance: float = 1e-10,
) -> MarginFit:
    """The coefficients and cutpoints of large margins.

    Steps take O(n (d^2 + K)); there are some dozens of them.

    Parameters
    ----------
    features : array-like, shape (n, d)
        Finite numbers. For a kernel, its features.
    ranks : array-like, shape (n,)
    num_classes : int
        K. Classes without rows get no room: their cutpoints coincide, or lie beyond all scores.
    form : {"implicit", "explicit", "reduction"}
        Every row against every cutpoint; a row against the cutpoints beside its rank, in order; or
        all with penalised cutpoints, 1/2 |b|^2, around a free centre.
    C : float
        What a margin that is short by 1 costs.
    weight : array-like, shape (n,), optional
        Multiplies C.
    tolerance : float
        The relative gap between the objective and its bound.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> fit = fit_margin(x, [0, 0, 1, 1, 2, 2], 3, C=100.0)
    >>> fit.coefficients.round(4), fit.cutpoints.round(4)
    (array([2.]), array([3., 7.]))
    """
    x = as_features(features)
    y = as_ranks(ranks, num_classes, length=len(x))
    given = as_weight(weight, len(y))
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(map(repr, FORMS))}; got {form!r}")
    if not (isinstance(C, (int, float)) and 0 < C < np.inf):
        raise ValueError(f"C must be a number above 0; got {C!r}")
    there, duals = given > 0, np.zeros(len(y))
    x, y, given = x[there], y[there], given[there]
    present = np.unique(y)
    if len(present) < 2:
        nothing, everything = np.zeros(x.shape[1]), _outside(present[0], num_classes)
        return MarginFit(nothing, everything, duals, 0.0, 0.0, 0)
    # Classes without rows would leave their cutpoints undecided.
    places = np.searchsorted(present, y)
    demands = _demands(x, places, len(present), FORMS[form], C * given)
    optimum = minimise(demands, tolerance)
    coefficients = optimum.point[: x.shape[1]]
    cutpoints = np.maximum.accumulate(demands.cutpoints(optimum.point))  # but for rounding
    scores = x @ coefficients
    lowest = min(cutpoints[0], scores.min() - 1)
    highest = max(cutpoints[-1], scores.max() + 1)
    below = np.searchsorted(present, np.arange(num_classes - 1), side="right")
    every = np.concatenate([[lowest], cutpoints, [highest]])[below]
    duals[there] = optimum.duals
    return MarginFit(coefficients, every, duals, optimum.objective, optimum.gap, optimum.steps)


def _outside(rank: int, num_classes: int) -> Array:
    """Cutpoints around a score of 0 that all belongs to one rank."""
    return np.where(np.arange(num_classes - 1) < rank, -_CERTAIN, _CERTAIN)


def _demands(
    x: Array, ranks: NDArray[np.int64], num_classes: int, form: Form, cost: Array
) -> Demands:
    """What a form asks of ranks of which each is there."""
    above = ranks[:, None] - np.arange(num_classes - 1)  # (n, K-1)
    counts = (above == 0) | (above == 1) if form.immediate else np.ones_like(above, dtype=bool)
    to_cutpoints, penalty = np.eye(num_classes - 1), np.zeros(num_classes - 1)
    if form.penalised:
        to_cutpoints = np.column_stack([to_cutpoints, np.ones(num_classes - 1)])
        penalty = np.append(np.ones(num_classes - 1), 0.0)
    return Demands(
        x,
        sign=np.where(above > 0, 1.0, -1.0) * counts,
        cost=np.where(counts, cost[:, None], 1.0),  # of pairs that do not count it is not read
        to_cutpoints=to_cutpoints,
        penalty=np.concatenate([np.ones(x.shape[1]), penalty]),
        ordered=form.ordered,
    )
