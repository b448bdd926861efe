"""Rows that were read, as a frame again: for whoever works on columns by their names.

Invariant: reading back what was made here gives the same arrays, and costs next to nothing, as
numbers are numbers and categories are their codes already. The parts of dates are no columns of
the frame: they follow from the dates, so that whoever changes a date changes them too.
"""

from typing import Any

import numpy as np
import pandas as pd

from echelon.data.kinds.base import CELL_KINDS
from echelon.data.kinds.dates import DATES
from echelon.data.schema import RawTable, TableSchema


def frame_of_rows(schema: TableSchema, table: RawTable) -> pd.DataFrame:
    """The rows of a table as a frame with the columns of its schema.

    Numbers are float64, dates moments, categories a pandas categorical in which the unknown are
    missing, and all other cells objects.

    Examples
    --------
    >>> frame = pd.DataFrame({"size": ["1.5", ""], "colour": ["red", None]})
    >>> schema = TableSchema.of(frame)
    >>> frame_of_rows(schema, schema.read(frame)).dtypes.astype(str).tolist()
    ['float64', 'category']
    """
    numbers = {column.name: i for i, column in enumerate(schema.measured)}
    codes = {column.name: i for i, column in enumerate(schema.categorical)}
    cells: dict[str, Any] = {}
    for column in schema.columns:
        if column.name in codes:
            known = pd.Index(list(column.categories), dtype=object)
            cells[column.name] = pd.Categorical.from_codes(
                table.codes[:, codes[column.name]] - 1, categories=known
            )
        elif column.name not in numbers:
            cells[column.name] = pd.Series(table.cells[column.kind], dtype=object)
        elif column.kind == "date":
            cells[column.name] = DATES.typed(table.numbers[:, numbers[column.name]])
        else:
            cells[column.name] = table.numbers[:, numbers[column.name]].astype(np.float64)
    frame: pd.DataFrame = pd.DataFrame(cells)
    return frame


def rows_of_frame(schema: TableSchema, frame: pd.DataFrame) -> RawTable:
    """The rows of a frame that :func:`frame_of_rows` made, with its cells in any other order."""
    size = len(frame)
    numbers = np.empty((size, len(schema.measured)))
    for i, column in enumerate(schema.measured):
        values = frame[column.name]
        numbers[:, i] = DATES.read_typed(values) if column.kind == "date" else values.to_numpy()
    codes = np.empty((size, len(schema.categorical)), dtype=np.int64)
    for i, column in enumerate(schema.categorical):
        codes[:, i] = frame[column.name].cat.codes.to_numpy() + np.int64(1)
    return RawTable(
        schema.with_calendar(numbers),
        codes,
        {
            kind: frame[column.name].to_numpy(dtype=object)
            for kind in CELL_KINDS
            for column in schema.of_kind(kind)
        },
    )
