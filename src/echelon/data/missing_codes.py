"""Codes that stand for no answer, such as 99: cells that hold one count as missing.

Which codes a column has is said by its owner, never guessed, and kept with the column in the schema
of a model, so that new rows are read as the training rows were.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.kinds.categories import name_of

MISSING_CODES = "echelon.missing_codes"  # in the attributes of a frame: codes by name of a column

_NO_FRACTION = re.compile(r",0{1,2}$")  # of a number with a decimal comma


def emptied(column: "pd.Series[Any]", codes: Sequence[str]) -> "pd.Series[Any]":
    """A column without the cells that hold one of some codes.

    Parameters
    ----------
    column : Series, shape (n,)
    codes : sequence of str
        Numbers or words. 99 is also "99", 99.0, "99.0" and "99,0"; words match regardless of case
        and outer spaces.

    Examples
    --------
    >>> emptied(pd.Series(["4", "99", "5", " refused"]), ["99", "Refused"]).tolist()
    ['4', None, '5', None]
    >>> emptied(pd.Series([4, 99, 5]), ["99"]).tolist()
    [4.0, nan, 5.0]
    """
    if not codes or not len(column):
        return column
    holds = _holds(column, codes)
    if not holds.any():
        return column
    if pd.api.types.is_object_dtype(column.dtype) or isinstance(column.dtype, pd.StringDtype):
        cells = column.to_numpy(dtype=object, copy=True)
        cells[holds] = None
        # Without the dtype, pandas 3 would infer its own strings, and None would become NaN.
        without: pd.Series[Any] = pd.Series(
            cells, index=column.index, name=column.name, dtype=object
        )
        return without
    kept: pd.Series[Any] = column.mask(pd.Series(holds, index=column.index))
    return kept


def _holds(column: "pd.Series[Any]", codes: Sequence[str]) -> NDArray[np.bool_]:
    """Which cells hold one of the codes, (n,)."""
    if pd.api.types.is_bool_dtype(column.dtype):
        return np.zeros(len(column), dtype=bool)
    if pd.api.types.is_numeric_dtype(column.dtype):
        return np.asarray(column.isin(code_numbers(codes)), dtype=bool)
    wanted = set(map(_folded, codes))
    places, different = pd.factorize(column.to_numpy(dtype=object))
    is_code = np.array([_folded(cell) in wanted for cell in different], dtype=bool)
    return np.append(is_code, False)[places]  # a missing cell has the place -1


def _folded(cell: Any) -> str | None:
    if isinstance(cell, str):
        cell = _NO_FRACTION.sub("", cell.strip())
    name = name_of(cell)
    return None if name is None else name.strip().casefold()


def code_numbers(codes: Sequence[str]) -> list[float]:
    """The codes that are numbers.

    Examples
    --------
    >>> code_numbers(["99", "-1", "refused"])
    [99.0, -1.0]
    """
    numbers = []
    for code in codes:
        try:
            numbers.append(float(code))
        except ValueError:
            continue
    return numbers


def codes_by_column(
    said: Sequence[str], columns: Sequence[str], apart: Sequence[str] = ()
) -> Mapping[str, tuple[str, ...]]:
    """The codes of each column, from what was said: a code of all, or COLUMN=CODE.

    Parameters
    ----------
    said : sequence of str
        Such as "99", or "age=99".
    columns : sequence of str
        Of the table.
    apart : sequence of str
        Columns that codes of all columns are not about.

    Examples
    --------
    >>> codes_by_column(["99", "age=-1"], ["age", "score", "id"], apart=["id"])
    {'age': ('99', '-1'), 'score': ('99',)}
    """
    codes: dict[str, list[str]] = {}
    for spec in said:
        name, mark, code = spec.rpartition("=")
        name, code = name.strip(), code.strip()
        if not code or (mark and not name):
            raise ValueError(
                f"--missing-codes must be codes such as 99, or those of a column such as age=99, "
                f"with commas between them; got {spec!r}"
            )
        if mark and name not in columns:
            shown = ", ".join(map(str, columns[:20])) + ", .." * (len(columns) > 20)
            raise ValueError(
                f"--missing-codes names the column {name!r}, which the table does not have; its "
                f"columns are: {shown}"
            )
        for column in [name] if mark else [other for other in columns if other not in apart]:
            codes.setdefault(column, []).append(code)
    return {column: tuple(dict.fromkeys(each)) for column, each in codes.items()}
