"""Columns that are decided on chunks are what they are when all cells are there."""

import warnings

import numpy as np
import pandas as pd
import pytest

from echelon.data.columns import Remarks
from echelon.data.profile import ColumnProfile, TargetProfile, decide_columns
from echelon.data.schema import TableSchema


def decided(frame: pd.DataFrame, chunks: int = 7, **options):
    profiles = {name: ColumnProfile(name) for name in frame}
    for part in np.array_split(np.arange(len(frame)), chunks):
        for name, profile in profiles.items():
            profile.add(frame[name].iloc[part])
    return decide_columns(profiles, None, **options)


def table(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "real": rng.normal(size=n),
            "whole": rng.integers(0, 50, n),
            "yes": rng.random(n) < 0.5,
            "day": pd.date_range("2020-01-01", periods=n).astype("datetime64[us]"),
            "declared": pd.Categorical(rng.choice(["b", "a"], n), categories=["b", "a"]),
            "colour": rng.choice(["red", "blue", None], n),
            "written": [f"{number:.2f}".replace(".", ",") for number in rng.normal(size=n)],
            "date": pd.date_range("2020-01-01", periods=n).strftime("%d.%m.%Y"),
            "nearly": [str(i) if i % 20 else "many" for i in rng.integers(0, 99, n)],
            "code": [f"{i:03}" for i in rng.integers(0, 40, n)],
            "row": np.arange(n),
            "who": [f"P{i}" for i in range(n)],
        }
    )


@pytest.mark.parametrize("chunks", [1, 7])
def test_columns_are_what_they_are_in_memory(chunks: int) -> None:
    frame = table()
    schema, remarks = decided(frame, chunks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = TableSchema.of(frame)
    assert schema.columns == expected.columns
    assert set(remarks.left_out) == {"row", "who"}
    assert "400 different" in remarks.left_out["who"]
    assert remarks.unread["nearly", "number"].count == sum(frame["nearly"] == "many")


def test_ids_can_be_kept_and_missing_codes_are_missing() -> None:
    schema, remarks = decided(table()[["real", "who"]], keep_ids=True)
    assert [column.kind for column in schema.columns] == ["number", "category"]
    assert not remarks.left_out
    profile = ColumnProfile("answer", ["refused"])
    profile.add(pd.Series(["1", "refused", "2"]))
    column = profile.decide(Remarks(), None)
    assert (column.kind, column.missing_codes) == ("number", ("refused",))


def test_many_cells_are_told_apart_by_a_sample() -> None:
    """With more different cells than a sample holds: numbers, frequent names, and rare codes."""
    rng = np.random.default_rng(0)
    n = 60_000
    rare = np.where(rng.random(n) < 0.7, "often", [f"r{i}" for i in rng.integers(0, 10**6, n)])
    codes = [str(i) for i in range(10_000, 10_000 + n)]
    codes[n // 2] = "007"
    frame = pd.DataFrame(
        {"number": [f"{x:.6f}" for x in rng.normal(size=n)], "name": rare, "code": codes,
         "who": [f"P{i}" for i in range(n)]}
    )  # fmt: skip
    schema, remarks = decided(frame, 3, keep_ids=True)
    kinds = {column.name: column.kind for column in schema.columns}
    assert kinds == {"number": "number", "name": "category", "code": "category", "who": "category"}
    assert "often" in next(c for c in schema.columns if c.name == "name").categories
    _, remarks = decided(frame[["number", "who"]], 3)
    assert remarks.left_out["who"] == "looks like an id: 60,000 different values in 60,000 rows"


def test_a_column_of_two_types_is_refused() -> None:
    profile = ColumnProfile("size")
    profile.add(pd.Series([1.0, 2.0]))
    profile.add(pd.Series(["small", "large"], dtype=object))
    with pytest.raises(ValueError, match="'size' must be of one type in all files"):
        profile.decide(Remarks(), None)


def labels_of(*chunks, classes=None):
    target = TargetProfile("grade")
    for chunk in chunks:
        target.add(pd.Series(chunk))
    return target.labels(classes)


def test_labels_of_chunks() -> None:
    labels, rank_of, missing = labels_of([3, 1, 1], [2.0, np.nan])
    assert labels.classes.tolist() == [1, 2, 3]
    assert rank_of == {1: 0, 2: 1, 3: 2}
    assert missing == 1
    labels, rank_of, missing = labels_of(["2", "1"], ["", "1"])
    assert (labels.classes.tolist(), rank_of, missing) == ([1, 2], {"1": 0, "2": 1}, 1)
    labels, rank_of, _ = labels_of(["mid"], ["Low "], classes=["low", "mid", "high"])
    assert labels.classes.tolist() == ["low", "mid", "high"]
    assert rank_of == {"mid": 1, "Low ": 0}
    ordered = pd.Categorical(["high", "low"], categories=["low", "high"], ordered=True)
    assert labels_of(ordered)[0].classes.tolist() == ["low", "high"]


def test_labels_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="strings, whose order is not known"):
        labels_of(["low", "high"])
    with pytest.raises(ValueError, match="no row has a label"):
        labels_of([np.nan])
    with pytest.raises(ValueError, match="more than 10,000 different values"):
        labels_of(np.arange(20_000) / 7)
    with pytest.raises(ValueError, match="'top' in y is not in classes"):
        labels_of(["low", "top"], classes=["low", "high"])
