"""Runs side by side against the same runs one after the other.

The paper's Fireman table is made twice from nothing: one run after the other in one process, with
the number of threads that was faster for a single seed; and by `Executor`, a process for each core
with one thread each, its start included.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from echelon.experiments import Executor
from echelon.paper.experiments import Experiment
from echelon.paper.sets import ALL_METHODS
from page import environment_line, write_results, write_section

PREAMBLE = """\
Written by `python benchmarks/experiments.py --markdown docs/benchmarks.md`: the runs of `echelon
reproduce fireman`, all methods, one after the other in one process against a process for each core.
"""


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--recipes", default="default", help="with commas: default, paper")
    parser.add_argument("--paper-epochs", type=int, default=8, help="of the recipe paper")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/experiments.json"))
    parser.add_argument("--markdown", type=Path, help="write the table to this page, too")
    parser.add_argument("--one", nargs=4, metavar=("RECIPE", "WORKERS", "THREADS", "DIR"),
                        help="only this way of running, and print its seconds")  # fmt: skip
    options = parser.parse_args()
    if options.one is not None:
        run_once(options, *options.one)
        return
    rows = [measure(options, recipe) for recipe in options.recipes.split(",")]
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
    asked.run(folder, executor=Executor(workers=int(workers)), tasks=[task])
    print(time.perf_counter() - start)


def measure(options: argparse.Namespace, recipe: str) -> dict[str, Any]:
    """Each way in a process of its own, so that none inherits what another has warmed up."""
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as place:
        single = {
            threads: seconds(options, 1, recipe, 1, threads, f"{place}/single-{threads}")
            for threads in (1, cores)
        }
        best = min(single, key=lambda threads: single[threads])
        in_turn = seconds(options, options.seeds, recipe, 1, best, f"{place}/in-turn")
        together = seconds(options, options.seeds, recipe, cores, 1, f"{place}/together")
    return {
        "recipe": recipe, "runs": options.seeds * len(ALL_METHODS) + 3, "threads": best,
        "in_turn": in_turn, "together": together, "ratio": in_turn / together,
    }  # fmt: skip


def seconds(
    options: argparse.Namespace, seeds: int, recipe: str, workers: int, threads: int, folder: str
) -> float:
    command = [sys.executable, __file__, "--seeds", str(seeds)]
    command += ["--paper-epochs", str(options.paper_epochs), "--one", recipe]
    command += [str(workers), str(threads), folder]
    # As a user's shell has it: nothing said about threads.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    print(f"  {recipe}, {seeds} seeds, {workers} workers, {threads} threads: "
          f"{float(done.stdout):.1f} s", flush=True)  # fmt: skip
    return float(done.stdout)


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| recipe | runs | in turn, seconds | threads | side by side, seconds | times faster |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        lines.append(
            f"| {row['recipe']} | {row['runs']} | {row['in_turn']:.0f} | {row['threads']} | "
            f"{row['together']:.0f} | {row['ratio']:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
