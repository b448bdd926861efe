"""What a file is, found by looking at its first bytes: format, compression, encoding, separator.

A name may mislead, so bytes decide wherever a format has a mark of its own. Text has none: there a
name may say that it is JSON, and everything else is a table with separators.
"""

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from echelon.storage.regular import open_regular

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SUFFIXES = (
    ".csv", ".tsv", ".txt", ".parquet", ".pq", ".feather", ".arrow", ".xlsx", ".jsonl", ".ndjson",
    ".json", ".npz",
)  # fmt: skip

_SAMPLE = 1 << 18  # bytes that are looked at
_SAMPLE_ROWS = 200
_GZIP, _BZIP2, _XZ, _ZIP = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"PK\x03\x04"
_MARKS = ((b"PAR1", "Parquet"), (b"ARROW1", "Feather"))
_BY_SUFFIX = {
    ".parquet": "Parquet", ".pq": "Parquet", ".feather": "Feather", ".arrow": "Feather",
    ".xlsx": "Excel", ".xlsm": "Excel", ".npz": "MedMNIST", ".jsonl": "JSON",
    ".ndjson": "JSON", ".json": "JSON",
}  # fmt: skip
_TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".psv")
_FOREIGN = (
    (b"\xd0\xcf\x11\xe0", "an Excel file of the old kind: save it as .xlsx or CSV"),
    (b"%PDF", "a PDF file: export the table behind it as CSV"),
    (b"\x89PNG", "an image, not a table"),
    (b"\xff\xd8\xff", "an image, not a table"),
    (b"SQLite format 3", "a database: export a table of it as CSV"),
    (b"(\xb5/\xfd", "compressed by zstd, which is not read: use gzip"),
    (b"$FL2", "an SPSS file: export it as CSV"),
    (b"$FL3", "an SPSS file: export it as CSV"),
    (b"<stata_dta>", "a Stata file: export it as CSV"),
    (b"HEADER RECORD*******", "a SAS file: export it as CSV"),
    (b"<", "a page or XML, not a table: export it as CSV"),
)
_FALLBACK = "echelon.cp1252"
# What the file formats and compressions raise for files that are damaged.
UNREADABLE = (UnicodeError, EOFError, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile)


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are no UTF-8, as Windows writes letters in one byte each."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252"), error.end


codecs.register_error(_FALLBACK, _as_windows)


@dataclass(frozen=True)
class Reading:
    """How files are read, where somebody has said it; None is found by looking.

    Parameters
    ----------
    sep : str, optional
        What stands between the cells of a text file.
    decimal : {".", ","}, optional
        The decimal sign.
    encoding : str, optional
        Such as "cp1252".
    sheet : str, optional
        Of an Excel file: the name of a sheet, or its number from 1 on. Of a MedMNIST file: one of
        its subsets, train, val or test.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"--decimal must be . or ,; got {self.decimal!r}")
        if self.sep is not None:
            named = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
            sep = named.get(self.sep, self.sep)
            if len(sep) != 1 or sep in '"\r\n':
                raise ValueError(
                    f"--sep must be one character, such as ; or , or the word tab; got {self.sep!r}"
                )
            object.__setattr__(self, "sep", sep)
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(
                    f"--encoding must be the name of one, such as utf-8, utf-16 or cp1252; got "
                    f"{self.encoding!r}"
                ) from None


@dataclass(frozen=True)
class Look:
    """What a file is, as found by looking.

    `format` is "CSV", "JSON", "Parquet", "Feather", "Excel" or "MedMNIST"; the rest is of text
    and JSON.
    `skipped` is the number of lines before the header.
    """

    format: str
    compression: str = ""
    encoding: str = ""
    sep: str = ","
    skipped: int = 0

    @property
    def in_words(self) -> str:
        """What was found, where it is not what programs write."""
        said = [self.compression] if self.compression else []
        if self.format != "CSV":
            return ", ".join([self.format, *said])
        if self.sep != ",":
            said.append(SEPARATORS.get(self.sep, f"{self.sep!r}") + " between cells")
        if self.encoding not in ("", "utf-8-sig"):
            said.append(f"encoding {self.encoding}")
        return ", ".join(said)


def look_at(path: Path, reading: Reading = Reading()) -> Look:
    """Find out what a file is; raise where it is nothing that can be read as a table."""
    with open_regular(path) as stream:
        start = stream.read(16)
    by_name = _BY_SUFFIX.get(path.suffix.lower())
    for mark, name in _MARKS:
        if start.startswith(mark):
            return Look(name)
    if start.startswith(_ZIP) and (by_name == "Excel" or _is_workbook(path)):
        return Look("Excel")
    if start.startswith(_ZIP) and path.suffix.lower() in (".ods", ".numbers"):
        raise ValueError(f"{path} is a spreadsheet of another program: save it as .xlsx or CSV")
    if by_name not in (None, "JSON"):
        return Look(by_name)  # which says what is wrong with it
    for mark, what in _FOREIGN:
        if start.lstrip().startswith(mark):
            raise ValueError(f"{path} is {what}")
    compression = compression_of(start)
    with opened_bytes(path, compression) as opened:
        sample = opened.read(_SAMPLE)
    is_whole = len(sample) < _SAMPLE
    encoding = reading.encoding or encoding_of(sample, path)
    # a sample may end within a character; what cannot be read is said when the file is
    text = sample.decode(encoding, "replace").lstrip("\ufeff")
    inner = Path(path.stem).suffix.lower() if compression else path.suffix.lower()
    if inner in (".json", ".jsonl", ".ndjson") or (
        inner not in _TEXT_SUFFIXES and _begins_as_json(text)
    ):
        return Look("JSON", compression, encoding)
    first = text.partition("\n")[0].strip().strip('"')
    if first[:4].lower() == "sep=" and len(first) == 5:  # for Excel's own eyes
        return Look("CSV", compression, encoding, reading.sep or first[4], skipped=1)
    sep = reading.sep or separator_of(text, is_whole=is_whole)
    return Look("CSV", compression, encoding, sep)


def _is_workbook(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.startswith("xl/") for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


def _begins_as_json(text: str) -> bool:
    bare = text.lstrip()
    if not bare.startswith(("{", "[")):
        return False
    try:
        json.JSONDecoder().raw_decode(bare.partition("\n")[0] if bare[0] == "{" else bare)
    except ValueError:
        return bare.startswith("[") and len(bare) > 1 and bare[1:].lstrip()[:1] == "{"
    return True


# ---- compression ---------------------------------------------------------------------------------


def compression_of(start: bytes) -> str:
    """The compression of a file by its first bytes; "" without one.

    Examples
    --------
    >>> compression_of(gzip.compress(b"a")), compression_of(b"a,b")
    ('gzip', '')
    """
    marks = ((_GZIP, "gzip"), (_BZIP2, "bzip2"), (_XZ, "xz"), (_ZIP, "zip"))
    return next((name for mark, name in marks if start.startswith(mark)), "")


@contextmanager
def opened_bytes(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """The content of a file without its compression."""
    if compression == "zip":
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if len(names) != 1:
                raise ValueError(
                    f"{path} holds {len(names)} files, and one is read at a time: unpack it first"
                )
            with archive.open(names[0]) as inner:
                yield inner
        return
    openers: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    with openers.get(compression, open)(path, "rb") as stream:
        yield stream


@contextmanager
def opened_text(path: Path, look: Look) -> Iterator[IO[str]]:
    """The text of a file, behind the lines that are no part of its table."""
    errors = _FALLBACK if look.encoding == "utf-8-sig" else "strict"
    with opened_bytes(path, look.compression) as stream:
        text = io.TextIOWrapper(stream, encoding=look.encoding, errors=errors, newline="")
        try:
            for _ in range(look.skipped):
                text.readline()
            yield text
        finally:
            text.detach()


# ---- encoding and separator ----------------------------------------------------------------------


def encoding_of(sample: bytes, path: Path | str = "the file") -> str:
    """The encoding of text by its first bytes.

    Examples
    --------
    >>> encoding_of("größe".encode("cp1252")), encoding_of("größe".encode())
    ('cp1252', 'utf-8-sig')
    >>> encoding_of("größe".encode("utf-16"))
    'utf-16'
    """
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and len(sample) % 2 == 0:
        return "utf-16"
    if sample.count(0) > 0:
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        if max(even, odd) > 0.3 * len(sample) / 2 and min(even, odd) < 0.05 * len(sample) / 2:
            return "utf-16-le" if odd > even else "utf-16-be"
        raise ValueError(f"{path} is no text: it holds bytes that no text has")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8-sig"
    try:
        sample.decode("cp1252")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not readable as text: it is neither UTF-8 nor cp1252 (byte "
            f"{sample[error.start]:#x}); name its encoding with --encoding"
        ) from None
    return "cp1252"


def separator_of(text: str, *, is_whole: bool = True) -> str:
    r"""What stands between cells: what divides every row of a sample into as many as the header.

    Parameters
    ----------
    text : str
    is_whole : bool
        Whether this is all there is; otherwise the last row may be cut off.

    Examples
    --------
    >>> separator_of("size;weight\n1,5;2\n2,5;3\n"), separator_of("a,b\n1,2\n"), separator_of("a\n")
    (';', ',', ',')
    """
    best, most = ",", 1
    fallback, widest = ",", 1
    for sep in SEPARATORS:
        counts = _field_counts(text, sep, is_whole)
        if not counts:
            continue
        if counts[0] > widest:
            fallback, widest = sep, counts[0]
        if counts[0] > most and len(set(counts)) == 1:
            best, most = sep, counts[0]
    return best if most > 1 else fallback


def _field_counts(text: str, sep: str, is_whole: bool) -> list[int]:
    """How many cells the first rows have; what cannot be read ends them."""
    reader = filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=sep, strict=True))
    counts = []
    try:
        for record in islice(reader, _SAMPLE_ROWS):
            counts.append(len(record))
    except csv.Error:
        return counts
    if not is_whole and 1 < len(counts) < _SAMPLE_ROWS:
        counts.pop()
    return counts
