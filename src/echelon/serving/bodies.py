"""Bodies of requests: from bytes to the cells of a model's columns, JSON and CSV.

Invariants: nothing of a body is run, opened as a file or looked up. Every row has exactly the
columns of the model, so that a misspelled name is said and never guessed; what a cell means is
decided by the schema of the model, as for any table.
"""

import csv
import difflib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic_core import from_json

from echelon.data.columns import Column
from echelon.data.kinds.base import CELL_KINDS, cell_kind
from echelon.data.kinds.numbers import NUMBERS, numbers_of_texts
from echelon.data.schema import TableSchema
from echelon.serving.refusal import BAD_REQUEST, WRONG_ROWS, WRONG_TYPE, Limits, Refusal

JSON, CSV = "application/json", "text/csv"
_PLAIN_NUMBERS = frozenset({float, int, type(None)})
_LONGEST = 60  # characters of what came, in a sentence


@dataclass(frozen=True)
class ReceivedRows:
    """The rows of a body, (n,) cells by the name of each column, in the order of the schema."""

    cells: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.cells.values())))

    def column(self, name: str) -> "pd.Series[Any]":
        """The cells of a column; strings stay what they are, and are not made those of pandas."""
        cells = self.cells[name]
        whole: pd.Series[Any] = pd.Series(cells, name=name, dtype=cells.dtype, copy=False)
        return whole

    def frame(self) -> pd.DataFrame:
        """The rows as a frame."""
        frame: pd.DataFrame = pd.DataFrame({name: self.column(name) for name in self.cells})
        return frame

    @classmethod
    def together(cls, parts: Sequence["ReceivedRows"]) -> "ReceivedRows":
        """The rows of several bodies, one after the other; no cell changes its meaning by it."""
        if len(parts) == 1:
            return parts[0]
        return cls({name: _joined([part.cells[name] for part in parts]) for name in parts[0].cells})


def _joined(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    if len({array.dtype for array in arrays}) > 1:  # a float among strings would become one
        arrays = [array.astype(object) for array in arrays]
    return np.concatenate(arrays)


def media_type(header: str) -> str:
    """The type that a header names, without its parameters; text is UTF-8 or refused.

    Examples
    --------
    >>> media_type("Text/CSV; charset=utf-8")
    'text/csv'
    """
    name, *parameters = (part.strip().lower() for part in header.split(";"))
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "charset" and value.strip(' "') not in ("utf-8", "utf8", "us-ascii"):
            raise Refusal(WRONG_TYPE, f"a body must be UTF-8; got charset {shown(value.strip())}")
    return name


def shown(value: Any) -> str:
    """What came, for a sentence: not too much of it."""
    text = f"{value:g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


# ---- JSON ----------------------------------------------------------------------------------------


def rows_of_json(body: bytes, schema: TableSchema, limits: Limits) -> ReceivedRows:
    """One object, or a list of them: a row each, with a cell for every column of the model."""
    records = _records(body, limits)
    limits.require_rows(len(records))
    cells = {}
    for column, values in zip(schema.columns, _columns(records, schema), strict=True):
        types = set(map(type, values))
        _refuse_nested(values, types, column.name)
        if str in types and b"\\u" in body:  # nothing else can leave half of a character
            _refuse_halves(values, column.name)
        cells[column.name] = _cells(values, types, column)
    return ReceivedRows(cells)


def _columns(records: list[Any], schema: TableSchema) -> Iterable[Sequence[Any]]:
    """The cells of each column, (n,); refused where a record has not exactly these columns."""
    names = [column.name for column in schema.columns]
    is_right = set(map(type, records)) == {dict} and set(map(len, records)) == {len(names)}
    with suppress(KeyError):
        if is_right and len(names) > 1:
            return zip(*list(map(itemgetter(*names), records)), strict=True)
        if is_right:
            return [[record[names[0]] for record in records]]
    for i, record in enumerate(records):
        if not isinstance(record, dict):
            raise Refusal(
                WRONG_ROWS, f"row {i + 1} must be an object with a cell for every column, "
                f"{{...}}; got {shown(record)}",
            )  # fmt: skip
        if record.keys() != set(names):
            refuse_columns(f"row {i + 1}", record, names, "; write null where it is missing")
    raise AssertionError("every record is right, and together they are not")


def _records(body: bytes, limits: Limits) -> list[Any]:
    try:
        document = _parsed(body, limits)
    except RecursionError:
        raise Refusal(
            BAD_REQUEST, "a body of JSON must be an object, or a list of objects; it is nested deep"
        ) from None
    except ValueError as error:
        raise Refusal(BAD_REQUEST, f"the body must be JSON, and is none: {error}") from None
    if isinstance(document, dict):
        return [document]
    if isinstance(document, list):
        return document
    raise Refusal(
        WRONG_ROWS, f"a body of JSON must be an object for one row, or a list of objects; got "
        f"{shown(document)}",
    )  # fmt: skip


def _parsed(body: bytes, limits: Limits) -> Any:
    """The document of a body, in which no object has a name twice.

    The quick parser takes less than the one of Python, and gives the same for what it takes; it
    looks neither for names that stand twice nor at how much it reads. Where there are no more
    braces than rows, there are no more objects either; and where there are no more colons than
    names in the rows, none stands twice. All else goes through Python's, which looks at each
    object, and whose reasons are those that a client gets.
    """
    signs = np.frombuffer(body, dtype=np.uint8)
    if np.count_nonzero(signs == ord("{")) <= limits.rows:
        with suppress(ValueError):
            document = from_json(body, allow_inf_nan=False)
            records = document if isinstance(document, list) else [document]
            names = sum(len(record) for record in records if isinstance(record, dict))
            if names == np.count_nonzero(signs == ord(":")):
                return document
    return _looked_at(_text(body), limits)


def _looked_at(text: str, limits: Limits) -> Any:
    """The document of a text, every object of which is counted and has each of its names once."""
    objects = 0

    def counted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal objects
        objects += 1
        if objects > limits.rows:  # before all of them are in memory
            limits.require_rows(objects)
        record = dict(pairs)
        if len(record) != len(pairs):
            raise Refusal(BAD_REQUEST, "an object must have every name once, and one has it twice")
        return record

    return json.loads(text, object_pairs_hook=counted, parse_constant=_refuse_constant)


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal(
            BAD_REQUEST, f"a body must be UTF-8, and is not from byte {error.start + 1} on"
        ) from None


def _refuse_constant(name: str) -> Any:
    raise Refusal(BAD_REQUEST, f"{name} is no number of JSON; write null where a cell is missing")


def _refuse_nested(values: Sequence[Any], types: set[type], name: str) -> None:
    if not types & {dict, list}:
        return
    place = next(i for i, value in enumerate(values) if isinstance(value, (dict, list)))
    raise Refusal(
        WRONG_ROWS, f"column {name!r} must hold a number, a string, true, false or null; row "
        f"{place + 1} has {shown(values[place])}",
    )  # fmt: skip


# ---- CSV -----------------------------------------------------------------------------------------


def rows_of_csv(body: bytes, schema: TableSchema, limits: Limits) -> ReceivedRows:
    """A header with the names of all columns, in any order, and a line for every row."""
    names = [column.name for column in schema.columns]
    text = _text(body)
    header, columns = _plain_columns(text, len(names), limits) or _csv_columns(text, names, limits)
    if sorted(header) != sorted(names):
        refuse_columns("the header", header, names, "")
    by_name = dict(zip(header, columns, strict=True))
    return ReceivedRows(
        {column.name: _cells_of_texts(by_name[column.name], column) for column in schema.columns}
    )


_Columns = tuple[Sequence[str], Sequence[Sequence[str]]]  # a header, and the cells of each column


def _plain_columns(text: str, width: int, limits: Limits) -> _Columns | None:
    """Of CSV in which nothing is quoted and every line has its cells, split at once; else None."""
    text = text if text.endswith("\n") else f"{text}\n"
    # a blank line of one column would be a cell, and is none
    if width < 2 or any(sign in text for sign in '"\r\0'):
        return None
    signs = np.frombuffer(text.encode(), dtype=np.uint8)
    places = np.flatnonzero((signs == ord(",")) | (signs == ord("\n")))
    lines, rest = divmod(len(places), width)
    if rest or not 2 <= lines <= limits.rows + 1:
        return None
    ends = signs[places].reshape(lines, width)
    if (ends[:, :-1] != ord(",")).any() or (ends[:, -1] != ord("\n")).any():
        return None
    if np.diff(places).max() > csv.field_size_limit():
        return None
    cells = text[:-1].replace("\n", ",").split(",")
    return cells[:width], [cells[i::width] for i in range(width, 2 * width)]


def _csv_columns(text: str, names: list[str], limits: Limits) -> _Columns:
    """Of any CSV; refused where it is none."""
    records = filter(None, csv.reader(io.StringIO(text, newline=""), strict=True))
    try:
        header = next(records, None)
        if header is None:
            raise Refusal(
                WRONG_ROWS, "a body of CSV must have a header and at least 1 row; it is empty"
            )
        if sorted(header) != sorted(names):
            refuse_columns("the header", header, names, "")
        lines: list[list[str]] = []
        for line in records:
            if len(line) != len(names):
                raise Refusal(
                    WRONG_ROWS, f"every row must have as many cells as the header has names, "
                    f"{len(names)}; row {len(lines) + 1} has {len(line):,}",
                )  # fmt: skip
            lines.append(line)
            if len(lines) > limits.rows:
                break
    except csv.Error as error:
        raise Refusal(BAD_REQUEST, f"the body must be CSV, and is none: {error}") from None
    limits.require_rows(len(lines))
    return header, [*zip(*lines, strict=True)]


# ---- columns and cells ---------------------------------------------------------------------------


def refuse_columns(where: str, came: Iterable[str], names: Sequence[str], remedy: str) -> None:
    """Refuse a row, or a header, that has not the columns of the model, and say which is wrong."""
    given = list(came)
    if len(set(given)) != len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise Refusal(
            WRONG_ROWS, f"{where} must name every column once; {shown(twice)} stands twice"
        )
    unknown = next((name for name in given if name not in names), None)
    if unknown is not None:
        close = difflib.get_close_matches(unknown[:200], names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "see /info for the columns"
        raise Refusal(
            WRONG_ROWS, f"{where} must have the {len(names):,} columns of the model and no other; "
            f"got {shown(unknown)}: {hint}",
        )  # fmt: skip
    missing = next(name for name in names if name not in given)
    raise Refusal(
        WRONG_ROWS, f"{where} must have the {len(names):,} columns of the model, and lacks "
        f"{missing!r}{remedy}",
    )  # fmt: skip


def _cells(values: Sequence[Any], types: set[type], column: Column) -> NDArray[Any]:
    """The cells of a column as an array: of numbers where all of them are, or of objects."""
    if column.kind == NUMBERS.name and types <= _PLAIN_NUMBERS:
        try:
            return np.array(values, dtype=np.float64)
        except OverflowError:  # a number of hundreds of digits, which the schema refuses
            pass
    return received_cells(_objects(values), column)


def _cells_of_texts(texts: Sequence[str], column: Column) -> NDArray[Any]:
    """The same of cells that are all written, which most numbers are plainly."""
    cells = _objects(texts)
    if column.kind == NUMBERS.name and not column.writing and not column.missing_codes:
        numbers = numbers_of_texts(cells)
        if numbers is not None:
            return numbers
    return received_cells(cells, column)


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells


def received_cells(cells: NDArray[Any], column: Column) -> NDArray[Any]:
    """Cells (n,) of objects as those of a table, never the path of a file on the server."""
    if column.kind not in CELL_KINDS:
        return cells
    kind = cell_kind(column.kind)
    taken = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        try:
            taken[i] = kind.received(cell)
        except ValueError as error:
            raise Refusal(WRONG_ROWS, f"column {column.name!r}, row {i + 1}: {error}") from None
    return taken


def _refuse_halves(values: Sequence[Any], name: str) -> None:
    for i, cell in enumerate(values):
        if isinstance(cell, str) and not _is_whole(cell):
            raise Refusal(
                WRONG_ROWS, f"column {name!r}, row {i + 1}: a string must be Unicode, and holds "
                f"half of a character",
            )  # fmt: skip


def _is_whole(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
