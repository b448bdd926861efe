"""The command ``export``."""

import json
from pathlib import Path

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
