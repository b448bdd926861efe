"""The summary of training columns: what is said of each is true of its cells."""

import json

import numpy as np
import pandas as pd

from echelon.data.schema import TableSchema
from echelon.data.summary import summarise_columns


def summary(frame: pd.DataFrame, **named: str) -> dict[str, dict]:
    schema = TableSchema.of(frame, **named)
    columns = summarise_columns(schema, schema.read(frame))
    json.dumps(columns, allow_nan=False)  # as it stands in a file
    assert [column["name"] for column in columns] == [column.name for column in schema.columns]
    return {column["name"]: column for column in columns}


def test_numbers_have_their_range_and_categories_their_shares(frame: pd.DataFrame) -> None:
    found = summary(frame)
    assert found["size"]["missing"] == 0.25
    assert (found["size"]["quantiles"][0], found["size"]["quantiles"][-1]) == (1.0, 4.0)
    assert found["size"]["quantiles"][3] == 2.0  # the median of 1, 2 and 4
    assert found["same"]["quantiles"] == [5.0] * 7
    assert found["colour"] == {
        "name": "colour", "kind": "category", "missing": 0.25,
        "frequent": {"red": 0.5, "blue": 0.25}, "bins": {"counts": [1, 2], "missing": 1},
    }  # fmt: skip


def test_only_the_most_frequent_categories_are_listed() -> None:
    names = np.repeat([f"c{i}" for i in range(9)], np.arange(9, 0, -1))
    found = summary(pd.DataFrame({"kind": names}))["kind"]["frequent"]
    assert list(found) == ["c0", "c1", "c2", "c3", "c4"]
    assert found["c0"] == round(9 / 45, 4)


def test_columns_without_values_and_texts_are_named_and_no_more() -> None:
    frame = pd.DataFrame({"gone": [np.nan, np.nan], "said": ["good", "bad"]})
    found = summary(frame, text="said")
    assert found["gone"] == {
        "name": "gone", "kind": "number", "missing": 1.0, "quantiles": [],
        "bins": {"edges": [], "counts": [], "missing": 2},
    }  # fmt: skip
    assert found["said"] == {"name": "said", "kind": "text"}


def test_bins_count_every_row_once_and_hold_the_ends_to_the_last_bit() -> None:
    generator = np.random.default_rng(0)
    numbers = generator.normal(size=997)
    frame = pd.DataFrame({"x": numbers, "few": generator.integers(3, size=997).astype(float)})
    frame.loc[:9, "x"] = np.nan
    found = summary(frame)
    bins, present = found["x"]["bins"], frame["x"].dropna()
    assert (bins["edges"][0], bins["edges"][-1]) == (present.min(), present.max())
    assert sum(bins["counts"]) + bins["missing"] == 997
    for edge, upto in zip(bins["edges"], np.cumsum(bins["counts"]), strict=True):
        assert (present <= edge).sum() == upto
    assert found["few"]["bins"]["edges"] == [0.0, 1.0, 2.0]
    assert found["few"]["bins"]["counts"] == np.bincount(frame["few"].astype(int)).tolist()
