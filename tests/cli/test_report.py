"""The command ``report``."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import run
from tests.made_runs import write_made_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_made_runs(tmp_path_factory.mktemp("made") / "runs", rows=60, seeds=2)


def test_a_page_stands_in_the_folder_or_where_it_was_told_to(runs: Path, tmp_path: Path) -> None:
    assert str(runs / "report.html") in run("report", str(runs))
    page = tmp_path / "page.html"
    assert json.loads(run("report", str(runs), "--out", str(page), "--json")) == {
        "page": str(page), "charts": [],
    }  # fmt: skip
    assert page.read_bytes() == (runs / "report.html").read_bytes()


def test_a_dash_is_the_standard_output(runs: Path) -> None:
    assert run("report", str(runs), "--out", "-").lower().startswith("<!doctype html>")
