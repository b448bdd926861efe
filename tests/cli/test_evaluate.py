"""The command ``evaluate``."""

from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from echelon.cli.main import app
from echelon.runs import read_run
from tests.cli.commands import QUICK, run


def test_fit_evaluate_predict(folder: Path) -> None:
    run(
        "fit", "table.csv", "--target", "grade", "--classes", "lo,mid,hi", "--drop", "stars",
        "--weight", "weight", "--out", "model.echelon", *QUICK,
    )  # fmt: skip
    shown = run("evaluate", "model.echelon", "table.csv", "--target", "grade", "--out", "run")
    assert "mae" in shown
    assert read_run("run").predictions["probabilities"].shape == (300, 3)
    run("export", "model.echelon", "--onnx", "model.onnx")
    assert Path("model.onnx").stat().st_size > 1000
    for name in ("table.csv", "table.parquet"):
        run("predict", "model.echelon", name, "--out", "p.csv")
        predictions = pd.read_csv("p.csv")
        assert list(predictions) == [
            "prediction", "probability_lo", "probability_mid", "probability_hi", "outside",
        ]  # fmt: skip
        np.testing.assert_allclose(predictions.iloc[:, 1:-1].sum(axis=1), 1, atol=1e-4)
    assert not list(folder.glob(".*partial"))


def test_a_model_without_a_method_goes_by_its_name(folder: Path) -> None:
    arguments = ("--target", "stars", "--model", "cumulative_link", "--out", "m")
    run("fit", "table.csv", *arguments)
    run("evaluate", "m", "table.csv", "--target", "stars", "--out", "run")
    assert read_run("run").config.method == "cumulative_link"


def test_a_label_that_the_model_does_not_know_needs_another_model(folder: Path) -> None:
    run("fit", "table.csv", "--target", "grade", "--classes", "lo,mid,hi", "--drop", "stars",
        "--model", "cumulative_link", "--out", "m")  # fmt: skip
    frame = pd.read_csv("table.csv").head(3).assign(grade=["lo", "top", "hi"])
    frame.to_csv("other.csv", index=False)
    result = CliRunner().invoke(app, ["evaluate", "m", "other.csv", "--target", "grade"])
    assert "1 row has a label in the column 'grade'" in str(result.exception)
    assert "'top' (1); they are lo, mid, hi: evaluate a model that was" in str(result.exception)
