"""Predictions as lines of CSV that a spreadsheet reads as what they are."""

from collections.abc import Iterator, Sequence
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a cell begins with that is run, not shown


def csv_lines(table: Any, *, header: bool, digits: Sequence[str], safe: bool) -> Iterator[str]:
    r"""The lines of a table: texts in quotes, numbers without.

    Parameters
    ----------
    table : DataFrame
    header : bool
        Whether the first line has the names of the columns.
    digits : sequence of str
        The columns whose numbers have six significant digits; others are written in full.
    safe : bool
        Whether texts that a spreadsheet would run as a formula get an apostrophe before them,
        which it takes for the beginning of a text.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"prediction": ["=1+1", "low"], "probability_low": [1 / 3, 1.0]})
    >>> print(*csv_lines(table, header=True, digits=["probability_low"], safe=True), sep="")
    prediction,probability_low
    "'=1+1",0.333333
    "low",1
    <BLANKLINE>
    """
    if header:
        yield ",".join(_name(harmless(str(name)) if safe else str(name)) for name in table) + "\n"
    short = [name in digits for name in table]
    for row in table.itertuples(index=False, name=None):
        cells = (_cell(value, few, safe) for value, few in zip(row, short, strict=True))
        yield ",".join(cells) + "\n"


def harmless(text: str) -> str:
    """A text that no spreadsheet runs; numbers stay what they are.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-1.5"), harmless("low")
    ("'=1+1", '-1.5', 'low')
    """
    if not text.startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _cell(value: Any, few: bool, safe: bool) -> str:
    if value is None or value != value:  # what is missing is not equal to itself
        return ""
    if isinstance(value, str):
        return _quoted(harmless(value) if safe else value)
    if few:
        return f"{value:.6g}"
    number = value.item() if hasattr(value, "item") else value
    return str(number) if isinstance(number, (bool, int, float)) else _quoted(str(number))


def _name(text: str) -> str:
    return _quoted(text) if any(sign in text for sign in ',"\r\n') else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
