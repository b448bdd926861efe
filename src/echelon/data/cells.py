"""What a cell means: one rule for every table, whatever file or frame its rows come from.

Invariant: the meaning of a cell depends on the cell and on the kind of its column, never on the
cells around it. CSV files bring strings, Parquet files and frames bring numbers, booleans, dates
and strings; the same thing has the same meaning in all of them.

- As a **number**: numbers, decimals, booleans (1 and 0) and strings that spell one of these.
- As a **date**: dates, timestamps and strings in ISO 8601 ("2024-02-29", "2024-02-29 13:05:00",
  with a time zone or without), in days since 1970-01-01, of the time in UTC.
- As a **category**: a name. Whole numbers are named without a point (1, 1.0, "1.0" are all "1"),
  booleans "True" and "False", dates as in ISO 8601; codes with leading zeros ("007") and all other
  strings name themselves.
- **Missing** are None, NaN, NaT and blank strings; as a number or a date also what people write
  for nothing ("?", "-", "n/a", in any case), as a category only what programs write for it ("NA",
  "NaN", "NULL", as pandas reads them): "none" and "-" may well be categories.
"""

import datetime as dt
import re
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

_ARROW: Any = None  # reads numbers four times as fast as Python, where it is installed
if find_spec("pyarrow") is not None:
    import pyarrow

    _ARROW = pyarrow

# What pandas takes for missing when it reads a CSV file, so that a frame that it has read and the
# file itself have the same categories.
MISSING_NAMES = frozenset({
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "NaT", "None", "n/a", "nan", "null",
})  # fmt: skip
ODD_BLANKS = frozenset({"?", "-", "--", "."})  # people write them, and it is said that they were
_BLANKS = ODD_BLANKS | {name.casefold() for name in MISSING_NAMES} | {"none", "missing"}
_BOOLEANS = {"true": 1.0, "false": 0.0}
_CODE = re.compile(r"0\d+")
_WHOLE = re.compile(r"[+-]?\d+")
_DATE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?\s?(Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
MICROSECONDS_A_DAY = 86_400_000_000
_LONGEST_NUMBER = 400  # characters of a category that is named as a number
_REFUSED: tuple[tuple[tuple[type, ...], str], ...] = (
    ((dict,), "structs"),
    ((np.ndarray,), "lists or arrays (for images, name it as the image column)"),
    ((list, tuple, set, frozenset), "lists"),
    ((bytes, bytearray, memoryview), "bytes"),
    ((dt.timedelta, np.timedelta64), "durations"),
    ((complex, np.complexfloating), "complex numbers (Complex data not supported)"),
)


class CellTypeError(TypeError, ValueError):
    """Cells that have no meaning in a table; the message names their column.

    It is a ``TypeError``, as scikit-learn expects, and a ``ValueError`` as every wrong input.
    """


def refuse_types(types: set[type], name: str) -> None:
    """Raise where a column holds cells that are neither numbers, dates, booleans nor strings."""
    for one in types:
        for refused, what in _REFUSED:
            if issubclass(one, refused) and one is not type(pd.NaT):
                raise CellTypeError(
                    f"column {name!r} holds {what}, and an argument must be a string or a number; "
                    f"drop the column (--drop on the command line), or make numbers or strings of "
                    f"it"
                )


def is_missing(cell: Any) -> bool:
    """Whether a cell that is no string says nothing: None, NaN, NaT."""
    return cell is None or cell is pd.NA or cell is pd.NaT or bool(cell != cell)


def is_blank(text: str) -> bool:
    """Whether a string stands for nothing, as a number or a date."""
    return text.strip().casefold() in _BLANKS


def is_code(cell: Any) -> bool:
    """Whether a cell is a code with a leading zero, such as "007", which as a number would lose it.

    Examples
    --------
    >>> [is_code(cell) for cell in ("007", "0", "0.5", "7", 7)]
    [True, False, False, False, False]
    """
    return isinstance(cell, str) and _CODE.fullmatch(cell.strip()) is not None


def number_of(cell: Any) -> float | None:
    """A cell as a number, NaN where it is missing, None where it is no number.

    Examples
    --------
    >>> [number_of(cell) for cell in ("1.50", 2, True, "false", "?", "many", "2024-02-29")]
    [1.5, 2.0, 1.0, 0.0, nan, None, None]
    """
    if isinstance(cell, str):
        # Python also takes the underscores of its own source for a part of numbers
        if "_" not in cell:
            try:
                return float(cell)
            except ValueError:
                pass
        if is_blank(cell):
            return np.nan
        return _BOOLEANS.get(cell.strip().casefold())
    if isinstance(cell, (bool, int, float, Decimal, np.number, np.bool_)):
        try:
            return float(cell)
        except OverflowError:
            return np.inf if cell > 0 else -np.inf
        except ValueError:  # a decimal that is a signalling NaN
            return np.nan
    return np.nan if is_missing(cell) else None


def days_of(cell: Any) -> float | None:
    """A cell as days since 1970-01-01, NaN where it is missing, None where it is no date.

    Examples
    --------
    >>> [days_of(cell) for cell in ("1970-01-02", "1970-01-01 12:00", dt.date(1969, 12, 31), "", 5)]
    [1.0, 0.5, -1.0, nan, None]
    >>> days_of("1970-01-01T02:00:00+02:00")
    0.0
    """
    moment = _microseconds(cell)
    if moment is not None:
        return float(moment) / MICROSECONDS_A_DAY
    if isinstance(cell, str):
        return np.nan if is_blank(cell) else None
    return np.nan if is_missing(cell) else None


def name_of(cell: Any) -> str | None:
    """The name of a cell as a category, None where it is missing.

    Examples
    --------
    >>> [name_of(cell) for cell in (1, 1.0, "1.0", "01", True, "true", "red", "NA", "none")]
    ['1', '1', '1', '01', 'True', 'True', 'red', None, 'none']
    """
    if isinstance(cell, str):
        return _name_of_text(cell)
    if is_missing(cell):
        return None
    if isinstance(cell, (bool, np.bool_)):
        return str(bool(cell))
    if isinstance(cell, (int, np.integer)):
        return str(int(cell))
    if isinstance(cell, (float, Decimal, np.floating)):
        # the shortest digits of a number in 32 bits are those that its owner wrote
        return _name_of_number(float(str(cell)))
    moment = _microseconds(cell)
    return str(cell) if moment is None else _name_of_moment(moment)


def _name_of_text(text: str) -> str | None:
    bare = text.strip()
    if bare in MISSING_NAMES:
        return None
    if not bare[0].isdigit() and bare[0] not in "+-.tTfF":
        return text  # neither a number nor a date nor a boolean
    if _CODE.fullmatch(bare):
        return bare
    if bare.casefold() in _BOOLEANS:
        return bare.casefold().capitalize()
    if len(bare) > _LONGEST_NUMBER or "_" in bare:
        return text
    if _WHOLE.fullmatch(bare):
        return str(int(bare))
    try:
        number = float(bare)
    except ValueError:
        moment = _microseconds(bare)
        return text if moment is None else _name_of_moment(moment)
    return _name_of_number(number) if np.isfinite(number) else text


def _name_of_number(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _name_of_moment(moment: int) -> str:
    try:
        found = _EPOCH + dt.timedelta(microseconds=moment)
    except OverflowError:  # before the year 1 or behind 9999
        return str(np.datetime64(moment, "us"))
    return str(found.date() if moment % MICROSECONDS_A_DAY == 0 else found)


def _microseconds(cell: Any) -> int | None:
    """A date or a time in microseconds since 1970-01-01 UTC; None for anything else."""
    if isinstance(cell, str):
        return _microseconds_of_text(cell.strip())
    if cell is pd.NaT:
        return None
    if isinstance(cell, pd.Timestamp):
        cell = (cell if cell.tz is None else cell.tz_convert(None)).to_datetime64()
    if isinstance(cell, np.datetime64):
        return None if np.isnat(cell) else int(cell.astype("datetime64[us]").astype(np.int64))
    if isinstance(cell, dt.datetime):
        shift = cell.utcoffset() or dt.timedelta(0)
        return (cell.replace(tzinfo=None) - _EPOCH - shift) // _MICROSECOND
    if isinstance(cell, dt.date):
        return (dt.datetime(cell.year, cell.month, cell.day) - _EPOCH) // _MICROSECOND
    return None


def _microseconds_of_text(text: str) -> int | None:
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        moment = dt.datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0),
            int((fraction or "0").ljust(6, "0")[:6]),
        )  # fmt: skip
    except ValueError:  # a day that no month has
        return None
    east = 0
    if zone is not None and zone != "Z":
        east = int(zone[1:3]) * 60 + int(zone[-2:])
        east = -east if zone[0] == "-" else east
    return (moment - _EPOCH) // _MICROSECOND - east * 60_000_000


def numbers_of_texts(texts: NDArray[Any]) -> NDArray[np.float64] | None:
    """All of some strings (n,) as numbers, quickly, or None where one of them is not plainly one.

    What it gives is what :func:`number_of` gives for each, to the last bit: both ways round to the
    nearest number.
    """
    if _ARROW is not None:
        try:
            quick = _ARROW.array(texts, _ARROW.string()).cast(_ARROW.float64())
        except _ARROW.ArrowException:
            return None
        return np.asarray(quick.to_numpy(zero_copy_only=False), dtype=np.float64)
    try:
        numbers = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None
    return None if "_" in " ".join(texts) else numbers
