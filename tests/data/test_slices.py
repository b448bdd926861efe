"""Slices of Parquet files: any order gives the same rows, and a damaged file is named."""

import numpy as np
import pandas as pd
import pyarrow
import pytest

from echelon.data.slices import is_measured, opened_parquet
from echelon.data.source import scan


@pytest.fixture
def numbered(tmp_path):
    """Rows 0..999 in two files, in row groups of 300, read 70 at a time."""
    frame = pd.DataFrame({"x": np.arange(1000.0), "y": np.arange(1000) % 3})
    frame.iloc[:600].to_parquet(tmp_path / "a.parquet", row_group_size=300)
    frame.iloc[600:].to_parquet(tmp_path / "b.parquet", row_group_size=300)
    return scan(f"{tmp_path}/*.parquet", target="y")


def small(source, monkeypatch, rows: int = 70):
    monkeypatch.setattr("echelon.data.source._SLICE_CELLS", 2 * rows)
    monkeypatch.setattr("echelon.data.source._FEWEST_ROWS", 1)
    return source


def test_slices_are_all_rows_once(numbered, monkeypatch) -> None:
    source = small(numbered, monkeypatch)
    assert [piece.rows for piece in source.pieces] == [300, 300, 300, 100]
    assert max(part.rows for part in source.slices) == 70
    reader = source.reader()
    rows = pd.concat([reader.read(part) for part in source.slices])
    assert rows["x"].tolist() == list(range(1000))


def test_slices_may_be_asked_for_in_any_order(numbered, monkeypatch) -> None:
    source = small(numbered, monkeypatch)
    expected = [source.reader().read(part)["x"].tolist() for part in source.slices]
    reader = source.reader(["x"])
    rng = np.random.default_rng(0)
    for number in [*rng.permutation(len(expected)), *rng.permutation(len(expected))]:
        assert reader.read(source.slices[number])["x"].tolist() == expected[number]


def test_a_damaged_file_is_named(tmp_path) -> None:
    place = tmp_path / "broken.parquet"
    place.write_bytes(b"PAR1 and nothing more PAR1")
    with (
        pytest.raises(ValueError, match=r"broken\.parquet is not a readable Parquet"),
        opened_parquet(place),
    ):
        pass


def test_types_that_say_what_a_column_holds() -> None:
    for kind in (pyarrow.float32(), pyarrow.bool_(), pyarrow.timestamp("us"), pyarrow.date32()):
        assert is_measured(kind)
    for kind in (pyarrow.int64(), pyarrow.string(), pyarrow.dictionary(pyarrow.int8(), "string")):
        assert not is_measured(kind)  # whole numbers may be the numbers of rows
