"""What a column is, decided by most of its cells, and what its other cells become."""

import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from echelon.data.schema import MAX_CATEGORIES, TableSchema


def test_rare_categories_share_the_code_of_the_unknown() -> None:
    many = pd.DataFrame({"id": [f"n{i}" for i in range(500)] + ["often"] * 9})
    schema = TableSchema.of(many)
    assert len(schema.columns[0].categories) == MAX_CATEGORIES
    assert "often" in schema.columns[0].categories
    assert (schema.read(many).codes == 0).sum() == 509 - 9 - (MAX_CATEGORIES - 1)


@pytest.mark.parametrize("odd", ["many", pd.Timestamp("2020-01-01"), "2020-01-01"])
def test_a_cell_that_is_no_number_is_missing_and_said(frame: pd.DataFrame, odd) -> None:
    """As a file that was fitted on may hold such cells, and each row means the same alone."""
    schema = TableSchema.of(frame)
    changed = frame.assign(count=[1, odd, 3, 4])
    with pytest.warns(UserWarning, match="column 'count' holds numbers, and 1 of its cells"):
        found = schema.read(changed)
    expected = schema.read(frame.assign(count=[1, None, 3, 4]))
    np.testing.assert_array_equal(found.numbers, expected.numbers)


@pytest.mark.parametrize("odd", ["?", "-", "n.k."])
def test_one_odd_cell_does_not_turn_numbers_into_categories(odd: str) -> None:
    values = np.random.default_rng(0).normal(size=1000)
    cells = [str(value) for value in values]
    cells[17] = odd
    with pytest.warns(
        UserWarning, match=rf"1 of its cells .* such as '{re.escape(odd)}': this counts"
    ):
        schema = TableSchema.of(pd.DataFrame({"a": cells}))
    assert schema.columns[0].kind == "number"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = schema.read(pd.DataFrame({"a": cells})).numbers[:, 0]
    assert np.flatnonzero(np.isnan(found)).tolist() == [17]
    np.testing.assert_array_equal(np.delete(found, 17), np.delete(values, 17))


def test_a_tenth_of_other_cells_makes_categories() -> None:
    cells = pd.DataFrame({"a": ["1", "2"] * 8 + ["x", "y"]})
    assert TableSchema.of(cells).columns[0].categories == ("1", "2", "x", "y")


def test_few_codes_with_leading_zeros_make_categories_and_it_is_said() -> None:
    cells = pd.DataFrame({"zip": ["02139"] + ["10001", "94103"] * 10})
    with pytest.warns(UserWarning, match=r"column 'zip' holds codes .* 1 of them, such as '02139'"):
        schema = TableSchema.of(cells)
    assert schema.columns[0].categories == ("02139", "10001", "94103")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableSchema.of(pd.DataFrame({"code": ["01", "02", "A1"]}))


def test_dates_are_days_in_every_type() -> None:
    texts = ["2020-01-01", "2020-01-02 12:00:00", None, "1969-12-31"]
    moments = pd.to_datetime(pd.Series(texts), format="ISO8601")
    in_paris = moments.dt.tz_localize("UTC").dt.tz_convert("Europe/Paris")
    expected = [18262.0, 18263.5, np.nan, -1.0]
    for fitted in (pd.Series(texts, dtype=object), moments, moments.astype(object), in_paris):
        schema = TableSchema.of(pd.DataFrame({"day": fitted}))
        assert schema.columns[0].kind == "date"
        for column in (pd.Series(texts, dtype=object), moments, moments.astype(object), in_paris):
            found = schema.read(pd.DataFrame({"day": column})).numbers[:, 0]
            np.testing.assert_array_equal(found, expected)


def test_decimals_are_numbers_and_booleans_beside_missing_ones_too() -> None:
    frame = pd.DataFrame(
        {
            "price": [Decimal("1.10"), Decimal("2"), None],
            "flag": pd.Series([True, None, False], dtype=object),
            "word": ["TRUE", "false", ""],
            "none": [None, None, None],
        }
    )
    schema = TableSchema.of(frame)
    assert {column.kind for column in schema.columns} == {"number"}
    np.testing.assert_array_equal(
        schema.read(frame).numbers,
        [[1.1, 1, 1, np.nan], [2, np.nan, 0, np.nan], [np.nan, 0, np.nan, np.nan]],
    )
