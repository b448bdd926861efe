"""A short summary of the training columns, which is saved with a model.

Later commands read it: what a column held, how often it was empty, where its values lay.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon.data.schema import RawTable, TableSchema

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_DIGITS = 6  # significant ones of a quantile
_FREQUENT = 5
_BINS = 20  # of the counts of a number
_ROWS_A_BIN = 10  # at least


def summarise_columns(schema: TableSchema, table: RawTable) -> list[dict[str, Any]]:
    """What each column of training rows holds, in the order of the schema.

    Returns
    -------
    list of dict
        Each with `name`, `kind` and `missing` (a share); for numbers and dates also `quantiles`,
        from the smallest to the largest value, and for categories `frequent`, the most frequent
        ones with their shares. `bins` are counts, by which new rows can be compared: of the values
        from one of the `edges` to the next, or of each category of the schema, and of `missing`
        ones. `missing_codes` are what stands for no answer, where there are any.

    Examples
    --------
    >>> import pandas as pd
    >>> colours = ["red", "red", "blue", None]
    >>> frame = pd.DataFrame({"size": [1.0, 3.0, None, 2.0], "colour": colours})
    >>> schema = TableSchema.of(frame)
    >>> for column in summarise_columns(schema, schema.read(frame)):
    ...     print(column)
    {'name': 'size', 'kind': 'number', 'missing': 0.25,
     'quantiles': [1.0, 1.1, 1.5, 2.0, 2.5, 2.9, 3.0],
     'bins': {'edges': [1.0, 3.0], 'counts': [1, 2], 'missing': 1}}
    {'name': 'colour', 'kind': 'category', 'missing': 0.25,
     'frequent': {'red': 0.5, 'blue': 0.25}, 'bins': {'counts': [1, 2], 'missing': 1}}
    """
    numbers = {column.name: i for i, column in enumerate(schema.measured)}
    codes = {column.name: i for i, column in enumerate(schema.categorical)}
    summaries = []
    for column in schema.columns:
        summary: dict[str, Any] = {"name": column.name, "kind": column.kind}
        if column.name in numbers:
            values = table.numbers[:, numbers[column.name]].astype(np.float64)
            present = values[~np.isnan(values)]
            summary["missing"] = _share(len(values) - len(present), len(values))
            summary["quantiles"] = (
                [_short(q) for q in np.quantile(present, QUANTILES)] if len(present) else []
            )
            summary["bins"] = {**_binned(present), "missing": len(values) - len(present)}
        elif column.name in codes:
            counts = np.bincount(
                table.codes[:, codes[column.name]], minlength=len(column.categories) + 1
            )
            summary["missing"] = _share(int(counts[0]), len(table))
            order = np.argsort(-counts[1:], kind="stable")[:_FREQUENT]
            summary["frequent"] = {
                column.categories[i]: _share(int(counts[i + 1]), len(table)) for i in order
            }
            summary["bins"] = {"counts": counts[1:].tolist(), "missing": int(counts[0])}
        if column.missing_codes:
            summary["missing_codes"] = list(column.missing_codes)
        summaries.append(summary)
    return summaries


def _binned(present: NDArray[np.float64]) -> dict[str, list[Any]]:
    """Values among themselves as edges, and how many lie at or below each but above the last."""
    if not len(present):
        return {"edges": [], "counts": []}
    bins = int(np.clip(len(present) // _ROWS_A_BIN, 1, _BINS))
    levels = np.linspace(0, 1, bins + 1)
    edges = np.unique(np.quantile(present, levels, method="inverted_cdf"))
    counts = np.bincount(np.searchsorted(edges, present), minlength=len(edges))
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def _share(count: int, total: int) -> float:
    return round(count / max(total, 1), 4)


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
