"""The command ``methods``."""

import json

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
