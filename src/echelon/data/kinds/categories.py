"""Categories: the name that a cell has, and from the cells of a column to codes.

A code is the place of a name among those that were frequent in training, from 1 on. How codes
become the features of a network stands in :mod:`echelon.data.kinds.tabular`.
"""

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.cells import (
    MISSING_NAMES,
    all_texts,
    cells_of,
    has_objects,
    is_missing,
    refuse_dtype,
)
from echelon.data.kinds.dates import microseconds_of, name_of_moment
from echelon.data.kinds.numbers import BOOLEANS

CATEGORY = "category"  # the name of the kind
MAX_CATEGORIES = 64  # of one column; rarer ones share the code of the unknown
UNKNOWN = 0  # code of a category that is missing, rare, or was never seen

_CODE = re.compile(r"0\d+")
_CODE_AMONG = re.compile(r"^\s*0\d+\s*$", re.MULTILINE)
_WHOLE = re.compile(r"[+-]?\d+")
_LONGEST_NUMBER = 400  # characters of a category that is named as a number


def is_code(cell: Any) -> bool:
    """Whether a cell is a code with a leading zero, such as "007", which as a number would lose it.

    Examples
    --------
    >>> [is_code(cell) for cell in ("007", "0", "0.5", "7", 7)]
    [True, False, False, False, False]
    """
    return isinstance(cell, str) and _CODE.fullmatch(cell.strip()) is not None


def find_codes(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells, (n,), are codes with leading zeros."""
    # nearly all columns have none, and one look at all of their cells is quicker than one at each
    if all_texts(cells) and _CODE_AMONG.search("\n".join(cells)) is None:
        return np.zeros(len(cells), dtype=bool)
    return np.array([is_code(cell) for cell in cells], dtype=bool)


def name_of(cell: Any) -> str | None:
    """The name of a cell as a category, None where it is missing.

    Examples
    --------
    >>> [name_of(cell) for cell in (1, 1.0, "1.0", "01", True, "true", "red", "NA", "none")]
    ['1', '1', '1', '01', 'True', 'True', 'red', None, 'none']
    """
    if isinstance(cell, str):
        return _name_of_text(cell)
    if is_missing(cell):
        return None
    if isinstance(cell, (bool, np.bool_)):
        return str(bool(cell))
    if isinstance(cell, (int, np.integer)):
        return str(int(cell))
    if isinstance(cell, (float, Decimal, np.floating)):
        # the shortest digits of a number in 32 bits are those that its owner wrote
        return _name_of_number(float(str(cell)))
    moment = microseconds_of(cell)
    return str(cell) if moment is None else name_of_moment(moment)


def _name_of_text(text: str) -> str | None:
    bare = text.strip()
    if bare in MISSING_NAMES:
        return None
    if not bare[0].isdigit() and bare[0] not in "+-.tTfF":
        return text  # neither a number nor a date nor a boolean
    if _CODE.fullmatch(bare):
        return bare
    if bare.casefold() in BOOLEANS:
        return bare.casefold().capitalize()
    if len(bare) > _LONGEST_NUMBER or "_" in bare:
        return text
    if _WHOLE.fullmatch(bare):
        return str(int(bare))
    try:
        number = float(bare)
    except ValueError:
        moment = microseconds_of(bare)
        return text if moment is None else name_of_moment(moment)
    return _name_of_number(number) if np.isfinite(number) else text


def _name_of_number(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def declared_categories(column: "pd.Series[Any]") -> tuple[str, ...]:
    """The categories of a column whose type names them, in its order, that occur."""
    occurring = column.cat.remove_unused_categories().cat.categories
    names = dict.fromkeys(map(name_of, occurring))
    return tuple(name for name in names if name is not None)[:MAX_CATEGORIES]


def count_names(cells: NDArray[Any], counts: NDArray[np.int64]) -> "pd.Series[Any]":
    """How often each name occurs, the most frequent first, where cells occur `counts` times."""
    names = pd.Series([name_of(cell) for cell in cells], dtype=object)
    totals = pd.Series(counts).groupby(names).sum()
    by_frequency: pd.Series[Any] = totals.sort_values(ascending=False, kind="stable")
    return by_frequency


def names_of(column: "pd.Series[Any]") -> NDArray[Any]:
    """The names of the cells of a column of categories, (n,), None where missing."""
    names, places = _distinct_names(column)
    taken: NDArray[Any] = names[places]
    return taken


def _distinct_names(column: "pd.Series[Any]") -> tuple[NDArray[Any], Any]:
    """Names, the last of them None, and the place among them of each cell; -1 where missing."""
    if has_objects(column):
        cells = cells_of(column)
        if not all_texts(cells):  # 1, 1.0 and True are equal, and have names of their own
            return _objects([*map(name_of, cells), None]), np.arange(len(cells))
        places, distinct = pd.factorize(cells)
    else:
        refuse_dtype(column.dtype, str(column.name))
        places, distinct = pd.factorize(column)  # type: ignore[assignment]
    return _objects([*map(name_of, distinct), None]), places


def _objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def codes_of(column: "pd.Series[Any]", categories: tuple[str, ...]) -> NDArray[np.int64]:
    """The cells of a column as the codes of its categories, (n,)."""
    names, places = _distinct_names(column)
    # get_indexer gives -1 for missing and unknown, which becomes UNKNOWN
    positions = pd.Index(categories, dtype=object).get_indexer(pd.Index(names, dtype=object))
    codes: NDArray[np.int64] = np.asarray(positions, dtype=np.int64)[places] + 1
    return codes
