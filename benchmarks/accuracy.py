"""Compare echelon's defaults with other libraries on whole tables: five splits, four metrics.

Every contestant sees the same training, validation and test rows. What has hyperparameters
(LightGBM: twelve points, and the number of trees) chooses them on the validation rows and is then
fitted to training and validation rows together, as echelon's defaults are on tables of this size.
"""

import argparse
import functools
import importlib
import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

import echelon
from echelon.data import make_friedman
from echelon.data.splits import hold_out
from echelon.data.tables import TableSchema
from echelon.evaluation import metrics
from page import environment_line, write_results, write_section

REPORTED = ("cement_strength", "skill", "kinematics", "friedman")
TUNING = ("affairs", "auto_ord", "bostonhousing_ord", "winequality-white", "friedman-tuning")
SPLITS = 5
TEST_SHARE = 0.25
FRIEDMAN_ROWS, FRIEDMAN_TEST_ROWS = 10_000, 50_000
FRIEDMAN_SEEDS = {"friedman": 70_000, "friedman-tuning": 80_000}  # the first of each

METRICS = {
    "MAE": "mae",
    "RMSE": "rmse",
    "QWK": "quadratic_weighted_kappa",
    "RPS": "ranked_probability_score",
}

PREAMBLE = """\
Written by `python benchmarks/accuracy.py --markdown docs/benchmarks.md`, with real tables from the
folder that `ECHELON_DATA` names. Mean over five splits (75 % for training and validation, 25 % for
testing; Friedman: 10,000 fresh rows, tested on 50,000) and, in brackets, its standard error. Every
contestant sees the same rows; LightGBM chooses one of twelve settings and its number of trees on
the validation rows and is refitted on all. A contestant that predicts labels alone is scored as if
it were sure of them, so its RPS is its MAE. The rank is among all contestants, the lowest being
the best, averaged over the sets.
"""

Ranks = NDArray[np.int64]
Probabilities = NDArray[np.float64]


class Split(NamedTuple):
    """The rows of one split, ranks 0..K-1; `marked` are the validation rows of the first part."""

    features: NDArray[np.float64]
    ranks: Ranks
    marked: NDArray[np.bool_]
    test_features: NDArray[np.float64]
    test_ranks: Ranks
    num_classes: int
    seed: int


class Prediction(NamedTuple):
    """Ranks (n,), and probabilities (n, K) of those that have them."""

    ranks: Ranks
    probabilities: Probabilities | None = None


Contestant = Callable[[Split], Prediction]


def main() -> None:
    """Run the sets, print the tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sets",
        default=",".join(REPORTED),
        help=f"with commas; for tuning there are {', '.join(TUNING)}",
    )
    parser.add_argument(
        "--only", help="names of contestants, with commas; the others are taken from --json"
    )
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/accuracy.json"))
    parser.add_argument("--markdown", type=Path, help="write the tables to this page, too")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    chosen = {
        name: run
        for name, run in contestants().items()
        if options.only is None or name in options.only.split(",")
    }
    results = {name: run_set(name, chosen) for name in options.sets.split(",")}
    if options.only is not None and options.json.exists():
        earlier = json.loads(options.json.read_text())["results"]
        results = {
            name: {who: found.get(who, earlier[name].get(who)) for who in contestants()}
            for name, found in results.items()
        }
    text = "\n\n".join([environment_line(), *map(table, results, results.values()), ranks(results)])
    print(f"\n{text}")
    write_results(options.json, results)
    if options.markdown is not None:
        write_section(options.markdown, "Accuracy on tables", f"{PREAMBLE}\n{text}")


# ---- data ----------------------------------------------------------------------------------------


def splits(name: str) -> Iterator[Split]:
    """Five splits of a set."""
    for number in range(SPLITS):
        if name in FRIEDMAN_SEEDS:
            seed = FRIEDMAN_SEEDS[name] + 2 * number
            train = make_friedman(FRIEDMAN_ROWS, seed=seed)
            test = make_friedman(FRIEDMAN_TEST_ROWS, seed=seed + 1)
            parts = train.features, train.ranks, test.features, test.ranks
        else:
            features, all_ranks = read(name)
            generator = np.random.default_rng([number, 17])
            table = TableSchema.of(features).read(features)
            held = hold_out(table, all_ranks, TEST_SHARE, generator=generator)
            parts = features[~held], all_ranks[~held], features[held], all_ranks[held]
        features, all_ranks, test_features, test_ranks = parts
        num_classes = int(max(all_ranks.max(), test_ranks.max())) + 1
        marked = validation_rows(features, all_ranks, number)
        yield Split(
            features.astype(np.float64), all_ranks, marked, test_features.astype(np.float64),
            test_ranks, num_classes, number,
        )  # fmt: skip


def read(name: str) -> tuple[NDArray[np.float64], Ranks]:
    """Features and ranks of a real table."""
    folder = os.environ.get("ECHELON_DATA")
    if folder is None:
        raise SystemExit("set ECHELON_DATA to the folder with the real tables")
    frame = pd.read_csv(Path(folder) / "tabular" / f"{name}.csv")
    features = frame.drop(columns="response").to_numpy(np.float64)
    return features, np.unique(frame["response"], return_inverse=True)[1].astype(np.int64)


def validation_rows(
    features: NDArray[Any], some_ranks: Ranks, random_state: int
) -> NDArray[np.bool_]:
    """The rows that ``OrdinalClassifier(random_state=...)`` holds out."""
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    table = TableSchema.of(features).read(features)
    return hold_out(table, some_ranks, 0.1, generator=np.random.default_rng(seed))


# ---- contestants ---------------------------------------------------------------------------------


def contestants() -> dict[str, Contestant]:
    """Everyone who is installed, by name."""
    found: dict[str, Contestant] = {
        "constant median": constant_median,
        "echelon corn mlp": functools.partial(with_echelon, backbone="mlp"),
        "echelon corn tabm": functools.partial(with_echelon, backbone="tabm"),
    }
    if is_installed("lightgbm"):
        found |= {
            "LightGBM classes": with_lightgbm_classes,
            "LightGBM L1": functools.partial(with_lightgbm_regression, objective="l1"),
            "LightGBM L2": functools.partial(with_lightgbm_regression, objective="l2"),
        }
    if is_installed("mord"):
        found["mord LogisticAT"] = functools.partial(
            with_scikit, library="mord", estimator="LogisticAT"
        )
    if is_installed("skordinal"):
        for name in ("NNPOM", "NNOP", "SVOR"):
            found[f"skordinal {name}"] = functools.partial(
                with_scikit, library="skordinal.classifiers", estimator=name
            )
    if is_installed("statsmodels"):
        found["statsmodels OrderedModel"] = with_statsmodels
    return found


def is_installed(name: str) -> bool:
    """Whether a library of the `bench` extra is here; says so if not."""
    try:
        importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed; left out")
        return False
    return True


def constant_median(split: Split) -> Prediction:
    shares = np.bincount(split.ranks, minlength=split.num_classes) / len(split.ranks)
    probabilities = np.tile(shares, (len(split.test_ranks), 1))
    return Prediction(median(probabilities), probabilities)


def with_echelon(split: Split, backbone: str) -> Prediction:
    model = echelon.OrdinalClassifier(
        backbone=backbone, classes=range(split.num_classes), random_state=split.seed
    )
    model.fit(split.features, split.ranks)
    return Prediction(
        model.predict(split.test_features).astype(np.int64),
        model.predict_proba(split.test_features),
    )


def lightgbm_grid() -> Iterator[dict[str, Any]]:
    for leaves in (7, 31):
        for rate in (0.03, 0.1):
            for smallest in (5, 20, 60):
                yield {
                    "num_leaves": leaves, "learning_rate": rate, "min_child_samples": smallest,
                    "verbose": -1, "random_state": 0, "n_jobs": 2,
                }  # fmt: skip


def fit_lightgbm(split: Split, make: Any, loss: Callable[[Any, Any], float]) -> Any:
    """The best of the grid, refitted on training and validation rows."""
    lightgbm = importlib.import_module("lightgbm")
    held = split.marked
    tried = []
    for point in lightgbm_grid():
        model = make(n_estimators=1000, **point)
        model.fit(
            split.features[~held],
            split.ranks[~held],
            eval_set=[(split.features[held], split.ranks[held])],
            callbacks=[lightgbm.early_stopping(50, verbose=False)],
        )
        tried.append(
            (loss(model, split.features[held]), len(tried), point, max(1, model.best_iteration_))
        )
    _, _, point, trees = min(tried)
    return make(n_estimators=trees, **point).fit(split.features, split.ranks)


def with_lightgbm_classes(split: Split) -> Prediction:
    lightgbm = importlib.import_module("lightgbm")

    def loss(model: Any, features: Any) -> float:
        some = spread(model.predict_proba(features), model.classes_, split.num_classes)
        return metrics.ranked_probability_score(split.ranks[split.marked], some)

    model = fit_lightgbm(split, lightgbm.LGBMClassifier, loss)
    probabilities = spread(
        model.predict_proba(split.test_features), model.classes_, split.num_classes
    )
    return Prediction(median(probabilities), probabilities)


def with_lightgbm_regression(split: Split, objective: str) -> Prediction:
    lightgbm = importlib.import_module("lightgbm")
    top = split.num_classes - 1

    def rounded(model: Any, features: Any) -> Ranks:
        return np.rint(model.predict(features)).clip(0, top).astype(np.int64)

    def loss(model: Any, features: Any) -> float:
        return metrics.mae(split.ranks[split.marked], rounded(model, features))

    make = functools.partial(lightgbm.LGBMRegressor, objective=objective)
    return Prediction(rounded(fit_lightgbm(split, make, loss), split.test_features))


def with_scikit(split: Split, library: str, estimator: str) -> Prediction:
    scaler = StandardScaler().fit(split.features)
    model = getattr(importlib.import_module(library), estimator)()
    model.fit(scaler.transform(split.features), split.ranks)
    features = scaler.transform(split.test_features)
    if not hasattr(model, "predict_proba"):
        return Prediction(np.asarray(model.predict(features), dtype=np.int64))
    probabilities = spread(model.predict_proba(features), model.classes_, split.num_classes)
    return Prediction(median(probabilities), probabilities)


def with_statsmodels(split: Split) -> Prediction:
    ordinal = importlib.import_module("statsmodels.miscmodels.ordinal_model")
    varied = split.features.std(axis=0) > 0
    scaler = StandardScaler().fit(split.features[:, varied])
    seen, codes = np.unique(split.ranks, return_inverse=True)
    model = ordinal.OrderedModel(codes, scaler.transform(split.features[:, varied]), distr="logit")
    fitted = model.fit(method="lbfgs", maxiter=500, disp=False)
    raw = np.asarray(
        model.predict(fitted.params, exog=scaler.transform(split.test_features[:, varied]))
    )
    probabilities = spread(raw, seen, split.num_classes)
    return Prediction(median(probabilities), probabilities)


def spread(found: Any, classes: Any, num_classes: int) -> Probabilities:
    """Probabilities of the classes that a library saw, as (n, K) that sum to 1."""
    result = np.zeros((len(found), num_classes))
    result[:, np.asarray(classes, dtype=np.int64)] = np.clip(found, 0, None)
    return result / result.sum(axis=1, keepdims=True)


def median(probabilities: Probabilities) -> Ranks:
    return (probabilities.cumsum(axis=1)[:, :-1] < 0.5).sum(axis=1)


# ---- results -------------------------------------------------------------------------------------


def run_set(name: str, chosen: dict[str, Contestant]) -> dict[str, dict[str, list[float]]]:
    """Every metric of every contestant, a value per split."""
    found: dict[str, dict[str, list[float]]] = {}
    for split in splits(name):
        for who, run in chosen.items():
            try:
                prediction = run(split)
            except Exception as error:  # a library may refuse a split; the table then says so
                print(f"  {name}, {who}: {type(error).__name__}: {error}", flush=True)
                continue
            scores = found.setdefault(who, {})
            for title, metric in METRICS.items():
                scores.setdefault(title, []).append(score(metric, split, prediction))
        shown = {who: round(float(scores["RPS"][-1]), 4) for who, scores in found.items()}
        print(f"  {name}, split {split.seed}: RPS {shown}", flush=True)
    return {who: scores for who, scores in found.items() if len(scores["MAE"]) == SPLITS}


def score(metric: str, split: Split, prediction: Prediction) -> float:
    if metrics.METRICS[metric].of_labels:
        return float(
            getattr(metrics, metric)(
                split.test_ranks, prediction.ranks, num_classes=split.num_classes
            )
        )
    probabilities = prediction.probabilities
    if probabilities is None:
        probabilities = np.eye(split.num_classes)[prediction.ranks]
    return float(getattr(metrics, metric)(split.test_ranks, probabilities))


def table(name: str, found: dict[str, dict[str, list[float]]]) -> str:
    lines = [
        f"### {name}",
        "",
        "| | " + " | ".join(METRICS) + " |",
        "| --- |" + " ---: |" * len(METRICS),
    ]
    for who, scores in found.items():
        cells = []
        for title in METRICS:
            values = np.array(scores[title])
            error = values.std(ddof=1) / len(values) ** 0.5
            cells.append(f"{values.mean():.3f} ({error:.3f})")
        lines.append(f"| {who} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def ranks(results: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    """Mean rank of each over the sets, and how far it is behind the best where it is worst."""
    everyone = [who for who in contestants() if all(who in found for found in results.values())]
    lines = [
        "### Mean rank over the sets",
        "",
        "| | MAE | RPS | furthest behind the best, MAE | furthest behind, RPS |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for who in everyone:
        cells, behind = [], []
        for title in ("MAE", "RPS"):
            places, gaps = [], []
            for found in results.values():
                means = {one: float(np.mean(found[one][title])) for one in everyone}
                places.append(1 + sum(value < means[who] for value in means.values()))
                gaps.append(means[who] / min(means.values()) - 1)
            cells.append(f"{np.mean(places):.2f}")
            behind.append(f"{max(gaps):.1%}")
        lines.append(f"| {who} | " + " | ".join(cells + behind) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
