"""Dates as numbers: days since 1970-01-01, and the year, the month and the weekday of each day."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTS = ("year", "month", "weekday")
_DAYS_OF_400_YEARS = 146_097
_DAYS_BEFORE_1970 = 719_468  # since the first of March of the year 0


def part_names(name: str) -> list[str]:
    """What the numbers that come from a column of dates are called.

    Examples
    --------
    >>> part_names("visit")
    ['visit (year)', 'visit (month)', 'visit (weekday)']
    """
    return [f"{name} ({part})" for part in PARTS]


def calendar_parts(days: Any, floor: Callable[[Any], Any]) -> Sequence[Any]:
    """Year, month (1 to 12) and weekday (Monday is 0) of days since 1970-01-01.

    Only sums, products and the floor are used, so `days` may be anything that has these: an array,
    or a node of a graph. Years begin in March within, so that the leap day comes last.
    """
    day = floor(days)
    shifted = day + _DAYS_BEFORE_1970
    era = floor(shifted / _DAYS_OF_400_YEARS)
    of_era = shifted - era * _DAYS_OF_400_YEARS
    leaps = floor(of_era / 1460) - floor(of_era / 36_524) + floor(of_era / 146_096)
    year_of_era = floor((of_era - leaps) / 365)
    days_before = year_of_era * 365 + floor(year_of_era / 4) - floor(year_of_era / 100)
    month_from_march = floor(((of_era - days_before) * 5 + 2) / 153)
    is_next_year = floor(month_from_march / 10)
    year = era * 400 + year_of_era + is_next_year
    month = month_from_march + 3 - is_next_year * 12
    weekday = day + 3 - floor((day + 3) / 7) * 7
    return year, month, weekday


def calendar_numbers(days: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Year, month and weekday of days (n,), NaN where a day is.

    Examples
    --------
    >>> [part.tolist() for part in calendar_numbers(np.array([0.0, -1.5, 19_782.0]))]
    [[1970.0, 1969.0, 2024.0], [1.0, 12.0, 2.0], [3.0, 1.0, 3.0]]
    """
    return [np.asarray(part, dtype=np.float64) for part in calendar_parts(days, np.floor)]
