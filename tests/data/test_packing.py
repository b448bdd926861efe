"""Text files become Parquet with the same rows, and their folder goes with them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from echelon.data.packing import pack, weights_of
from echelon.data.schema import TableSchema
from echelon.data.source import scan
from echelon.data.stream import open_stream


def frame(n: int = 50) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n).round(3),
            "day": pd.date_range("2021-03-01", periods=n, freq="h").strftime("%Y-%m-%d %H:%M"),
            "colour": rng.choice(["red", "blue"], n),
            "who": rng.integers(1, 9, n),
            "grade": rng.choice(["low", "high"], n),
        }
    )


def test_packed_rows_are_those_of_the_file(tmp_path) -> None:
    table = frame()
    table.loc[3, "grade"] = ""
    table.to_csv(tmp_path / "rows.csv", index=False)
    source = scan(tmp_path / "rows.csv", "grade", classes=["low", "high"], group="who")
    stream = open_stream(source)
    (_, rows, _), *others = stream
    assert not others
    labelled = table.drop(index=3).reset_index(drop=True)
    expected = stream.schema.read(labelled)
    np.testing.assert_array_equal(rows.table.numbers, expected.numbers)
    np.testing.assert_array_equal(rows.table.codes, expected.codes)
    assert rows.ranks.tolist() == (labelled["grade"] == "high").astype(int).tolist()
    assert rows.groups.tolist() == labelled["who"].astype(str).tolist()
    assert stream.unlabelled == 1
    assert stream.name == str(tmp_path / "rows.csv")
    place = Path(stream.source.paths[0])
    assert place.is_file()
    del stream, rows, others, _
    assert not place.parent.exists()


def test_a_failure_leaves_no_folder(tmp_path, monkeypatch) -> None:
    table = frame()
    table.to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "here"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "here").mkdir()
    source = scan(tmp_path / "rows.csv", "grade", weight="colour")
    schema = TableSchema.of(table[["size"]])
    with pytest.raises(ValueError, match="weights must be numbers"):
        pack(source, schema, {"low": 0, "high": 1})
    assert not list((tmp_path / "here").iterdir())


@pytest.mark.parametrize(("cells", "what"), [([1.0, -2.0], "-2.0"), ([1.0, None], "missing ones")])
def test_weights_that_cannot_be_are_refused(cells, what) -> None:
    with pytest.raises(ValueError, match=f"at least 0, and the column 'w' holds {what}"):
        weights_of(pd.Series(cells, name="w", dtype=float))
