"""The command ``methods``."""

import json
from pathlib import Path

from echelon import METHODS, MODELS
from tests.cli.commands import run


def test_methods_and_models_are_listed() -> None:
    rows = json.loads(run("methods", "--json"))
    assert [row["name"] for row in rows if row["kind"] == "method"] == [*METHODS]
    assert [row["name"] for row in rows if row["kind"] == "model"] == [*MODELS]
    shown = run("methods")
    for row in rows:
        assert f"  {row['name']} " in shown
        assert row["summary"] in shown


def test_what_a_method_promises_is_read_off_its_row() -> None:
    rows = {row["name"]: row for row in json.loads(run("methods", "--json"))}
    for name, spec in METHODS.items():
        promises = rows[name]["promises"]
        assert promises["consistent"] is not spec.can_cross
        assert promises["couples rows"] is spec.couples_rows
        assert promises["own probabilities"] is not spec.borrows_probabilities
        assert rows[name]["cost"]
        assert rows[name]["cite"]


def test_the_table_of_the_docs_is_that_of_the_rows() -> None:
    """Written by `python benchmarks/methods.py --table docs/methods.md`."""
    text = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()
    text = text.split("## What each promises")[1].split("\n## ")[0]
    for name, spec in METHODS.items():
        lines = (each for each in text.splitlines() if each.startswith(f"| `{name}` |"))
        kept, cost = ([cell.strip() for cell in line[1:-1].split("|")][1:] for line in lines)
        assert kept == ["yes" if holds else "" for holds in spec.promises.values()]
        assert cost == [spec.cost, spec.cite]
