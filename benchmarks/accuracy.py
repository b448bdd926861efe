"""Compare echelon with other libraries on whole tables: the same rows and the same choice for all.

Every contestant sees the same training, validation and test rows of five divisions of each set.
What has settings chooses them on the validation rows (see tuning.py). The result of each fit
is a line in the folder --out, so a run that was stopped goes on where it was, and several may run
at once. The results behind the page stand in `experiments/results/accuracy`.

    pip install 'echelon[bench]' catboost ogboost
    export ECHELON_DATA=...              # the folder with the real tables
    export ECHELON_AUTOGLUON_PYTHON=...  # a Python with autogluon.tabular; left out without it
    python benchmarks/accuracy.py                     # the sets that settings may be chosen on
    python benchmarks/accuracy.py --sets all --markdown docs/benchmarks.md
"""

import argparse
import json
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from contestants import Contestant, contestants
from echelon.evaluation import metrics
from page import environment, write_section
from sets import GROUPS, REPORTED, SETS, TUNING, Division, divide
from standings import METRICS, REFERENCE, Results, Scores, beside, set_table, summary
from tuning import Outcome

RESULTS = Path(__file__).parent.parent / "experiments" / "results" / "accuracy"
# What comes by itself against a plain network, and against the best of its members.
PAIRS = (("echelon network", "echelon mlp"), ("echelon auto", "echelon boosting"))

PREAMBLE = f"""\
Written by `python benchmarks/accuracy.py --sets all --markdown docs/benchmarks.md`, with real
tables from the folder that `ECHELON_DATA` names. Five divisions of each set: a quarter of the rows
for testing, 15 % of the others for validation (Friedman: 10,000 fresh rows, tested on 50,000).
Every contestant sees the same rows. Every peer with settings tries each point of its grid on the
training rows, stops early on the validation rows where it has rounds, takes the point of the lowest
RPS on the validation rows and is fitted again to all rows; echelon's models come as they are and
hold out rows of the same ones by themselves. The label is the median of the curve. A contestant
that predicts labels alone is scored as if it were sure of them, so its RPS is its MAE.

In brackets stands the standard error of the mean, with Nadeau and Bengio's factor for divisions
that share rows. "Reference" is `{REFERENCE}`; a ratio is that of the mean errors, its standard
error is paired by division, and "behind" says that it is above 1 by more than two of them. Ratios
are averaged geometrically over the sets; a rank is a place among all contestants of the table, 1
being the best. Seconds are those of a fit with all that it tries; they were not taken on an idle
machine and are good for orders of magnitude.

Settings of echelon were chosen on the sets for tuning and not on the reported ones. The reported
tables are no strangers, though: earlier states of this page showed them, and growing trees on all
thresholds at once was first seen to help in a trial that had three of them. A first run on
kinematics showed that `auto` lost its network where rows are above 5,000 and time is short; that
was mended by generated rows, and `auto` alone was then run again there. On the reported sets slow
contestants were left out; who ran stands in the tables. Friedman's
function is the family that the recipe of echelon's networks was tuned on, with other rows: read its
row as a home game.
"""


@dataclass(frozen=True)
class Store:
    """The folder of results: a file for each set with a line for each fit; the last counts.

    Lines are only ever appended, so several processes may run at once, on one set, too.
    """

    folder: Path
    prints: dict[tuple[str, int], str] = field(default_factory=dict)

    def place(self, name: str) -> Path:
        """Where the results of a set are."""
        return self.folder / f"{name}.jsonl"

    def read(self, division: Division, who: str) -> dict[str, Any] | None:
        """The result of a fit to these very rows; None where there is none."""
        try:
            lines = self.place(division.set_name).read_text().splitlines()
        except FileNotFoundError:
            return None
        for line in reversed(lines):
            try:
                record: dict[str, Any] = json.loads(line)
            except json.JSONDecodeError:  # killed while it was written
                continue
            if (record["division"], record["contestant"]) == (division.number, who):
                return record if record["rows"] == self.fingerprint(division) else None
        return None

    def write(self, division: Division, who: str, record: dict[str, Any]) -> None:
        """Keep the result of a fit."""
        place = self.place(division.set_name)
        place.parent.mkdir(parents=True, exist_ok=True)
        whole = {
            "division": division.number, "contestant": who,
            "rows": self.fingerprint(division), "overlap": division.overlap, **record,
        }  # fmt: skip
        is_whole = not place.exists() or place.read_bytes()[-1:] in (b"", b"\n")
        with place.open("a") as stream:
            stream.write(("" if is_whole else "\n") + json.dumps(whole) + "\n")

    def fingerprint(self, division: Division) -> str:
        """The digest of a division's rows, taken once."""
        key = division.set_name, division.number
        if key not in self.prints:
            self.prints[key] = division.fingerprint()
        return self.prints[key]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what has not been run, print the tables and write them."""
    options = parsed(arguments)
    warnings.filterwarnings("ignore")
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # for processes that are started
    torch.set_num_threads(options.threads)
    everyone = contestants()
    missing = missing_packages(everyone)
    chosen = {name: everyone[name] for name in options.only if everyone[name].is_here}
    store = Store(options.out)
    with threadpool_limits(options.threads):
        run(store, options, chosen)
    results, failures, threads = collect(store, options, list(everyone))
    text = page(results, failures, missing, threads, everyone)
    print(f"\n{text}")
    if options.markdown is not None:
        write_section(options.markdown, "Accuracy on tables", f"{PREAMBLE}\n{text}")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    everyone = list(contestants())
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sets", default="tuning", type=sets_named,
        help=f"names with commas, of {', '.join((*GROUPS, *SETS))}",
    )  # fmt: skip
    parser.add_argument(
        "--only", default=everyone, type=names_among(everyone),
        help=f"whom to run, with commas (default: all who are installed): {', '.join(everyone)}",
    )  # fmt: skip
    parser.add_argument("--divisions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="of every fit")
    parser.add_argument("--hours", type=float, default=6.0, help="no fit is begun after them")
    parser.add_argument("--minutes", type=float, default=30.0, help="a longer fit has failed")
    parser.add_argument("--again", action="store_true", help="run what has been run, failures too")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--markdown", type=Path, help="write the tables to this page, too")
    return parser.parse_args(arguments)


def sets_named(text: str) -> list[str]:
    """Sets and groups of them, in the order of SETS."""
    names = set(names_among([*GROUPS, *SETS])(text))
    wanted = names.union(*(GROUPS[name] for name in names & set(GROUPS)))
    return [name for name in SETS if name in wanted]


def names_among(known: Sequence[str]) -> Callable[[str], list[str]]:
    """A reader of names with commas between them."""

    def read(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",")]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"no such name: {', '.join(unknown)}")
        return names

    return read


def missing_packages(everyone: dict[str, Contestant]) -> list[str]:
    """The packages whose contestants cannot run here."""
    return sorted({one.package for one in everyone.values() if not one.is_here})


# ---- running -------------------------------------------------------------------------------------


class TooLong(BaseException):
    """A fit took more than its minutes; not an Exception, so that no library swallows it."""


def run(store: Store, options: argparse.Namespace, chosen: dict[str, Contestant]) -> None:
    """Fit what has no result yet, set by set and division by division, until the hours are over."""
    end = time.monotonic() + 3600 * options.hours
    for name in options.sets:
        for number in range(options.divisions):
            division = divide(name, number)
            for who, contestant in chosen.items():
                if not options.again and store.read(division, who) is not None:
                    continue
                if time.monotonic() > end:
                    print(f"{options.hours:g} hours are over; start again to go on", flush=True)
                    return
                record = fit(division, contestant, options.threads, options.minutes)
                store.write(division, who, record)
                shown = record.get("failed") or " ".join(
                    f"{title} {value:.4f}" for title, value in record["scores"].items()
                )
                print(
                    f"{name} {number}, {who}: {shown}, {record['seconds']:.1f} s, "
                    f"{record.get('chosen', {})}",
                    flush=True,
                )


def fit(division: Division, contestant: Contestant, threads: int, minutes: float) -> dict[str, Any]:
    """The scores of a contestant on a division, or why it has none."""
    record: dict[str, Any] = {"threads": threads, "versions": versions(contestant)}
    started = time.perf_counter()
    try:
        contestant.prepare()
        with at_most(minutes):
            outcome = contestant.run(division, threads)
        record["scores"] = {
            title: score(metric, division, outcome) for title, metric in METRICS.items()
        }
    except TooLong:
        record["failed"] = f"took more than {minutes:g} minutes"
    except Exception as error:  # a library may refuse rows; the page then says so
        record["failed"] = f"{type(error).__name__}: {str(error).strip()[:300]}"
    else:
        record |= {"seconds": outcome.seconds, "chosen": outcome.chosen}
    return {"seconds": time.perf_counter() - started} | record


@contextmanager
def at_most(minutes: float) -> Iterator[None]:
    """Interrupt what takes longer, where the system can."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def interrupt(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def versions(contestant: Contestant) -> dict[str, str]:
    found = {}
    for package in ("echelon", contestant.package):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # it is in another Python
            continue
    return found


def score(metric: str, division: Division, outcome: Outcome) -> float:
    """One metric of the test rows; it must be a number."""
    truth = division.test.ranks
    if metrics.METRICS[metric].of_labels:
        value = getattr(metrics, metric)(truth, outcome.ranks, num_classes=division.num_classes)
    else:
        value = getattr(metrics, metric)(truth, outcome.probabilities)
    if not np.isfinite(value):
        raise ValueError(f"its {metric} is not a number")
    return float(value)


# ---- results -------------------------------------------------------------------------------------


def collect(
    store: Store, options: argparse.Namespace, everyone: Sequence[str]
) -> tuple[Results, list[str], list[int]]:
    """Scores of those who have every division of a set, the reasons of failures, the threads."""
    results: dict[str, dict[str, Scores]] = {}
    failures: list[str] = []
    threads = set()
    for name in options.sets:
        divisions = [divide(name, number) for number in range(options.divisions)]
        for who in everyone:
            records = [store.read(division, who) for division in divisions]
            there = [record for record in records if record is not None]
            reasons = sorted({record["failed"] for record in there if "failed" in record})
            if reasons:
                failures.append(f"{who} on {name}: {'; '.join(reasons)}")
            elif len(there) == options.divisions:
                results.setdefault(name, {})[who] = Scores(
                    {title: [record["scores"][title] for record in there] for title in METRICS},
                    [record["seconds"] for record in there],
                    float(np.mean([record["overlap"] for record in there])),
                )
                threads |= {record["threads"] for record in there}
    return results, failures, sorted(threads)


def page(
    results: Results,
    failures: Sequence[str],
    missing: Sequence[str],
    threads: Sequence[int],
    everyone: dict[str, Contestant],
) -> str:
    """All tables: the summaries, then each set."""
    about = environment() | {"threads": " and ".join(map(str, threads))}
    parts = [", ".join(f"{name} {value}" for name, value in about.items())]
    took_part = {who for found in results.values() for who in found}
    parts.append(
        "\n".join(f"- {who}: {one.about}." for who, one in everyone.items() if who in took_part)
    )
    for title, group in (("Sets for tuning", TUNING), ("Reported sets", REPORTED)):
        found = {name: results[name] for name in group if name in results}
        if found:
            parts.append(summary(f"{title}: {len(found)} of {len(group)}", found))
            parts += [line for line in (beside(found, *pair) for pair in PAIRS) if line]
            parts += partly(found)
    parts += [set_table(name, found) for name, found in results.items()]
    if failures:
        parts.append("Failed:\n\n" + "\n".join(f"- {failure}" for failure in failures))
    if missing:
        parts.append(f"Left out, because they are not installed: {', '.join(missing)}.")
    return "\n\n".join(parts)


def partly(results: Results) -> list[str]:
    """Who is in no summary, for lack of a set."""
    lines = []
    for who in sorted({one for found in results.values() for one in found}):
        lacking = [name for name, found in results.items() if who not in found]
        if lacking:
            lines.append(f"{who} has no place: it lacks {', '.join(lacking)}.")
    return ["\n".join(lines)] if lines else []


if __name__ == "__main__":
    main()
