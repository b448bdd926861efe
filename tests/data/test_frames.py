"""Rows as a frame and back."""

import numpy as np
import pandas as pd

from echelon.data.frames import frame_of_rows, rows_of_frame
from echelon.data.schema import TableSchema


def test_there_and_back_is_the_same() -> None:
    table = pd.DataFrame(
        {
            "code": ["01", "02", None, "01"],
            "size": ["1.5", "", "3", "4"],
            "day": ["2024-02-29", "2024-03-01 12:00", "", "2000-01-01"],
            "review": ["so so", None, "good", "bad"],
            "flag": [True, False, True, True],
        }
    )
    schema = TableSchema.of(table, text="review")
    read = schema.read(table)
    frame = frame_of_rows(schema, read)
    assert list(frame.columns) == list(table.columns)
    assert frame["day"].iloc[1] == pd.Timestamp("2024-03-01 12:00")
    assert frame["code"].tolist()[:2] == ["01", "02"]
    assert frame.isna().sum().tolist() == [1, 1, 1, 0, 0]  # a missing text is an empty one
    back = rows_of_frame(schema, frame)
    np.testing.assert_array_equal(back.numbers, read.numbers)
    np.testing.assert_array_equal(back.codes, read.codes)
    assert back.cells["text"].tolist() == read.cells["text"].tolist()
    # whatever rows are taken, and also by the reading that every table goes through
    some = frame.iloc[[3, 0, 0]]
    np.testing.assert_array_equal(rows_of_frame(schema, some).codes, read.codes[[3, 0, 0]])
    again = schema.read(frame)
    np.testing.assert_array_equal(again.numbers, read.numbers)
    np.testing.assert_array_equal(again.codes, read.codes)


def test_the_parts_of_a_date_follow_it() -> None:
    table = pd.DataFrame({"day": pd.to_datetime(["2024-02-29", "2023-12-31", None])})
    schema = TableSchema.of(table)
    frame = frame_of_rows(schema, schema.read(table))
    assert list(frame.columns) == ["day"]
    moved = frame.assign(day=frame["day"] + pd.Timedelta(days=1))
    expected = [[2024, 3, 4], [2024, 1, 0], [np.nan] * 3]  # a Friday and a Monday
    np.testing.assert_array_equal(rows_of_frame(schema, moved).numbers[:, 1:], expected)
