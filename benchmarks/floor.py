"""How far from the best possible predictor: Friedman's function, whose distribution is known.

(a) Networks and ``AutoOrdinal`` on 30,000 generated rows, tested on 200,000 fresh ones, five seeds:
the error over that of the best possible predictor, and the seconds of a fit. (b) Where
`ECHELON_DATA` names a folder with the published Fireman partition: fitted on its training part,
with its validation part as such, seeds 0 to 4. The paper's own recipe is in docs/reproduction.md.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import echelon
from echelon.data import make_friedman
from echelon.evaluation import metrics
from page import environment_line, write_results, write_section

SEEDS = 5
ROWS, TEST_ROWS = 30_000, 200_000
FIRST_SEED = 9000  # of the data; nothing was tuned on these
FIREMAN_FLOOR = 0.693  # of the best possible predictor on the published test part

MODELS: dict[str, Callable[..., Any]] = {
    "corn mlp": partial(echelon.OrdinalClassifier, backbone="mlp"),
    "corn tabm": partial(echelon.OrdinalClassifier, backbone="tabm"),
    "auto 60 s": partial(echelon.AutoOrdinal, time_limit=60),
    "auto 300 s": partial(echelon.AutoOrdinal, time_limit=300),
}

PREAMBLE = """\
Written by `python benchmarks/floor.py --markdown docs/benchmarks.md`. Friedman's function has a
known best predictor, so an error can be put beside the lowest that is possible.
"""


def main() -> None:
    """Run, print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skip-tabm", action="store_true", help="it takes half a minute a fit")
    parser.add_argument(
        "--models", default="corn mlp,corn tabm,auto 60 s",
        help=f"whom to fit to generated rows, with commas: {', '.join(MODELS)}",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of generated rows")
    parser.add_argument("--skip-fireman", action="store_true", help="generated data only")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/floor.json"))
    parser.add_argument("--markdown", type=Path, help="write the tables to this page, too")
    options = parser.parse_args()
    backbones = ["mlp"] if options.skip_tabm else ["mlp", "tabm"]
    # What is skipped is shown as it was found before.
    results: dict[str, Any] = {"generated": [], "fireman": []}
    if options.json.exists():
        results |= json.loads(options.json.read_text())["results"]
    chosen = [name.strip() for name in options.models.split(",") if name.strip()]
    if options.skip_tabm:
        chosen = [name for name in chosen if name != "corn tabm"]
    generated = [row for name in chosen for row in on_generated(name, options.seeds)]
    results["generated"] = merged(results["generated"], generated, "name")
    folder = os.environ.get("ECHELON_DATA")
    if folder is not None and not options.skip_fireman:
        fireman = on_fireman(Path(folder) / "fireman", backbones)
        results["fireman"] = merged(results["fireman"], fireman, "name")
    texts = [environment_line(), generated_table(results["generated"])]
    if results["fireman"]:
        texts.append(fireman_table(results["fireman"]))
    text = "\n\n".join(texts)
    print(f"\n{text}")
    write_results(options.json, results)
    if options.markdown is not None:
        write_section(options.markdown, "Distance from the best possible", f"{PREAMBLE}\n{text}")


def merged(earlier: list[Any], found: list[Any], key: str) -> list[Any]:
    """Rows that were found now, each kind in the place of what was found before."""
    new = {row[key] for row in found}
    kinds = dict.fromkeys([*(row[key] for row in earlier), *(row[key] for row in found)])
    return [
        row for kind in kinds for row in (found if kind in new else earlier) if row[key] == kind
    ]


def on_generated(name: str, seeds: int) -> list[dict[str, Any]]:
    """A fit of a model of MODELS for each seed."""
    rows = []
    for seed in range(seeds):
        train = make_friedman(ROWS, seed=FIRST_SEED + seed)
        test = make_friedman(TEST_ROWS, seed=FIRST_SEED + 500 + seed)
        start = time.perf_counter()
        model = MODELS[name](random_state=seed)
        model.fit(train.features, train.ranks)
        seconds = time.perf_counter() - start
        best = test.bayes_probabilities
        floor = metrics.mae(test.ranks, (best.cumsum(axis=1)[:, :-1] < 0.5).sum(axis=1))
        row = {
            "name": name,
            "seed": seed,
            "mae": metrics.mae(test.ranks, model.predict(test.features)),
            "floor": floor,
            "rps": metrics.ranked_probability_score(test.ranks, model.predict_proba(test.features)),
            "rps_floor": metrics.ranked_probability_score(test.ranks, best),
            "seconds": seconds,
        }
        print(f"  {name}, seed {seed}: {row['mae'] / floor:.4f} in {seconds:.1f} s", flush=True)
        rows.append(row)
    return rows


def generated_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| 30,000 generated rows | seeds | MAE | of the best possible | MAE above it | "
        "RPS above it | seconds a fit, longest |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in dict.fromkeys(row["name"] for row in rows):
        own = [row for row in rows if row["name"] == name]
        error, floor = (np.mean([row[name] for row in own]) for name in ("mae", "floor"))
        ratio = np.mean([row["mae"] / row["floor"] for row in own])
        rps = np.mean([row["rps"] / row["rps_floor"] for row in own])
        longest = max(row["seconds"] for row in own)
        lines.append(
            f"| {name} | {len(own)} | {error:.4f} | {floor:.4f} | {ratio - 1:.2%} | "
            f"{rps - 1:.2%} | {longest:.1f} |"
        )
    return "\n".join(lines)


def on_fireman(folder: Path, backbones: list[str]) -> list[dict[str, Any]]:
    """The published partition; the test part is only read here."""
    (x, y), (x_val, y_val), (x_test, y_test) = (
        (frame.drop(columns="response"), frame["response"].to_numpy())
        for frame in (pd.read_csv(folder / f"{part}.csv") for part in ("train", "valid", "test"))
    )
    jobs: list[tuple[str, int, dict[str, Any]]] = [
        (f"corn {backbone}, defaults", seed, {"backbone": backbone})
        for backbone in backbones
        for seed in range(SEEDS)
    ]
    rows = []
    for name, seed, parameters in jobs:
        start = time.perf_counter()
        model = echelon.OrdinalClassifier(random_state=seed, **parameters)
        model.fit(x, y, X_val=x_val, y_val=y_val)
        row = {
            "name": name,
            "seed": seed,
            "mae": metrics.mae(y_test, model.predict(x_test)),
            "rmse": metrics.rmse(y_test, model.predict(x_test)),
            "seconds": time.perf_counter() - start,
        }
        print(f"  {name}, seed {seed}: {row['mae']:.4f} in {row['seconds']:.1f} s", flush=True)
        rows.append(row)
    return rows


def fireman_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| published Fireman partition, test part | seeds | MAE | RMSE | seconds a fit |",
        "| --- | ---: | ---: | ---: | ---: |",
        f"| the best possible predictor | | {FIREMAN_FLOOR} | 1.006 | |",
    ]
    for name in dict.fromkeys(row["name"] for row in rows):
        own = [row for row in rows if row["name"] == name]
        means = {key: np.mean([row[key] for row in own]) for key in ("mae", "rmse", "seconds")}
        lines.append(
            f"| {name} | {len(own)} | {means['mae']:.4f} | {means['rmse']:.4f} | "
            f"{means['seconds']:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
