"""Rows that lie outside what a model was trained on, by the summary of its training columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.kinds.categories import MAX_CATEGORIES, names_of
from echelon.data.missing_codes import emptied
from echelon.data.schema import RawTable, TableSchema

# How far beyond the smallest and the largest training value a number may lie, as a share of the
# distance between the middle 90 % of them: a little beyond lies some row of every new table.
_MARGIN = 0.25


def outside_columns(
    schema: TableSchema,
    summaries: Sequence[Mapping[str, Any]],
    frame: pd.DataFrame | Mapping[str, "pd.Series[Any]"],
    table: RawTable,
) -> NDArray[Any]:
    """The columns in which each row lies outside, (n,): their names, "; " between them.

    A number or a date does that lies well beyond all of the training rows, and a category that they
    had not.

    Parameters
    ----------
    schema : TableSchema
    summaries : sequence of mapping
        Of the training columns; see :func:`echelon.data.summary.summarise_columns`.
    frame : DataFrame or mapping of Series
        The rows, by the names of their columns.
    table : RawTable
        The same rows as the schema reads them.

    Examples
    --------
    >>> from echelon.data.summary import summarise_columns
    >>> rows = pd.DataFrame({"size": np.arange(10.0), "colour": ["red", "blue"] * 5})
    >>> schema = TableSchema.of(rows)
    >>> summaries = summarise_columns(schema, schema.read(rows))
    >>> new = pd.DataFrame({"size": [5.0, 99.0, None], "colour": ["red", "green", "blue"]})
    >>> outside_columns(schema, summaries, new, schema.read(new)).tolist()
    ['', 'size; colour', '']
    """
    by_name = {str(summary["name"]): summary for summary in summaries}
    names = np.full(len(table), "", dtype=object)
    measured = schema.measured
    limits = np.array([_limits(by_name.get(column.name, {})) for column in measured]).reshape(-1, 2)
    values = table.numbers[:, : len(measured)]
    beyond = (values < limits[:, 0]) | (values > limits[:, 1])
    for place in np.flatnonzero(beyond.any(0)):
        _add(names, beyond[:, place], measured[place].name)
    for i, column in enumerate(schema.categorical):
        if len(column.categories) >= MAX_CATEGORIES:
            continue  # those that are not kept may have been there
        unknown = table.codes[:, i] == 0
        if unknown.any():
            present = ~pd.isna(names_of(emptied(frame[column.name], column.missing_codes)))
            _add(names, unknown & present, column.name)
    return names


def _limits(summary: Mapping[str, Any]) -> tuple[float, float]:
    """What the numbers of a column lie between, with a margin; NaN where nobody knows."""
    quantiles = summary.get("quantiles") or []
    if len(quantiles) < 3:
        return np.nan, np.nan
    lowest, highest = float(quantiles[0]), float(quantiles[-1])
    margin = _MARGIN * (float(quantiles[-2]) - float(quantiles[1]))
    margin += 1e-5 * max(abs(lowest), abs(highest))  # the summary has six digits
    return lowest - margin, highest + margin


def _add(names: NDArray[Any], rows: NDArray[np.bool_], name: str) -> None:
    names[rows] = [f"{before}; {name}" if before else name for before in names[rows]]
