"""Numbers, dates and booleans as people write them: ``3.152,55``, ``12,4 %``, ``24.12.2024``, yes.

Invariant: how the cells of a column are written is decided once, on the training rows, and kept
with the schema as the column's *writing*; a cell is then read by that writing alone, so "1,234"
never depends on the cells around it.

========  ==========================================================================
writing   what is read
========  ==========================================================================
``""``    numbers as programs write them, dates in ISO 8601
``"."``   numbers with a decimal point, groups by a comma, a space or an apostrophe
``","``   numbers with a decimal comma, groups by a point, a space or an apostrophe
``words`` booleans in words: yes and no, ja and nein, oui and non, ..
``ymd``   dates, the year first, in ISO 8601 or with slashes
``dmy``   dates, the day first: 24.12.2024, 24/12/2024 13:05
``mdy``   dates, the month first: 12/24/2024
========  ==========================================================================

Numbers may have a percent sign behind them, which is only taken away.
"""

import datetime as dt
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.cells import is_blank

_ARROW: Any = None  # reads numbers ten times as fast as Python, where it is installed
if find_spec("pyarrow") is not None:
    import pyarrow
    import pyarrow.compute

    _ARROW = pyarrow

POINT, COMMA, WORDS = ".", ",", "words"
YEAR_FIRST, DAY_FIRST, MONTH_FIRST = "ymd", "dmy", "mdy"
WRITINGS: Mapping[str, tuple[str, ...]] = {
    "number": ("", POINT, COMMA, WORDS),
    "date": ("", YEAR_FIRST, DAY_FIRST, MONTH_FIRST),
}
IN_WORDS = {
    POINT: "with decimal points", COMMA: "with decimal commas", WORDS: "yes or no",
    DAY_FIRST: "the day first", MONTH_FIRST: "the month first",
}  # fmt: skip

_TRUE = ("true", "yes", "y", "ja", "j", "oui", "si", "sí", "sim", "wahr", "vrai", "verdadero", "on")
_FALSE = ("false", "no", "n", "nein", "non", "não", "nao", "falsch", "faux", "falso", "off", "nee")
_WORDS = {**dict.fromkeys(_TRUE, 1.0), **dict.fromkeys(_FALSE, 0.0)}
_SPACES = " \u00a0\u2009\u202f'\u2019"  # between the groups of a number, whatever its decimal sign
_MINUS = "\u2212"
_LOOKED_AT = 400  # cells of each column, to see how a whole table is written
_MOST = 0.9


def _numeral(decimal: str, group: str) -> str:
    """The pattern of numbers; a group never begins with a zero, as codes do."""
    groups = f"[{group}{_SPACES}]"
    whole = rf"(?:[1-9][0-9]{{0,2}}(?:{groups}[0-9]{{3}})+|[0-9]+)"
    fraction = rf"{re.escape(decimal)}[0-9]+"
    return (
        rf"[ \t]*[+\-{_MINUS}]?(?:{whole}(?:{fraction}|{re.escape(decimal)})?|{fraction})"
        rf"(?:[eE][+-]?[0-9]+)?[{_SPACES}]*%?[ \t]*"
    )


_PATTERNS = {POINT: _numeral(".", ","), COMMA: _numeral(",", ".")}
_COMPILED = {writing: re.compile(pattern) for writing, pattern in _PATTERNS.items()}
_DROPPED = {POINT: rf"[,%\s{_SPACES}]", COMMA: rf"[.%\s{_SPACES}]"}
_TIME = r"(?:[T ,]+(\d\d?):(\d\d)(?::(\d\d))?(?:\.\d+)?)?"
_DATES = {
    YEAR_FIRST: re.compile(rf"\s*(\d{{4}})([/.])(\d\d?)\2(\d\d?){_TIME}\s*", re.ASCII),
    DAY_FIRST: re.compile(rf"\s*(\d\d?)([/.-])(\d\d?)\2(\d{{4}}|\d\d){_TIME}\s*", re.ASCII),
    MONTH_FIRST: re.compile(rf"\s*(\d\d?)([/-])(\d\d?)\2(\d{{4}}|\d\d){_TIME}\s*", re.ASCII),
}
_CENTURY_ENDS = 69  # a year of two digits up to this is of this century
_EPOCH = dt.datetime(1970, 1, 1)
_SECONDS_A_DAY = 86_400


# ---- one cell ------------------------------------------------------------------------------------


def read_numeral(text: str, writing: str) -> float | None:
    """A string as a number of a writing, NaN where it is blank, None where it is no number.

    Examples
    --------
    >>> [read_numeral(text, ",") for text in ("3.152,55", "12,4 %", "7,7", "1 234", "1.5", "x")]
    [3152.55, 12.4, 7.7, 1234.0, None, None]
    >>> [read_numeral(text, ".") for text in ("3,152.55", "12.4%", "1,5", "-")]
    [3152.55, 12.4, None, nan]
    >>> [read_numeral(text, "words") for text in ("Yes", " nein", "", "perhaps")]
    [1.0, 0.0, nan, None]
    """
    if writing == WORDS:
        found = _WORDS.get(text.strip().casefold())
        return np.nan if found is None and is_blank(text) else found
    if _COMPILED[writing].fullmatch(text):
        bare = re.sub(_DROPPED[writing], "", text).replace(_MINUS, "-")
        return float(bare.replace(",", "."))
    return np.nan if is_blank(text) else None


def read_day(text: str, writing: str) -> float | None:
    """A string as days since 1970-01-01 by a writing, NaN where blank, None where it is no date.

    Examples
    --------
    >>> read_day("02.01.1970", "dmy"), read_day("1/2/1970 12:00", "mdy")
    (1.0, 1.5)
    """
    found = _DATES[writing].fullmatch(text)
    if found is None:
        return np.nan if is_blank(text) else None
    first, _, second, third, hour, minute, seconds = found.groups()
    if writing == YEAR_FIRST:
        year, month, day = int(first), int(second), int(third)
    else:
        year = int(third)
        if len(third) == 2:
            year += 2000 if year <= _CENTURY_ENDS else 1900
        day, month = (int(first), int(second))[:: 1 if writing == DAY_FIRST else -1]
    try:
        moment = dt.datetime(year, month, day, int(hour or 0), int(minute or 0), int(seconds or 0))
    except ValueError:  # a day that no month has
        return None
    return (moment - _EPOCH).total_seconds() / _SECONDS_A_DAY


# ---- all cells of a column -----------------------------------------------------------------------


def read_written(
    cells: NDArray[Any], kind: str, writing: str, otherwise: Callable[[Any], float | None]
) -> Any:
    """The value of each cell of a column with a writing, NaN where missing, None where it is none.

    Parameters
    ----------
    cells : array of objects, shape (n,)
    kind : {"number", "date"}
    writing : str
        Of the column; not the empty one.
    otherwise : callable
        Reads what is no string; of dates also what is written in ISO 8601.
    """
    if kind == "date":

        def read(cell: Any) -> float | None:
            value = otherwise(cell)
            return read_day(cell, writing) if value is None and isinstance(cell, str) else value

        return list(map(read, cells))
    quick = _quick_numbers(cells, writing)
    if quick is not None:
        return quick
    return [
        read_numeral(cell, writing) if isinstance(cell, str) else otherwise(cell) for cell in cells
    ]


def _quick_numbers(cells: NDArray[Any], writing: str) -> NDArray[np.float64] | None:
    """All cells at once, where every one of them is a string and a number."""
    if _ARROW is None or writing not in _PATTERNS or len(cells) == 0:
        return None
    try:
        texts = _ARROW.array(cells, _ARROW.string())
    except (_ARROW.ArrowException, TypeError, UnicodeError):
        return None
    compute = _ARROW.compute
    if (
        texts.null_count
        or not compute.all(
            compute.match_substring_regex(texts, f"^(?:{_PATTERNS[writing]})$")
        ).as_py()
    ):
        return None
    bare = compute.replace_substring_regex(texts, _DROPPED[writing], "")
    bare = compute.replace_substring(compute.replace_substring(bare, ",", "."), _MINUS, "-")
    try:
        numbers = bare.cast(_ARROW.float64())
    except _ARROW.ArrowException:  # a plus sign, which only Python reads
        return None
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


# ---- deciding ------------------------------------------------------------------------------------


def decide_writing(
    cells: NDArray[Any],
    counts: NDArray[np.int64],
    kind: str,
    decimal: str | None,
    read_plain: Callable[[], Any],
    otherwise: Callable[[Any], float | None],
) -> tuple[str, Any]:
    """How a column is written if it holds numbers, or dates, and what its cells then are.

    Parameters
    ----------
    cells, counts : array, shape (n,)
        Different cells of training rows, and how often each stands there.
    kind : {"number", "date"}
    decimal : {".", ","} or None
        The decimal sign of the rest of the table, where that is known. It settles what could be
        read in two ways: "1.234" is a thousand and more beside columns such as "3,5".
    read_plain : callable
        Gives the values of the cells as programs write them, (n,).
    otherwise : callable
        Reads a cell that is no string.

    Returns
    -------
    writing : str
    values : sequence, shape (n,)
        None where a cell is none of its kind.
    """
    if kind == "number" and decimal == COMMA:
        quick = _quick_numbers(cells, COMMA)
        if quick is not None:
            return COMMA, quick
    plain = read_plain()
    if kind == "number" and decimal != COMMA and isinstance(plain, np.ndarray):
        return "", plain
    texts = np.array([isinstance(cell, str) for cell in cells], dtype=bool)
    if not texts.any():
        return ("" if kind == "number" else YEAR_FIRST), plain
    wrong = _wrong(plain)
    if kind == "date":
        best, values = YEAR_FIRST, plain
        if not wrong.any() or not _has_digits(cells[wrong & texts]):
            return best, values
        order: tuple[str, ...] = (YEAR_FIRST, *_orders(cells[texts], decimal))
    else:
        best, values = "", plain
        order = (COMMA, POINT) if decimal == COMMA else (POINT, COMMA)
        if decimal != COMMA and not wrong.any():
            return best, values
        if not _has_digits(cells[texts]):
            return _in_words(cells, counts, texts, otherwise, values)
    least = counts[wrong].sum()
    for writing in order:
        found = read_written(cells, kind, writing, otherwise)
        unread = counts[_wrong(found)].sum()
        # what programs write comes first, unless the table says that it means something else
        preferred = writing == COMMA == decimal and best == ""
        if unread < least or (preferred and unread == least):
            best, values, least = writing, found, unread
    return best, values


def _in_words(
    cells: NDArray[Any],
    counts: NDArray[np.int64],
    texts: NDArray[np.bool_],
    otherwise: Callable[[Any], float | None],
    plain: Any,
) -> tuple[str, Any]:
    """Booleans in words, where every cell is one: a third answer makes all of them categories."""
    if not texts.all():
        return "", plain
    found = read_written(cells, "number", WORDS, otherwise)
    values = {value for value in found if value is not None and value == value}
    return (WORDS, found) if None not in found and values == {0.0, 1.0} else ("", plain)


def _wrong(values: Any) -> NDArray[np.bool_]:
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return np.zeros(len(values), dtype=bool)
    return np.array([value is None for value in values], dtype=bool)


def _has_digits(cells: NDArray[Any]) -> bool:
    """Whether the cells could be numbers or dates: most of those looked at hold a digit."""
    shown = [cell for cell in cells[:_LOOKED_AT] if isinstance(cell, str) and not is_blank(cell)]
    with_digits = sum(any(sign.isdigit() for sign in cell[:40]) for cell in shown)
    return with_digits > 0.5 * len(shown)


def _orders(cells: NDArray[Any], decimal: str | None) -> tuple[str, str]:
    """Which of day and month is tried first, as it wins where both could be."""
    with_slash = any(isinstance(cell, str) and "/" in cell for cell in cells[:_LOOKED_AT])
    if with_slash and decimal != COMMA:
        return MONTH_FIRST, DAY_FIRST
    return DAY_FIRST, MONTH_FIRST


def decimal_sign(table: pd.DataFrame) -> str | None:
    """The decimal sign of a table, by the columns that leave no doubt; None without any.

    Examples
    --------
    >>> decimal_sign(pd.DataFrame({"a": ["1,5", "22,75"], "b": ["1.200", "3.400"]}))
    ','
    >>> decimal_sign(pd.DataFrame({"a": ["1.5", "22.75"], "b": ["x", "y"]}))
    '.'
    """
    votes = {POINT: 0, COMMA: 0}
    for i in range(table.shape[1]):
        column = table.iloc[:, i]
        if not (
            pd.api.types.is_object_dtype(column.dtype) or isinstance(column.dtype, pd.StringDtype)
        ):
            continue
        shown = [
            cell
            for cell in column.iloc[:_LOOKED_AT]
            if isinstance(cell, str) and not is_blank(cell)
        ]
        if not shown:
            continue
        read = {
            sign: sum(_COMPILED[sign].fullmatch(cell) is not None for cell in shown)
            for sign in votes
        }
        best = max(read, key=lambda sign: read[sign])
        if read[best] >= _MOST * len(shown) and len(set(read.values())) == 2:
            votes[best] += 1
    if votes[POINT] == votes[COMMA]:
        return None
    return max(votes, key=lambda sign: votes[sign])
