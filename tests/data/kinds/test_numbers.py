"""Which cells are numbers, and that the quick way reads what the careful one does."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon.data.kinds.numbers import number_of, numbers_of_texts


@pytest.mark.parametrize(
    ("cells", "number"),
    [
        (("1.5", " 1.50 ", 1.5, np.float32(1.5), Decimal("1.5"), "15e-1"), 1.5),
        ((True, "True", "TRUE", "true", np.True_, 1, "1", "01"), 1.0),
        (
            (None, np.nan, pd.NA, pd.NaT, "", "  ", "?", "-", ".", "NA", "n/a", "NULL", "None"),
            np.nan,
        ),
        (("many", "1_000", "2020-01-01", dt.date(2020, 1, 1), "1,5", "0x10"), None),
        (("inf", np.inf, 10**400, "1e999"), np.inf),
    ],
)
def test_numbers(cells, number: float | None) -> None:
    for cell in cells:
        found = number_of(cell)
        assert found is number or found == pytest.approx(number, nan_ok=True), cell


@given(st.text(alphabet="0123456789+-._ eEtrufalsnaNif:TZ?", max_size=20) | st.text(max_size=8))
def test_any_string_is_the_same_number_read_quickly_and_alone(text: str) -> None:
    number = number_of(text)
    quick = numbers_of_texts(np.array([text], dtype=object))
    if quick is not None:
        assert number is not None
        np.testing.assert_array_equal(quick[0], number)
