"""What a column changes in each P(y = k), on average over rows, and P(y = k) at given values.

Both come with errors by the delta method: the derivative by the parameters, and their covariance.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon.data.schema import RawTable, TableSchema
from echelon.models.design import Design
from echelon.models.estimates import Estimates
from echelon.models.expressions import Expression
from echelon.models.links import Array

_STEP = 1e-4  # of the difference that stands for a derivative, in standard deviations


class Change(NamedTuple):
    """What is changed: a column, and how, in words."""

    column: str
    words: str


@dataclass(frozen=True)
class Effects:
    """Average changes of P(y = k) when a column changes.

    Attributes
    ----------
    changes : tuple of Change, c of them
    estimates : array, shape (c, K)
    gradients : array, shape (c, K, m)
        Their derivatives by the parameters.
    """

    changes: tuple[Change, ...]
    estimates: Array
    gradients: Array

    def errors(self, covariance: Array) -> Array:
        """Standard errors, (c, K), from the covariance of the parameters, (m, m)."""
        return delta_errors(self.gradients, covariance)


def delta_errors(gradients: Array, covariance: Array) -> Array:
    """Standard errors of values with derivatives (..., m); what is not estimated has none."""
    known = np.isfinite(np.diag(covariance))
    some = gradients[..., known]
    variance = np.einsum("...i,ij,...j->...", some, covariance[np.ix_(known, known)], some)
    errors: Array = np.sqrt(np.maximum(variance, 0.0))
    return errors


def average_effects(
    estimates: Estimates,
    design: Design,
    schema: TableSchema,
    table: RawTable,
    weight: Array | None = None,
) -> Effects:
    """The mean over rows of what each column changes in every P(y = k).

    A number: the derivative, in the units of the column. A number that is only 0 and 1: the step
    from 0 to 1. A category: the step from the reference to it. Rows that lack the column do not
    count for it.

    Parameters
    ----------
    estimates, design, schema
        Of the fit.
    table : RawTable
        The rows to average over.
    weight : array, shape (n,), optional
    """
    counts = np.ones(len(table)) if weight is None else weight
    changes, values, gradients = [], [], []
    known = estimates.known[estimates.places[0]]
    atoms = {
        atom
        for feature, is_known in zip(design.features, known, strict=True)
        if is_known
        for atom in feature.atoms
    }
    used = {atom.column for atom in atoms if atom.kind in ("number", "category")}
    for atom in atoms:
        if atom.kind == "expression":
            used |= Expression(atom.value).columns

    def add(change: Change, low: RawTable, high: RawTable, share: Array, width: float) -> None:
        difference, slope = np.zeros(1), np.zeros(1)
        for sign, changed in ((1.0, high), (-1.0, low)):
            x = design.matrix(changed)
            difference = difference + sign * (share @ estimates.probabilities(x)) / width
            slope = slope + sign * estimates.gradient(x, share) / width
        changes.append(change)
        values.append(difference)
        gradients.append(slope)

    for place, column in enumerate(schema.measured):
        numbers = table.numbers[:, place].astype(np.float64)
        present = ~np.isnan(numbers)
        share = counts * present
        if column.name not in used or not share.sum():
            continue
        share = share / share.sum()
        is_switch = set(np.unique(numbers[present]).tolist()) == {0.0, 1.0}
        if is_switch:
            low, high, width = np.where(present, 0.0, np.nan), np.where(present, 1.0, np.nan), 1.0
            words = "0 to 1"
        else:
            step = _STEP * float(numbers[present].std())
            if step == 0:
                continue
            low, high, width, words = numbers - step, numbers + step, 2 * step, "per unit"
        ends = [_with_number(table, place, values_of) for values_of in (low, high)]
        add(Change(column.name, words), ends[0], ends[1], share, width)
    for place, column in enumerate(schema.categorical):
        if column.name not in design.references or column.name not in used:
            continue
        share = counts * (table.codes[:, place] > 0)
        if not share.sum():
            continue
        share = share / share.sum()
        reference = design.references[column.name]
        levels = {
            atom.value for atom in atoms if atom.kind == "category" and atom.column == column.name
        }
        low_table = _with_code(table, place, column.categories.index(reference) + 1)
        for code, level in enumerate(column.categories, 1):
            if level in levels and level != reference:
                words = f"{reference} to {level}"
                high_table = _with_code(table, place, code)
                add(Change(column.name, words), low_table, high_table, share, 1.0)
    num_classes, size = estimates.num_cuts + 1, len(estimates.theta)
    return Effects(
        tuple(changes),
        np.array(values).reshape(len(changes), num_classes),
        np.array(gradients).reshape(len(changes), num_classes, size),
    )


def probabilities_with_errors(
    estimates: Estimates, x: Array, covariance: Array
) -> tuple[Array, Array]:
    """P(y = k) of rows, (n, K), and their standard errors, (n, K)."""
    gradients = np.stack([estimates.gradient(row[None], np.ones(1)) for row in x])
    return estimates.probabilities(x), delta_errors(gradients, covariance)


def _with_number(table: RawTable, place: int, values: NDArray[np.float64]) -> RawTable:
    numbers = table.numbers.astype(np.float64)
    numbers[:, place] = values
    return replace(table, numbers=numbers)


def _with_code(table: RawTable, place: int, code: int) -> RawTable:
    codes = table.codes.copy()
    codes[:, place] = code
    return replace(table, codes=codes)
