"""Slices: some rows of a Parquet file at a time, in whatever order they are asked for.

A Parquet file can be read from any of its row groups on; within one, only from its beginning. So a
reader keeps the row groups that it has begun, and asking for their slices in turns costs nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from echelon.data.files import shown
from echelon.extras import require

_BUFFER = 2**20  # bytes that are read of a column at once


class Piece(NamedTuple):
    """A row group of a Parquet file; `constants` are columns that the names of folders give."""

    path: Path
    group: int
    rows: int
    constants: Mapping[str, Any]


class Slice(NamedTuple):
    """Some rows of a piece, by its number: from `start` on, `rows` of them."""

    piece: int
    start: int
    rows: int


class SliceReader:
    """Reads slices of a source's Parquet files; those of one piece in order cost no more than it.

    Parameters
    ----------
    pieces : sequence of Piece
    columns : sequence of str
        Those that are read.
    rows : int
        How many rows a slice has, but for the last of a piece.
    footers : mapping from path to metadata
        What the end of each file says of it.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        columns: Sequence[str],
        rows: int,
        footers: Mapping[Path, Any],
    ) -> None:
        self._pieces, self._rows, self._footers = pieces, rows, footers
        self._columns = list(columns)
        self._begun: dict[int, tuple[int, Iterator[Any]]] = {}  # the next row of a piece

    def read(self, part: Slice) -> pd.DataFrame:
        """The rows of a slice as a frame."""
        place, tables = self._begun.pop(part.piece, (0, iter(())))
        if place != part.start or not part.start:
            place, tables = 0, self._tables(self._pieces[part.piece])
        while place < part.start:
            place += next(tables).num_rows
        table = next(tables)
        place += table.num_rows
        if place < self._pieces[part.piece].rows:
            self._begun[part.piece] = place, tables
        return self._frame(table, self._pieces[part.piece])

    def _tables(self, piece: Piece) -> Iterator[Any]:
        """The rows of a piece as Arrow tables, each of as many rows as a slice has."""
        import pyarrow

        names = [name for name in self._columns if name not in piece.constants]
        step = self._rows
        with opened_parquet(piece.path, self._footers.get(piece.path)) as opened:
            waiting: list[Any] = []
            held = 0
            for batch in opened.iter_batches(step, row_groups=[piece.group], columns=names):
                waiting.append(batch)
                held += batch.num_rows
                while held >= step:
                    table = pyarrow.Table.from_batches(waiting)
                    yield table.slice(0, step)
                    rest = table.slice(step)
                    waiting, held = rest.to_batches(), rest.num_rows
            if held:
                yield pyarrow.Table.from_batches(waiting)

    def _frame(self, table: Any, piece: Piece) -> pd.DataFrame:
        import pyarrow

        for place, entry in enumerate(table.schema):
            if pyarrow.types.is_decimal(entry.type):
                column = table.column(place).cast(pyarrow.float64())
                table = table.set_column(place, entry.name, column)
        frame: pd.DataFrame = table.to_pandas(date_as_object=False)
        for name, value in piece.constants.items():
            if name in self._columns:
                frame[name] = value
        ordered: pd.DataFrame = frame[self._columns]
        return ordered


@contextmanager
def opened_parquet(path: Path, footer: Any = None) -> Iterator[Any]:
    """A Parquet file, with errors that name it; `footer` is its metadata, where that is known."""
    require("pyarrow", "Parquet files")
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(
            path, metadata=footer, buffer_size=_BUFFER, pre_buffer=False
        ) as opened:
            yield opened
    except (OSError, NotImplementedError, pyarrow.ArrowException) as error:
        raise ValueError(f"{shown(path)} is not a readable Parquet file: {error}") from None


def is_measured(kind: Any) -> bool:
    """Whether an Arrow type says that a column holds numbers or dates, and no names of rows."""
    import pyarrow

    types = pyarrow.types
    return bool(
        types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_timestamp(kind)
        or types.is_date(kind)
    )
