"""Columns: what kind each is, and from their cells to arrays.

Numbers and categories are told apart by what a column holds. Texts and images are never guessed: a
column of strings is a category until its owner says otherwise, as only the owner knows whether
"red" is a value or a sentence.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.texts import plain_text

Kind = Literal["number", "category", "text", "image"]

KINDS: tuple[Kind, ...] = ("number", "category", "text", "image")
MAX_CATEGORIES = 64  # of one column; rarer ones share the code of the unknown
UNKNOWN = 0  # code of a category that is missing, rare, or was never seen


@dataclass(frozen=True)
class Column:
    """A column of a table: `kind` is "number" (booleans too), "category", "text" or "image"."""

    name: str
    kind: Kind = "number"
    categories: tuple[str, ...] = ()


def decide_column(name: str, column: "pd.Series[Any]") -> Column:
    """Whether a column of training rows holds numbers or categories, and which."""
    dtype = column.dtype
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        raise ValueError(
            f"column {name!r} holds dates, which have no scale of their own; replace it by numbers "
            f"such as the year, the month or the days since an event, or drop it"
        )
    if isinstance(dtype, pd.CategoricalDtype):
        values = dtype.categories.astype(str).tolist()
        present = set(column.dropna().astype(str))
        known = tuple(v for v in values if v in present)[:MAX_CATEGORIES]
        return Column(name, "category", known)
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_numeric_dtype(dtype):
        if pd.api.types.is_complex_dtype(dtype):
            raise ValueError(f"column {name!r} holds complex numbers; Complex data not supported")
        return Column(name)
    texts = column.dropna().map(_category_name)
    by_frequency = texts.value_counts()
    frequent = by_frequency.index[:MAX_CATEGORIES]
    return Column(name, "category", tuple(sorted(frequent)))


def numbers_of(column: "pd.Series[Any]") -> NDArray[Any]:
    """The cells of a column of numbers, (n,), NaN where missing."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise ValueError(f"column {column.name!r} held numbers in training and now holds dates")
    try:
        numbers = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        wrong = column[pd.to_numeric(column, errors="coerce").isna() & column.notna()].iloc[0]
        raise ValueError(
            f"column {column.name!r} held numbers in training and now holds {wrong!r}; remove it "
            f"or leave the cell empty"
        ) from None
    refuse_infinities(numbers, f"column {column.name!r}")
    return numbers


def codes_of(column: "pd.Series[Any]", known: Column) -> NDArray[np.int64]:
    """The cells of a column of categories as codes, (n,)."""
    texts = column.astype(object).map(_category_name, na_action="ignore")
    # get_indexer gives -1 for missing and unknown, which becomes UNKNOWN
    places = pd.Index(known.categories).get_indexer(pd.Index(texts))
    return np.asarray(places, dtype=np.int64) + 1


def texts_of(column: "pd.Series[Any]") -> NDArray[Any]:
    """The cells of a text column, (n,) strings, empty where missing."""
    texts = np.empty(len(column), dtype=object)
    texts[:] = [plain_text(value) for value in column]
    return texts


def images_of(column: "pd.Series[Any]") -> NDArray[Any]:
    """The cells of an image column, (n,): paths, arrays or opened pictures."""
    cells = np.empty(len(column), dtype=object)
    for i, value in enumerate(column):
        if value is None or (isinstance(value, float) and value != value) or value is pd.NA:
            raise ValueError(
                f"column {column.name!r} names no image in row {i + 1} of {len(column)}; give a "
                f"path in every row, or remove those that have none"
            )
        cells[i] = value
    return cells


def as_array(table: Any) -> NDArray[Any]:
    """A table that is no frame as an array (n, columns)."""
    if hasattr(table, "toarray"):
        raise TypeError(
            "Sparse data was passed, but dense data is required. Use '.toarray()' to convert it"
        )
    array = np.asarray(table)
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: X must be rows by columns. "
            f"Reshape your data either using array.reshape(-1, 1) or array.reshape(1, -1)"
        )
    if array.shape[0] == 0:
        raise ValueError("X has 0 sample(s) (rows) while a minimum of 1 is required")
    if array.shape[1] == 0:
        raise ValueError(
            f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required: no columns"
        )
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    if array.dtype.kind == "O":
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):
            return array
    return array


def frame_of(array: NDArray[Any]) -> pd.DataFrame:
    """An array as a frame with columns x0, x1, .."""
    frame = pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])])
    inferred: pd.DataFrame = frame.infer_objects()
    return inferred


def single_column(table: Any, name: str) -> Any:
    """Texts or pictures that came without a table around them, as a frame of one column.

    A Series keeps its name; a list of strings, or an array of pictures (n, h, w) or
    (n, h, w, channels), gets the given one. Anything else is left as it is.
    """
    if isinstance(table, pd.Series):
        return table.to_frame(name if table.name is None else str(table.name))
    if isinstance(table, (pd.DataFrame, str)) or hasattr(table, "toarray"):
        return table
    is_pictures = isinstance(table, np.ndarray) and table.ndim in (3, 4)
    # a list of numbers alone may be meant as anything, but texts may have missing ones among them
    is_list = isinstance(table, (list, tuple)) and not (
        any(isinstance(cell, (list, tuple)) for cell in table[:1])
        or all(isinstance(cell, (int, float)) for cell in table)
    )
    if is_pictures or is_list or (isinstance(table, np.ndarray) and table.ndim == 1):
        cells = np.empty(len(table), dtype=object)
        cells[:] = list(table)
        return pd.DataFrame({name: cells})
    return table


def array_of_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """An array whose columns are all numbers, without a copy where that is possible."""
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    try:
        numbers = np.ascontiguousarray(array, dtype=dtype)
    except (TypeError, ValueError):
        raise ValueError("a column that held numbers in training now holds text") from None
    refuse_infinities(numbers, "X")
    return numbers


def refuse_infinities(numbers: NDArray[Any], where: str) -> None:
    """Raise where a number is infinite."""
    # one sum is quicker than looking at every number, and is NaN or infinite if any of them is
    with np.errstate(over="ignore"):
        if np.isfinite(numbers.sum(dtype=np.float64)):
            return
    if np.isinf(numbers).any():
        raise ValueError(f"{where} contains infinity; replace it by a number or by a missing value")


def stack(columns: list[NDArray[Any]], rows: int, dtype: Any) -> NDArray[Any]:
    """Columns side by side, (rows, columns), also where there are none."""
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0), dtype=dtype)


def _category_name(value: Any) -> str:
    if isinstance(value, (dict, list, set, tuple)):
        raise TypeError(
            f"a cell holds a {type(value).__name__}; argument must be a string or a number"
        )
    return str(value)
