"""What the columns of a table are, and from tables as people have them to cells by kind.

Invariant: what a column means (its kind, its categories) is decided once, on the training rows, and
kept in a `TableSchema`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon.data.calendar import calendar_numbers, part_names
from echelon.data.columns import (
    DECIMAL,
    KINDS,
    MEASURED,
    WRITINGS,
    Column,
    Kind,
    Remarks,
    as_array,
    decide_column,
    frame_of,
    numbers_of,
    refuse_twins,
    single_column,
    stack,
)
from echelon.data.identifiers import KEEP, identifier_reason
from echelon.data.kinds.base import CELL_KINDS, TABLE, cell_kind
from echelon.data.kinds.base import KINDS as ROW_KINDS
from echelon.data.kinds.categories import CATEGORY, MAX_CATEGORIES, UNKNOWN, codes_of
from echelon.data.kinds.dates import DATES
from echelon.data.kinds.numbers import (
    NUMBERS,
    array_of_numbers,
    has_infinities,
    refuse_infinities,
)
from echelon.data.missing_codes import MISSING_CODES, code_numbers, emptied
from echelon.data.numerals import decimal_sign

_PLAIN = "biuf"  # the kinds of numpy types that are numbers

__all__ = [
    "KINDS", "MAX_CATEGORIES", "UNKNOWN", "Column", "RawTable", "TableSchema",
]  # fmt: skip


@dataclass(frozen=True)
class RawTable:
    """A table as arrays: numbers (n, p) with NaN where missing, and category codes (n, q).

    `cells` are those of the one column of each other kind, (n,) by its name.
    """

    numbers: NDArray[Any]
    codes: NDArray[np.int64]
    cells: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing but numbers and codes."""
        return not self.cells

    def plain(self) -> "RawTable":
        """The same rows without their texts and images."""
        return self if self.is_plain else RawTable(self.numbers, self.codes)

    def rows(self, selected: Any) -> "RawTable":
        """Some of the rows."""
        return RawTable(
            self.numbers[selected],
            self.codes[selected],
            {kind: cells[selected] for kind, cells in self.cells.items()},
        )

    def part(self, start: int, size: int) -> tuple[Tensor, Tensor]:
        """Tensors of numbers and codes of at most `size` rows, from row `start` on."""
        rows = slice(start, start + size)
        return torch.from_numpy(self.numbers[rows]), torch.from_numpy(self.codes[rows])

    def chunks(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """All rows, in order, as :meth:`part` gives them: at most `size` at once."""
        for start in range(0, max(len(self), 1), size):
            yield self.part(start, size)


class TableSchema:
    """The columns of a table, and how to read them from a frame or an array.

    Parameters
    ----------
    columns : sequence of Column
    named : bool
        Whether the names are the user's; columns of arrays are only counted.

    Examples
    --------
    >>> frame = pd.DataFrame({"size": [1.5, None], "colour": ["red", "blue"]})
    >>> schema = TableSchema.of(frame)
    >>> schema.read(frame).codes.tolist()
    [[2], [1]]
    >>> schema.read(pd.DataFrame({"colour": ["green"], "size": [3]})).codes.tolist()
    [[0]]
    >>> TableSchema.of(frame, text="colour").read(frame).cells["text"].tolist()
    ['red', 'blue']
    """

    def __init__(self, columns: tuple[Column, ...], named: bool) -> None:
        self.columns = columns
        self.named = named

    def of_kind(self, kind: Kind) -> list[Column]:
        """The columns of one kind."""
        return [column for column in self.columns if column.kind == kind]

    @property
    def measured(self) -> list[Column]:
        """Columns whose cells become numbers: numbers, booleans and dates."""
        return [column for column in self.columns if column.kind in MEASURED]

    @property
    def numeric(self) -> list[Column]:
        """The columns of numbers that rows have: :attr:`measured`, then the parts of dates."""
        parts = [Column(name) for date in self.calendar for name in part_names(date.name)]
        return [*self.measured, *parts]

    @property
    def numeric_owners(self) -> list[str]:
        """The column that each of :attr:`numeric` comes from: of the part of a date, the date."""
        dates = [date.name for date in self.calendar for _ in part_names(date.name)]
        return [*(column.name for column in self.measured), *dates]

    @property
    def calendar(self) -> list[Column]:
        """Columns of dates that also give their year, month and weekday."""
        return [column for column in self.columns if column.kind == DATES.name and column.writing]

    def with_calendar(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """The numbers of :attr:`numeric` from those of :attr:`measured`, (n, p)."""
        places = [i for i, column in enumerate(self.measured) if column in self.calendar]
        parts = [part for i in places for part in calendar_numbers(numbers[:, i])]
        return np.column_stack([numbers, *parts]) if parts else numbers

    @property
    def categorical(self) -> list[Column]:
        """Columns of categories."""
        return self.of_kind(CATEGORY)

    @property
    def parts(self) -> tuple[str, ...]:
        """What rows consist of: some of the names of :data:`echelon.data.kinds.base.KINDS`."""
        kinds = {column.kind for column in self.columns}
        return tuple(row.name for row in ROW_KINDS.values() if kinds & set(row.columns))

    @classmethod
    def of(cls, table: Any, **named_columns: str | None) -> "TableSchema":
        """Decide what the columns of the training rows are.

        Parameters
        ----------
        table : DataFrame or array, shape (n, columns)
            Where a column is named, also a Series or a list of texts, paths or images.
        **named_columns : str, optional
            The column that holds texts (`text=`), and the one that holds images (`image=`).
        """
        asked: dict[str, Kind] = {}
        for kind, column in named_columns.items():
            if kind not in CELL_KINDS:
                known = ", ".join(CELL_KINDS)
                raise TypeError(f"a column may be named as one of {known}; got {kind!r}")
            if column is not None and column in asked:
                raise ValueError(
                    f"the column {column!r} cannot hold both {asked[column]}s and {kind}s"
                )
            if column is not None:
                asked[column] = kind
        named = isinstance(table, (pd.DataFrame, pd.Series))
        if len(asked) == 1 and not isinstance(table, pd.DataFrame):
            ((name, kind),) = asked.items()
            table = single_column(table, name)
            if isinstance(table, pd.DataFrame):
                asked = {str(table.columns[0]): kind}
        if not isinstance(table, pd.DataFrame):
            array = as_array(table)
            if array.dtype.kind in "biuf" and not asked:
                columns = tuple(Column(f"x{i}") for i in range(array.shape[1]))
                return cls(columns, named=False)
            table = frame_of(array)
            table.attrs[KEEP] = True  # whoever made an array has chosen its columns
            return cls(_decide_all(table, asked), named=False)
        refuse_twins(table)
        if table.shape[1] == 0:
            raise ValueError("the table has 0 feature(s) (columns); a minimum of 1 is required")
        if len(table) == 0:
            raise ValueError("X has 0 sample(s) (rows) while a minimum of 1 is required")
        return cls(_decide_all(table, asked), named=named)

    def read(self, table: Any) -> RawTable:
        """Read rows that have these columns; in a frame, their order does not matter."""
        is_column = len(self.columns) == 1 and self.columns[0].kind in CELL_KINDS
        if is_column and not isinstance(table, pd.DataFrame):
            name = self.columns[0].name
            table = single_column(table, name)
            if isinstance(table, pd.DataFrame):
                table = table.set_axis([name], axis=1)
        if not isinstance(table, pd.DataFrame):
            array = as_array(table)
            if array.shape[1] != len(self.columns):
                raise ValueError(
                    f"X has {array.shape[1]} features, but OrdinalClassifier is expecting "
                    f"{len(self.columns)} features as input"
                )
            plain = self.parts == (TABLE,) and not self.categorical and array.dtype.kind in "biuf"
            if plain and all(column.kind == NUMBERS.name for column in self.columns):
                plain_numbers = self._without_codes(array_of_numbers(array))
                return RawTable(plain_numbers, np.zeros((len(plain_numbers), 0), dtype=np.int64))
            table = frame_of(array)
        places = self._places(table)

        def cells_in(column: Column) -> "pd.Series[Any]":
            return emptied(table.iloc[:, places[column.name]], column.missing_codes)

        known = self.measured
        if decimal := table.attrs.get(DECIMAL):  # of this table, whatever the training rows had
            known = [replace(c, writing=decimal) if c.kind == NUMBERS.name else c for c in known]
        remarks = Remarks()
        numbers: NDArray[Any] | None = self._plain_numbers(table, places)
        if numbers is None:
            measured = [numbers_of(cells_in(c), c, remarks) for c in known]
            numbers = self.with_calendar(stack(measured, len(table), np.float64))
        return self._with_others(numbers, cells_in, remarks)

    def read_columns(self, columns: Mapping[str, NDArray[Any]]) -> RawTable:
        """What :meth:`read` gives of a frame with these columns, (n,) cells by name, without one.

        Cells are numbers, or objects of any kind.
        """

        def cells_in(column: Column) -> "pd.Series[Any]":
            cells = columns[column.name]
            whole: pd.Series[Any] = pd.Series(
                cells, name=column.name, dtype=cells.dtype, copy=False
            )
            return emptied(whole, column.missing_codes)

        rows, remarks = len(columns[self.columns[0].name]), Remarks()
        measured = []
        for column in self.measured:
            cells = columns[column.name]
            is_plain = column.kind == NUMBERS.name and not column.missing_codes
            if is_plain and cells.dtype.kind in _PLAIN:
                refuse_infinities(cells, f"column {column.name!r}")
                measured.append(cells)
            else:
                measured.append(numbers_of(cells_in(column), column, remarks))
        numbers = stack(measured, rows, np.float64).astype(np.float64, copy=False)
        return self._with_others(self.with_calendar(numbers), cells_in, remarks)

    def _with_others(
        self,
        numbers: NDArray[Any],
        cells_in: "Callable[[Column], pd.Series[Any]]",
        remarks: Remarks,
    ) -> RawTable:
        """Rows whose numbers (n, p) were read, with the columns that hold none."""
        codes = [codes_of(cells_in(c), c.categories) for c in self.categorical]
        others = {
            kind: cell_kind(kind).read(cells_in(self.of_kind(kind)[0]))
            for kind in CELL_KINDS
            if self.of_kind(kind)
        }
        read = RawTable(numbers, stack(codes, len(numbers), np.int64), others)
        remarks.say()
        return read

    def _places(self, frame: pd.DataFrame) -> dict[str, int]:
        """Where each column stands in a frame; by its name, or by its number where it has none."""
        names = [column.name for column in self.columns]
        if not self.named:
            if frame.shape[1] != len(names):
                raise ValueError(
                    f"X has {frame.shape[1]} features, but OrdinalClassifier is expecting "
                    f"{len(names)} features as input"
                )
            return {name: place for place, name in enumerate(names)}
        given = [str(name) for name in frame.columns.tolist()]
        places = {name: place for place, name in enumerate(given)}
        if len(places) < len(given):
            refuse_twins(frame.set_axis(given, axis=1))
        missing = [name for name in names if name not in places]
        if missing:
            raise ValueError(
                f"the table lacks the column {missing[0]!r}"
                + (f" and {len(missing) - 1} others" if len(missing) > 1 else "")
                + f"; it must have all of: {', '.join(names)}"
            )
        return places

    def _plain_numbers(
        self, frame: pd.DataFrame, places: Mapping[str, int]
    ) -> NDArray[np.float64] | None:
        """The numbers of a frame that holds nothing but such, read at once; None for any other."""
        measured = self.measured
        if not measured or any(c.kind != NUMBERS.name or c.missing_codes for c in measured):
            return None
        if any(getattr(dtype, "kind", "") not in _PLAIN for dtype in frame.dtypes.array):
            return None
        ordered = [places[column.name] for column in measured]
        numbers = frame.to_numpy(dtype=np.float64)
        if ordered != list(range(numbers.shape[1])):
            numbers = numbers[:, ordered]
        if has_infinities(numbers):
            for place, column in enumerate(measured):
                refuse_infinities(numbers[:, place], f"column {column.name!r}")
        # a view of the frame may not be written to, which torch warns about
        return np.require(numbers, requirements=["C", "W"])

    def _without_codes(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Numbers (n, columns), NaN where a column holds a code for no answer."""
        for i, column in enumerate(self.columns):
            if column.missing_codes:
                holds = np.isin(numbers[:, i], code_numbers(column.missing_codes))
                numbers = numbers.copy()
                numbers[holds, i] = np.nan
        return numbers


def _decide_all(table: pd.DataFrame, asked: dict[str, Kind]) -> tuple[Column, ...]:
    names = [str(name) for name in table]
    for name, kind in asked.items():
        if name not in names:
            raise ValueError(
                f"there is no {kind} column {name!r}; the columns are: {', '.join(names)}"
            )
    remarks = Remarks()
    decimal = table.attrs.get(DECIMAL) or decimal_sign(table)
    writings = table.attrs.get(WRITINGS, {})
    keeps = table.attrs.get(KEEP, False)
    codes = table.attrs.get(MISSING_CODES, {})
    columns = []
    for i, name in enumerate(names):
        column = emptied(table.iloc[:, i].rename(name), codes.get(name, ()))
        if name in asked:
            columns.append(Column(name, asked[name]))
        elif not keeps and (reason := identifier_reason(name, column)):
            remarks.left_out[name] = reason
        else:
            decided = decide_column(name, column, remarks, decimal)
            if decided.kind in MEASURED:
                decided = replace(decided, writing=writings.get(name, decided.writing))
            columns.append(replace(decided, missing_codes=tuple(codes.get(name, ()))))
    if not columns:  # nothing else to learn from
        remarks.left_out.clear()
        columns = [decide_column(str(name), table[name], remarks, decimal) for name in table]
    remarks.say()
    return tuple(columns)
