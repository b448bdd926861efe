"""Columns: what kind each is, and from their cells to arrays.

Numbers, dates and categories are told apart by what most cells of a column are, by the rules in
:mod:`echelon.data.cells`. Texts and images are never guessed: a column of strings is a category
until its owner says otherwise, as only the owner knows whether "red" is a value or a sentence.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.cells import (
    MICROSECONDS_A_DAY,
    ODD_BLANKS,
    days_of,
    is_code,
    name_of,
    number_of,
    numbers_of_texts,
    refuse_types,
)
from echelon.data.kinds.base import KINDS as ROW_KINDS
from echelon.data.numerals import YEAR_FIRST, decide_writing, decimal_sign, read_written

Kind = str  # of a column

KINDS: tuple[Kind, ...] = tuple(kind for row in ROW_KINDS.values() for kind in row.columns)
MAX_CATEGORIES = 64  # of one column; rarer ones share the code of the unknown
UNKNOWN = 0  # code of a category that is missing, rare, or was never seen

_MOST = 0.9  # of the cells that are not missing, which decide what a column is
_EXAMPLES = 3
_READERS: dict[str, Callable[[Any], float | None]] = {"number": number_of, "date": days_of}


@dataclass(frozen=True)
class Column:
    """A column of a table, and what its cells are read as.

    `kind` is "number" (booleans too), "date" (a number of days), "category", "text" or "image".
    `writing` is how its numbers or dates are written; see :mod:`echelon.data.numerals`. Dates of
    models that were saved before there was such a thing have none, and are days alone.
    """

    name: str
    kind: Kind = "number"
    categories: tuple[str, ...] = ()
    writing: str = ""


WRITINGS = "echelon.writings"  # in the attributes of a frame: writings of columns that were settled
DECIMAL = "echelon.decimal"  # there too: the decimal sign, where somebody has said it


# ---- what is said about cells --------------------------------------------------------------------


@dataclass(frozen=True)
class Remark:
    """How many cells it is about, and some of them."""

    count: int
    examples: tuple[str, ...]

    @classmethod
    def of(cls, cells: Iterable[Any], count: int) -> "Remark":
        """About cells, each of which may occur several times."""
        shown = dict.fromkeys(repr(str(cell)) for cell in cells)
        return cls(count, tuple(shown)[:_EXAMPLES])

    def with_others(self, other: "Remark") -> "Remark":
        """About the cells of both."""
        examples = tuple(dict.fromkeys((*self.examples, *other.examples)))[:_EXAMPLES]
        return Remark(self.count + other.count, examples)


@dataclass
class Remarks:
    """What was done with cells that are not what their column is, to be said in one sentence.

    `unread` is by the name and the kind of a column, `codes` by its name; `left_out` has the reason
    why a column is.
    """

    unread: dict[tuple[str, Kind], Remark] = field(default_factory=dict)
    codes: dict[str, Remark] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, other: "Remarks") -> None:
        """Take over what was said of other rows of the same table."""
        for column, remark in other.unread.items():
            before = self.unread.get(column)
            self.unread[column] = remark if before is None else before.with_others(remark)
        for name, remark in other.codes.items():
            earlier = self.codes.get(name)
            self.codes[name] = remark if earlier is None else earlier.with_others(remark)
        self.left_out |= other.left_out

    def sentence(self) -> str:
        """All of it."""
        said = [
            f"column {name!r} holds {kind}s, and {one.count:,} of its cells "
            f"{'holds' if one.count == 1 else 'hold'} something else, such as "
            f"{', '.join(one.examples)}: {'this counts' if one.count == 1 else 'these count'} as "
            f"missing"
            for (name, kind), one in self.unread.items()
        ]
        said += [
            f"column {name!r} holds codes with leading zeros, {one.count:,} of them, such as "
            f"{', '.join(one.examples)}, so that all its cells are categories"
            for name, one in self.codes.items()
        ]
        said += [f"column {name!r} is left out: it {why}" for name, why in self.left_out.items()]
        return "; ".join(said)

    def say(self) -> None:
        """Warn, or leave it to whoever gathers the remarks of several chunks."""
        if not self.unread and not self.codes and not self.left_out:
            return
        gathering = _GATHERED.get()
        if gathering is None:
            warnings.warn(self.sentence(), stacklevel=2)
        else:
            gathering.add(self)


_GATHERED: ContextVar[Remarks | None] = ContextVar("gathered", default=None)


@contextmanager
def gathered_remarks() -> Iterator[Remarks]:
    """Gather what would be said about cells; who gathers says it, once, or not at all."""
    remarks = Remarks()
    token = _GATHERED.set(remarks)
    try:
        yield remarks
    finally:
        _GATHERED.reset(token)


# ---- deciding ------------------------------------------------------------------------------------


def decide_column(
    name: str, column: "pd.Series[Any]", remarks: Remarks, decimal: str | None = None
) -> Column:
    """Whether a column of training rows holds numbers, dates or categories, and which.

    It holds numbers, or dates, where at least 90 % of the cells that are not missing are such;
    the others then count as missing. One code with a leading zero makes all of them categories.
    `decimal` is the decimal sign of the table, which settles what could be read in two ways.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        occurring = column.cat.remove_unused_categories().cat.categories
        named = dict.fromkeys(map(name_of, occurring))
        known = tuple(one for one in named if one is not None)
        return Column(name, "category", known[:MAX_CATEGORIES])
    kind = _kind_of_dtype(column.dtype, name)
    if kind is not None:
        return Column(name, kind, writing=YEAR_FIRST if kind == "date" else "")
    cells = _cells(column)
    counts = np.ones(len(cells), dtype=np.int64)
    if _all_texts(cells):
        places, cells = pd.factorize(cells)
        counts = np.bincount(places, minlength=len(cells))
    codes = np.array([is_code(cell) for cell in cells], dtype=bool)
    candidates: tuple[Kind, ...] = () if codes.any() else ("number", "date")
    for kind in candidates:
        writing, values = decide_writing(
            cells, counts, kind, decimal, partial(_read_all, cells, kind), _READERS[kind]
        )
        wrong = np.array([value is None for value in values], dtype=bool)
        blank = np.array([value is not None and value != value for value in values], dtype=bool)
        if counts[wrong].sum() <= (1 - _MOST) * counts[~blank].sum():
            odd = np.array([isinstance(c, str) and c.strip() in ODD_BLANKS for c in cells], bool)
            rest = wrong | odd
            if rest.any():
                remarks.unread[name, kind] = Remark.of(cells[rest], int(counts[rest].sum()))
            return Column(name, kind, writing=writing)
    names = pd.Series([name_of(cell) for cell in cells], dtype=object)
    by_frequency = (
        pd.Series(counts).groupby(names).sum().sort_values(ascending=False, kind="stable")
    )
    if codes.any() and counts[codes].sum() < by_frequency.sum() / 2:
        remarks.codes[name] = Remark.of(cells[codes], int(counts[codes].sum()))
    return Column(name, "category", tuple(sorted(by_frequency.index[:MAX_CATEGORIES])))


def _read_all(cells: NDArray[Any], kind: Kind, writing: str = "") -> Any:
    """The value of each cell as a number or a date, None where it is none."""
    if writing:
        return read_written(cells, kind, writing, _READERS[kind])
    quick = numbers_of_texts(cells) if kind == "number" and _all_texts(cells) else None
    return quick if quick is not None else list(map(_READERS[kind], cells))


def settled(table: pd.DataFrame, *, apart: Sequence[str] = ()) -> pd.DataFrame:
    """A table whose columns of numbers and dates have the types of such, decided on all its rows.

    Columns that are set `apart` stay as they are. What cells lose by it is said in a warning.

    Examples
    --------
    >>> table = pd.DataFrame({"size": ["1.5", "2", ""], "code": ["01", "02", "A1"]})
    >>> settled(table)["size"].tolist(), settled(table)["code"].tolist()
    ([1.5, 2.0, nan], ['01', '02', 'A1'])
    """
    refuse_twins(table)
    remarks = Remarks()
    found: pd.DataFrame = table.copy(deep=False)
    decimal = table.attrs.get(DECIMAL) or decimal_sign(table.drop(columns=[*apart]))
    writings = {}
    for name in table:
        column = table[name]
        if name in apart or not _has_objects(column):
            continue
        decided = decide_column(str(name), column, remarks, decimal)
        if decided.kind in _READERS:
            writings[str(name)] = decided.writing
            values = _values_of(column, decided, Remarks())
            found[name] = values if decided.kind == "number" else _moments(values)
    remarks.say()
    found.attrs[WRITINGS] = {**table.attrs.get(WRITINGS, {}), **writings}
    return found


def _moments(days: NDArray[np.float64]) -> NDArray[Any]:
    missing = np.isnan(days)
    moments = np.round(np.where(missing, 0, days) * MICROSECONDS_A_DAY).astype(np.int64)
    found = moments.astype("datetime64[us]")
    found[missing] = np.datetime64("NaT")
    return found


def refuse_twins(table: pd.DataFrame) -> None:
    """Raise where two columns have one name."""
    if table.columns.duplicated().any():
        twice = table.columns[table.columns.duplicated()].tolist()
        raise ValueError(f"the table has several columns named {twice[0]!r}; rename them")


def _has_objects(column: "pd.Series[Any]") -> bool:
    """Whether cells have no type in common but that of objects or strings."""
    return pd.api.types.is_object_dtype(column.dtype) or isinstance(column.dtype, pd.StringDtype)


def _kind_of_dtype(dtype: Any, name: str) -> Kind | None:
    """What all cells of a type are; None for strings and objects, which are looked at singly."""
    if pd.api.types.is_complex_dtype(dtype):
        refuse_types({complex}, name)
    if pd.api.types.is_timedelta64_dtype(dtype):
        refuse_types({np.timedelta64}, name)
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return "date"
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_numeric_dtype(dtype):
        return "number"
    return None


def _cells(column: "pd.Series[Any]") -> NDArray[Any]:
    """Cells as objects, (n,), none of a type that has no meaning."""
    cells = column.to_numpy(dtype=object)
    if not _all_texts(cells):
        refuse_types(set(map(type, cells)), str(column.name))
    return cells


def _all_texts(cells: NDArray[Any]) -> bool:
    return pd.api.types.infer_dtype(cells, skipna=False) == "string"


# ---- reading -------------------------------------------------------------------------------------


def numbers_of(column: "pd.Series[Any]", known: Column, remarks: Remarks) -> NDArray[Any]:
    """The cells of a column of numbers or dates, (n,), NaN where missing or of another kind."""
    numbers = _values_of(column, known, remarks)
    refuse_infinities(numbers, f"column {known.name!r}")
    return numbers


def _values_of(column: "pd.Series[Any]", known: Column, remarks: Remarks) -> NDArray[np.float64]:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        column = column.astype(object)
    elif (kind := _kind_of_dtype(dtype, known.name)) == known.kind:
        if kind == "date":
            return _days_of_moments(column)
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    cells = _cells(column)
    values = _read_all(cells, known.kind, known.writing)
    numbers = np.array(values, dtype=np.float64)  # None becomes NaN
    if isinstance(values, list) and None in values:
        wrong = [cell for cell, value in zip(cells, values, strict=True) if value is None]
        remarks.unread[known.name, known.kind] = Remark.of(wrong, len(wrong))
    return numbers


def _days_of_moments(column: "pd.Series[Any]") -> NDArray[np.float64]:
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert(None)
    moments = column.to_numpy().astype("datetime64[us]")
    days = moments.astype(np.int64).astype(np.float64) / MICROSECONDS_A_DAY
    days[np.isnat(moments)] = np.nan
    return days


def names_of(column: "pd.Series[Any]") -> NDArray[Any]:
    """The names of the cells of a column of categories, (n,), None where missing."""
    if _has_objects(column):
        cells = _cells(column)
        if not _all_texts(cells):  # 1, 1.0 and True are equal, and have names of their own
            return _objects([name_of(cell) for cell in cells])
        places, distinct = pd.factorize(cells)
    else:
        _kind_of_dtype(column.dtype, str(column.name))
        places, distinct = pd.factorize(column)  # type: ignore[assignment]
    names = _objects([*(name_of(one) for one in distinct), None])
    taken: NDArray[Any] = names[places]  # the place of what is missing is -1
    return taken


def _objects(values: list[Any]) -> NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def codes_of(column: "pd.Series[Any]", known: Column) -> NDArray[np.int64]:
    """The cells of a column of categories as codes, (n,)."""
    # get_indexer gives -1 for missing and unknown, which becomes UNKNOWN
    places = pd.Index(known.categories, dtype=object).get_indexer(
        pd.Index(names_of(column), dtype=object)
    )
    return np.asarray(places, dtype=np.int64) + 1


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
    return array


def frame_of(array: NDArray[Any]) -> pd.DataFrame:
    """An array as a frame with columns x0, x1, .."""
    frame = pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])])
    inferred: pd.DataFrame = frame.infer_objects()
    return inferred


def single_column(table: Any, name: str) -> Any:
    """Texts or images that came without a table around them, as a frame of one column.

    A Series keeps its name; a list of strings, or an array of images (n, h, w) or
    (n, h, w, channels), gets the given one. Anything else is left as it is.
    """
    if isinstance(table, pd.Series):
        return table.to_frame(name if table.name is None else str(table.name))
    if isinstance(table, (pd.DataFrame, str)) or hasattr(table, "toarray"):
        return table
    is_images = isinstance(table, np.ndarray) and table.ndim in (3, 4)
    # a list of numbers alone may be meant as anything, but texts may have missing ones among them
    is_list = isinstance(table, (list, tuple)) and not (
        any(isinstance(cell, (list, tuple)) for cell in table[:1])
        or all(isinstance(cell, (int, float)) for cell in table)
    )
    if is_images or is_list or (isinstance(table, np.ndarray) and table.ndim == 1):
        cells = np.empty(len(table), dtype=object)
        cells[:] = list(table)
        return pd.DataFrame({name: cells})
    return table


def array_of_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """An array of numbers, without a copy where that is possible."""
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    numbers = np.ascontiguousarray(array, dtype=dtype)
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
