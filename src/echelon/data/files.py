"""Tables in files: CSV, Parquet, and folders of images.

Invariant: a CSV file is read as it stands, every cell a string, and a row has as many cells as the
header has names. What the cells mean is decided elsewhere (:mod:`echelon.data.cells`), by the
schema of a model, so it does not depend on the other rows of a file or of a part of it.
"""

import bz2
import csv
import gc
import gzip
import lzma
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pandas as pd

from echelon.data.columns import settled
from echelon.extras import require

CHUNK_ROWS = 100_000
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")

_ROWS_AT_ONCE = 20_000  # of a CSV file, as lists
_LONGEST_CELL = 2**31 - 1  # characters, where the csv module by itself stops at 2**17
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def read_table(path: str | Path) -> pd.DataFrame:
    """A CSV or Parquet file, or a folder of images, as a frame with at least one row.

    Parameters
    ----------
    path : str or Path
        ``.parquet`` and ``.pq`` are read as Parquet (extra `parquet`), with the types that it has;
        other files as CSV, every cell a string: ``"007"`` and ``""`` are cells. A folder gives the
        columns `image`, the path inside it, and `class`: the folder that it is in.
    """
    frame = pd.concat(list(read_chunks(path, CHUNK_ROWS, compact=True)))
    if len(frame) == 0:
        raise ValueError(f"{path} has {_heading(Path(path))} but no rows")
    return frame


def typed_table(path: str | Path, *, apart: Sequence[str] = ()) -> pd.DataFrame:
    """What :func:`read_table` gives, with numbers and dates in the columns that hold such.

    The columns that are set `apart` stay as they are; see :func:`echelon.data.columns.settled`.
    """
    return settled(read_table(path), apart=list(apart))


def read_chunks(
    path: str | Path, rows: int = CHUNK_ROWS, *, compact: bool = False
) -> Iterator[pd.DataFrame]:
    """The rows of a file as frames of at most so many rows; a file without rows gives an empty one.

    Parameters
    ----------
    path : str or Path
        As for :func:`read_table`.
    rows : int
    compact : bool
        Pack the strings of a CSV file, which takes a little time and a third of the memory.
    """
    path = Path(path)
    if path.is_dir():
        yield _read_folder(path)
        return
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    if is_parquet(path):
        yield from _parquet_chunks(path, rows)
    else:
        yield from _csv_chunks(path, rows, compact)


def is_parquet(path: Path) -> bool:
    """Whether a file's name says that it is Parquet."""
    return path.suffix.lower() in (".parquet", ".pq")


def _heading(path: Path) -> str:
    return "columns" if is_parquet(path) else "a header"


# ---- CSV -----------------------------------------------------------------------------------------


def _csv_chunks(path: Path, rows: int, compact: bool) -> Iterator[pd.DataFrame]:
    try:
        with _opened(path) as stream:
            records = filter(None, csv.reader(stream, strict=True))  # without blank lines
            names = _header(path, next(records, None))
            start = 0
            while True:
                chunk = _columns(path, records, names, start, rows)
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
    except (csv.Error, UnicodeError, EOFError, OSError, lzma.LZMAError) as error:
        if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
            raise
        raise ValueError(f"{path} is not a readable CSV file: {error}") from None


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    csv.field_size_limit(_LONGEST_CELL)
    opener = _OPENERS.get(path.suffix.lower(), open)
    with opener(path, "rt", newline="", encoding="utf-8-sig") as stream:
        yield cast(IO[str], stream)


def _header(path: Path, found: list[str] | None) -> list[str]:
    if found is None:
        raise ValueError(f"{path} is empty; a header and at least one row are needed")
    names = [name if name.strip() else f"Unnamed: {i}" for i, name in enumerate(found)]
    twice = _first_twin(names)
    if twice is not None:
        places = [str(i + 1) for i, name in enumerate(names) if name == twice]
        raise ValueError(
            f"{path}, line {_line_of(path, 0)}: every column needs a name of its own, and "
            f"{twice!r} is the name of the columns {' and '.join(places)}; rename or remove one"
        )
    return names


def _first_twin(names: Sequence[str]) -> str | None:
    """The first name that stands more than once; there may be very many of them."""
    counted = Counter(names)
    return next((name for name in names if counted[name] > 1), None)


def _columns(
    path: Path, records: Iterator[list[str]], names: list[str], start: int, rows: int
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
                _refuse_ragged(path, some, names, start + taken)
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


def _refuse_ragged(path: Path, some: list[list[str]], names: list[str], start: int) -> None:
    place = next(i for i, record in enumerate(some) if len(record) != len(names))
    fields = len(some[place])
    raise ValueError(
        f"{path} is not a readable CSV file: every row needs as many fields as the header has "
        f"names, {len(names)}, and line {_line_of(path, start + place + 1)} has {fields}; put "
        f"quotes around cells that hold a comma, and name every column in the header"
    )


def _line_of(path: Path, number: int) -> int:
    """The line in which a record begins; the header is record 0."""
    with _opened(path) as stream:
        reader = csv.reader(stream, strict=True)
        line = 1
        for record in reader:
            if record:
                if number == 0:
                    break
                number -= 1
            line = reader.line_num + 1
    return line


# ---- Parquet -------------------------------------------------------------------------------------


def _parquet_chunks(path: Path, rows: int) -> Iterator[pd.DataFrame]:
    require("pyarrow", "Parquet files")
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as opened:
            names = opened.schema_arrow.names
            twice = _first_twin(names)
            if twice is not None:
                raise ValueError(
                    f"every column needs a name of its own, and several are named {twice!r}; "
                    f"rename or remove one"
                )
            if opened.metadata.num_rows == 0:
                yield opened.schema_arrow.empty_table().to_pandas()
            for batch in opened.iter_batches(rows):
                # whole numbers beside missing ones stay such, as long ones would lose digits
                yield batch.to_pandas(integer_object_nulls=True)
    except (ValueError, TypeError, NotImplementedError, OSError, pyarrow.ArrowException) as error:
        raise ValueError(f"{path} is not a readable Parquet file: {error}") from None


# ---- folders of images ---------------------------------------------------------------------------


def _read_folder(folder: Path) -> pd.DataFrame:
    """Images in a folder for each class; or all in one, and then there are no classes."""
    from echelon.data.kinds.image import IMAGE

    found = sorted(one for one in folder.rglob("*") if one.suffix.lower() in IMAGE_SUFFIXES)
    names = [one.relative_to(folder) for one in found]
    names = [one for one in names if not any(part.startswith(".") for part in one.parts)]
    if not names:
        raise ValueError(
            f"the folder {folder} holds no images; their names must end in one of "
            f"{', '.join(IMAGE_SUFFIXES)}"
        )
    frame: pd.DataFrame = pd.DataFrame({IMAGE.name: [one.as_posix() for one in names]})
    classes = [one.parent.as_posix() for one in names]
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
