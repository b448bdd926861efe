"""Typical rows of a table, drawn column by column from the summary of its training columns.

A model file holds no rows, and what speaks of one row needs others beside it. Columns are drawn
without regard to each other, so that a made-up row may be one that never occurs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from echelon.data.columns import MEASURED, Column
from echelon.data.schema import TableSchema
from echelon.data.summary import QUANTILES


def typical_rows(
    schema: TableSchema, summaries: Sequence[Mapping[str, Any]], count: int, seed: int = 0
) -> pd.DataFrame:
    """Rows whose cells are spread over what each column held in training.

    Parameters
    ----------
    schema : TableSchema
    summaries : sequence of mapping
        Of the training columns; see :func:`echelon.data.summary.summarise_columns`.
    count : int
        How many rows.
    seed : int

    Examples
    --------
    >>> schema = TableSchema((Column("size"), Column("colour", "category", ("blue", "red"))), True)
    >>> summaries = [
    ...     {"name": "size", "missing": 0.0, "quantiles": [0.0, 1.0, 2.0]},
    ...     {"name": "colour", "missing": 0.0, "frequent": {"red": 0.75, "blue": 0.25}},
    ... ]
    >>> rows = typical_rows(schema, summaries, 4)
    >>> sorted(rows["size"]), sorted(rows["colour"])
    ([0.25, 0.75, 1.25, 1.75], ['blue', 'red', 'red', 'red'])
    """
    generator = np.random.default_rng(seed)
    by_name = {str(summary["name"]): summary for summary in summaries}
    # the middle of equal shares, in another order for each column
    cells = {
        column.name: _drawn(
            column,
            by_name.get(column.name, {}),
            (generator.permutation(count) + 0.5) / count,
        )
        for column in schema.columns
    }
    frame: pd.DataFrame = pd.DataFrame(cells)
    return frame


def _drawn(column: Column, summary: Mapping[str, Any], shares: Any) -> Any:
    """Cells of a column, one for each share from 0 to 1; the last shares are missing ones."""
    missing = float(summary.get("missing", 1.0))
    present = shares < 1 - missing
    places = np.where(present, shares / max(1 - missing, 1e-12), 0.0)
    if column.kind in MEASURED:
        quantiles = np.asarray(summary.get("quantiles") or [np.nan], dtype=np.float64)
        levels = np.asarray(_levels(len(quantiles)))
        values = np.interp(places, levels, quantiles)
        return MEASURED[column.kind].typed(np.where(present, values, np.nan))
    frequent = summary.get("frequent") or {}
    cells = np.full(len(shares), None, dtype=object)
    if frequent:
        ends = np.cumsum(list(frequent.values()))
        chosen = np.searchsorted(ends / ends[-1], places, side="right").clip(max=len(ends) - 1)
        cells[present] = np.array(list(frequent), dtype=object)[chosen[present]]
    return cells


def _levels(count: int) -> Sequence[float]:
    return QUANTILES if count == len(QUANTILES) else np.linspace(0, 1, count).tolist()
