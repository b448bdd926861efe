"""The command ``compare``."""

import json
import sys
from pathlib import Path

import pytest

from echelon.cli.main import main
from echelon.runs import read_runs
from tests.cli.commands import QUICK, run


def test_compare_and_report(folder: Path) -> None:
    arguments = (
        "compare", "table.csv", "--target", "grade", "--classes", "lo,mid,hi", "--drop", "stars",
        "--methods", "corn,ornn", "--seeds", "2", "--workers", "1", "--out", "runs", *QUICK,
    )  # fmt: skip
    document = json.loads(run(*arguments, "--json"))
    assert {row["method"] for row in document["runs"]} == {
        "corn",
        "ornn",
        "constant",
        "cumulative link",
    }
    assert all(row["split"] == "test" and row["mae"] >= 0 for row in document["runs"])
    shown = run(*arguments)  # finished runs are kept
    assert "cumulative link" in shown
    assert "report runs" in shown
    run("report", "runs", "--charts", "figures", "--image", "svg")
    assert Path("runs/report.html").stat().st_size > 500_000
    crosses = any(run.predictions["crossings"].max() > 0 for run in read_runs("runs"))
    charts = 8 if crosses else 7  # of crossings there is one only where there are some
    assert len(list(Path("figures").glob("*.svg"))) == charts
    assert json.loads(run("report", "runs", "--out", "p.html", "--json"))["page"] == "p.html"


def test_a_cluster_that_is_not_there_is_one_line(folder, capsys, monkeypatch) -> None:
    arguments = "compare table.csv --target stars --drop grade --cluster 127.0.0.1:1 --out runs"
    monkeypatch.setattr(sys, "argv", ["echelon", *arguments.split()])
    with pytest.raises(SystemExit) as stopped:
        main()
    shown = capsys.readouterr().err
    assert (stopped.value.code, shown.count("\n")) == (2, 1)
    assert "there is no Ray cluster at '127.0.0.1:1'" in shown
