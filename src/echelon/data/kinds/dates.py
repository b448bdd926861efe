"""Dates: which cells are dates, and from the cells of a column to numbers of days.

A date is a number to everything that follows: the days since 1970-01-01, of the time in UTC.
"""

import datetime as dt
import re
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.cells import is_blank, is_missing
from echelon.data.kinds.base import MeasuredKind
from echelon.data.numerals import YEAR_FIRST, decide_writing, read_written

_DATE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?\s?(Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_MICROSECONDS_A_DAY = 86_400_000_000


class Dates(MeasuredKind):
    """Columns of dates and times."""

    name = "date"
    typed_writing = YEAR_FIRST

    def has_dtype(self, dtype: Any) -> bool:
        """Whether a type of columns is one of dates."""
        return pd.api.types.is_datetime64_any_dtype(dtype)

    def decide_writing(
        self, cells: NDArray[Any], counts: NDArray[np.int64], decimal: str | None
    ) -> tuple[str, Any]:
        """How dates are written, and the days that each cell then is."""
        read_plain = partial(self.read_cells, cells)
        return decide_writing(cells, counts, self.name, decimal, read_plain, days_of)

    def read_cells(self, cells: NDArray[Any], writing: str = "") -> Any:
        """The days that each cell is, NaN where it is missing, None where it is no date."""
        if writing:
            return read_written(cells, self.name, writing, days_of)
        return list(map(days_of, cells))

    def read_typed(self, column: "pd.Series[Any]") -> NDArray[np.float64]:
        """The days of a column that has a type of dates, (n,)."""
        if getattr(column.dtype, "tz", None) is not None:
            column = column.dt.tz_convert(None)
        moments = column.to_numpy().astype("datetime64[us]")
        days = moments.astype(np.int64).astype(np.float64) / _MICROSECONDS_A_DAY
        days[np.isnat(moments)] = np.nan
        return days

    def typed(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Days as a column of moments."""
        missing = np.isnan(values)
        microseconds = np.round(np.where(missing, 0, values) * _MICROSECONDS_A_DAY)
        moments = microseconds.astype(np.int64).astype("datetime64[us]")
        moments[missing] = np.datetime64("NaT")
        return moments


DATES = Dates()


def days_of(cell: Any) -> float | None:
    """A cell as days since 1970-01-01, NaN where it is missing, None where it is no date.

    Examples
    --------
    >>> [days_of(cell) for cell in ("1970-01-02", "1970-01-01 12:00", dt.date(1969, 12, 31), "", 5)]
    [1.0, 0.5, -1.0, nan, None]
    >>> days_of("1970-01-01T02:00:00+02:00")
    0.0
    """
    moment = microseconds_of(cell)
    if moment is not None:
        return float(moment) / _MICROSECONDS_A_DAY
    if isinstance(cell, str):
        return np.nan if is_blank(cell) else None
    return np.nan if is_missing(cell) else None


def microseconds_of(cell: Any) -> int | None:
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
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
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


def name_of_moment(moment: int) -> str:
    """Microseconds since 1970-01-01 as in ISO 8601, without the time where it is midnight."""
    try:
        named = _EPOCH + dt.timedelta(microseconds=moment)
    except OverflowError:  # before the year 1 or behind 9999
        return str(np.datetime64(moment, "us"))
    return str(named.date() if moment % _MICROSECONDS_A_DAY == 0 else named)
