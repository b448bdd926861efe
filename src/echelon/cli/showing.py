"""What commands about several runs print of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_METRICS = ("mae", "rmse", "accuracy", "quadratic_weighted_kappa", "ranked_probability_score")


def show_comparison(runs: Sequence[Any], out: Path, as_json: bool) -> None:
    """Print what runs in a folder found, in words or as one document."""
    from echelon.report.content import Comparison

    found = Comparison.of(runs)
    if as_json:
        print(json.dumps(found.document()))
        return
    config = found.main_run.config
    counts = ", ".join(f"{number:,} {subset}" for subset, number in config.rows.items())
    print(f"{config.data}: {counts} rows")
    print(found.text(_METRICS))
    for sentence in found.sentences():
        print(sentence)
    print(f"`echelon report {out}` makes a page of this")
