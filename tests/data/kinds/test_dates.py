"""Which cells are dates: the same moment in every way that people write it."""

import datetime as dt

import numpy as np
import pandas as pd

from echelon.data.kinds.dates import DATES, days_of, microseconds_of, name_of_moment


def test_moments() -> None:
    aware = dt.datetime(1970, 1, 1, 6, tzinfo=dt.timezone(dt.timedelta(hours=-6)))
    for cell in (aware, pd.Timestamp(aware), "1970-01-01 06:00-06:00", "1970-01-01T12:00:00.000"):
        assert days_of(cell) == 0.5
    before = pd.Timestamp("1969-12-31 23:59:59.999999999")
    assert days_of(before) == days_of(str(before)) == -1 / 86_400_000_000
    assert days_of("9999-12-31") == days_of(dt.date(9999, 12, 31)) == 2932896
    assert days_of("2023-02-29") is days_of("20230228") is days_of(5) is None


def test_days_become_the_moments_they_were() -> None:
    days = np.array([0.5, np.nan, -1.0])
    moments = DATES.typed(days)
    assert moments.astype(str).tolist() == [
        "1970-01-01T12:00:00.000000", "NaT", "1969-12-31T00:00:00.000000",
    ]  # fmt: skip
    np.testing.assert_array_equal(DATES.read_typed(pd.Series(moments)), days)


def test_a_moment_is_named_as_a_date_where_it_is_midnight() -> None:
    cells = ("2020-02-29", "2020-02-29T13:05")
    named = [name_of_moment(microseconds_of(cell)) for cell in cells]
    assert named == ["2020-02-29", "2020-02-29 13:05:00"]
