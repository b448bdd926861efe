"""What a command writes: looked at before the work, and not lost after it.

Invariant: a command writes to what it was told to and to nothing else. Where it could not write, or
would write over what it reads, it says so before it does anything.
"""

import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from echelon.cli.spreadsheets import csv_lines, harmless
from echelon.storage.atomic import (
    WriteFailed,
    is_stream,
    own_descriptor,
    replacing,
    require_empty,
    require_writable,
    require_writable_folder,
)

_STANDARD_OUTPUT = "-"
_PARQUET = (".parquet", ".pq")
_TABLES = (".csv", *_PARQUET, ".xlsx", ".jsonl")
_PAGES = (".html", ".htm")
_GRAPHS = (".onnx",)
# Endings of other things that echelon reads or writes: a model under such a name misleads.
_NO_MODELS = (
    *_TABLES, *_PAGES, *_GRAPHS, ".json", ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif",
    ".tiff",
)  # fmt: skip


def is_table_folder(out: Path) -> bool:
    """Whether an output is a folder, for a file of predictions of each file that is read."""
    return not is_standard_output(out) and out.is_dir()


def is_parquet(out: Path) -> bool:
    """Whether an output is a Parquet file, by its ending."""
    return out.suffix.lower() in _PARQUET


def is_standard_output(out: Path) -> bool:
    """Whether an output is the standard output: ``-``, or a name of its device."""
    return str(out) == _STANDARD_OUTPUT or own_descriptor(out) == 1


def require_model_file(out: Path, *inputs: Path | str | None) -> None:
    """Raise where a model could not be written, or would take the place of an input."""
    _refuse_standard_output(out, "a model")
    if out.suffix.lower() in _NO_MODELS and not is_stream(out):
        raise ValueError(
            f"a model is a file of echelon's own; got --out {out}, whose ending {out.suffix} is "
            f"that of something else: name it {out.stem}.echelon"
        )
    refuse_inputs(out, inputs)
    require_writable(out)


def require_table_file(out: Path, *inputs: Path | str | None) -> None:
    """Raise where predictions could not be written, or would take the place of an input."""
    if is_standard_output(out):
        return
    _require_suffix(out, _TABLES, "predictions")
    refuse_inputs(out, inputs)
    require_writable(out)


def require_graph_file(out: Path, *inputs: Path | str | None) -> None:
    """Raise where an ONNX graph could not be written, or would take the place of an input."""
    _refuse_standard_output(out, "an ONNX graph")
    _require_suffix(out, _GRAPHS, "an ONNX graph")
    refuse_inputs(out, inputs)
    require_writable(out)


def require_page_file(out: Path) -> None:
    """Raise where a page could not be written; its ending keeps it from the files of runs."""
    if is_standard_output(out):
        return
    if not out.suffix and not is_stream(out):
        raise ValueError(f"a page ends in {', '.join(_PAGES)}; got --out {out}")
    _require_suffix(out, _PAGES, "a page")
    require_writable(out)


def require_run_folder(out: Path) -> None:
    """Raise where the folder of one run could not be made."""
    require_folder(out)
    require_empty(out)


def require_folder(out: Path) -> None:
    """Raise where nothing could be written to a folder, which need not be there yet."""
    _refuse_standard_output(out, "a folder")
    require_writable_folder(out)


def refuse_inputs(out: Path, inputs: Iterable[Path | str | None]) -> None:
    """Raise where an output is also an input, under whatever names and through whatever links."""
    if is_stream(out) or not out.exists():
        return
    status = out.stat()
    for path in inputs:
        if path is None:
            continue
        try:
            is_same = os.path.samestat(status, os.stat(path))
        except (OSError, TypeError, ValueError):  # what is not there is not overwritten
            continue
        if is_same:
            raise ValueError(
                f"--out {out} is the same file as the input {path}, which would be lost; name "
                f"another output"
            )


def _refuse_standard_output(out: Path, what: str) -> None:
    if is_standard_output(out):
        raise ValueError(f"{what} cannot go to the standard output; got --out {out}: name a file")


def _require_suffix(out: Path, known: Sequence[str], what: str) -> None:
    if out.suffix and out.suffix.lower() not in known and not is_stream(out):
        raise ValueError(
            f"{what} can be written to files that end in {', '.join(known)}; got --out {out}"
        )


# ---- tables --------------------------------------------------------------------------------------


@contextmanager
def written_table(
    out: Path, columns: Sequence[str], like: Any, *, short: Sequence[str], safe: bool
) -> Iterator[Callable[[Any], None]]:
    """A function that adds frames of the same columns to a table: CSV, or another by its ending.

    Parameters
    ----------
    out : Path
    columns : sequence of str
        Of every frame; a table without rows has them too.
    like : mapping
        Types of pyarrow, or their names, of the columns that do not hold numbers with a fraction.
    short, safe
        Columns whose numbers CSV has with six digits, and whether texts are made harmless for
        spreadsheets; see :func:`echelon.cli.spreadsheets.csv_lines`.
    """
    with _opened(out) as stream:
        if is_parquet(out):
            with _parquet(stream, columns, like) as write:
                yield write
        elif out.suffix.lower() == ".xlsx":
            with _excel(stream, columns, safe) as write:
                yield write
        elif out.suffix.lower() == ".jsonl":
            yield _json_lines(stream)
        else:
            yield _csv(stream, columns, short, safe)


@contextmanager
def _opened(out: Path) -> Iterator[BinaryIO]:
    if str(out) != _STANDARD_OUTPUT:
        with replacing(out) as stream:
            yield stream
        return
    sys.stdout.flush()
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError as error:
        raise WriteFailed.of("the standard output", error) from None


def _csv(
    stream: BinaryIO, columns: Sequence[str], short: Sequence[str], safe: bool
) -> Callable[[Any], None]:
    import pandas as pd

    def write(table: Any, header: bool = False) -> None:
        for line in csv_lines(table, header=header, digits=short, safe=safe):
            stream.write(line.encode("utf-8"))

    write(pd.DataFrame(columns=list(columns)), header=True)
    return write


def _json_lines(stream: BinaryIO) -> Callable[[Any], None]:
    import json

    def write(table: Any) -> None:
        names = list(table)
        for row in table.itertuples(index=False, name=None):
            record = {name: plain_cell(cell) for name, cell in zip(names, row, strict=True)}
            stream.write(json.dumps(record, ensure_ascii=False).encode("utf-8") + b"\n")

    return write


@contextmanager
def _excel(stream: BinaryIO, columns: Sequence[str], safe: bool) -> Iterator[Callable[[Any], None]]:
    from echelon.extras import require

    openpyxl = require("openpyxl", "Excel files")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("predictions")
    cell_of = require("openpyxl.cell", "Excel files").WriteOnlyCell

    def text(value: Any) -> Any:
        """A cell that is shown, never run: what begins with = would be a formula otherwise."""
        if not isinstance(value, str):
            return value
        cell = cell_of(sheet, value=harmless(value) if safe else value)
        cell.data_type = "s"
        return cell

    sheet.append([text(str(name)) for name in columns])

    def write(table: Any) -> None:
        for row in table.itertuples(index=False, name=None):
            sheet.append([text(plain_cell(cell)) for cell in row])

    yield write
    book.save(stream)


def plain_cell(value: Any) -> Any:
    """A cell as Python has it, None where it is missing."""
    if value is None or value != value:
        return None
    return value.item() if hasattr(value, "item") else value


@contextmanager
def _parquet(
    stream: BinaryIO, columns: Sequence[str], like: Any
) -> Iterator[Callable[[Any], None]]:
    from echelon.extras import require

    pyarrow = require("pyarrow", "Parquet files")
    parquet = require("pyarrow.parquet", "Parquet files")
    types = [like.get(name, "float64") for name in columns]
    types = [pyarrow.type_for_alias(kind) if isinstance(kind, str) else kind for kind in types]
    schema = pyarrow.schema(list(zip(columns, types, strict=True)))
    # probabilities seldom repeat, so that looking for those that do is time lost
    repeating = [name for name in columns if name in like]
    with parquet.ParquetWriter(stream, schema, use_dictionary=repeating) as writer:

        def write(table: Any) -> None:
            writer.write_table(
                pyarrow.Table.from_pandas(table, schema=schema, preserve_index=False)
            )

        yield write


# ---- models --------------------------------------------------------------------------------------


def save_model(model: Any, out: Path, checkpoints: Path | None) -> None:
    """Write a model; where that fails after all, write it elsewhere and say where it is.

    Where there is no such place, the `checkpoints` of the fit are what is left to go on from.
    """
    try:
        model.save(out)
    except OSError as error:
        folders = (Path.cwd(), Path(tempfile.gettempdir()))
        for folder in folders:
            place = folder / f"{out.stem}-{secrets.token_hex(4)}{out.suffix}"
            try:
                model.save(place)
            except OSError:
                continue
            raise WriteFailed(f"{error}. The model is not lost: it is in {place}") from None
        kept = (
            f", but {checkpoints} is kept: free some space and start again" if checkpoints else ""
        )
        raise WriteFailed(
            f"{error}. It could not be written to {' or '.join(map(str, folders))} either{kept}"
        ) from None
