"""Predictions as CSV."""

import io

import pandas as pd
import pytest

from echelon.cli.spreadsheets import csv_lines, harmless


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@SUM(A1)", "\t=1", "\r=1", "-1+1"])
def test_what_a_spreadsheet_runs_gets_an_apostrophe(text: str) -> None:
    assert harmless(text) == "'" + text


@pytest.mark.parametrize("text", ["-1.5", "+3", "-1e5", "low", "", "a=b", " =1"])
def test_numbers_and_texts_stay(text: str) -> None:
    assert harmless(text) == text


def test_cells_come_back_as_they_were() -> None:
    odd = ['a,"b"', "two\nlines", "=x", "plain", ""]
    table = pd.DataFrame(
        {"image, path": odd, "prediction": [0.1 + 0.2, 2.0, 1e22, 3.0, float("nan")],
         "probability_a": [1 / 3, 1.0, 0.0, 1e-9, float("nan")]}
    )  # fmt: skip
    text = "".join(csv_lines(table, header=True, digits=["probability_a"], safe=False))
    found = pd.read_csv(io.StringIO(text), keep_default_na=False, na_values={"prediction": [""]})
    assert list(found) == list(table)
    assert found["image, path"].tolist() == odd
    assert found["prediction"].tolist()[:4] == table["prediction"].tolist()[:4]
    assert found["probability_a"].tolist() == ["0.333333", "1", "0", "1e-09", ""]
    numbers = pd.DataFrame({"prediction": pd.Series([1, True, None], dtype=object)})
    lines = list(csv_lines(numbers, header=False, digits=[], safe=True))
    assert lines == ["1\n", "True\n", "\n"]
