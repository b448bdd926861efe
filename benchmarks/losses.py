"""Time every loss, forward and backward, beside those of other libraries, in one process.

Each figure is the best of several rounds; in a round every contestant takes its turn, so that a
slow moment of the machine hits all of them. Read the ratios: times differ between machines.
"""

import argparse
import importlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

import echelon
from page import environment_line, write_results, write_section

SIZES = [(128, 16), (256, 33), (1024, 33), (128, 101), (4096, 101), (1024, 1000)]
BASELINE = "plain BCE"  # with the building of its levels
SECONDS_PER_TURN = 0.01  # short turns and many rounds: some of them meet a quiet machine
SLOW_ROUNDS = 25  # of a step that takes longer than a turn: fewer may all meet a busy machine

PREAMBLE = """\
Written by `python benchmarks/losses.py --markdown docs/benchmarks.md`; `make bench` prints it too.
Time of forward and backward, best of several rounds in which all take turns: plain binary
cross-entropy with the building of its levels in microseconds, the others as a ratio to it. The
rank check is part of echelon's times, and the building of levels of coral-pytorch's CORAL.
CNNPOR and ranking sum the hinges of all pairs by sorting, in time N log N.
"""

Step = Callable[[], None]


def main() -> None:
    """Run all sizes, print the tables and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="how often each takes its turn")
    parser.add_argument(
        "--json", type=Path, default=Path("build/benchmarks/losses.json"), help="where to write"
    )
    parser.add_argument("--markdown", type=Path, help="write the tables to this file, too")
    options = parser.parse_args()

    results = []
    for rows, num_classes in SIZES:
        print(f"N = {rows}, K = {num_classes} ...", flush=True)
        results.append(
            {
                "rows": rows,
                "num_classes": num_classes,
                "seconds": best_times(contestants(rows, num_classes), options.rounds),
            }
        )
    text = "\n\n".join([environment_line(), table(results), findings(results)])
    print(f"\n{text}")
    write_results(options.json, results)
    if options.markdown is not None:
        write_section(options.markdown, "Losses", f"{PREAMBLE}\n{text}")


def contestants(rows: int, num_classes: int) -> dict[str, Step]:
    """One step, forward and backward, of every loss that is here."""
    torch.manual_seed(0)
    ranks = torch.randint(num_classes, (rows,))
    per_class = torch.randn(rows, num_classes, requires_grad=True)
    per_task = torch.randn(rows, num_classes - 1, requires_grad=True)

    def build_levels() -> Tensor:
        return (ranks.unsqueeze(1) > torch.arange(num_classes - 1)).float()

    def step(logits: Tensor, loss: Callable[[Tensor], Tensor]) -> Step:
        def run() -> None:
            logits.grad = None
            loss(logits).backward()

        return run

    steps = {
        BASELINE: step(per_task, lambda z: binary_cross_entropy_with_logits(z, build_levels()))
    }
    for name in echelon.METHODS:
        method = echelon.method(name, num_classes)
        logits = torch.randn(rows, method.num_logits, requires_grad=True)
        steps[f"echelon {name}"] = step(logits, lambda z, method=method: method.loss(z, ranks))
    for name, (takes, loss) in peers(num_classes):
        logits = per_task if takes == "tasks" else per_class
        steps[name] = step(logits, lambda z, loss=loss: loss(z, ranks))
    return steps


def peers(num_classes: int) -> Iterator[tuple[str, tuple[str, Callable[..., Tensor]]]]:
    """Losses of other libraries, with what their users must do around them."""
    if coral := optional("coral_pytorch.losses"):
        to_levels = importlib.import_module("coral_pytorch.dataset").levels_from_labelbatch

        def coral_loss(z: Tensor, ranks: Tensor) -> Tensor:
            return coral.coral_loss(z, to_levels(ranks, num_classes))

        yield "coral-pytorch corn", ("tasks", lambda z, y: coral.corn_loss(z, y, num_classes))
        yield "coral-pytorch coral", ("tasks", coral_loss)
    if dlordinal := optional("dlordinal.losses"):
        every_class = torch.arange(num_classes)
        yield "dlordinal corn", ("tasks", dlordinal.CORNLoss(num_classes))
        yield "dlordinal sord", ("classes", dlordinal.SORDLoss(1.0, num_classes, every_class))
        yield "dlordinal emd (squared, as rps)", ("classes", dlordinal.EMDLoss(num_classes))


def optional(name: str) -> Any:
    """A module of the `bench` extra, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"  {name} is not installed; left out")
        return None


def best_times(steps: dict[str, Step], rounds: int) -> dict[str, float]:
    """Seconds of one step of each, the best over the rounds."""
    repeats = {}
    for name, step in steps.items():
        step()
        start = time.perf_counter()
        step()
        repeats[name] = max(1, int(SECONDS_PER_TURN / (time.perf_counter() - start)))
    best = dict.fromkeys(steps, float("inf"))
    for number in range(rounds):
        for name, step in steps.items():
            if best[name] > SECONDS_PER_TURN and number >= SLOW_ROUNDS:
                continue
            start = time.perf_counter()
            for _ in range(repeats[name]):
                step()
            best[name] = min(best[name], (time.perf_counter() - start) / repeats[name])
    return best


def table(results: list[dict[str, Any]]) -> str:
    """The baseline in microseconds, everything else as a ratio to it."""
    heads = [f"({result['rows']}, {result['num_classes']})" for result in results]
    lines = [
        "| loss (N, K) | " + " | ".join(heads) + " |",
        "| --- |" + " ---: |" * len(heads),
    ]
    for name in results[0]["seconds"]:
        cells = []
        for result in results:
            seconds, base = result["seconds"][name], result["seconds"][BASELINE]
            cells.append(f"{1e6 * seconds:.0f} µs" if name == BASELINE else f"{seconds / base:.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def findings(results: list[dict[str, Any]]) -> str:
    """CORN against coral-pytorch and against plain BCE, and its time per element."""
    lines = [
        "| CORN (N, K) | times faster than coral-pytorch | over plain BCE | ns per element |",
        "| --- | ---: | ---: | ---: |",
    ]
    for result in results:
        rows, num_classes, seconds = result["rows"], result["num_classes"], result["seconds"]
        ours, base = seconds["echelon corn"], seconds[BASELINE]
        peer = seconds.get("coral-pytorch corn", float("nan"))
        per_element = 1e9 * ours / (rows * (num_classes - 1))
        lines.append(
            f"| ({rows}, {num_classes}) | {peer / ours:.0f} | {1e6 * (ours - base):+.0f} µs, "
            f"{ours / base:.2f} times | {per_element:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
