"""Numbers, dates and booleans as people write them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon.data.columns import settled
from echelon.data.numerals import WRITINGS, decimal_sign, read_numeral, read_written
from echelon.data.schema import TableSchema


def read(*cells: str, others: dict | None = None) -> tuple[str, str, list]:
    """Kind, writing and values of a column of these cells, each ten times."""
    frame = pd.DataFrame({"a": list(cells) * 10, **(others or {})})
    schema = TableSchema.of(frame)
    values = schema.read(frame)
    column = schema.columns[0]
    numbers = values.numbers[: len(cells), 0].tolist() if values.numbers.size else []
    return column.kind, column.writing, numbers


@pytest.mark.parametrize(
    ("cells", "writing", "values"),
    [
        (("3.152,55", "12,4", "7"), ",", [3152.55, 12.4, 7.0]),
        (("12,4 %", "7,7 %", "100 %"), ",", [12.4, 7.7, 100.0]),
        (("12.4%", "7.7%"), ".", [12.4, 7.7]),
        (("7,7", "10,25"), ",", [7.7, 10.25]),
        (("1 234", "12 345 678"), ".", [1234.0, 12345678.0]),
        (("1\u202f234,5", "12"), ",", [1234.5, 12.0]),
        (("3,152.55", "1,000"), ".", [3152.55, 1000.0]),
        (("1'234.50", "2"), ".", [1234.5, 2.0]),
        (("\u22123,5", "+2,5"), ",", [-3.5, 2.5]),
        (("€ 3.152,55", "€ 12,40", "7 €"), ",", [3152.55, 12.4, 7.0]),
        (("$1,234", "-$12.50", "$7"), ".", [1234.0, -12.5, 7.0]),
        (("1 234,50 kr", "CHF 3,25", "EUR -2,00"), ",", [1234.5, 3.25, -2.0]),
        (("£3.50", "12.25 GBP", "US$ 1,000.00"), ".", [3.5, 12.25, 1000.0]),
        (("1.5", "2"), "", [1.5, 2.0]),
        (("yes", "No", " YES"), "words", [1.0, 0.0, 1.0]),
        (("ja", "nein"), "words", [1.0, 0.0]),
    ],
)
def test_each_style_is_read(cells, writing: str, values: list[float]) -> None:
    assert read(*cells) == ("number", writing, values)


@pytest.mark.parametrize(
    "cells",
    [
        ("030 123", "040 456"), ("1.2.3", "4.5.6"), ("yes", "no", "?!"), ("$", "€"),
        ("Maybe 12 2024", "12 Foo 2024"), ("Model 3 2024", "Marathon 12, 2024"), ("€€5", "5 $ €"),
        ("31 Feb 2024", "30 Feb 2024"),
    ],
)  # fmt: skip
def test_what_only_looks_like_numbers_stays_a_category(cells) -> None:
    assert read(*cells)[0] == "category"


def test_the_rest_of_the_table_settles_what_could_be_read_in_two_ways() -> None:
    assert read("1.234", "2.345")[2] == [1.234, 2.345]
    comma = {"b": ["3,5", "4,25"] * 10}
    assert read("1.234", "2.345", others=comma) == ("number", ",", [1234.0, 2345.0])
    assert read("1,234", "2,345") == ("number", ".", [1234.0, 2345.0])
    assert read("1,234", "2,345", others=comma)[2] == [1.234, 2.345]
    assert decimal_sign(pd.DataFrame({"a": ["1,234"], "b": ["5"]})) is None


@pytest.mark.parametrize(
    ("cells", "writing", "day"),
    [
        (("24.12.2024", "01.02.2024"), "dmy", "2024-12-24"),
        (("24/12/2024 13:00", "01/02/2024"), "dmy", "2024-12-24T13:00"),
        (("12/24/2024", "01/02/2024"), "mdy", "2024-12-24"),
        (("2024/12/24", "2024/1/2"), "ymd", "2024-12-24"),
        (("24.12.24", "01.02.24"), "dmy", "2024-12-24"),
        (("2024-12-24", "2024-01-02"), "ymd", "2024-12-24"),
        (("12 Mar 2024", "1 Jan 2024"), "month", "2024-03-12"),
        (("12-Mar-24", "01-JAN-24"), "month", "2024-03-12"),
        (("March 12th, 2024 13:00", "May 1, 2024"), "month", "2024-03-12T13:00"),
        (("Tue, 12 March 2024", "Mon, 1 Jan 2024"), "month", "2024-03-12"),
        (("12. März 2024", "1. Dezember 2024"), "month", "2024-03-12"),
        (("12 mars 2024", "1er août 2024"), "month", "2024-03-12"),
        (("12 de marzo de 2024", "1 de enero de 2024"), "month", "2024-03-12"),
    ],
)
def test_dates_as_people_write_them(cells, writing: str, day: str) -> None:
    kind, found, values = read(*cells)
    assert (kind, found) == ("date", writing)
    assert values[0] == np.datetime64(day).astype("datetime64[s]").astype(float) / 86_400


@pytest.mark.parametrize("writing", [",", "."])
def test_the_quick_way_gives_what_the_slow_one_does(writing: str) -> None:
    generator = np.random.default_rng(0)
    values = (generator.normal(size=200) * 10.0 ** generator.integers(-3, 7, 200)).round(3)
    group, decimal = {",": ".,", ".": ",."}[writing]
    texts = [f"{one:,.3f}".translate(str.maketrans({",": group, ".": decimal})) for one in values]
    quick = read_written(np.array(texts, dtype=object), "number", writing, float)
    assert isinstance(quick, np.ndarray)
    assert quick.tolist() == [read_numeral(text, writing) for text in texts] == values.tolist()


@pytest.mark.parametrize("writing", [",", "."])
def test_amounts_are_read_alike_one_by_one_and_all_at_once(writing: str) -> None:
    texts = [
        text.replace("#", writing)
        for text in ("€ 3#5", "3#5 €", "-$4", "$-4#25", "7 EUR", "USD 1#5", "R$ 2", "9 kr.", "8 Kč")
    ]
    quick = read_written(np.array(texts, dtype=object), "number", writing, float)
    assert isinstance(quick, np.ndarray)
    assert quick.tolist() == [read_numeral(text, writing) for text in texts]
    assert quick.tolist() == [3.5, 3.5, -4, -4.25, 7, 1.5, 2, 9, 8]


def test_predictions_read_cells_as_the_training_rows_were(tmp_path: Path) -> None:
    """Also where the new rows alone would be read otherwise, and after saving."""
    generator = np.random.default_rng(1)
    size = generator.uniform(0, 5, 200).round(3)
    day = pd.Series(np.datetime64("2024-01-01") + generator.integers(0, 300, 200))
    written = pd.DataFrame(
        {
            "size": [f"{one:.3f}".replace(".", ",") for one in size],
            "day": day.dt.strftime("%d/%m/%Y"),
        }
    )
    ranks = np.searchsorted([1.5, 3.5], size)
    for frame in (written, settled(written)):
        model = echelon.OrdinalBoosting(rounds=20, random_state=0).fit(frame, ranks)
        assert [column.writing for column in model.schema_.columns] == [",", "dmy"]
        model.save(tmp_path / "m")
        loaded = echelon.load(tmp_path / "m")
        new = pd.DataFrame({"size": ["1,234"], "day": ["02/03/2024"]})
        same = pd.DataFrame({"size": [1.234], "day": [pd.Timestamp("2024-03-02")]})
        np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(same))


def test_an_unknown_writing_in_a_file_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"size": ["1,5", "2,5"] * 20})
    model = echelon.OrdinalBoosting(rounds=2).fit(frame, [0, 1] * 20)
    assert set(WRITINGS) == {"number", "date"}
    model.schema_.columns = tuple(
        column.__class__(column.name, column.kind, (), "odd") for column in model.schema_.columns
    )
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match="must be written in a way of"):
        echelon.load(tmp_path / "m")
