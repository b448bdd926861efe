"""Measure what many rows and single rows cost, as ratios in one run.

The part `prediction`: `predict_proba` of 1,000,000 rows over bare forward passes of the same
network in float32, from features that are ready to sigmoids, and from raw rows to probabilities;
one row of a frame and of an array; `echelon predict` from Parquet to Parquet over `predict_proba`
in memory; and how far the probabilities of rows differ when they are asked for a few at a time.

The part `streaming`: fits of Parquet folders that are not read into memory; see streaming.py.

Times are seconds of the processor, on one thread unless told otherwise, best of several rounds in
turns: other programs may run beside this one.
"""

import argparse
import contextlib
import io
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import echelon
from echelon.cli.predict import predict
from echelon.data import make_friedman
from page import environment_line, write_results, write_section
from streaming import measure_streaming, streaming_table

NUM_CLASSES = 16
NAMES = [f"V{i}" for i in range(1, 11)]
ROWS = {"mlp": 1_000_000, "tabm": 100_000}
SIZES = (2048, 4096, 16_384)  # rows at once of the bare pass, of which the fastest counts
AT_ONCE = (1, 7, 100, 5000)
REPEATS = 10  # of a request of one row in each round: few enough to fit between other programs

PREAMBLE = """\
Written by `python benchmarks/scale.py --markdown docs/benchmarks.md`. Times are seconds of the
processor on one thread, ratios are to a contestant in the same run, best of several rounds in
turns.
"""


def main() -> None:
    """Run the parts that are asked for, print their tables and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="which, with commas between them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, help="of the rows, for a quick look")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/scale.json"))
    parser.add_argument("--markdown", type=Path, help="write the tables to this page, too")
    options = parser.parse_args()
    unknown = set(options.parts.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"--parts must be of {', '.join(PARTS)}; got {', '.join(sorted(unknown))}")
    torch.set_num_threads(options.threads)
    # Parts that are not run are shown as they were found before.
    results: dict[str, Any] = {}
    if options.json.exists():
        results = json.loads(options.json.read_text())["results"]
    texts = [environment_line()]
    for part, (run, show) in PARTS.items():
        if part in options.parts.split(","):
            results[part] = run(options)
        if part in results:
            texts.append(show(results[part]))
            print(f"\n{texts[-1]}\n", flush=True)
    write_results(options.json, results)
    if options.markdown is not None:
        write_section(options.markdown, "Scale", "\n\n".join([PREAMBLE, *texts]))


def best(rounds: int, runs: dict[str, Callable[[], Any]], times: int = 1) -> dict[str, float]:
    """Processor seconds of each run, the best of the rounds, in which they take turns."""
    seconds = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.process_time()
            for _ in range(times):
                run()
            spent = (time.process_time() - start) / times
            if spent < seconds[name]:
                seconds[name] = spent
                print(f"  {name}: {spent:.4g} s", flush=True)
    return seconds


# ---- prediction ----------------------------------------------------------------------------------


def measure_prediction(options: argparse.Namespace) -> dict[str, Any]:
    models = fitted_models()
    many = {
        name: many_rows(models[name], int(rows * options.share), options.rounds)
        for name, rows in ROWS.items()
    }
    single = {name: one_row(model, options.rounds) for name, model in models.items()}
    return {
        "many": many,
        "one": single,
        "files": parquet_files(models["mlp"], int(1_000_000 * options.share), options.rounds),
        "agreement": {name: agreement(model) for name, model in models.items()},
    }


def fitted_models() -> dict[str, Any]:
    data = make_friedman(3000, NUM_CLASSES)
    frame = pd.DataFrame(data.features.astype(np.float64), columns=NAMES)
    brief: Any = {"settings": {"max_epochs": 5, "refit": False}, "random_state": 0, "device": "cpu"}
    models = {
        "mlp": echelon.OrdinalClassifier(backbone="mlp", **brief),
        "tabm": echelon.OrdinalClassifier(backbone="tabm", **brief),
        "boosting": echelon.OrdinalBoosting(random_state=0),
        "linear": echelon.CumulativeLinkModel(),
        "blend": echelon.OrdinalBlend(
            [
                echelon.OrdinalBoosting(random_state=0),
                echelon.OrdinalClassifier(backbone="mlp", **brief),
            ]
        ),
    }
    return {name: model.fit(frame, data.ranks) for name, model in models.items()}


def many_rows(model: Any, rows: int, rounds: int) -> dict[str, float]:
    """Seconds of `predict_proba` and of the bare network."""
    table = make_friedman(rows, NUM_CLASSES, seed=1).features.astype(np.float64)
    frame = pd.DataFrame(table, columns=NAMES)
    network = model.network_.eval()
    numbers = torch.from_numpy(table)
    with torch.no_grad():
        ready = torch.cat(
            [network.encoder(part, part[:, :0].long()) for part in torch.split(numbers, 2048)]
        )

    @torch.no_grad()
    def bare(size: int) -> None:
        for part in torch.split(ready, size):
            torch.sigmoid(network(part))

    @torch.no_grad()
    def from_cells(size: int) -> None:
        for part in torch.split(numbers, size):
            _ = network.curve(network({"table": (part, part[:, :0].long())})).probabilities

    runs: dict[str, Callable[[], Any]] = {"predict_proba": lambda: model.predict_proba(frame)}
    runs["cells"] = lambda: from_cells(SIZES[0])
    runs |= {f"bare {size}": lambda size=size: bare(size) for size in SIZES}
    seconds = best(rounds, runs)
    return {
        "rows": rows,
        "predict_proba": seconds["predict_proba"],
        "cells": seconds["cells"],
        "bare": min(seconds[f"bare {size}"] for size in SIZES),
    }


def one_row(model: Any, rounds: int) -> dict[str, float]:
    """Milliseconds of `predict_proba` of one row, of a frame and of an array."""
    row = make_friedman(1, NUM_CLASSES, seed=2).features.astype(np.float64)
    frame = pd.DataFrame(row, columns=NAMES)
    unnamed = echelon.load(saved(model))
    unnamed.schema_.named = False
    runs = {
        "frame": lambda: model.predict_proba(frame),
        "array": lambda: unnamed.predict_proba(row),
    }
    seconds = best(15 * rounds, runs, REPEATS)
    return {name: 1e3 * value for name, value in seconds.items()}


def saved(model: Any) -> Path:
    place = Path(tempfile.mkdtemp()) / "model.echelon"
    model.save(place)
    return place


def parquet_files(model: Any, rows: int, rounds: int) -> dict[str, float]:
    """Rows a second from a Parquet file to another, and in memory."""
    frame = pd.DataFrame(make_friedman(rows, NUM_CLASSES, seed=3).features, columns=NAMES)
    place = saved(model)
    with tempfile.TemporaryDirectory() as name:
        source, out = Path(name) / "rows.parquet", Path(name) / "predictions.parquet"
        frame.to_parquet(source, index=False)

        def command() -> None:
            with contextlib.redirect_stdout(io.StringIO()):
                predict(place, [str(source)], out, as_json=True)

        seconds = best(rounds, {"files": command, "memory": lambda: model.predict_proba(frame)})
    return {name: rows / value for name, value in seconds.items()}


def agreement(model: Any) -> float:
    """The largest difference of a probability between rows that come few at a time and at once."""
    features = make_friedman(10_000, NUM_CLASSES, seed=4).features.astype(np.float64)
    frame = pd.DataFrame(features, columns=NAMES)
    whole = model.predict_proba(frame)
    largest = 0.0
    for size in AT_ONCE:
        for start in range(0, min(len(frame), 200 * size), size):
            part = slice(start, start + size)
            away = np.abs(model.predict_proba(frame[part]) - whole[part]).max()
            largest = max(largest, float(away))
    return largest


def prediction_table(found: dict[str, Any]) -> str:
    lines = [
        "| `predict_proba` | rows | seconds | over the bare network, from features to sigmoids | "
        "from raw rows to probabilities |"
    ]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for name, row in found["many"].items():
        ours = row["predict_proba"]
        lines.append(
            f"| {name} | {row['rows']:,} | {ours:.2f} | {ours / row['bare']:.2f} times | "
            f"{ours / row['cells']:.2f} times |"
        )
    lines += ["", "| one row | of a frame | of an array | rows alone and together differ by |"]
    lines.append("| --- | ---: | ---: | ---: |")
    for name, row in found["one"].items():
        lines.append(
            f"| {name} | {row['frame']:.2f} ms | {row['array']:.2f} ms | "
            f"{found['agreement'][name]:.0e} |"
        )
    files = found["files"]
    lines += [
        "",
        f"`echelon predict` from Parquet to Parquet: {files['files']:,.0f} rows a second, "
        f"{files['files'] / files['memory']:.2f} times those of `predict_proba` in memory.",
    ]
    return "\n".join(lines)


PARTS: dict[str, tuple[Callable[[argparse.Namespace], Any], Callable[[Any], str]]] = {
    "prediction": (measure_prediction, prediction_table),
    "streaming": (measure_streaming, streaming_table),
}


if __name__ == "__main__":
    main()
