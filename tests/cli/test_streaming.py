"""``fit --stream``: a folder, text files, what is held out, and errors in one line."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

import echelon
from echelon.cli.main import app
from tests.cli.commands import QUICK, run

STREAM = ("--target", "stars", "--stream", "--drop", "grade,weight")


def test_fit_streams_a_network_by_default(folder) -> None:
    text = run("fit", "table.parquet", *STREAM, "--out", "m.echelon", *QUICK)
    assert "wrote m.echelon: network, 300 rows, classes 1, 2, 3" in text
    model = echelon.load("m.echelon")
    assert model.about_ == {"data": "table.parquet", "target": "stars"}
    predicted = json.loads(run("evaluate", "m.echelon", "table.parquet", "--target", "stars",
                               "--json"))  # fmt: skip
    assert predicted["rows"] == 300


def test_text_files_are_streamed_with_classes_in_words(folder) -> None:
    run(
        "fit", "table.csv", "--target", "grade", "--classes", "lo,mid,hi", "--stream", "--drop",
        "stars", "--weight", "weight", "--model", "boosting:rounds=5", "--conformal", "0.2",
        "--calibrate", "temperature", "--out", "m.echelon",
    )  # fmt: skip
    model = echelon.load("m.echelon")
    assert model.classes_.tolist() == ["lo", "mid", "hi"]
    assert model.conformal_ is not None
    frame = pd.read_csv("table.csv")
    assert set(model.predict(frame)) <= {"lo", "mid", "hi"}


def test_rows_for_intervals_are_kept_apart(folder) -> None:
    document = json.loads(
        run("fit", "table.parquet", *STREAM, "--model", "cumulative_link", "--conformal", "0.2",
            "--out", "m.echelon", "--json")
    )  # fmt: skip
    held = document["held_out"]["conformal"]
    assert 30 < held < 100
    assert document["rows"] == 300
    assert echelon.load("m.echelon").num_rows_ == 300 - held


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--text", "kind"), "--stream reads numbers, dates and categories, and --text kind"),
        (("--conformal", "1.5"), "held-out shares must lie between 0 and 1"),
        (("--target", "grade"), "name them with --classes, the lowest first"),
        (("--target", "grade", "--classes", "lo,hi"), "not among --classes: 'mid'"),
    ],
)
def test_what_cannot_be_streamed_is_said(folder, options, message) -> None:
    arguments = ["fit", "table.parquet", "--target", "stars", "--stream", "--out", "m.echelon"]
    result = CliRunner().invoke(app, [*arguments, *options])
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)


def test_an_output_that_is_an_input_is_refused(folder) -> None:
    (folder / "table").write_bytes((folder / "table.parquet").read_bytes())
    result = CliRunner().invoke(app, ["fit", "table", *STREAM, "--out", "table"])
    assert "is the same file as the input" in str(result.exception)
