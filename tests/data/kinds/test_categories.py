"""Names and codes of categories: one name for one thing, however it is written."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon.data.kinds.categories import UNKNOWN, codes_of, name_of


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        ((1, 1.0, "1", "1.0", " 1 ", np.int8(1), np.float32(1), Decimal("1.00"), "1e0", "+1"), "1"),
        ((0.1, np.float32(0.1), "0.10", Decimal("0.1"), ".1"), "0.1"),
        (("01",), "01"),
        ((True, np.True_, "True", "true", "TRUE"), "True"),
        ((None, np.nan, pd.NA, pd.NaT, "", " ", "NA", "NaN", "null", "N/A"), None),
        (("none",), "none"),
        (("-",), "-"),
        ((" red",), " red"),
        (
            (dt.date(2020, 1, 2), pd.Timestamp("2020-01-02"), "2020-01-02", "2020-01-02T00:00:00Z",
             np.datetime64("2020-01-02"), dt.datetime(2020, 1, 2)),
            "2020-01-02",
        ),
        ((2**63 + 1, str(2**63 + 1), np.uint64(2**63 + 1)), "9223372036854775809"),
    ],
)  # fmt: skip
def test_names_of_categories(cells, name: str | None) -> None:
    assert [name_of(cell) for cell in cells] == [name] * len(cells)


@given(st.text(alphabet="0123456789+-._ eEtrufalsnaNif:TZ?", max_size=20) | st.text(max_size=8))
def test_a_name_names_itself(text: str) -> None:
    name = name_of(text)
    assert name is None or name_of(name) == name


@pytest.mark.parametrize("dtype", [object, "category", "string"])
def test_codes_are_places_from_one_on_whatever_type_a_column_has(dtype) -> None:
    column = pd.Series(["red", None, "blue", "green"], dtype=dtype)
    assert codes_of(column, ("blue", "red")).tolist() == [2, UNKNOWN, 1, UNKNOWN]


def test_equal_cells_of_several_types_keep_their_names() -> None:
    """Python takes 1, 1.0 and True for one key, and a category "True" is no "1"."""
    column = pd.Series([1, True, "1.0", 1.0], dtype=object)
    assert codes_of(column, ("1", "True")).tolist() == [1, 2, 1, 1]
