"""What commands about several runs print of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def show_comparison(runs: Sequence[Any], out: Path, as_json: bool) -> None:
    """Print what runs in a folder found, in words or as one document."""
    from echelon.runs import Comparison

    found = Comparison.of(runs)
    if as_json:
        print(json.dumps(found.document()))
        return
    config = found.main_run.config
    counts = ", ".join(f"{number:,} {subset}" for subset, number in config.rows.items())
    print(f"{config.data}: {counts} rows")
    print(found.text())
    for sentence in found.sentences():
        print(sentence)
    print(f"`echelon report {out}` makes a page of this")
