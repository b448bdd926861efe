"""The command ``export``."""

import json
from pathlib import Path

from typer.testing import CliRunner

from echelon.cli.main import app
from tests.cli.commands import QUICK, run

TARGET = ("--target", "stars", "--drop", "grade", "--out", "m")


def test_a_graph_is_written(folder: Path) -> None:
    run("fit", "table.csv", *TARGET, "--backbone", "linear", *QUICK)
    assert json.loads(run("export", "m", "--onnx", "m.onnx", "--json")) == {"onnx": "m.onnx"}
    assert Path("m.onnx").stat().st_size > 1000


def test_trees_become_a_graph(folder: Path) -> None:
    run("fit", "table.csv", *TARGET, "--model", "boosting")
    run("export", "m", "--onnx", "m.onnx")
    assert Path("m.onnx").stat().st_size > 1000


def test_a_model_that_has_no_graph_says_so(folder: Path) -> None:
    run("fit", "table.csv", *TARGET, "--model", "reduction")
    result = CliRunner().invoke(app, ["export", "m", "--onnx", "m.onnx"])
    assert isinstance(result.exception, ValueError)
    assert "m is a model of the kind reduction, of which there is no ONNX graph" in str(
        result.exception
    )
    assert not Path("m.onnx").exists()
