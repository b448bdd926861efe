"""Columns: what kind each is, by what its kinds say of its cells.

Numbers, dates and categories are told apart by what most cells of a column are; what a cell is to
each of them stands in the file of that kind (:mod:`echelon.data.cells` lists the rules). Texts and
images are never guessed: a column of strings is a category until its owner says otherwise, as only
the owner knows whether "red" is a value or a sentence.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.cells import (
    ODD_BLANKS,
    all_texts,
    cells_of,
    has_objects,
    refuse_dtype,
)
from echelon.data.kinds.base import KINDS as ROW_KINDS
from echelon.data.kinds.base import MeasuredKind
from echelon.data.kinds.categories import (
    CATEGORY,
    MAX_CATEGORIES,
    count_names,
    declared_categories,
    find_codes,
)
from echelon.data.kinds.dates import DATES
from echelon.data.kinds.numbers import NUMBERS, refuse_infinities
from echelon.data.missing_codes import MISSING_CODES, emptied
from echelon.data.numerals import decimal_sign

Kind = str  # of a column

KINDS: tuple[Kind, ...] = tuple(kind for row in ROW_KINDS.values() for kind in row.columns)
# In the order in which they are tried; what is none of them is a category.
MEASURED: Mapping[Kind, MeasuredKind] = {kind.name: kind for kind in (NUMBERS, DATES)}

_MOST = 0.9  # of the cells that are not missing, which decide what a column is
_EXAMPLES = 3


@dataclass(frozen=True)
class Column:
    """A column of a table, and what its cells are read as.

    `kind` is "number" (booleans too), "date" (a number of days), "category", "text" or "image".
    `writing` is how its numbers or dates are written; see :mod:`echelon.data.numerals`. Dates of
    models that were saved before there was such a thing have none, and are days alone.
    `missing_codes` are cells that stand for no answer; see :mod:`echelon.data.missing_codes`.
    """

    name: str
    kind: Kind = "number"
    categories: tuple[str, ...] = ()
    writing: str = ""
    missing_codes: tuple[str, ...] = ()


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
            f"column {name!r} holds {kind}s, and {remark.count:,} of its cells "
            f"{'holds' if remark.count == 1 else 'hold'} something else, such as "
            f"{', '.join(remark.examples)}: "
            f"{'this counts' if remark.count == 1 else 'these count'} as missing"
            for (name, kind), remark in self.unread.items()
        ]
        said += [
            f"column {name!r} holds codes with leading zeros, {remark.count:,} of them, such as "
            f"{', '.join(remark.examples)}, so that all its cells are categories"
            for name, remark in self.codes.items()
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
        return Column(name, CATEGORY, declared_categories(column))
    kind = kind_of_dtype(column.dtype, name)
    if kind is not None:
        return Column(name, kind, writing=MEASURED[kind].typed_writing)
    cells = cells_of(column)
    counts = np.ones(len(cells), dtype=np.int64)
    if all_texts(cells):
        places, cells = pd.factorize(cells)
        counts = np.bincount(places, minlength=len(cells))
    return decide_cells(name, cells, counts, remarks, decimal)


def decide_cells(
    name: str,
    cells: NDArray[Any],
    counts: NDArray[np.int64],
    remarks: Remarks,
    decimal: str | None = None,
    *,
    holds_codes: bool = False,
) -> Column:
    """What :func:`decide_column` says of a column without a type, from its cells (n,).

    `counts` says how often each of them occurs. Where they are a sample, `holds_codes` says that
    there are codes with leading zeros among all cells.
    """
    codes = find_codes(cells)
    for measured in () if holds_codes or codes.any() else MEASURED.values():
        writing, values = measured.decide_writing(cells, counts, decimal)
        wrong, blank = _wrong_and_blank(values)
        if counts[wrong].sum() <= (1 - _MOST) * counts[~blank].sum():
            rest = wrong | blank
            rest[blank] = [isinstance(c, str) and c.strip() in ODD_BLANKS for c in cells[blank]]
            if rest.any():
                remark = Remark.of(cells[rest], int(counts[rest].sum()))
                remarks.unread[name, measured.name] = remark
            return Column(name, measured.name, writing=writing)
    by_frequency = count_names(cells, counts)
    if codes.any() and counts[codes].sum() < by_frequency.sum() / 2:
        remarks.codes[name] = Remark.of(cells[codes], int(counts[codes].sum()))
    return Column(name, CATEGORY, tuple(sorted(by_frequency.index[:MAX_CATEGORIES])))


def _wrong_and_blank(values: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which cells (n,) are none of a kind, which is None, and which say nothing, NaN."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return np.zeros(len(values), dtype=bool), np.isnan(values)
    wrong = np.array([value is None for value in values], dtype=bool)
    blank = np.array([value is not None and value != value for value in values], dtype=bool)
    return wrong, blank


def kind_of_dtype(dtype: Any, name: str) -> Kind | None:
    """What all cells of a type are; None for strings and objects, which are looked at singly."""
    refuse_dtype(dtype, name)
    return next((kind.name for kind in MEASURED.values() if kind.has_dtype(dtype)), None)


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
    typed: pd.DataFrame = table.copy(deep=False)
    decimal = table.attrs.get(DECIMAL) or decimal_sign(
        table.drop(columns=[*apart], errors="ignore")
    )
    writings = {}
    codes = table.attrs.get(MISSING_CODES, {})
    for name in table:
        if name in codes and name not in apart:
            typed[name] = emptied(table[name], codes[name])
        column = typed[name]
        if name in apart or not has_objects(column):
            continue
        decided = decide_column(str(name), column, remarks, decimal)
        if decided.kind in MEASURED:
            writings[str(name)] = decided.writing
            values = _values_of(column, decided, Remarks())
            typed[name] = MEASURED[decided.kind].typed(values)
    remarks.say()
    typed.attrs[WRITINGS] = {**table.attrs.get(WRITINGS, {}), **writings}
    return typed


def refuse_twins(table: pd.DataFrame) -> None:
    """Raise where two columns have one name."""
    if table.columns.duplicated().any():
        twice = table.columns[table.columns.duplicated()].tolist()
        raise ValueError(f"the table has several columns named {twice[0]!r}; rename them")


# ---- reading -------------------------------------------------------------------------------------


def numbers_of(column: "pd.Series[Any]", known: Column, remarks: Remarks) -> NDArray[Any]:
    """The cells of a column of numbers or dates, (n,), NaN where missing or of another kind."""
    numbers = _values_of(column, known, remarks)
    refuse_infinities(numbers, f"column {known.name!r}")
    return numbers


def _values_of(column: "pd.Series[Any]", known: Column, remarks: Remarks) -> NDArray[np.float64]:
    dtype, measured = column.dtype, MEASURED[known.kind]
    if isinstance(dtype, pd.CategoricalDtype):
        column = column.astype(object)
    elif kind_of_dtype(dtype, known.name) == known.kind:
        return measured.read_typed(column)
    cells = cells_of(column)
    values = measured.read_cells(cells, known.writing)
    numbers = np.array(values, dtype=np.float64)  # None becomes NaN
    if isinstance(values, list) and None in values:
        wrong = [cell for cell, value in zip(cells, values, strict=True) if value is None]
        remarks.unread[known.name, known.kind] = Remark.of(wrong, len(wrong))
    return numbers


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


def stack(columns: list[NDArray[Any]], rows: int, dtype: Any) -> NDArray[Any]:
    """Columns side by side, (rows, columns), also where there are none."""
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0), dtype=dtype)
