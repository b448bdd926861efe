"""The command ``drift``: an exit code for pipelines, and a section of the page."""

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from echelon.cli.main import app
from tests.cli.commands import run


def drift(*arguments: str):
    return CliRunner().invoke(app, ["drift", *arguments])


@pytest.fixture
def fitted(folder: Path) -> pd.DataFrame:
    table = pd.read_csv("table.csv").drop(columns=["grade", "weight"])
    table[:200].to_csv("old.csv", index=False)
    table[200:].to_csv("new.csv", index=False)
    run("fit", "old.csv", "--target", "stars", "--model", "boosting:rounds=5", "--out", "m")
    return table[200:]


def test_it_ends_with_3_where_something_changed_and_with_0_where_nothing_did(
    fitted: pd.DataFrame, monkeypatch
) -> None:
    quiet = drift("m", "new.csv", "--target", "stars")
    assert quiet.exit_code == 0, quiet.output
    assert "nothing changed" in quiet.output
    fitted.assign(a=fitted["a"] + 0.5, kind="huge").to_csv("shifted.csv", index=False)
    loud = drift("m", "shifted.csv")
    assert loud.exit_code == 3
    assert "a: values lie elsewhere" in loud.output
    assert "categories that training had not: 'huge' (100)" in " ".join(loud.output.split())
    assert max(map(len, loud.output.splitlines())) <= 80
    whole = json.loads(drift("m", "shifted.csv", "--json").stdout)
    monkeypatch.setattr("echelon.cli.reading.CHUNK_ROWS", 33)
    parts = json.loads(drift("m", "shifted.csv", "--json").stdout)
    assert whole["alarm"]
    assert {**parts, "data": ""} == {**whole, "data": ""}


def test_rows_without_a_label_have_their_columns_compared(fitted: pd.DataFrame) -> None:
    fitted["stars"] = fitted["stars"].astype(object).mask(fitted.index % 2 == 0, "")
    fitted.to_csv("half.csv", index=False)
    said = json.loads(drift("m", "half.csv", "--target", "stars", "--json").stdout)
    assert said["rows"] == 100
    (classes,) = (test for test in said["tests"] if test["name"] == "classes")
    assert sum(classes["shares"].values()) == pytest.approx(1, abs=1e-5)


def test_it_is_a_section_of_the_page(fitted: pd.DataFrame) -> None:
    run("evaluate", "m", "new.csv", "--target", "stars", "--out", "seen")
    assert drift("m", "new.csv", "--target", "stars", "--out", "seen").exit_code == 0
    run("report", "seen")
    page = Path("seen/report.html").read_text()
    assert "What changed since the fit" in page
    assert "comparisons with the training rows found a change" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--level", "2"), "--level must lie between 0 and 1"),
        (("--out", "nowhere"), "nowhere is no finished run"),
        (("--target", "mood"), "has no column 'mood'"),
    ],
)
def test_wrong_use_is_named(fitted: pd.DataFrame, arguments: tuple[str, ...], message: str) -> None:
    result = drift("m", "new.csv", *arguments)
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)
