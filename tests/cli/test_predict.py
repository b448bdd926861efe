"""The command ``predict``."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.commands import QUICK, run


def test_warnings_are_one_line(folder: Path) -> None:
    run(
        "fit", "table.csv", "--target", "stars", "--drop", "grade", "--conformal", "0.01",
        "--out", "m", *QUICK,
    )  # fmt: skip
    program = Path(sys.executable).with_name("echelon")
    command = [program, "predict", "m", "table.csv", "--out", "p.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("echelon: warning: a coverage of 0.9 needs 9")
    assert done.stderr.count("\n") == 1


def test_large_files_are_read_in_parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("fit", "table.csv", "--target", "stars", "--drop", "grade", "--out", "m", *QUICK)
    run("predict", "m", "table.csv", "--out", "whole.csv")
    monkeypatch.setattr("echelon.cli.reading.CHUNK_ROWS", 70)
    expected = pd.read_csv("whole.csv")
    for name in ("table.csv", "table.parquet"):
        run("predict", "m", name, "--out", "parts.csv")
        pd.testing.assert_frame_equal(pd.read_csv("parts.csv"), expected, rtol=1e-4, atol=1e-6)


def test_a_file_without_rows_gives_a_header(folder: Path) -> None:
    run("fit", "table.csv", "--target", "stars", "--drop", "grade", "--out", "m", *QUICK)
    pd.read_parquet("table.parquet").head(0).to_parquet("empty.parquet")
    Path("empty.csv").write_text(Path("table.csv").read_text().split("\n")[0] + "\n")
    for name in ("empty.parquet", "empty.csv"):
        run("predict", "m", name, "--out", "p.csv")
        assert Path("p.csv").read_text() == (
            "prediction,probability_1,probability_2,probability_3,outside\n"
        )


def test_odd_cells_are_said_once_for_the_whole_file(folder: Path, monkeypatch) -> None:
    table = pd.read_csv("table.csv", dtype=str).drop(columns=["grade", "weight"])
    table.loc[[3, 150, 280], "a"] = ["low", "high", "high"]
    table.to_csv("odd.csv", index=False)
    with pytest.warns(UserWarning, match="column 'a' holds numbers, and 3 of its cells") as said:
        run("fit", "odd.csv", "--target", "stars", "--conformal", "0.2", "--out", "m", *QUICK)
    assert len(said) == 1
    monkeypatch.setattr("echelon.cli.reading.CHUNK_ROWS", 70)
    with pytest.warns(UserWarning, match="3 of its cells .* such as 'low', 'high'") as said:
        run("predict", "m", "odd.csv", "--out", "p.csv")
    assert len(said) == 1
    table.loc[[3, 150, 280], "a"] = ""
    table.to_csv("blank.csv", index=False)
    run("predict", "m", "blank.csv", "--out", "q.csv")
    assert Path("p.csv").read_text() == Path("q.csv").read_text()


def test_labels_that_are_formulas_can_be_made_harmless(folder) -> None:
    table = pd.read_csv("table.csv").drop(columns="grade")
    table["stars"] = table["stars"].map({1: "=1+1", 2: "@x", 3: "-3"})
    table.to_csv("odd.csv", index=False)
    run("fit", "odd.csv", "--target", "stars", "--classes", "=1+1,@x,-3", "--out", "m", *QUICK)
    run("predict", "m", "odd.csv", "--out", "plain.csv")
    run("predict", "m", "odd.csv", "--out", "safe.csv", "--formula-safe")
    plain, safe = (pd.read_csv(name, dtype=str) for name in ("plain.csv", "safe.csv"))
    assert set(plain["prediction"]) <= {"=1+1", "@x", "-3"}
    assert set(safe["prediction"]) <= {"'=1+1", "'@x", "-3"}
    assert (safe["prediction"].str.removeprefix("'") == plain["prediction"]).all()
    pd.testing.assert_frame_equal(plain.iloc[:, 1:], safe.iloc[:, 1:])
    assert not any(
        line.startswith(("=", "@")) for line in Path("plain.csv").read_text().splitlines()
    )
