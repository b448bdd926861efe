"""Tables in files: text with separators, JSON lines, Parquet, Feather, Excel, images.

Invariant: a text file is read as it stands, every cell a string, and a row has as many cells as the
header has names. What the cells mean is decided elsewhere (:mod:`echelon.data.cells`), by the
schema of a model, so it does not depend on the other rows of a file or of a part of it.
"""

import atexit
import csv
import gc
import glob
import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from echelon.data.columns import DECIMAL, settled
from echelon.data.formats import SEPARATORS, UNREADABLE, Look, Reading, look_at, opened_text
from echelon.data.medmnist import medmnist_table
from echelon.data.workbooks import sheet_chunks
from echelon.extras import require

CHUNK_ROWS = 100_000
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
STANDARD_INPUT = "-"

_ROWS_AT_ONCE = 20_000  # of a text file, as lists
_LONGEST_CELL = 2**31 - 1  # characters, where the csv module by itself stops at 2**17
_FOUND = Reading()  # nothing said: all is found by looking
_PATTERN = re.compile(r"[*?\[]")

Paths = str | Path | Sequence[str | Path]


def read_table(path: Paths, reading: Reading = _FOUND) -> pd.DataFrame:
    """One or several files, or a folder, as a frame with at least one row.

    Parameters
    ----------
    path : str, Path or sequence of them
        What a file is, is found by looking at it (:mod:`echelon.data.formats`). Parquet and Feather
        (extra `parquet`) and Excel (extra `excel`, one sheet of it) bring their types; text with
        separators has strings in every cell: ``"007"`` and ``""`` are cells. Of several files, or
        of a folder of Parquet files, the rows follow each other; they must have the same columns. A
        folder of images gives the columns `image`, the path inside it, and
        `class`: the folder that it is in. A file of MedMNIST, `.npz`, gives the same two, the
        images as arrays. ``"-"`` is the standard input.
    reading : Reading
        Separator, decimal sign, encoding and sheet, where they are not to be found by looking.
    """
    frame = pd.concat(list(read_chunks(path, CHUNK_ROWS, compact=True, reading=reading)))
    if len(frame) == 0:
        first = expand_paths(path)[0]
        raise ValueError(f"{shown(first)} has {_heading(first)} but no rows")
    return _with_decimal(frame, reading)


def typed_table(path: Paths, *, apart: Sequence[str] = ()) -> pd.DataFrame:
    """What :func:`read_table` gives, with numbers and dates in the columns that hold such.

    The columns that are set `apart` stay as they are; see :func:`echelon.data.columns.settled`.
    """
    return settled(read_table(path), apart=list(apart))


def read_chunks(
    path: Paths, rows: int = CHUNK_ROWS, *, compact: bool = False, reading: Reading = _FOUND
) -> Iterator[pd.DataFrame]:
    """The rows of files as frames of at most so many rows; a file without rows gives an empty one.

    Parameters
    ----------
    path
        As for :func:`read_table`.
    rows : int
    compact : bool
        Pack the strings of a text file, which takes a little time and a third of the memory.
    reading : Reading
    """
    names: list[str] | None = None
    for file in expand_paths(path):
        for chunk in _chunks_of(file, rows, compact, reading):
            if names is None:
                names = [*chunk.columns]
            if [*chunk.columns] != names:
                chunk = _in_order(chunk, names, file)
            yield _with_decimal(chunk, reading)


def _with_decimal(frame: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    if reading.decimal is not None:
        frame.attrs[DECIMAL] = reading.decimal
    return frame


def _in_order(chunk: pd.DataFrame, names: list[str], path: Path) -> pd.DataFrame:
    lacking = [name for name in names if name not in chunk.columns]
    more = [name for name in chunk.columns if name not in names]
    if lacking or more:
        what = f"lacks the column {lacking[0]!r}" if lacking else f"also has {more[0]!r}"
        raise ValueError(
            f"files that are read together must have the same columns, and {shown(path)} {what}"
        )
    ordered: pd.DataFrame = chunk[names]
    return ordered


def _chunks_of(path: Path, rows: int, compact: bool, reading: Reading) -> Iterator[pd.DataFrame]:
    if path.is_dir():
        parts = parquet_parts(path)
        if parts:
            yield from _dataset_chunks(path, parts, rows)
        else:
            yield _read_folder(path)
        return
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        look = look_at(path, reading)
        if reading.sheet is not None and look.format not in ("Excel", "MedMNIST"):
            raise ValueError(
                f"--sheet is for Excel and MedMNIST files, and {shown(path)} is none; leave it out"
            )
        if look.format == "Parquet":
            yield from _parquet_chunks(path, rows)
        elif look.format == "Feather":
            yield from _feather_chunks(path, rows)
        elif look.format == "Excel":
            yield from sheet_chunks(path, reading.sheet, rows, shown(path))
        elif look.format == "MedMNIST":
            whole = medmnist_table(path, reading.sheet)
            yield from (whole.iloc[i : i + rows] for i in range(0, max(len(whole), 1), rows))
        elif look.format == "JSON":
            yield from _json_chunks(path, look, rows)
        else:
            yield from _text_chunks(path, look, rows, compact)
    except (csv.Error, *UNREADABLE) as error:
        raise ValueError(
            f"{shown(path)} is not a readable CSV file: {error}{_advice(error, reading)}"
        ) from None


def _advice(error: BaseException, reading: Reading) -> str:
    if isinstance(error, UnicodeError) and reading.encoding is not None:
        return f"; leave out --encoding {reading.encoding}, or name another, such as cp1252"
    return ""


def _heading(path: Path) -> str:
    return "a header" if path.is_file() and look_at(path).format == "CSV" else "columns"


# ---- which files ---------------------------------------------------------------------------------

_STANDARD_INPUT: list[Path] = []  # where it was put, as it can be read only once


def expand_paths(path: Paths) -> list[Path]:
    """The files that are meant: patterns as what they match, in order, - as what was put in.

    Examples
    --------
    >>> expand_paths("a.csv")
    [PosixPath('a.csv')]
    """
    given = [path] if isinstance(path, (str, Path)) else list(path)
    paths = []
    for text in map(str, given):
        if text == STANDARD_INPUT:
            paths.append(_standard_input())
        elif _PATTERN.search(text) and not os.path.lexists(text):
            matches = sorted(glob.glob(text, recursive=True))
            if not matches:
                raise ValueError(f"no file matches {text}")
            paths += map(Path, matches)
        else:
            paths.append(Path(text))
    if not paths:
        raise ValueError("no file is named")
    return paths


def shown(path: Path) -> str:
    """A path as messages name it."""
    return "the standard input" if path in _STANDARD_INPUT else str(path)


def _standard_input() -> Path:
    """What stands in the standard input, as a file: it is looked at before it is read."""
    if not _STANDARD_INPUT:
        folder = tempfile.mkdtemp(prefix="echelon-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        place = Path(folder) / "standard-input"
        with place.open("wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        _STANDARD_INPUT.append(place)
    return _STANDARD_INPUT[0]


def parquet_parts(folder: Path) -> list[Path]:
    """The Parquet files of a folder and those inside it; none where it is a folder of images."""
    files = [*folder.rglob("*.parquet"), *folder.rglob("*.pq")]
    return sorted(
        file
        for file in files
        if not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    )


# ---- text with separators ------------------------------------------------------------------------


def _text_chunks(path: Path, look: Look, rows: int, compact: bool) -> Iterator[pd.DataFrame]:
    csv.field_size_limit(_LONGEST_CELL)
    with opened_text(path, look) as stream:
        # without blank lines
        records = filter(None, csv.reader(stream, delimiter=look.sep, strict=True))
        names = _header(path, next(records, None), look)
        start = 0
        while True:
            chunk = _columns(path, look, records, names, start, rows)
            start += len(chunk[0])
            if start and not len(chunk[0]):
                return
            yield pd.DataFrame(
                {
                    name: pd.Series(cells, dtype="str" if compact else object)
                    for name, cells in zip(names, chunk, strict=True)
                }
            )
            if len(chunk[0]) < rows:
                return


def _header(path: Path, cells: list[str] | None, look: Look = Look("CSV")) -> list[str]:  # noqa: B008
    if cells is None:
        raise ValueError(f"{shown(path)} is empty; a header and at least one row are needed")
    names = [name if name.strip() else f"Unnamed: {i}" for i, name in enumerate(cells)]
    twice = _first_twin(names)
    if twice is not None:
        places = [str(i + 1) for i, name in enumerate(names) if name == twice]
        raise ValueError(
            f"{shown(path)}, line {line_of(path, look, 0)}: every column needs a name of its own, "
            f"and {twice!r} is the name of the columns {' and '.join(places)}; rename or remove one"
        )
    return names


def _first_twin(names: Sequence[str]) -> str | None:
    """The first name that stands more than once; there may be very many of them."""
    counted = Counter(names)
    return next((name for name in names if counted[name] > 1), None)


def _columns(
    path: Path, look: Look, records: Iterator[list[str]], names: list[str], start: int, rows: int
) -> list["np.ndarray[Any, Any]"]:
    """The cells of the next rows, a vector of strings for each column."""
    parts: list[list[Any]] = [[] for _ in names]
    taken = 0
    with _no_collection():
        while taken < rows:
            some = list(islice(records, min(_ROWS_AT_ONCE, rows - taken)))
            if not some:
                break
            if set(map(len, some)) != {len(names)}:
                _refuse_ragged(path, look, some, names, start + taken)
            for part, cells in zip(parts, zip(*some, strict=True), strict=True):
                part.append(np.array(cells, dtype=object))
            taken += len(some)
    return [np.concatenate(part) if part else np.empty(0, dtype=object) for part in parts]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without looking for garbage: many small lists make Python look for it again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _refuse_ragged(
    path: Path, look: Look, some: list[list[str]], names: list[str], start: int
) -> None:
    place = next(i for i, record in enumerate(some) if len(record) != len(names))
    fields = len(some[place])
    between = SEPARATORS.get(look.sep, repr(look.sep))
    sign = "comma" if look.sep == "," else between.rstrip("s")
    raise ValueError(
        f"{shown(path)} is not a readable CSV file: every row needs as many fields as the header "
        f"has names, {len(names)}, and line {line_of(path, look, start + place + 1)} has {fields}; "
        f"put quotes around cells that hold a {sign}, and name every column in the header, or say "
        f"with --sep what stands between cells: it was read with {between}"
    )


def line_of(path: Path, look: Look, number: int) -> int:
    """The line in which a record of a text file begins; the header is record 0."""
    return lines_of(path, look, [number])[0]


def lines_of(path: Path, look: Look, numbers: Sequence[int]) -> list[int]:
    """The lines in which records of a text file begin; the header is record 0."""
    wanted, lines_by_number = set(numbers), {}
    with opened_text(path, look) as stream:
        reader = csv.reader(stream, delimiter=look.sep, strict=True)
        line, number = 1 + look.skipped, 0
        for record in reader:
            if record:
                if number in wanted:
                    lines_by_number[number] = line
                    if len(lines_by_number) == len(wanted):
                        break
                number += 1
            line = reader.line_num + 1 + look.skipped
    return [lines_by_number[number] for number in numbers]


# ---- JSON ----------------------------------------------------------------------------------------


def _json_chunks(path: Path, look: Look, rows: int) -> Iterator[pd.DataFrame]:
    """An object for each row: one a line, or all in one list."""
    with opened_text(path, look) as stream:
        start = stream.read(1)
        while start.isspace():
            start = stream.read(1)
    with opened_text(path, look) as stream:
        if start == "[":
            records = iter(_whole_list(path, stream.read()))
        else:
            records = _json_lines(path, stream)
        names: dict[str, None] = {}
        taken = 0
        while True:
            some = list(islice(records, rows))
            if not some and taken:
                return
            names |= dict.fromkeys(key for record in some for key in record)
            if not names:
                raise ValueError(f"{shown(path)} is empty; at least one row is needed")
            yield pd.DataFrame(
                {
                    name: pd.Series([record.get(name) for record in some], dtype=object)
                    for name in names
                }
            )
            taken += len(some)
            if len(some) < rows:
                return


def _whole_list(path: Path, text: str) -> list[dict[str, Any]]:
    try:
        records = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{shown(path)} is not a readable JSON file: {error}") from None
    if not all(isinstance(record, dict) for record in records):
        raise ValueError(
            f"{shown(path)} is not a table: a JSON file must hold an object for each row, as in "
            f'{{"size": 1.5, "colour": "red"}}'
        )
    return list(records)


def _json_lines(path: Path, stream: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"{shown(path)} is not a readable file of JSON lines, an object for each row: line "
                f"{number}: {error}"
            ) from None
        if not isinstance(record, dict):
            raise ValueError(f"{shown(path)}, line {number}: a row must be an object, {{...}}")
        yield record


# ---- Parquet and Feather -------------------------------------------------------------------------


def _parquet_chunks(path: Path, rows: int) -> Iterator[pd.DataFrame]:
    require("pyarrow", "Parquet files")
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as opened:
            _refuse_twins(opened.schema_arrow.names)
            if opened.metadata.num_rows == 0:
                yield opened.schema_arrow.empty_table().to_pandas()
            for batch in opened.iter_batches(rows):
                yield _frame(batch)
    except (ValueError, TypeError, NotImplementedError, OSError, pyarrow.ArrowException) as error:
        raise ValueError(f"{shown(path)} is not a readable Parquet file: {error}") from None


def part_chunks(
    folder: Path, part: Path, rows: int = CHUNK_ROWS, reading: Reading = _FOUND
) -> Iterator[pd.DataFrame]:
    """The rows of one of the :func:`parquet_parts` of a folder, as the folder has them."""
    for chunk in _dataset_chunks(folder, [part], rows):
        yield _with_decimal(chunk, reading)


def arrow_types(path: Paths, reading: Reading = _FOUND) -> dict[str, Any]:
    """The types of pyarrow that the columns of Parquet and Feather files bring, by name.

    Only those of plain cells (numbers, booleans, texts, dates, decimals) that all of the files
    agree on; files of text bring none.
    """
    agreed: dict[str, Any] | None = None
    for file in (part for given in expand_paths(path) for part in parquet_parts_of(given)):
        types = _types_of(file, reading)
        kept = types.items() if agreed is None else types.items() & agreed.items()
        agreed = dict(kept)
    return agreed or {}


def parquet_parts_of(path: Path) -> list[Path]:
    """The Parquet files of a folder; a file, and a folder without any, is itself."""
    return (parquet_parts(path) if path.is_dir() else []) or [path]


def _types_of(path: Path, reading: Reading) -> dict[str, Any]:
    form = look_at(path, reading).format if path.is_file() else ""
    if form not in ("Parquet", "Feather"):
        return {}
    require("pyarrow", f"{form} files")
    import pyarrow.ipc
    import pyarrow.parquet

    try:
        if form == "Parquet":
            schema = pyarrow.parquet.read_schema(path)
        else:
            with pyarrow.memory_map(str(path)) as source, pyarrow.ipc.open_file(source) as opened:
                schema = opened.schema
    except (ValueError, OSError, pyarrow.ArrowException):
        return {}  # what is wrong with the file is said where its rows are read
    known = pyarrow.types
    plain = (
        known.is_integer, known.is_float32, known.is_float64, known.is_boolean, known.is_string,
        known.is_large_string, known.is_date, known.is_timestamp, known.is_decimal,
    )  # fmt: skip
    return {
        field.name: field.type for field in schema if any(is_such(field.type) for is_such in plain)
    }


def _dataset_chunks(folder: Path, parts: list[Path], rows: int) -> Iterator[pd.DataFrame]:
    """The files of a folder, with a column for each folder inside it that says NAME=VALUE."""
    require("pyarrow", "Parquet files")
    import pyarrow.dataset

    try:
        opened = pyarrow.dataset.dataset(
            [str(part) for part in parts],
            format="parquet",
            partitioning="hive",
            partition_base_dir=str(folder),
        )
        _refuse_twins(opened.schema.names)
        empty = True
        # without reading far ahead, which is memory that grows with the files
        for batch in opened.to_batches(batch_size=rows, batch_readahead=2, fragment_readahead=1):
            if batch.num_rows:
                empty = False
                yield _frame(batch)
        if empty:
            yield opened.schema.empty_table().to_pandas()
    except (ValueError, TypeError, NotImplementedError, OSError, pyarrow.ArrowException) as error:
        raise ValueError(f"{folder} is not a readable folder of Parquet files: {error}") from None


def _feather_chunks(path: Path, rows: int) -> Iterator[pd.DataFrame]:
    require("pyarrow", "Feather files")
    import pyarrow.ipc

    try:
        with pyarrow.memory_map(str(path)) as source, pyarrow.ipc.open_file(source) as opened:
            _refuse_twins(opened.schema.names)
            empty = True
            for i in range(opened.num_record_batches):
                batch = opened.get_batch(i)
                for start in range(0, batch.num_rows, rows):
                    empty = False
                    yield _frame(batch.slice(start, rows))
            if empty:
                yield opened.schema.empty_table().to_pandas()
    except (ValueError, TypeError, NotImplementedError, OSError, pyarrow.ArrowException) as error:
        raise ValueError(f"{shown(path)} is not a readable Feather file: {error}") from None


def _frame(batch: Any) -> pd.DataFrame:
    # whole numbers beside missing ones stay such, as long ones would lose digits
    frame: pd.DataFrame = batch.to_pandas(integer_object_nulls=True)
    return frame


def _refuse_twins(names: Sequence[str]) -> None:
    twice = _first_twin(names)
    if twice is not None:
        raise ValueError(
            f"every column needs a name of its own, and several are named {twice!r}; rename or "
            f"remove one"
        )


# ---- folders of images ---------------------------------------------------------------------------


def _read_folder(folder: Path) -> pd.DataFrame:
    """Images in a folder for each class; or all in one, and then there are no classes."""
    from echelon.data.kinds.image import IMAGE

    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in IMAGE_SUFFIXES)
    names = [file.relative_to(folder) for file in files]
    names = [image for image in names if not any(part.startswith(".") for part in image.parts)]
    if not names:
        raise ValueError(
            f"the folder {folder} holds no images; their names must end in one of "
            f"{', '.join(IMAGE_SUFFIXES)}. A folder of a table holds Parquet files, .parquet"
        )
    frame: pd.DataFrame = pd.DataFrame({IMAGE.name: [image.as_posix() for image in names]})
    classes = [image.parent.as_posix() for image in names]
    if set(classes) == {"."}:
        return frame
    if "." in classes:
        raise ValueError(
            f"the folder {folder} holds images beside the folders of the classes, such as "
            f"{names[classes.index('.')]}; put each in the folder of its class"
        )
    numbered = all(re.fullmatch(r"-?\d+", name) for name in classes)
    frame["class"] = [int(name) for name in classes] if numbered else classes
    return frame
