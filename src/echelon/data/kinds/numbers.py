"""Numbers: which cells are numbers, and from the cells of a column to an array of them.

How numbers become the features of a network stands in :mod:`echelon.data.kinds.tabular`, with the
categories that stand beside them in a table. Nothing here needs torch.
"""

from decimal import Decimal
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.cells import all_texts, is_blank, is_missing
from echelon.data.kinds.base import MeasuredKind
from echelon.data.numerals import decide_writing, read_written

_ARROW: Any = None  # reads numbers four times as fast as Python, where it is installed
if find_spec("pyarrow") is not None:
    import pyarrow

    _ARROW = pyarrow

BOOLEANS = {"true": 1.0, "false": 0.0}


class Numbers(MeasuredKind):
    """Columns of numbers, decimals and booleans."""

    name = "number"

    def has_dtype(self, dtype: Any) -> bool:
        """Whether a type of columns is one of numbers or booleans."""
        return pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_numeric_dtype(dtype)

    def decide_writing(
        self, cells: NDArray[Any], counts: NDArray[np.int64], decimal: str | None
    ) -> tuple[str, Any]:
        """How numbers are written, and the number that each cell then is."""
        read_plain = partial(self.read_cells, cells)
        return decide_writing(cells, counts, self.name, decimal, read_plain, number_of)

    def read_cells(self, cells: NDArray[Any], writing: str = "") -> Any:
        """The number that each cell is, NaN where it is missing, None where it is none."""
        if writing:
            return read_written(cells, self.name, writing, number_of)
        quick = numbers_of_texts(cells) if all_texts(cells) else None
        return quick if quick is not None else list(map(number_of, cells))

    def read_typed(self, column: "pd.Series[Any]") -> NDArray[np.float64]:
        """The numbers of a column that has a type of such, (n,)."""
        return column.to_numpy(dtype=np.float64, na_value=np.nan)

    def typed(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Numbers as a column of their type, which they are."""
        return values


NUMBERS = Numbers()


def number_of(cell: Any) -> float | None:
    """A cell as a number, NaN where it is missing, None where it is no number.

    Examples
    --------
    >>> [number_of(cell) for cell in ("1.50", 2, True, "false", "?", "many", "2024-02-29")]
    [1.5, 2.0, 1.0, 0.0, nan, None, None]
    """
    if isinstance(cell, str):
        # Python also takes the underscores of its own source for a part of numbers
        if "_" not in cell:
            try:
                return float(cell)
            except ValueError:
                pass
        if is_blank(cell):
            return np.nan
        return BOOLEANS.get(cell.strip().casefold())
    if isinstance(cell, (bool, int, float, Decimal, np.number, np.bool_)):
        try:
            return float(cell)
        except OverflowError:
            return np.inf if cell > 0 else -np.inf
        except ValueError:  # a decimal that is a signalling NaN
            return np.nan
    return np.nan if is_missing(cell) else None


def numbers_of_texts(texts: NDArray[Any]) -> NDArray[np.float64] | None:
    """All of some strings (n,) as numbers, quickly, or None where one of them is not plainly one.

    What it gives is what :func:`number_of` gives for each, to the last bit: both ways round to the
    nearest number.
    """
    if _ARROW is not None:
        try:
            quick = _ARROW.array(texts, _ARROW.string()).cast(_ARROW.float64())
        except _ARROW.ArrowException:
            return None
        return np.asarray(quick.to_numpy(zero_copy_only=False), dtype=np.float64)
    try:
        numbers = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None
    return None if "_" in " ".join(texts) else numbers


def array_of_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """An array of numbers, without a copy where that is possible."""
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    numbers = np.ascontiguousarray(array, dtype=dtype)
    refuse_infinities(numbers, "X")
    return numbers


def has_infinities(numbers: NDArray[Any]) -> bool:
    """Whether a number is infinite."""
    # one sum is quicker than looking at every number, and is NaN or infinite if any of them is
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(numbers.sum(dtype=np.float64)):
            return False
    return bool(np.isinf(numbers).any())


def refuse_infinities(numbers: NDArray[Any], where: str) -> None:
    """Raise where a number is infinite."""
    if has_infinities(numbers):
        raise ValueError(f"{where} contains infinity; replace it by a number or by a missing value")
