"""Tables as people have them, and what they become."""

import numpy as np
import pandas as pd
import pytest

from echelon.data.missing_codes import MISSING_CODES
from echelon.data.schema import TableSchema


def test_arrays_of_any_kind() -> None:
    for array in (
        np.arange(6).reshape(3, 2),
        np.arange(6.0).reshape(3, 2).astype(object),
        np.array([["a", "1"], ["b", "2"], ["a", "3"]]),
    ):
        schema = TableSchema.of(array)
        assert len(schema.read(array)) == 3
    assert TableSchema.of(np.array([["a", 1.5], ["b", None]], dtype=object)).categorical


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"gap": pd.to_timedelta(["1 day"])}), "column 'gap' holds durations.*--drop"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "several columns named 'a'"),
        (pd.DataFrame(index=[0, 1]), "minimum of 1"),
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros(3), "Expected 2D array"),
        (np.array([[1j]]), "Complex data not supported"),
    ],
)
def test_what_is_refused_in_training(table, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TableSchema.of(table)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": np.inf}, "column 'size' contains infinity"),
        ({"count": [[1, 2]] * 4}, "column 'count' holds lists.*drop the column"),
        ({"colour": [{"r": 1}] * 4}, "column 'colour' holds structs.*drop the column"),
        (None, "lacks the column 'size' and 4 others"),
    ],
)
def test_what_is_refused_in_prediction(frame: pd.DataFrame, change, message: str) -> None:
    schema = TableSchema.of(frame)
    rows = frame[["same"]] if change is None else frame.assign(**change)
    with pytest.raises(ValueError, match=message):
        schema.read(rows)


def test_frames_of_numbers_alone_are_read_as_those_beside_texts() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=50),
            "b": rng.integers(0, 9, size=50),
            "c": rng.normal(size=50) > 0,
            "d": rng.normal(size=50).astype(np.float32),
        }
    )
    frame.loc[3, "a"] = np.nan
    schema = TableSchema.of(frame)
    expected = schema.read(frame.assign(name="x")).numbers
    for given in (frame, frame[["d", "a", "c", "b"]], frame.assign(more=1.5)):
        numbers = schema.read(given).numbers
        np.testing.assert_array_equal(numbers, expected)
        assert numbers.flags.writeable
        assert numbers.flags.c_contiguous
    frame.loc[7, "d"] = np.inf
    with pytest.raises(ValueError, match="column 'd' contains infinity"):
        schema.read(frame)


def test_names_that_are_no_strings_are_read_by_what_they_say() -> None:
    frame = pd.DataFrame({0: [1.0, 2.0, 4.0], 1: ["a", "b", "a"]})
    schema = TableSchema.of(frame)
    np.testing.assert_array_equal(
        schema.read(frame[[1, 0]].rename(columns=str)).numbers, schema.read(frame).numbers
    )
    twins = pd.DataFrame([[1.0, "a", 3.0]], columns=[0, 1, "0"])
    with pytest.raises(ValueError, match="several columns named '0'"):
        schema.read(twins)


def test_columns_without_a_frame_are_read_as_those_of_one() -> None:
    frame = pd.DataFrame(
        {
            "size": [1.5, np.nan, 3.0, 4.0], "count": np.array([1, 2, 3, 99]),
            "is_big": [True, False, True, True], "written": ["1", "", "2.5", "3"],
            "kind": ["red", "blue", None, "green"], "mixed": [1, "1.0", True, "x"],
            "day": ["2024-02-29", None, "2024-03-01", "2024-03-02 12:00"],
        }
    )  # fmt: skip
    frame.attrs[MISSING_CODES] = {"count": ("99",), "kind": ("green",)}
    schema = TableSchema.of(frame)
    columns = {name: frame[name].to_numpy() for name in ("size", "count", "is_big")}
    columns |= {name: frame[name].to_numpy(dtype=object) for name in frame if name not in columns}
    expected, read = schema.read(frame), schema.read_columns(columns)
    assert np.isnan(expected.numbers[3, 1])
    assert expected.codes[3, 0] == 0
    np.testing.assert_array_equal(read.numbers, expected.numbers)
    np.testing.assert_array_equal(read.codes, expected.codes)
    assert read.numbers.dtype == expected.numbers.dtype
    with pytest.raises(ValueError, match="column 'size' contains infinity"):
        schema.read_columns({**columns, "size": np.array([1.0, np.inf, 2.0, 3.0])})
    with pytest.warns(UserWarning, match="column 'written' holds numbers, and 1 of its cells"):
        schema.read_columns({**columns, "written": np.array(["1", "x", "2", ""], dtype=object)})
