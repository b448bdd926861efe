"""The command ``methods``: what can be fitted and compared, by name."""

import json
from collections.abc import Iterable
from typing import Any

from echelon.cli.options import AsJson
from echelon.models.table import MODELS


def methods(as_json: AsJson = False) -> None:
    """List the methods with their options and what they promise, and the models.

    A method trains a network, `echelon fit --method NAME`. A model is fitted by `echelon fit
    --model NAME`. `echelon compare --methods` takes the names of both.

    Example: echelon methods
    """
    from echelon.methods import METHODS

    if as_json:
        rows: list[dict[str, Any]] = [
            {
                "kind": "method", "name": row.name, "summary": row.summary, "options": row.options,
                "promises": row.promises, "cost": row.cost, "cite": row.cite,
            }
            for row in METHODS.values()
        ]  # fmt: skip
        rows += [
            {
                "kind": "model", "name": model.name, "summary": model.summary,
                "saves": model.saves, "exports": model.exports,
            }
            for model in MODELS.values()
        ]  # fmt: skip
        print(json.dumps(rows))
        return
    print("Methods, which train a network (--method):")
    _print_rows((row.name, row.summary + _in_brackets(row.options)) for row in METHODS.values())
    print("What they promise, what a loss costs on N rows of K ranks, and whom to cite:")
    for row in METHODS.values():
        held = ", ".join(name for name, holds in row.promises.items() if holds)
        print(f"  {row.name:<22}{held}; {row.cost}; {row.cite}")
    print("Models (--model):")
    _print_rows((row.name, row.summary) for row in MODELS.values())


def _print_rows(rows: Iterable[tuple[str, str]]) -> None:
    for name, text in rows:
        print(f"  {name:<22}{text}")


def _in_brackets(options: Any) -> str:
    listed = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f" [{listed}]" if listed else ""
