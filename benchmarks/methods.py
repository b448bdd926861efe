"""All methods: the table of what they promise, and a comparison of them with every model.

The comparison is `echelon compare` with every name, so that it resumes where it was stopped, and
its verdicts are those of that command.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from echelon.methods import METHODS
from echelon.models.table import MODELS
from page import environment_line, write_section

TITLE_OF_TABLE = "What each promises"
TITLE_OF_COMPARISON = "All of them on one table"

PREAMBLE_OF_TABLE = """\
*Consistent*: P(y > k) never rises with k, by construction; the others are repaired by sorting.
*Unimodal*: every curve rises to its mode and falls. *Couples rows*: the loss compares the rows of
a batch, so that it takes neither soft labels nor several devices. *Uses distances*: the loss knows
how far ranks are from each other. *Own probabilities*: the loss gives them; the others borrow them
from a map that is fitted beside it. Of methods whose options change a promise the default is shown;
`forest` with `leaves="bernoulli"` may cross. Cost is that of the loss on N rows of K ranks; T trees
of depth D. Written by `python benchmarks/methods.py --table docs/methods.md`.
"""


def main() -> None:
    """Write the table, or run the comparison and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, help="write the table of methods to this page")
    parser.add_argument("--data", help="a file to compare on")
    parser.add_argument("--target", help="its column of labels")
    parser.add_argument("--methods", help="names with commas between; by default all")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--max-epochs", type=int, help="of every network")
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks/methods"))
    parser.add_argument("--markdown", type=Path, help="write the comparison to this page, too")
    options = parser.parse_args()
    if options.table is not None:
        write_section(options.table, TITLE_OF_TABLE, f"{PREAMBLE_OF_TABLE}\n{table()}")
    if options.data is None:
        return
    if options.target is None:
        parser.error("--data needs --target, the column of labels")
    text = comparison(compared(options))
    print(text)
    if options.markdown is not None:
        write_section(options.markdown, TITLE_OF_COMPARISON, text)


def table() -> str:
    """What every method promises, from its row."""
    promises = next(iter(METHODS.values())).promises
    heads = ["method", *promises, "cost", "cite"]
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for spec in METHODS.values():
        held = ["yes" if holds else "" for holds in spec.promises.values()]
        cells = [f"`{spec.name}`", *held, spec.cost, spec.cite]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def contestants() -> list[str]:
    """The names of all methods and models; `network` stands for the methods."""
    return [*METHODS, *(name for name in MODELS if name != "network")]


def compared(options: argparse.Namespace) -> dict[str, Any]:
    """What `echelon compare` prints, finished runs being kept."""
    command = [
        sys.executable, "-m", "echelon.cli.main", "compare", options.data,
        "--target", options.target, "--methods", options.methods or ",".join(contestants()),
        "--seeds", str(options.seeds), "--out", str(options.out), "--json",
    ]  # fmt: skip
    if options.max_epochs is not None:
        command += ["--max-epochs", str(options.max_epochs)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def comparison(found: dict[str, Any]) -> str:
    """The runs of each contestant in a line, by mean absolute error, best first."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for run in found["runs"]:
        by_name.setdefault(run["method"], []).append(run)
    rows = []
    for name, runs in by_name.items():
        means = [sum(run[metric] for run in runs) / len(runs) for metric in ("mae", "rmse")]
        rows.append((means[0], f"| `{name}` | {means[0]:.4f} | {means[1]:.4f} | {len(runs)} |"))
    heads = "| contestant | MAE | RMSE | runs |\n| --- | ---: | ---: | ---: |"
    return "\n".join([f"{environment_line()}\n", heads, *(line for _, line in sorted(rows))])


if __name__ == "__main__":
    main()
