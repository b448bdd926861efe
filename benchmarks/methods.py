"""All methods: the table of what they promise, and a comparison of them with every model.

The comparison is `echelon compare` with every name on each set (on Fireman, `echelon reproduce`),
so that it resumes where it was stopped, and its verdicts are those of that command. What it says of
a set is kept in `experiments/results/methods`, and a set that stands there is not run again.

    export ECHELON_DATA=...     # the folder with the real tables and the Fireman partition
    python benchmarks/methods.py --sets all --markdown docs/methods.md
    python benchmarks/methods.py --data own.csv --target grade --seeds 2
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from echelon.methods import METHODS
from echelon.models.table import MODELS
from echelon.storage.atomic import write_text
from page import environment_line, write_section
from sets import ORDERS, REPORTED, TUNING

TITLE_OF_TABLE = "What each promises"
TITLE_OF_COMPARISON = "All of them side by side"
MIXTURES = ("auto", "blend")  # of the others; their place is in the accuracy benchmark
FIREMAN = "fireman"
REPORTED_SETS = (*(name for name in REPORTED if name != "friedman"), FIREMAN)
SETS = (*TUNING, *REPORTED_SETS)
GROUP_TITLES = {TUNING: ", sets for tuning", REPORTED_SETS: ", reported sets"}
RESULTS = Path(__file__).parent.parent / "experiments" / "results" / "methods"
METRICS = {"MAE": "mae", "RPS": "ranked_probability_score"}
DECIDING = ("--methods", "--seeds", "--max-epochs", "--classes", "--target", "--recipe")

PREAMBLE_OF_TABLE = """\
*Consistent*: P(y > k) never rises with k, by construction; the others are repaired by sorting.
*Unimodal*: every curve rises to its mode and falls. *Couples rows*: the loss compares the rows of
a batch, so that it takes neither soft labels nor several devices. *Uses distances*: the loss knows
how far ranks are from each other. *Own probabilities*: the loss gives them; the others borrow them
from a map that is fitted beside it. Of methods whose options change a promise the default is shown;
`forest` with `leaves="bernoulli"` may cross. Cost is that of the loss on N rows of K ranks; T trees
of depth D. Written by `python benchmarks/methods.py --table docs/methods.md`.
"""

PREAMBLE_OF_COMPARISON = """\
Written by `python benchmarks/methods.py --sets all --markdown docs/methods.md`: every method with
the same network (`mlp`) and the same recipe, every model as it comes, all with their default
options. On tables it is `echelon compare`: one division, a quarter of the rows for testing; on
Fireman, `echelon reproduce fireman --recipe default` on the published partition. Nothing was chosen
on the reported sets.

A figure is the mean over the seeds on the test rows. **Bold** is the lowest of a set; a star says
that `echelon compare` finds the contestant worse than that one by more than noise, counting rows
and seeds, after Holm's correction for all pairs of the set. With more than two hundred pairs that
is strict: the first table also counts the sets on which a contestant is within two standard errors
of the best, pair by pair. Mean ranks are over all sets, 1 being the best; sets are few, so that
ranks which differ by one or two mean little.
"""


class Job(NamedTuple):
    """A set, and the command that compares everyone on it and prints a JSON document."""

    name: str
    command: list[str]
    kept: Path | None = None  # where its result stays


def main() -> None:
    """Write the table, or run the comparison and write it."""
    options = parsed()
    if options.table is not None:
        write_section(options.table, TITLE_OF_TABLE, f"{PREAMBLE_OF_TABLE}\n{table()}")
    jobs = list(jobs_of(options))
    if not jobs:
        return
    text = comparison(compared(jobs, options.hours))
    print(text)
    if options.markdown is not None:
        write_section(options.markdown, TITLE_OF_COMPARISON, f"{PREAMBLE_OF_COMPARISON}\n{text}")


def parsed() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", type=Path, help="write the table of methods to this page")
    parser.add_argument("--sets", help=f"all, or names with commas, of {', '.join(SETS)}")
    parser.add_argument("--data", help="a file to compare on")
    parser.add_argument("--target", help="its column of labels")
    parser.add_argument(
        "--methods", default=",".join(systems()), help="names with commas (default: %(default)s)"
    )
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--max-epochs", type=int, help="of every network")
    parser.add_argument("--workers", type=int, help="runs at once (default: one for each core)")
    parser.add_argument("--hours", type=float, default=6.0, help="it ends then, and can go on")
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks/methods"))
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results of sets stay")
    parser.add_argument("--markdown", type=Path, help="write the comparison to this page, too")
    options = parser.parse_args()
    if options.data is not None and options.target is None:
        parser.error("--data needs --target, the column of labels")
    options.sets = [] if options.sets is None else options.sets.split(",")
    if options.sets == ["all"]:
        options.sets = list(SETS)
    if unknown := [name for name in options.sets if name not in SETS]:
        parser.error(f"no such set: {', '.join(unknown)}; there are {', '.join(SETS)}")
    if options.sets and "ECHELON_DATA" not in os.environ:
        parser.error("set ECHELON_DATA to the folder with the real tables")
    return options


# ---- the table of promises -----------------------------------------------------------------------


def table() -> str:
    """What every method promises; and what it costs, and whom to cite."""
    promises = next(iter(METHODS.values())).promises
    kept = [
        [f"`{spec.name}`", *("yes" if holds else "" for holds in spec.promises.values())]
        for spec in METHODS.values()
    ]
    costs = [[f"`{spec.name}`", spec.cost, spec.cite] for spec in METHODS.values()]
    return "\n\n".join(
        [
            markdown_table(["method", *promises], kept),
            markdown_table(["method", "cost", "cite"], costs),
        ]
    )


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells."""
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(cells)} |" for cells in rows)])


# ---- the comparison ------------------------------------------------------------------------------


def contestants() -> list[str]:
    """The names of all methods and models; `network` stands for the methods."""
    return [*METHODS, *(name for name in MODELS if name != "network")]


def systems() -> list[str]:
    """All contestants that are not mixtures of others."""
    return [name for name in contestants() if name not in MIXTURES]


def jobs_of(options: argparse.Namespace) -> Iterable[Job]:
    """What is to be run, in order."""
    common = ["--methods", options.methods, "--seeds", str(options.seeds), "--json"]
    for name in ("max_epochs", "workers"):
        if (value := getattr(options, name)) is not None:
            common += [f"--{name.replace('_', '-')}", str(value)]
    if options.data is not None:
        given = ["compare", options.data, "--target", options.target]
        yield Job(Path(options.data).stem, [*given, "--out", str(options.out), *common])
    for name in options.sets:
        folder = Path(os.environ["ECHELON_DATA"])
        if name == FIREMAN:
            given = ["reproduce", FIREMAN, "--data", str(folder / FIREMAN), "--recipe", "default"]
        else:
            given = ["compare", str(folder / "tabular" / f"{name}.csv"), "--target", "response"]
            given += ["--classes", ",".join(ORDERS[name])] if name in ORDERS else []
        kept = options.results / f"{name}.json"
        yield Job(name, [*given, "--out", str(options.out / name), *common], kept)


def compared(jobs: Sequence[Job], hours: float) -> dict[str, dict[str, Any]]:
    """What the command prints, by set; finished runs are kept, and what is not done is left out."""
    end = time.monotonic() + 3600 * hours
    documents = {}
    for job in jobs:
        if (found := kept(job)) is not None:
            documents[job.name] = found
            continue
        print(f"{job.name} ...", file=sys.stderr, flush=True)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "echelon", *job.command],
                stdout=subprocess.PIPE, text=True, check=True, timeout=end - time.monotonic(),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            print(f"{hours:g} hours are over; start again to go on", file=sys.stderr)
            break
        documents[job.name] = essence(json.loads(done.stdout))
        if job.kept is not None:
            job.kept.parent.mkdir(parents=True, exist_ok=True)
            whole = {"asked": asked(job), **documents[job.name]}
            write_text(job.kept, json.dumps(whole, indent=1) + "\n")
    return documents


def kept(job: Job) -> dict[str, Any] | None:
    """What the same command once said of a set; None where there is nothing."""
    if job.kept is None or not job.kept.exists():
        return None
    document: dict[str, Any] = json.loads(job.kept.read_text())
    return document if document["asked"] == asked(job) else None


def asked(job: Job) -> list[str]:
    """The options of a command that decide what it finds, wherever its files are."""
    pairs = zip(job.command[:-1], job.command[1:], strict=True)
    return [word for pair in pairs if pair[0] in DECIDING for word in pair]


def essence(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the tables need of a document, which is much longer."""
    in_runs = ("method", "seed", *METRICS.values())
    in_pairs = ("first", "second", "mean", "se", "verdict")
    return {
        "runs": [{key: run[key] for key in in_runs} for run in document["runs"]],
        "differences": [{key: pair[key] for key in in_pairs} for pair in document["differences"]],
    }


def comparison(documents: Mapping[str, dict[str, Any]]) -> str:
    """Mean ranks and verdicts over the sets, then a table of each metric by set."""
    parts = [environment_line()]
    means = {
        title: {name: means_of(document["runs"], key) for name, document in documents.items()}
        for title, key in METRICS.items()
    }
    pairs = {name: beside_the_best(document) for name, document in documents.items()}
    behind = {
        name: {who for who, pair in found.items() if is_behind(pair)}
        for name, found in pairs.items()
    }
    parts.append(standings(means, pairs))
    if missing := [name for name in SETS if name not in documents]:
        parts.append(f"Not run to its end yet: {', '.join(missing)}.")
    for title, by_set in means.items():
        for group in (TUNING, REPORTED_SETS, tuple(set(by_set) - set(SETS))):
            if some := {name: by_set[name] for name in by_set if name in group}:
                about = GROUP_TITLES.get(group, "")
                parts.append(f"### {title}{about}")
                parts.append(by_set_table(some, behind if title == "MAE" else {}))
    return "\n\n".join(parts)


def means_of(runs: Sequence[Mapping[str, Any]], metric: str) -> dict[str, float]:
    """The mean over the seeds by name; a baseline that takes part as a model stands there once."""
    names = {run["method"] for run in runs}
    values: dict[str, list[float]] = {}
    for run in runs:
        if " " in run["method"] and run["method"].replace(" ", "_") in names:
            continue
        values.setdefault(run["method"], []).append(run[metric])
    return {name: float(np.mean(found)) for name, found in values.items()}


def beside_the_best(document: Mapping[str, Any]) -> dict[str, Any]:
    """The difference of everyone from the best of a set in MAE, as the command gives it."""
    means = means_of(document["runs"], "mae")
    best = min(competing(means), key=means.__getitem__)
    pairs = {frozenset((pair["first"], pair["second"])): pair for pair in document["differences"]}
    return {name: pairs[key] for name in means if (key := frozenset((best, name))) in pairs}


def is_behind(pair: Mapping[str, Any]) -> bool:
    """Whether a difference is more than noise, after the correction for all pairs."""
    return bool(pair["verdict"] == "different")


def is_near(pair: Mapping[str, Any]) -> bool:
    """Whether a difference is at most two standard errors."""
    return bool(abs(pair["mean"]) <= 2 * pair["se"])


def competing(means: Mapping[str, float]) -> list[str]:
    """The contestants: neither a constant nor the best possible predictor."""
    return [name for name in means if name.partition(":")[0] in contestants()]


def standings(
    means: Mapping[str, Mapping[str, Mapping[str, float]]],
    pairs: Mapping[str, Mapping[str, Any]],
) -> str:
    """Mean ranks, and on how many sets a contestant is best, near the best, or not behind it."""
    everyone = in_all(next(iter(means.values())))
    ranks = {title: mean_ranks(by_set, everyone) for title, by_set in means.items()}
    heads = [
        "", *(f"mean rank, {title}" for title in means),
        "best in MAE", "within two errors of it", "no star",
    ]  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " ---: |" * (len(heads) - 1)]
    for name in sorted(everyone, key=lambda name: ranks["MAE"][name]):
        # The best of a set stands in no pair with itself.
        best = sum(name not in found for found in pairs.values())
        near = sum(name not in found or is_near(found[name]) for found in pairs.values())
        level = sum(name not in found or not is_behind(found[name]) for found in pairs.values())
        cells = [*(f"{ranks[title][name]:.1f}" for title in means), best, near, level]
        lines.append(f"| `{name}` | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def in_all(by_set: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Everyone with a figure on every set."""
    first = next(iter(by_set.values()))
    return [name for name in first if all(name in found for found in by_set.values())]


def mean_ranks(
    by_set: Mapping[str, Mapping[str, float]], everyone: Sequence[str]
) -> dict[str, float]:
    """The place of everyone, averaged over the sets; equal ones share their places."""
    places = [rankdata([found[name] for name in everyone]) for found in by_set.values()]
    return dict(zip(everyone, np.mean(places, axis=0).tolist(), strict=True))


def by_set_table(by_set: Mapping[str, Mapping[str, float]], behind: Mapping[str, set[str]]) -> str:
    """Everyone's mean on every set."""
    lines = [f"| | {' | '.join(by_set)} |", "| --- |" + " ---: |" * len(by_set)]
    for name in dict.fromkeys(name for found in by_set.values() for name in found):
        cells = []
        for which, found in by_set.items():
            if name not in found:
                cells.append("")
                continue
            shown = f"{found[name]:.3f}"
            if name == min(competing(found), key=found.__getitem__):
                shown = f"**{shown}**"
            cells.append(f"{shown} *" if name in behind.get(which, ()) else shown)
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
