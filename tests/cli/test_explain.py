"""The command ``explain``."""

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from echelon.cli.main import app
from echelon.runs import read_run
from tests.cli.commands import run

FIT = ("--target", "grade", "--classes", "lo,mid,hi", "--drop", "stars,weight")


@pytest.fixture
def fitted(folder: Path) -> Path:
    run("fit", "table.csv", *FIT, "--model", "cumulative_link", "--out", "m")
    pd.read_csv("table.csv")[:80].to_csv("some.csv", index=False)
    return folder


def test_a_table_reasons_and_one_document(fitted: Path) -> None:
    shown = run("explain", "m", "some.csv", "--target", "grade", "--repeats", "2", "--rows", "7,3")
    lines = shown.splitlines()
    assert lines[1].split() == ["column", "importance", "+-", "error", "which", "way"]
    assert lines[2].startswith("d ")
    assert "more of it raises the class" in lines[2]
    assert [line[:6] for line in lines if line.startswith("row ")] == ["row 7:", "row 3:"]
    document = json.loads(run("explain", "m", "some.csv", "--at-least", "hi", "--json"))
    assert document["truth"] is False
    assert [row["row"] for row in document["reasons"]] == [0, 1, 2]
    assert {row["threshold"] for row in document["reasons"]} == {1}
    assert "own" in document["reasons"][0]


def test_it_explains_a_finished_run_or_makes_one(fitted: Path) -> None:
    run("evaluate", "m", "some.csv", "--target", "grade", "--out", "run")
    before = Path("run/DONE").read_text()
    run("explain", "m", "some.csv", "--out", "run", "--repeats", "1")
    assert Path("run/DONE").read_text() == before
    explained = read_run("run").explanation
    assert {row["row"] for row in explained["reasons"]} == set(range(80))  # all that are explored
    run("report", "run")
    assert "What matters to" in Path("run/report.html").read_text()
    run("explain", "m", "some.csv", "--target", "grade", "--out", "new", "--repeats", "1")
    found = read_run("new")
    assert found.config.command == "evaluate"
    assert found.explanation["truth"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "nowhere"), "nowhere is no finished run; add --target to make it one"),
        (("--rows", "1,x"), "--rows must be numbers from 0 on"),
        (("--rows", "80"), "--rows names row 80, which some.csv does not have"),
        (("--at-least", "lo"), "--at-least must be a class above the lowest: one of mid, hi"),
        (("--correlated", "2"), "lies above 0 and up to 1"),
        (("--target", "absent"), "has no column 'absent'"),
    ],
)
def test_wrong_use_is_said(fitted: Path, arguments, message) -> None:
    result = CliRunner().invoke(app, ["explain", "m", "some.csv", *arguments])
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)


def test_a_run_of_other_rows_is_refused(fitted: Path) -> None:
    run("evaluate", "m", "table.csv", "--target", "grade", "--out", "run")
    result = CliRunner().invoke(app, ["explain", "m", "some.csv", "--out", "run"])
    assert "is a run of another model, or of other data" in str(result.exception)
    assert not Path("run/explanation.json").exists()
