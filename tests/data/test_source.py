"""Sources: which files and columns are meant, and errors that say what there is instead."""

import numpy as np
import pandas as pd
import pytest

from echelon.data.source import scan


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=60),
            "colour": rng.choice(["red", "blue"], 60),
            "w": rng.random(60),
            "who": rng.integers(0, 9, 60),
            "grade": rng.integers(0, 3, 60),
        }
    )


def test_a_folder_a_pattern_and_files_are_the_same_rows(frame, tmp_path) -> None:
    frame.iloc[:20].to_parquet(tmp_path / "a.parquet")
    frame.iloc[20:].to_parquet(tmp_path / "b.parquet")
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path in (tmp_path, f"{tmp_path}/*.parquet", files):
        source = scan(path, target="grade")
        assert source.is_parquet
        assert pd.concat(source.chunks())["size"].tolist() == frame["size"].tolist()
    assert source.features == ["size", "colour", "w", "who"]


def test_folders_give_columns(frame, tmp_path) -> None:
    frame.to_parquet(tmp_path, partition_cols=["colour"])
    source = scan(tmp_path, target="grade", drop=["w"])
    read = pd.concat(source.chunks())
    assert sorted(source.features) == ["colour", "size", "who"]
    expected = frame.groupby("colour")["size"].sum()
    assert read.groupby("colour")["size"].sum().to_dict() == pytest.approx(expected.to_dict())


def test_text_files_are_sources_too(frame, tmp_path) -> None:
    frame.iloc[:20].to_csv(tmp_path / "a.csv", index=False)
    frame.iloc[20:].to_csv(tmp_path / "b.csv", index=False)
    source = scan(f"{tmp_path}/*.csv", target="grade", weight="w", group="who")
    assert not source.is_parquet
    assert source.features == ["size", "colour"]
    assert source.undecided == source.features
    assert sum(map(len, source.chunks(["size"]))) == 60


def test_what_is_not_there_is_said(frame, tmp_path) -> None:
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"has no column 'rank'; it has: size, colour"):
        scan(tmp_path / "a.parquet", target="rank")
    with pytest.raises(ValueError, match="no file matches"):
        scan(f"{tmp_path}/*.csv", target="grade")
    with pytest.raises(ValueError, match="nothing to learn from"):
        scan(tmp_path / "a.parquet", target="grade", drop=["size", "colour", "w", "who"])
    frame.drop(columns="size").to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"same columns, and .*b\.parquet lacks the column 'size'"):
        _ = scan(f"{tmp_path}/*.parquet", target="grade").pieces
    frame[:0].to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(ValueError, match="columns but no rows"):
        _ = scan(tmp_path / "empty.parquet", target="grade").pieces


def test_wide_tables_are_read_in_shorter_slices(tmp_path) -> None:
    pd.DataFrame(np.zeros((5, 3000))).rename(columns=str).to_parquet(tmp_path / "wide.parquet")
    assert scan(tmp_path / "wide.parquet", target="0").slice_rows < 2000
