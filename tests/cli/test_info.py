"""The command ``info``."""

import json
import sys
from pathlib import Path

import pytest

import echelon
from echelon.cli.main import main
from tests.cli.commands import run


@pytest.fixture
def fitted(folder: Path) -> None:
    run(
        "fit", "table.csv", "--target", "grade", "--classes", "lo,mid,hi", "--drop", "stars",
        "--model", "cumulative_link", "--calibrate", "temperature", "--conformal", "0.2",
        "--out", "m",
    )  # fmt: skip


@pytest.mark.usefixtures("fitted")
def test_it_says_what_a_model_is() -> None:
    found = json.loads(run("info", "m", "--json"))
    assert (found["kind"], found["method"], found["decision"]) == (
        "cumulative_link",
        None,
        "median",
    )
    assert found["classes"] == ["lo", "mid", "hi"]
    assert found["rows"] == 300 - found["interval_rows"] - 30
    assert found["interval_rows"] == pytest.approx(60, abs=3)
    assert set(found["calibration"]) == {"before", "after"}
    assert found["echelon"] == echelon.__version__
    assert [column["name"] for column in found["columns"]] == [*"abcde", "kind", "weight"]


@pytest.mark.usefixtures("fitted")
def test_it_can_be_read() -> None:
    shown = run("info", "m")
    lines = dict(line.split(maxsplit=1) for line in shown.splitlines() if line[0] != " ")
    assert lines["kind"].startswith("cumulative_link: The exact proportional-odds")
    assert lines["classes"] == "lo, mid, hi"
    assert "method" not in lines
    assert lines["columns"] == "7"
    assert "category, " in shown
    assert "big " in shown


def test_a_network_names_its_method(folder: Path) -> None:
    arguments = ("--backbone", "linear", "--method", "ornn", "--max-epochs", "1", "--device", "cpu")
    run("fit", "table.csv", "--target", "stars", "--drop", "grade", "--out", "m", *arguments)
    found = json.loads(run("info", "m", "--json"))
    assert (found["kind"], found["method"], found["rows"]) == ("network", "ornn", 300)
    assert (found["is_calibrated"], found["interval_rows"]) == (False, 0)


@pytest.mark.usefixtures("fitted")
def test_columns_of_a_strangers_file_are_not_trusted(capsys, monkeypatch) -> None:
    model = echelon.load("m")
    model.columns_ = ["odd", {"name": 3}]
    model.save("odd")
    monkeypatch.setattr(sys, "argv", ["echelon", "info", "odd"])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr().err
    assert (stopped.value.code, said.count("\n")) == (2, 1)
    assert "odd is damaged: its columns are not described" in said
