"""Numbers, dates and booleans as people write them: ``€ 3.152,55``, ``12,4 %``, ``24.12.24``, yes.

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
``month`` dates with the month in words: 24 Dec 2024, December 24, 2024, 24. Dezember 2024
========  ==========================================================================

Numbers may have a percent sign behind them, or the sign of a currency before or behind them, which
are only taken away.
"""

import datetime as dt
import re
import unicodedata
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
YEAR_FIRST, DAY_FIRST, MONTH_FIRST, MONTH_IN_WORDS = "ymd", "dmy", "mdy", "month"
WRITINGS: Mapping[str, tuple[str, ...]] = {
    "number": ("", POINT, COMMA, WORDS),
    "date": ("", YEAR_FIRST, DAY_FIRST, MONTH_FIRST, MONTH_IN_WORDS),
}
IN_WORDS = {
    POINT: "with decimal points", COMMA: "with decimal commas", WORDS: "yes or no",
    DAY_FIRST: "the day first", MONTH_FIRST: "the month first",
    MONTH_IN_WORDS: "the month in words",
}  # fmt: skip

_TRUE = ("true", "yes", "y", "ja", "j", "oui", "si", "sí", "sim", "wahr", "vrai", "verdadero", "on")
_FALSE = ("false", "no", "n", "nein", "non", "não", "nao", "falsch", "faux", "falso", "off", "nee")
_WORDS = {**dict.fromkeys(_TRUE, 1.0), **dict.fromkeys(_FALSE, 0.0)}
_SPACES = " \u00a0\u2009\u202f'\u2019"  # between the groups of a number, whatever its decimal sign
_MINUS = "\u2212"
_CURRENCY_SIGNS = "€$£¥₹₽₩₺₪₫₴฿"
# longer ones first, as a pattern takes the first that fits
_CURRENCY_NAMES = (
    "EUR", "USD", "GBP", "CHF", "JPY", "CNY", "INR", "BRL", "CAD", "AUD", "NZD", "SEK", "NOK",
    "DKK", "PLN", "CZK", "HUF", "TRY", "ZAR", "MXN", "KRW", "SGD", "HKD", "US$", "R$", "kr.", "kr",
    "Fr.", "zł", "Kč", "Ft",
)  # fmt: skip
_LOOKED_AT = 400  # cells of each column, to see how a whole table is written
_MOST = 0.9


def _numeral(decimal: str, group: str) -> str:
    """The pattern of numbers; a group never begins with a zero, as codes do."""
    groups = f"[{group}{_SPACES}]"
    space = f"[{_SPACES}]*"
    whole = rf"(?:[1-9][0-9]{{0,2}}(?:{groups}[0-9]{{3}})+|[0-9]+)"
    fraction = rf"{re.escape(decimal)}[0-9]+"
    return (
        rf"[ \t]*(?:{_CURRENCY}{space})?[+\-{_MINUS}]?(?:{_CURRENCY}{space})?"
        rf"(?:{whole}(?:{fraction}|{re.escape(decimal)})?|{fraction})"
        rf"(?:[eE][+-]?[0-9]+)?{space}(?:%|{_CURRENCY})?[ \t]*"
    )


_CURRENCY = f"(?:[{_CURRENCY_SIGNS}]|{'|'.join(map(re.escape, _CURRENCY_NAMES))})"
_PATTERNS = {POINT: _numeral(".", ","), COMMA: _numeral(",", ".")}
_COMPILED = {writing: re.compile(pattern) for writing, pattern in _PATTERNS.items()}
_CURRENCY_AMONG = re.compile(_CURRENCY)
_ADDED = rf"{_CURRENCY}|[%\s{_SPACES}]"  # what stands around numbers
_DROPPED = {POINT: f"{_ADDED}|,", COMMA: rf"{_ADDED}|\."}
_TIME = r"(?:[T ,]+(\d\d?):(\d\d)(?::(\d\d))?(?:\.\d+)?)?"
_DATES = {
    YEAR_FIRST: re.compile(rf"\s*(\d{{4}})([/.])(\d\d?)\2(\d\d?){_TIME}\s*", re.ASCII),
    DAY_FIRST: re.compile(rf"\s*(\d\d?)([/.-])(\d\d?)\2(\d{{4}}|\d\d){_TIME}\s*", re.ASCII),
    MONTH_FIRST: re.compile(rf"\s*(\d\d?)([/-])(\d\d?)\2(\d{{4}}|\d\d){_TIME}\s*", re.ASCII),
}
# January to December in seven languages, without accents.
_MONTH_NAMES = (
    "january february march april may june july august september october november december",
    "januar februar marz april mai juni juli august september oktober november dezember",
    "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
)


def _month_numbers() -> dict[str, int]:
    """The month of each name and of its first letters, three or more that leave no doubt."""
    known: dict[str, set[int]] = {"mrt": {3}, "janner": {1}, "maerz": {3}}
    for names in _MONTH_NAMES:
        for month, name in enumerate(names.split(), 1):
            for length in range(3, len(name) + 1):
                known.setdefault(name[:length], set()).add(month)
    return {name: min(months) for name, months in known.items() if len(months) == 1}


_MONTHS = _month_numbers()
_WEEKDAY = r"(?:[^\W\d_]{2,10}\.?,?\s+)?"
_BETWEEN = r"[\s.,/\-]+"
_WITH_MONTH = (
    re.compile(
        rf"\s*{_WEEKDAY}(?P<day>\d\d?)(?:st|nd|rd|th|er|º|\.)?{_BETWEEN}(?:de\s+)?"
        rf"(?P<month>[^\W\d_]{{3,10}}){_BETWEEN}(?:de\s+)?(?P<year>\d{{4}}|\d\d){_TIME}\s*"
    ),
    re.compile(
        rf"\s*{_WEEKDAY}(?P<month>[^\W\d_]{{3,10}}){_BETWEEN}(?P<day>\d\d?)(?:st|nd|rd|th)?"
        rf"{_BETWEEN}(?P<year>\d{{4}}){_TIME}\s*"
    ),
)
_CENTURY_ENDS = 69  # a year of two digits up to this is of this century
_LONGEST_DATE = 60  # characters of a date with its weekday and its time
_ISO = re.compile(r"\s*\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.{0,22})?\s*", re.ASCII)
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
    >>> read_numeral("€ 3.152,55", ","), read_numeral("-$1,234", "."), read_numeral("9 EUR", ".")
    (3152.55, -1234.0, 9.0)
    >>> [read_numeral(text, "words") for text in ("Yes", " nein", "", "perhaps")]
    [1.0, 0.0, nan, None]
    """
    if writing == WORDS:
        number = _WORDS.get(text.strip().casefold())
        return np.nan if number is None and is_blank(text) else number
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
    >>> read_day("2 Jan 1970", "month"), read_day("January 2nd, 1970 12:00", "month")
    (1.0, 1.5)
    """
    parts = _with_month(text) if writing == MONTH_IN_WORDS else _in_digits(text, writing)
    if parts is None:
        return np.nan if is_blank(text) else None
    year, month, day, *time = parts
    hour, minute, second = (int(part or 0) for part in time)
    try:
        moment = dt.datetime(_full_year(year), month, day, hour, minute, second)
    except ValueError:  # a day that no month has
        return None
    return (moment - _EPOCH).total_seconds() / _SECONDS_A_DAY


def _in_digits(text: str, writing: str) -> tuple[Any, ...] | None:
    """Year (as digits), month, day, hour, minute and second of a date in digits."""
    match = _DATES[writing].fullmatch(text)
    if match is None:
        return None
    first, _, second, third, *time = match.groups()
    if writing == YEAR_FIRST:
        return first, int(second), int(third), *time
    day, month = (int(first), int(second))[:: 1 if writing == DAY_FIRST else -1]
    return third, month, day, *time


def _with_month(text: str) -> tuple[Any, ...] | None:
    """The same of a date with the month in words."""
    if len(text) > _LONGEST_DATE:
        return None
    for pattern in _WITH_MONTH:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        letters = unicodedata.normalize("NFKD", match["month"].casefold())
        month = _MONTHS.get("".join(sign for sign in letters if not unicodedata.combining(sign)))
        if month is not None:
            return match["year"], month, int(match["day"]), *match.groups()[-3:]
    return None


def _full_year(digits: str) -> int:
    year = int(digits)
    if len(digits) > 2:
        return year
    return year + (2000 if year <= _CENTURY_ENDS else 1900)


def is_spelled(text: str) -> bool:
    """Whether a string is a number or a date in any writing.

    Examples
    --------
    >>> [is_spelled(text) for text in ("€ 3,50", "12 Mar 2024", "2024-03-12 08:00", "R-000012")]
    [True, True, True, False]
    """
    return (
        any(pattern.fullmatch(text) is not None for pattern in _COMPILED.values())
        or _ISO.fullmatch(text) is not None
        or any((read_day(text, writing) or 0) != 0 for writing in (*_DATES, MONTH_IN_WORDS))
    )


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
    if not _could_be(cells, counts, kind, otherwise):
        return "", [None] * len(cells)
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
        order: tuple[str, ...] = (YEAR_FIRST, *_orders(cells[texts], decimal), MONTH_IN_WORDS)
    else:
        best, values = "", plain
        order = (COMMA, POINT) if decimal == COMMA else (POINT, COMMA)
        if decimal != COMMA and not wrong.any():
            return best, values
        if not _has_digits(cells[texts]):
            return _in_words(cells, counts, texts, otherwise, values)
    least = counts[wrong].sum()
    for writing in order:
        numbers = read_written(cells, kind, writing, otherwise)
        unread = counts[_wrong(numbers)].sum()
        # what programs write comes first, unless the table says that it means something else
        preferred = writing == COMMA == decimal and best == ""
        if unread < least or (preferred and unread == least):
            best, values, least = writing, numbers, unread
    return best, values


def _could_be(
    cells: NDArray[Any],
    counts: NDArray[np.int64],
    kind: str,
    otherwise: Callable[[Any], float | None],
) -> bool:
    """Whether a column of many different cells has any that could be of a kind.

    Those looked at are the most frequent ones, and some from all over the column: where most rows
    hold a number, or a date, there is one among them.
    """
    if len(cells) <= 2 * _LOOKED_AT:
        return True
    frequent = np.argpartition(counts, -_LOOKED_AT)[-_LOOKED_AT:]
    spaced = np.linspace(0, len(cells) - 1, _LOOKED_AT).astype(np.int64)
    looked_at = cells[np.concatenate([frequent, spaced])]
    writings = WRITINGS[kind][1:]
    if any(otherwise(cell) is not None for cell in looked_at):
        return True
    return any(
        value is not None
        for writing in writings
        for value in read_written(looked_at, kind, writing, otherwise)
    )


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
    numbers = read_written(cells, "number", WORDS, otherwise)
    values = {value for value in numbers if value is not None and value == value}
    return (WORDS, numbers) if None not in numbers and values == {0.0, 1.0} else ("", plain)


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


def currencies_of(cells: NDArray[Any]) -> set[str]:
    """The signs and names of currencies that stand beside numbers in cells (n,).

    Examples
    --------
    >>> sorted(currencies_of(np.array(["$ 5", "7 EUR", "8"], dtype=object)))
    ['$', 'EUR']
    """
    return {
        match[0]
        for cell in cells
        if isinstance(cell, str) and (match := _CURRENCY_AMONG.search(cell)) is not None
    }


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
