"""Runs side by side against the same runs one after the other.

The paper's Fireman table is made twice from nothing: one run after the other in one process, with
one thread and with as many as there are cores, whichever is faster; and by `Executor`, a process
for each core with one thread each, its start included. The results of one thread must be the same
to the last bit.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from echelon.experiments import Executor, Experiment
from echelon.runs import read_runs
from page import environment_line, write_results, write_section

PREAMBLE = """\
Written by `python benchmarks/experiments.py --markdown docs/benchmarks.md`: the runs of `echelon
reproduce fireman`, all methods, one after the other in one process against a process for each core.
"""


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--paper-epochs", type=int, default=8, help="of the recipe paper")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/experiments.json"))
    parser.add_argument("--markdown", type=Path, help="write the table to this page, too")
    parser.add_argument("--one", nargs=4, metavar=("RECIPE", "WORKERS", "THREADS", "DIR"),
                        help=argparse.SUPPRESS)  # fmt: skip
    options = parser.parse_args()
    if options.one is not None:
        run_once(options, *options.one)
        return
    rows = [measure(options, recipe) for recipe in ("default", "paper")]
    text = f"{environment_line()}\n\n{table(rows)}"
    print(f"\n{text}")
    write_results(options.json, rows)
    if options.markdown is not None:
        write_section(options.markdown, "Experiments side by side", f"{PREAMBLE}\n{text}")


def experiment(options: argparse.Namespace, recipe: str, threads: int) -> Experiment:
    data = os.environ.get("ECHELON_DATA")
    return Experiment(
        data=None if data is None else Path(data) / "fireman",
        recipe=recipe,
        seeds=options.seeds,
        max_epochs=options.paper_epochs if recipe == "paper" else None,
        threads=threads,
    )


def run_once(
    options: argparse.Namespace, recipe: str, workers: str, threads: str, folder: str
) -> None:
    asked = experiment(options, recipe, int(threads))
    task = asked.task()
    start = time.perf_counter()
    asked.run(folder, executor=Executor(workers=int(workers)), task=task)
    print(time.perf_counter() - start)


def measure(options: argparse.Namespace, recipe: str) -> dict[str, Any]:
    """Each way in a process of its own, so that none inherits what another has warmed up."""
    cores = os.cpu_count() or 1
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        for name, workers, threads in (
            ("in turn, 1 thread", 1, 1),
            (f"in turn, {cores} threads", 1, cores),
            ("side by side", cores, 1),
        ):
            folder = Path(place) / name.replace(" ", "-")
            command = [sys.executable, __file__, "--seeds", str(options.seeds)]
            command += ["--paper-epochs", str(options.paper_epochs), "--one", recipe]
            command += [str(workers), str(threads), str(folder)]
            # As a user's shell has it: nothing said about threads.
            environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
            seconds[name] = float(done.stdout)
            print(f"  {recipe}, {name}: {seconds[name]:.1f} s", flush=True)
        require_same(Path(place) / "in-turn,-1-thread", Path(place) / "side-by-side")
    best = min(value for name, value in seconds.items() if name.startswith("in turn"))
    return {"recipe": recipe, **seconds, "ratio": best / seconds["side by side"]}


def require_same(first: Path, second: Path) -> None:
    """Raise where a run's result depends on what ran beside it."""
    arrays = [
        {run.config.name: run.predictions["probabilities"] for run in read_runs(folder)}
        for folder in (first, second)
    ]
    assert set(arrays[0]) == set(arrays[1])
    for name, array in arrays[0].items():
        np.testing.assert_array_equal(array, arrays[1][name], err_msg=name)


def table(rows: list[dict[str, Any]]) -> str:
    names = [name for name in rows[0] if name not in ("recipe", "ratio")]
    lines = [
        "| recipe | " + " | ".join(f"{name}, seconds" for name in names) + " | times faster |",
        "| --- | " + " | ".join(["---:"] * (len(names) + 1)) + " |",
    ]
    for row in rows:
        cells = " | ".join(f"{row[name]:.0f}" for name in names)
        lines.append(f"| {row['recipe']} | {cells} | {row['ratio']:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
