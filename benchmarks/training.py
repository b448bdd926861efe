"""Time training and prediction beside a bare loop and beside coral-pytorch, in one process.

(a) An epoch of the CORN paper's MLP on 30,922 generated rows (the size of Fireman's training part),
with echelon's loop, with a bare loop over preloaded tensors, and with coral-pytorch in a plain
DataLoader loop; the same network and batch size, best of several rounds in turns. (b) Seconds
of the processor, with one thread, until the validation MAE is 0.75, with the default recipe and
with the paper's. (c) Prediction of
1,000,000 rows through the estimator and through a bare forward pass. (d) Rows per second of a fit
of one epoch, and the peak memory, for more and more rows and classes, each in a process of its own;
and `echelon predict` on a Parquet file of 10,000,000 rows.
"""

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import echelon
from echelon.data import make_friedman
from echelon.data.kinds.tabular import TableEncoder
from echelon.data.schema import TableSchema
from echelon.networks.network import OrdinalNetwork
from echelon.networks.table import make_backbone
from echelon.networks.tabular import PaperMLP
from echelon.training.loop import EncodedRows, train
from echelon.training.recipes import make_settings, make_spec
from page import environment_line, write_results, write_section

ROWS = 30_922
VALIDATION_ROWS = 1_628
NUM_CLASSES = 16
GOOD_MAE = 0.75
SEEDS = 5  # of the time to it, of which the median is shown
SIZES = [(10_000, 16), (100_000, 16), (1_000_000, 16), (10_000_000, 16)]
CLASSES = [(100_000, 4), (100_000, 64), (100_000, 256)]
PREDICTED_ROWS = 10_000_000
PARTS = "abcd"

PREAMBLE = """\
Written by `python benchmarks/training.py --markdown docs/benchmarks.md`. Ratios are to a contestant
in the same run, best of several rounds in turns. The time to a validation MAE of 0.75 (the best
possible is about 0.69) is a gain of the recipe: both run through echelon's loop, and it is the
median of five seeds, in seconds of the processor with one thread.
"""


def main() -> None:
    """Run, print the tables and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", default=PARTS, help="which of them to run, such as ac")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/training.json"))
    parser.add_argument("--markdown", type=Path, help="write the tables to this page, too")
    parser.add_argument("--measure-fit", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure_fit:
        print(json.dumps(measure_fit(*options.measure_fit)))
        return
    # Parts that are not run are shown as they were found before.
    results: dict[str, Any] = {}
    if set(options.parts) != set(PARTS) and options.json.exists():
        results = json.loads(options.json.read_text())["results"]
    texts = [environment_line()]
    for part, run, show in (
        ("a", lambda: [time_epochs(size, options.rounds) for size in (128, 16)], epoch_table),
        ("b", time_recipes, recipe_table),
        ("c", lambda: time_prediction(options.rounds), prediction_table),
        ("d", time_sizes, size_table),
    ):
        if part in options.parts:
            results[part] = run()
        if part in results:
            texts.append(show(results[part]))
            print(f"\n{texts[-1]}\n", flush=True)
    write_results(options.json, results)
    if options.markdown is not None:
        write_section(options.markdown, "Training and prediction", "\n\n".join([PREAMBLE, *texts]))


# ---- a: an epoch ---------------------------------------------------------------------------------


def epoch_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| an epoch, batch | echelon | over a bare loop | coral-pytorch over echelon |",
        "| --- | ---: | ---: | ---: |",
    ]
    for row in rows:
        ours = row["echelon"]
        lines.append(
            f"| {row['batch_size']} | {ours:.2f} s | {ours / row['bare']:.2f} times | "
            f"{row['coral-pytorch'] / ours:.2f} times |"
        )
    return "\n".join(lines)


def time_epochs(batch_size: int, rounds: int) -> dict[str, float]:
    """Seconds of an epoch of each contestant, the best over the rounds."""
    data = make_friedman(ROWS, NUM_CLASSES)
    features, ranks = torch.from_numpy(data.features), torch.from_numpy(data.ranks)
    features = (features - 0.5) * 12**0.5
    contestants: dict[str, Callable[[], None]] = {
        "echelon": lambda: with_echelon(features, ranks, batch_size),
        "bare": lambda: bare_loop(features, ranks, batch_size),
        "coral-pytorch": lambda: with_coral_pytorch(features, ranks, batch_size),
    }
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
            print(f"  batch {batch_size}, {name}: {best[name]:.2f} s", flush=True)
    return {"batch_size": batch_size, **best}


def make_network() -> tuple[echelon.Method, nn.Sequential]:
    """The paper's MLP for CORN, with its head."""
    torch.manual_seed(0)
    method = echelon.method("corn", NUM_CLASSES)
    backbone = PaperMLP(10, 10)
    return method, nn.Sequential(backbone, method.head(backbone.out_features))


def with_echelon(features: Tensor, ranks: Tensor, batch_size: int) -> None:
    torch.manual_seed(0)
    method = echelon.method("corn", NUM_CLASSES)
    network = OrdinalNetwork(nn.Identity(), PaperMLP(10, 10), method, 300)
    spec = make_spec("paper", "corn", "paper", ("table",), {})
    settings = make_settings("paper", spec, ROWS, {"max_epochs": 1, "batch_size": batch_size})
    fabric = Fabric(accelerator="cpu", devices=1)
    train(network, EncodedRows(features, ranks), None, settings, seed=0, fabric=fabric)


def bare_loop(features: Tensor, ranks: Tensor, batch_size: int) -> None:
    method, network = make_network()
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.2, fused=True)
    batches = torch.split(torch.randperm(ROWS), batch_size)[: ROWS // batch_size]
    for batch in batches:
        method.loss(network(features[batch]), ranks[batch]).backward()
        optimiser.step()
        optimiser.zero_grad()


def with_coral_pytorch(features: Tensor, ranks: Tensor, batch_size: int) -> None:
    corn_loss = importlib.import_module("coral_pytorch.losses").corn_loss
    _, network = make_network()
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.2)
    loader = DataLoader(
        TensorDataset(features, ranks), batch_size=batch_size, shuffle=True, drop_last=True
    )
    for some_features, some_ranks in loader:
        loss = corn_loss(network(some_features), some_ranks, NUM_CLASSES)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


# ---- b: seconds to a good model ------------------------------------------------------------------


class ReachedError(Exception):
    """Ends a run that is good enough."""


def time_recipes() -> list[dict[str, Any]]:
    """Seconds and epochs until the validation MAE is good, encoding included."""
    data, held, source = fireman()
    print(f"  on {source}")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rows = []
    for name, recipe, backbone, overrides in (
        ("default", "default", "mlp", {}),
        ("paper, shuffled batches", "paper", "paper", {}),
        ("paper, published batches", "paper", "paper", {"batches": "published"}),
    ):
        tried = [
            time_recipe(recipe, backbone, overrides, data, held, seed) for seed in range(SEEDS)
        ]
        print(f"  {name}: {tried}", flush=True)
        rows.append({"recipe": name, "data": source, **middle(tried)})
    torch.set_num_threads(threads)
    return rows


def middle(tried: list[dict[str, Any]]) -> dict[str, Any]:
    """The run of the median time."""
    return sorted(tried, key=lambda row: row["seconds"])[len(tried) // 2]


def fireman() -> tuple[tuple[Any, Any], tuple[Any, Any], str]:
    """Features and ranks to train and to validate on: the published partition, or generated."""
    folder = os.environ.get("ECHELON_DATA")
    if folder is None:
        data, held = make_friedman(ROWS, seed=0), make_friedman(VALIDATION_ROWS, seed=1)
        generated = [(one.features, one.ranks) for one in (data, held)]
        return generated[0], generated[1], "generated rows"
    parts = []
    for name in ("train", "valid"):
        frame = pd.read_csv(Path(folder) / "fireman" / f"{name}.csv")
        features = frame.drop(columns="response").to_numpy(np.float32)
        parts.append((features, frame["response"].to_numpy(np.int64, copy=True)))
    return parts[0], parts[1], "the published partition"


def time_recipe(
    recipe: str,
    backbone: str,
    overrides: dict[str, Any],
    data: tuple[Any, Any],
    held: tuple[Any, Any],
    seed: int,
) -> dict[str, Any]:
    torch.manual_seed(seed)
    start = time.process_time()
    overrides = {"metric": "mae", **overrides}
    spec = make_spec(recipe, "corn", backbone, ("table",), {})
    settings = make_settings(recipe, spec, len(data[1]), overrides)
    schema = TableSchema.of(data[0])
    encoder = TableEncoder.of(schema.read(data[0]), schema, scaling=spec.scaling)
    rows, validation = (
        EncodedRows(
            encoder(
                torch.from_numpy(schema.read(features).numbers),
                torch.zeros(len(ranks), 0, dtype=torch.int64),
            ),
            torch.from_numpy(ranks),
        )
        for features, ranks in (data, held)
    )
    body = make_backbone(spec.backbones["table"], encoder.sizes, spec.options_of("table"))
    method = echelon.method("corn", NUM_CLASSES, **spec.method_options)
    network = OrdinalNetwork(encoder, body, method, body.out_features)
    epochs, best = 0, float("inf")

    def on_epoch(row: dict[str, float]) -> None:
        nonlocal epochs, best
        epochs, best = epochs + 1, min(best, row["validation_mae"])
        if best <= GOOD_MAE:
            raise ReachedError

    fabric = Fabric(accelerator="cpu", devices=1)
    reached = False
    try:
        train(network, rows, validation, settings, seed=seed, fabric=fabric, on_epoch=on_epoch)
    except ReachedError:
        reached = True
    return {
        "seconds": time.process_time() - start,
        "epochs": epochs,
        "reached": reached,
        "best": best,
    }


def recipe_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        f"| to a validation MAE of {GOOD_MAE}, {rows[0]['data']} | seconds | epochs | "
        f"over the default recipe |",
        "| --- | ---: | ---: | ---: |",
    ]
    for row in rows:
        ratio = f"{row['seconds'] / rows[0]['seconds']:.1f} times"
        never = "" if row["reached"] else f" (not reached: {row['best']:.3f} after all epochs)"
        lines.append(
            f"| {row['recipe']}{never} | {row['seconds']:.1f} | {row['epochs']} | {ratio} |"
        )
    return "\n".join(lines)


# ---- c: prediction -------------------------------------------------------------------------------


def prediction_table(row: dict[str, float]) -> str:
    ratio = row["echelon"] / row["bare"]
    return (
        "| 1,000,000 rows | echelon | over a bare forward pass |\n| --- | ---: | ---: |\n"
        f"| predict_proba | {row['echelon']:.2f} s | {ratio:.2f} times |"
    )


def time_prediction(rounds: int) -> dict[str, float]:
    """Seconds for a million rows, through the estimator and through its bare network."""
    small, large = make_friedman(2000, NUM_CLASSES), make_friedman(1_000_000, NUM_CLASSES, seed=1)
    model = echelon.OrdinalClassifier(
        backbone="mlp", settings={"max_epochs": 1}, random_state=0, device="cpu"
    )
    model.fit(small.features, small.ranks)
    features = torch.from_numpy(large.features)
    best = {"echelon": float("inf"), "bare": float("inf")}
    for _ in range(rounds):
        start = time.perf_counter()
        model.predict_proba(large.features)
        best["echelon"] = min(best["echelon"], time.perf_counter() - start)
        start = time.perf_counter()
        with torch.no_grad():
            for part in torch.split(features, 4096):
                torch.sigmoid(model.network_(part))
        best["bare"] = min(best["bare"], time.perf_counter() - start)
    return best


# ---- d: more rows, more classes ------------------------------------------------------------------


def time_sizes() -> dict[str, Any]:
    """Fits of one epoch, each in a process of its own; and a long prediction."""
    fits = []
    for rows, num_classes in SIZES + CLASSES:
        command = [sys.executable, __file__, "--measure-fit", str(rows), str(num_classes)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        fits.append(json.loads(done.stdout))
        print(f"  {fits[-1]}", flush=True)
    return {"fits": fits, "prediction": measure_prediction()}


def measure_fit(rows: int, num_classes: int) -> dict[str, Any]:
    """Seconds and peak memory of a fit of one epoch, in this process."""
    data = make_friedman(rows, num_classes)
    features, ranks = data.features, data.ranks
    quick = {"max_epochs": 1, "batch_size": 256}
    warm = echelon.OrdinalClassifier(backbone="mlp", random_state=0, settings=quick)
    warm.fit(features[:2000], ranks[:2000])  # imports and first calls
    before = peak_memory(resource.RUSAGE_SELF)
    start = time.perf_counter()
    settings = {**quick, "refit": False}
    model = echelon.OrdinalClassifier(backbone="mlp", random_state=0, settings=settings)
    model.fit(features, ranks)
    return {
        "rows": rows,
        "num_classes": num_classes,
        "seconds": time.perf_counter() - start,
        "peak_gib": peak_memory(resource.RUSAGE_SELF),
        "before_gib": before,
    }


def measure_prediction() -> dict[str, Any]:
    """`echelon predict` on a long Parquet file, in a process of its own."""
    import pyarrow as pa
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = [f"V{i}" for i in range(1, 11)]
        small = make_friedman(2000)
        model = echelon.OrdinalClassifier(
            backbone="mlp", settings={"max_epochs": 1}, random_state=0
        )
        model.fit(pd.DataFrame(small.features, columns=names), small.ranks)
        model.save(folder / "model.echelon")
        writer = None
        step = 500_000
        for seed in range(PREDICTED_ROWS // step):
            part = pa.table(
                dict(zip(names, make_friedman(step, seed=seed).features.T, strict=True))
            )
            writer = writer or pa.parquet.ParquetWriter(folder / "rows.parquet", part.schema)
            writer.write_table(part)
        assert writer is not None
        writer.close()
        start = time.perf_counter()
        code = (
            "import resource, sys; from echelon.cli.main import app\n"
            "app(sys.argv[1:], standalone_mode=False)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        arguments = ["predict", "model.echelon", "rows.parquet", "--out", "predictions.csv"]
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=folder, check=True, capture_output=True, text=True,
        )  # fmt: skip
        seconds = time.perf_counter() - start
    peak = int(done.stdout.splitlines()[-1]) / 2**20
    return {"rows": PREDICTED_ROWS, "seconds": seconds, "peak_gib": peak}


def peak_memory(who: int) -> float:
    """GiB, as Linux counts them."""
    return resource.getrusage(who).ru_maxrss / 2**20


def size_table(found: dict[str, Any]) -> str:
    base = next(row for row in found["fits"] if (row["rows"], row["num_classes"]) == (100_000, 16))
    lines = [
        "| a fit of one epoch | rows a second | time a row over that of 100,000 | peak memory |",
        "| --- | ---: | ---: | ---: |",
    ]
    for row in found["fits"]:
        per_row = row["seconds"] / row["rows"]
        lines.append(
            f"| {row['rows']:,} rows, {row['num_classes']} classes | {1 / per_row:,.0f} | "
            f"{per_row * base['rows'] / base['seconds']:.2f} times | {row['peak_gib']:.2f} GiB |"
        )
    row = found["prediction"]
    lines += [
        "",
        "| `echelon predict` on Parquet | rows a second | peak memory |",
        "| --- | ---: | ---: |",
        f"| {row['rows']:,} rows | {row['rows'] / row['seconds']:,.0f} | "
        f"{row['peak_gib']:.2f} GiB |",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
