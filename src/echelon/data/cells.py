"""What a cell means: one rule for every table, whatever file or frame its rows come from.

Invariant: the meaning of a cell depends on the cell and on the kind and the writing of its column
(:mod:`echelon.data.numerals`), never on the cells around it. CSV files bring strings, Parquet files
and frames bring numbers, booleans, dates and strings; the same thing has the same meaning in all of
them.

- As a **number** (:mod:`echelon.data.kinds.numbers`): numbers, decimals, booleans (1 and 0) and
  strings that spell one of these.
- As a **date** (:mod:`echelon.data.kinds.dates`): dates, timestamps and strings in ISO 8601
  ("2024-02-29", "2024-02-29 13:05:00", with a time zone or without), in days since 1970-01-01, of
  the time in UTC.
- As a **category** (:mod:`echelon.data.kinds.categories`): a name. Whole numbers are named without
  a point (1, 1.0, "1.0" are all "1"), booleans "True" and "False", dates as in ISO 8601; codes with
  leading zeros ("007") and all other strings name themselves.
- **Missing** are None, NaN, NaT and blank strings; as a number or a date also what people write
  for nothing ("?", "-", "n/a", in any case), as a category only what programs write for it ("NA",
  "NaN", "NULL", as pandas reads them): "none" and "-" may well be categories.

Here stands what all of these share: what is missing, and what no table may hold.
"""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# What pandas takes for missing when it reads a CSV file, so that a frame that it has read and the
# file itself have the same categories.
MISSING_NAMES = frozenset({
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "NaT", "None", "n/a", "nan", "null",
})  # fmt: skip
ODD_BLANKS = frozenset({"?", "-", "--", "."})  # people write them, and it is said that they were
_BLANKS = ODD_BLANKS | {name.casefold() for name in MISSING_NAMES} | {"none", "missing"}
_REFUSED: tuple[tuple[tuple[type, ...], str], ...] = (
    ((dict,), "structs"),
    ((np.ndarray,), "lists or arrays (for images, name it as the image column)"),
    ((list, tuple, set, frozenset), "lists"),
    ((bytes, bytearray, memoryview), "bytes"),
    ((dt.timedelta, np.timedelta64), "durations"),
    ((complex, np.complexfloating), "complex numbers (Complex data not supported)"),
)


class CellTypeError(TypeError, ValueError):
    """Cells that have no meaning in a table; the message names their column.

    It is a ``TypeError``, as scikit-learn expects, and a ``ValueError`` as every wrong input.
    """


def refuse_types(types: set[type], name: str) -> None:
    """Raise where a column holds cells that are neither numbers, dates, booleans nor strings."""
    for cell_type in types:
        for refused, what in _REFUSED:
            if issubclass(cell_type, refused) and cell_type is not type(pd.NaT):
                raise CellTypeError(
                    f"column {name!r} holds {what}, and an argument must be a string or a number; "
                    f"drop the column (--drop on the command line), or make numbers or strings of "
                    f"it"
                )


def is_missing(cell: Any) -> bool:
    """Whether a cell that is no string says nothing: None, NaN, NaT."""
    return cell is None or cell is pd.NA or cell is pd.NaT or bool(cell != cell)


def is_blank(text: str) -> bool:
    """Whether a string stands for nothing, as a number or a date."""
    return text.strip().casefold() in _BLANKS


def refuse_dtype(dtype: Any, name: str) -> None:
    """Raise where all cells of a column have a type that no table may hold."""
    if pd.api.types.is_complex_dtype(dtype):
        refuse_types({complex}, name)
    if pd.api.types.is_timedelta64_dtype(dtype):
        refuse_types({np.timedelta64}, name)


def has_objects(column: "pd.Series[Any]") -> bool:
    """Whether the cells of a column have no type in common but that of objects or strings."""
    return pd.api.types.is_object_dtype(column.dtype) or isinstance(column.dtype, pd.StringDtype)


def cells_of(column: "pd.Series[Any]") -> NDArray[Any]:
    """The cells of a column as objects, (n,), none of a type that has no meaning."""
    cells = column.to_numpy(dtype=object)
    if not all_texts(cells):
        refuse_types(set(map(type, cells)), str(column.name))
    return cells


def all_texts(cells: NDArray[Any]) -> bool:
    """Whether every cell is a string."""
    return pd.api.types.infer_dtype(cells, skipna=False) == "string"
