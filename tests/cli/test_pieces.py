"""Files done one by one: what each is called, and that together they are the whole."""

import json
from pathlib import Path

import pandas as pd
import pytest

from echelon.cli.pieces import Done, Piece, PieceWork, finished, pieces_of
from echelon.cli.reading import DataDescription
from echelon.cli.scoring import Asked
from tests.cli.commands import run

LINEAR = "cumulative_link"


@pytest.fixture
def parts(folder: Path) -> Path:
    """A folder of Parquet files, with a column that stands in the names of its folders."""
    table = pd.read_parquet("table.parquet").drop(columns=["kind", "grade", "weight"])
    for i in range(3):
        place = folder / "parts" / f"half={i % 2}" / f"p{i}.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        table[i * 100 : (i + 1) * 100].assign(id=range(i * 100, (i + 1) * 100)).to_parquet(place)
    run("fit", "parts", "--target", "stars", "--drop", "id", "--model", LINEAR, "--out", "m")
    return folder / "parts"


def test_a_folder_gets_a_file_for_each_file_and_the_rows_are_those_of_one_table(parts) -> None:
    Path("out").mkdir()
    said = json.loads(run("predict", "m", "parts", "--out", "out", "--keep", "id,half", "--json"))
    assert (said["rows"], said["files"]) == (300, 3)
    names = sorted(str(place.relative_to("out")) for place in Path("out").rglob("*.*"))
    assert names == ["half=0/p0.parquet", "half=0/p2.parquet", "half=1/p1.parquet"]
    run("predict", "m", "parts", "--out", "whole.parquet", "--keep", "id,half")
    together = pd.concat([pd.read_parquet(Path("out") / name, partitioning=None) for name in names])
    whole = pd.read_parquet("whole.parquet")
    order = ["id"]
    pd.testing.assert_frame_equal(
        together.sort_values(order, ignore_index=True), whole.sort_values(order, ignore_index=True)
    )
    assert whole["id"].dtype == "int64"


def test_scores_of_pieces_add_up_to_those_of_the_whole(parts) -> None:
    from echelon.evaluation.running import RunningScores

    described = DataDescription(parts, "stars")
    work = PieceWork(str(Path("m").resolve()), described, Asked())
    done = list(finished(work, pieces_of(described), None))
    total = sum((RunningScores.from_state(d.state, 3) for d in done), RunningScores(3))
    expected = json.loads(run("evaluate", "m", "parts", "--target", "stars", "--json"))
    assert sum(piece.rows for piece in done) == expected["rows"] == 300
    assert total.compute() == pytest.approx(expected["metrics"])


def test_a_file_that_cannot_be_predicted_is_named_and_half_a_file_is_not_left(parts) -> None:
    place = parts / "half=1" / "p9.parquet"
    pd.DataFrame({"a": [1.0]}).to_parquet(place)
    Path("out").mkdir()
    described = DataDescription(parts)
    work = PieceWork(str(Path("m").resolve()), described, Asked(), str(Path("out").resolve()))
    with pytest.raises(ValueError, match=r"p9\.parquet: the table lacks the column 'b'"):
        list(finished(work, pieces_of(described), None))
    assert not (Path("out") / "half=1" / "p9.parquet").exists()
    assert not list(Path("out").rglob(".*"))


def test_machines_that_do_not_share_the_folder_are_told_so(parts, monkeypatch) -> None:
    described = DataDescription(parts)
    work = PieceWork(str(Path("m").resolve()), described, Asked(), "elsewhere")
    monkeypatch.setattr(PieceWork, "do", lambda self, piece: Done(piece.name, 1))
    with pytest.raises(RuntimeError, match="must share that folder"):
        list(finished(work, pieces_of(described), None))


def test_names_are_made_of_those_of_the_inputs_and_never_the_same(tmp_path) -> None:
    for name in ("a/x.csv", "b/x.csv", "a/y.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    files = [tmp_path / "a" / "x.csv", tmp_path / "a" / "y.parquet"]
    assert [piece.name for piece in pieces_of(DataDescription(files))] == [
        "x.csv.parquet", "y.parquet",
    ]  # fmt: skip
    twins = DataDescription([tmp_path / "a" / "x.csv", tmp_path / "b" / "x.csv"])
    assert [piece.name for piece in pieces_of(twins)] == ["a/x.csv.parquet", "b/x.csv.parquet"]
    again = DataDescription([files[0], files[0]])
    assert pieces_of(again) == [Piece(str(files[0]), "x.csv.parquet")]


def test_what_a_cluster_cannot_do_is_said_before_it_is_started(parts, fails) -> None:
    cluster = ("--cluster", "local")
    assert "name a folder" in fails("predict", "m", "parts", "--out", "p.csv", *cluster)
    assert "name a folder" in fails("predict", "m", "parts", *cluster)
    assert "leave out --top" in fails("predict", "m", "parts", "--out", "o", "--top", "3", *cluster)
    assert "is not empty" in fails("predict", "m", "parts", "--out", "parts", *cluster)
    Path("images").mkdir()
    with pytest.raises(ValueError, match="is a folder without any"):
        pieces_of(DataDescription(Path("images")))
    with pytest.raises(ValueError, match="the standard input is none"):
        pieces_of(DataDescription([Path("-")]))
    assert "nothing but scores" in fails(
        "evaluate", "m", "parts", "--target", "stars", "--out", "o", *cluster
    )


@pytest.fixture
def fails():
    from typer.testing import CliRunner

    from echelon.cli.main import app

    def run_wrong(*arguments: str) -> str:
        result = CliRunner().invoke(app, arguments)
        assert isinstance(result.exception, ValueError), result.output
        return str(result.exception)

    return run_wrong


def test_odd_cells_of_all_files_are_said_once(folder: Path) -> None:
    table = pd.read_csv("table.csv", dtype=str)
    options = ("--target", "stars", "--drop", "grade", "--model", LINEAR)
    run("fit", "table.csv", *options, "--out", "m")
    for i in range(2):
        some = table[i * 100 : (i + 1) * 100].copy()
        some.iloc[3, 0] = "low"
        some.to_csv(f"odd{i}.csv", index=False)
    Path("out").mkdir()
    with pytest.warns(UserWarning, match="column 'a' holds numbers, and 2 of its cells") as said:
        run("predict", "m", "odd0.csv", "odd1.csv", "--out", "out")
    assert len(said) == 1
