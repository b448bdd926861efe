"""Compare the trees on all thresholds with LightGBM's classes: errors, seconds and memory.

Errors, on the tables that settings may be chosen on: five divisions of each, 15 % of the training
rows for validation, the same for both. LightGBM's classes choose 15, 31 or 63 leaves and the number
of rounds on the validation rows and are then fitted to all rows, as the trees are. Shown are the
ratios of the mean errors, the trees' over those of the classes, and how many standard errors of
the difference lie between them.

    python benchmarks/boosting.py errors      # ECHELON_DATA names the folder of the tables
    python benchmarks/boosting.py seconds     # 1,000 and 20,000 rows, against LightGBM's classes
    python benchmarks/boosting.py thresholds  # 100,000 rows: 100 classes against 10
    python benchmarks/boosting.py sample      # a sample of thresholds against all of them
    python benchmarks/boosting.py fits        # 1,000 rows: seconds of the trees, networks and auto
"""

import argparse
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

import echelon
from echelon.data import make_friedman
from echelon.data.schema import TableSchema
from echelon.data.splits import hold_out
from echelon.models.trees import OrdinalTrees, TreeRows, TreeSettings, fit_trees

TABLES = (
    "affairs", "auto_ord", "bostonhousing_ord", "winequality-white", "ESL", "LEV", "eucalyptus",
)  # fmt: skip
ORDERS = {"eucalyptus": ["none", "low", "average", "good", "best"]}
DIVISIONS = 5
TEST_SHARE, VALIDATION_SHARE = 0.25, 0.15
# The divisions of a table share rows, so the spread between them is too small (Nadeau and Bengio).
OVERLAP = (1 / DIVISIONS + TEST_SHARE / (1 - TEST_SHARE)) * DIVISIONS


class Division(NamedTuple):
    """The rows of one division, and the seed of what is random in a fit."""

    train: TreeRows
    validation: TreeRows
    test: TreeRows
    num_classes: int
    seed: int


def main() -> None:
    """Run one of the comparisons and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    runs = {
        "errors": errors, "seconds": seconds, "thresholds": many_thresholds, "fits": fits,
    }  # fmt: skip
    parser.add_argument("what", choices=(*runs, "sample"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, default=3_000, help="of `sample`")
    parser.add_argument("--classes", default="10,100", help="of `sample`, with commas between them")
    parser.add_argument(
        "--no-refit", action="store_true", help="of `sample`: half the time, as nothing is refitted"
    )
    options = parser.parse_args()
    if options.what == "sample":
        classes = [int(word) for word in options.classes.split(",")]
        sample(options.threads, options.rows, classes, refit=0.0 if options.no_refit else 1.0)
    else:
        runs[options.what](options.threads)


# ---- comparisons ---------------------------------------------------------------------------------


def errors(threads: int) -> None:
    print("| table | RPS | MAE | RPS, standard errors | CPU seconds, trees / classes |")
    print("| --- | ---: | ---: | ---: | ---: |")
    ratios = []
    for name in TABLES:
        ours, theirs, took = [], [], []
        for division in divisions(name):
            started = time.process_time()
            trees = fit_trees(
                division.train, division.num_classes, validation=division.validation,
                seed=division.seed, threads=threads,
            )  # fmt: skip
            between = time.process_time()
            ours.append(scores(probabilities(trees, division.test), division.test.ranks))
            classes_started = time.process_time()
            theirs.append(scores(with_classes(division, threads), division.test.ranks))
            took.append((between - started, time.process_time() - classes_started))
        mine, other = np.array(ours), np.array(theirs)  # (divisions, 2)
        ratio = mine.mean(0) / other.mean(0)
        difference = (mine - other)[:, 0]
        error = difference.std(ddof=1) * (OVERLAP / DIVISIONS) ** 0.5
        mean_seconds = " / ".join(f"{value:.1f}" for value in np.mean(took, axis=0))
        print(
            f"| {name} | {ratio[0]:.3f} | {ratio[1]:.3f} | {difference.mean() / error:+.1f} | "
            f"{mean_seconds} |",
            flush=True,
        )
        ratios.append(ratio)
    mean = np.exp(np.log(ratios).mean(axis=0))
    print(f"| geometric mean | {mean[0]:.3f} | {mean[1]:.3f} | | |")


def seconds(threads: int) -> None:
    for n, num_classes in ((1_000, 5), (20_000, 5), (20_000, 10)):
        division = friedman(n, num_classes, seed=80_000)
        best = [np.inf, np.inf]
        for _ in range(2):
            started = time.process_time()
            trees = fit_trees(
                division.train, num_classes, validation=division.validation, threads=threads
            )
            best[0] = min(best[0], time.process_time() - started)
            started = time.process_time()
            theirs = with_classes(division, threads, leaves=(31,))
            best[1] = min(best[1], time.process_time() - started)
        ours = scores(probabilities(trees, division.test), division.test.ranks)
        print(
            f"{n} rows, {num_classes} classes: trees {best[0]:.1f} s, classes {best[1]:.1f} s, "
            f"ratio {best[0] / best[1]:.2f}; RPS {ours[0]:.3f} against "
            f"{scores(theirs, division.test.ranks)[0]:.3f}; {trees.num_trees} trees",
            flush=True,
        )


def fits(threads: int) -> None:
    """Seconds of the processor, which other work beside it hardly changes, and of the clock."""
    torch.set_num_threads(threads)
    rows = make_friedman(1_000, num_classes=5, seed=80_000)
    made = {
        "OrdinalBoosting()": lambda: echelon.OrdinalBoosting(threads=threads, random_state=0),
        'OrdinalClassifier(backbone="mlp")': lambda: network("mlp"),
        'OrdinalClassifier(backbone="tabm")': lambda: network("tabm"),
        "OrdinalClassifier()": lambda: network(None),
        "AutoOrdinal()": lambda: echelon.AutoOrdinal(random_state=0),
    }
    print("| 1,000 rows, 5 classes | seconds of the processor | seconds |")
    print("| --- | ---: | ---: |")
    for name, make in made.items():
        best = (np.inf, np.inf)
        for _ in range(1 if name.startswith("Auto") else 2):
            started = (time.process_time(), time.perf_counter())
            make().fit(rows.features, rows.ranks)
            ended = (time.process_time(), time.perf_counter())
            best = min(best, (ended[0] - started[0], ended[1] - started[1]))
        print(f"| `{name}` | {best[0]:.1f} | {best[1]:.1f} |", flush=True)


def network(backbone: str | None) -> Any:
    return echelon.OrdinalClassifier(backbone=backbone, random_state=0, device="cpu")


def many_thresholds(threads: int) -> None:
    took = {}
    for num_classes in (10, 100):
        division = friedman(100_000, num_classes, seed=80_000)
        started = time.process_time()
        trees = fit_trees(
            division.train, num_classes, validation=division.validation, threads=threads
        )
        took[num_classes] = time.process_time() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        rps, mae = scores(probabilities(trees, division.test), division.test.ranks)
        print(
            f"{num_classes} classes: {took[num_classes]:.0f} s, {trees.num_trees} trees, "
            f"{peak:.2f} GiB at most, RPS {rps:.3f}, MAE {mae:.3f}",
            flush=True,
        )
    print(f"100 classes take {took[100] / took[10]:.2f} times as long as 10")


def sample(threads: int, rows: int, classes: list[int], refit: float) -> None:
    """Sampled thresholds over all of them; tables that would not be sampled are by force."""
    for num_classes in classes:
        most_sampled = min(TreeSettings().most_examples, rows)
        ratios = []
        for seed in range(5):
            division = friedman(rows, num_classes, seed=80_000 + 2 * seed)
            found = []
            for most in (most_sampled, 10**9):
                trees = fit_trees(
                    division.train, num_classes, validation=division.validation, seed=seed,
                    threads=threads, settings=TreeSettings(most_examples=most, refit=refit),
                )  # fmt: skip
                found.append(scores(probabilities(trees, division.test), division.test.ranks)[0])
            ratios.append(found[0] / found[1])
            print(
                f"{rows} rows, {num_classes} classes, seed {seed}: RPS {ratios[-1]:.4f} times that "
                f"of all thresholds ({found[0]:.4f} and {found[1]:.4f})",
                flush=True,
            )
        print(
            f"{rows} rows, {num_classes} classes: RPS {np.mean(ratios):.4f} times that of all",
            flush=True,
        )


# ---- contestants ---------------------------------------------------------------------------------


def probabilities(trees: OrdinalTrees, rows: TreeRows) -> NDArray[np.float64]:
    return np.asarray(np.exp(trees.log_probabilities(rows.numbers, rows.codes)))


def with_classes(
    division: Division, threads: int, leaves: tuple[int, ...] = (15, 31, 63)
) -> NDArray[np.float64]:
    """LightGBM's classes, the leaves and rounds chosen on the validation rows."""
    train, held = division.train, division.validation
    first = train.numbers.shape[1]
    categories = list(range(first, first + train.codes.shape[1]))
    quiet = {"verbose": -1, "num_threads": threads}
    tried = []
    for count in leaves:
        parameters = quiet | {
            "objective": "multiclass", "num_class": division.num_classes, "learning_rate": 0.05,
            "num_leaves": count, "seed": division.seed, "deterministic": True,
        }  # fmt: skip
        data = lightgbm.Dataset(
            columns(train), train.ranks, categorical_feature=categories, params=quiet
        )
        booster = lightgbm.train(
            parameters, data, 2000, valid_sets=[data.create_valid(columns(held), held.ranks)],
            callbacks=[lightgbm.early_stopping(50, verbose=False)],
        )  # fmt: skip
        found: Any = booster.predict(columns(held), num_iteration=booster.best_iteration)
        tried.append((scores(found, held.ranks)[0], count, booster.best_iteration, parameters))
    _, _, rounds, parameters = min(tried, key=lambda one: one[:2])
    everything = lightgbm.Dataset(
        np.vstack([columns(train), columns(held)]), np.concatenate([train.ranks, held.ranks]),
        categorical_feature=categories, params=quiet,
    )  # fmt: skip
    final = lightgbm.train(parameters, everything, rounds)
    return np.asarray(final.predict(columns(division.test)))


def columns(rows: TreeRows) -> NDArray[np.float64]:
    return np.hstack([rows.numbers, rows.codes])


def scores(found: NDArray[np.float64], ranks: NDArray[np.int64]) -> tuple[float, float]:
    """The ranked probability score and the mean absolute error of the median."""
    cumulative = found.cumsum(axis=1)[:, :-1]
    truth = ranks[:, None] <= np.arange(cumulative.shape[1])
    medians = (cumulative < 0.5 - 1e-9).sum(axis=1)
    return (
        float(np.square(cumulative - truth).sum(axis=1).mean()),
        float(np.abs(medians - ranks).mean()),
    )


# ---- data ----------------------------------------------------------------------------------------


def divisions(name: str) -> Iterator[Division]:
    """Five divisions of a table; rows that are equal stay together."""
    folder = os.environ.get("ECHELON_DATA")
    if folder is None:
        raise SystemExit("set ECHELON_DATA to the folder with the real tables")
    frame = pd.read_csv(Path(folder) / "tabular" / f"{name}.csv")
    response = frame.pop("response")
    order = ORDERS.get(name, np.unique(response).tolist())
    ranks = response.map({value: rank for rank, value in enumerate(order)}).to_numpy(np.int64)
    kinds = [pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    numbers = frame.loc[:, kinds].to_numpy(np.float64)
    codes = np.zeros((len(frame), 0), dtype=np.int64)
    named = frame.loc[:, [not kind for kind in kinds]]
    for _, column in named.items():
        found = pd.factorize(column, sort=True)[0] + 1
        codes = np.column_stack([codes, found])
    for seed in range(DIVISIONS):
        test = held_out(frame, ranks, np.arange(len(frame)), TEST_SHARE, [seed, 17])
        rest = np.setdiff1d(np.arange(len(frame)), test)
        validation = held_out(frame, ranks, rest, VALIDATION_SHARE, [seed, 18])
        train = np.setdiff1d(rest, validation)
        subsets = (
            TreeRows(numbers[rows], codes[rows], ranks[rows]) for rows in (train, validation, test)
        )
        yield Division(*subsets, num_classes=len(order), seed=seed)


def held_out(
    frame: pd.DataFrame, ranks: NDArray[np.int64], rows: NDArray[Any], share: float, seed: list[int]
) -> NDArray[Any]:
    some = frame.iloc[rows]
    table = TableSchema.of(some).read(some)
    held = hold_out(table, ranks[rows], share, generator=np.random.default_rng(seed))
    return rows[held]


def friedman(n: int, num_classes: int, seed: int) -> Division:
    """Fresh rows, 15 % for validation, and 10,000 to test on."""
    train, test = (
        make_friedman(size, num_classes=num_classes, seed=number)
        for size, number in ((n, seed), (10_000, seed + 1))
    )
    held = np.random.default_rng(seed).random(n) < VALIDATION_SHARE
    subsets = (
        TreeRows(features.astype(np.float64), np.zeros((len(ranks), 0), np.int64), ranks)
        for features, ranks in (
            (train.features[~held], train.ranks[~held]),
            (train.features[held], train.ranks[held]),
            (test.features, test.ranks),
        )
    )
    return Division(*subsets, num_classes=num_classes, seed=0)


if __name__ == "__main__":
    main()
