"""Who takes part in the accuracy benchmark, and among which settings everyone chooses.

A peer with settings has a grid of at most twelve points (see tuning.py for how it chooses).
echelon's models have none: they hold out rows of the same ones by themselves.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import echelon
from echelon.data.schema import TableSchema
from echelon.data.splits import folds
from echelon.evaluation import metrics
from sets import Division, Ranks, Rows, categories, filled_strings, numbers
from tuning import (
    Fit,
    Fitted,
    Outcome,
    Point,
    Probabilities,
    Task,
    grid_of,
    median,
    spread,
    sure,
    tuned,
)

AUTOGLUON = "ECHELON_AUTOGLUON_PYTHON"  # names a Python that has AutoGluon
AUTO_SECONDS = 60  # what AutoOrdinal takes by default, and so what AutoGluon gets
MOST_ROUNDS, PATIENCE = 1000, 50
OGBOOST_ROUNDS = (75, 300)  # it is slow, so most points end with the fewer
LINK_FOLDS = 5


@dataclass(frozen=True)
class Contestant:
    """One who takes part.

    `run` fits a division with a number of threads; `about` says what it is and what it chooses
    among; `module` must be there to run it, and comes from the package `package`.
    """

    run: Callable[[Division, int], Outcome]
    about: str
    module: str = "echelon.models.blend"
    package: str = "echelon"

    @property
    def is_here(self) -> bool:
        """Whether it can run: its library is installed, or its Python is named."""
        if self.module == AUTOGLUON:
            return AUTOGLUON in os.environ
        return find_spec(self.module.partition(".")[0]) is not None

    def prepare(self) -> None:
        """Import what it needs, so that no fit is charged for it."""
        if self.module != AUTOGLUON:
            import_module(self.module)


# ---- echelon -------------------------------------------------------------------------------------


def with_echelon(make: Callable[..., Any], division: Division, threads: int) -> Outcome:
    model = make(classes=range(division.num_classes), random_state=division.number)
    if "threads" in model.get_params():
        model.set_params(threads=threads)
    started = time.perf_counter()
    model.fit(division.everything.frame, division.everything.ranks)
    seconds = time.perf_counter() - started
    probabilities = model.predict_proba(division.test.frame)
    return Outcome(
        np.asarray(probabilities, dtype=np.float64),
        np.asarray(model.predict(division.test.frame), dtype=np.int64),
        seconds,
        {},
    )


def constant_median(task: Task, point: Point, rows: Rows, held: Rows | None) -> Fitted:
    shares = np.bincount(rows.ranks, minlength=task.num_classes) / len(rows.ranks)
    return Fitted(lambda frame: np.tile(shares, (len(frame), 1)))


# ---- LightGBM ------------------------------------------------------------------------------------

LIGHTGBM_GRID = grid_of(
    num_leaves=(7, 31), learning_rate=(0.03, 0.1), min_child_samples=(5, 20, 60)
)
LIGHTGBM_WORDS = (
    "7 or 31 leaves, rate 0.03 or 0.1, at least 5, 20 or 60 rows a leaf, up to 1,000 rounds"
)


def lightgbm_model(
    kind: str, task: Task, point: Point, rows: Rows, held: Rows | None, **settings: Any
) -> Any:
    """A fitted LightGBM; without validation rows it grows as many rounds as the point says."""
    lightgbm = import_module("lightgbm")
    given = dict(point)
    model = getattr(lightgbm, kind)(
        n_estimators=given.pop("rounds", MOST_ROUNDS), random_state=task.seed, n_jobs=task.threads,
        deterministic=True, force_row_wise=True, verbose=-1, **given, **settings,
    )  # fmt: skip
    if held is None:
        return model.fit(categories(rows.frame, rows.frame), rows.ranks)
    return model.fit(
        categories(rows.frame, rows.frame),
        rows.ranks,
        # A class that the training rows lack cannot stop them.
        eval_set=[known_rows(held, rows)],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )


def known_rows(held: Rows, rows: Rows) -> tuple[pd.DataFrame, Ranks]:
    """The validation rows whose class the training rows have."""
    known = np.isin(held.ranks, rows.ranks)
    return categories(held.frame[known], rows.frame), held.ranks[known]


def kept_rounds(model: Any) -> int:
    """How many rounds early stopping kept, or all where it had no rows."""
    return max(1, model.best_iteration_ or model.n_estimators)


def lightgbm_classes(task: Task, point: Point, rows: Rows, held: Rows | None) -> Fitted:
    model = lightgbm_model("LGBMClassifier", task, point, rows, held)

    def probabilities(frame: pd.DataFrame) -> Probabilities:
        found = model.predict_proba(categories(frame, rows.frame))
        return spread(found, model.classes_, task.num_classes)

    return Fitted(probabilities, kept_rounds(model))


def lightgbm_rounded(
    task: Task, point: Point, rows: Rows, held: Rows | None, objective: str
) -> Fitted:
    model = lightgbm_model("LGBMRegressor", task, point, rows, held, objective=objective)

    def probabilities(frame: pd.DataFrame) -> Probabilities:
        score = model.predict(categories(frame, rows.frame))
        return sure(np.rint(score).clip(0, task.num_classes - 1), task.num_classes)

    return Fitted(probabilities, kept_rounds(model))


def lightgbm_linked(task: Task, point: Point, rows: Rows, held: Rows | None) -> Fitted:
    """The score of a regression, and a cumulative link fitted to scores of rows it had not seen.

    These are all rows, out of five folds: a handful of validation rows would place the cut-points
    badly, and the choice of settings would see cut-points that were fitted to the rows it is made
    on. A score that does not rise with the ranks says nothing, and then the classes' shares do.
    """
    model = lightgbm_model("LGBMRegressor", task, point, rows, held)
    rounds = kept_rounds(model)
    scores = out_of_fold(task, {**point, "rounds": rounds}, rows)
    link = echelon.CumulativeLinkModel(classes=range(task.num_classes))
    link.fit(scores[:, None], rows.ranks)
    if not all(slope > 0 for slope in link.coefficients().values()):
        return constant_median(task, point, rows, held)._replace(rounds=rounds)

    def probabilities(frame: pd.DataFrame) -> Probabilities:
        score = model.predict(categories(frame, rows.frame))
        return np.asarray(link.predict_proba(np.asarray(score)[:, None]))

    return Fitted(probabilities, rounds)


def out_of_fold(task: Task, point: Point, rows: Rows) -> NDArray[np.float64]:
    """The score of every row, (n,), by a regression on rows without it and its twins."""
    table = TableSchema.of(rows.frame).read(rows.frame)
    numbered = folds(table, LINK_FOLDS, generator=np.random.default_rng(task.seed))
    scores = np.empty(len(rows.ranks))
    for fold in range(LINK_FOLDS):
        left = numbered == fold
        others = Rows(rows.frame[~left], rows.ranks[~left])
        model = lightgbm_model("LGBMRegressor", task, point, others, None)
        scores[left] = model.predict(categories(rows.frame[left], others.frame))
    return scores


# ---- other boosters ------------------------------------------------------------------------------

CATBOOST_GRID = grid_of(depth=(4, 6), l2_leaf_reg=(1, 3, 10), learning_rate=(0.05,))
OGBOOST_GRID = grid_of(max_depth=(2, 3, 5), learning_rate=(0.1, 0.2))


def catboost_classes(task: Task, point: Point, rows: Rows, held: Rows | None) -> Fitted:
    catboost = import_module("catboost")
    frame, strings = filled_strings(rows.frame)
    given = dict(point)
    model = catboost.CatBoostClassifier(
        iterations=given.pop("rounds", MOST_ROUNDS), loss_function="MultiClass",
        random_seed=task.seed, thread_count=task.threads, cat_features=strings, verbose=False,
        allow_writing_files=False, **given,
    )  # fmt: skip
    if held is None:
        model.fit(frame, rows.ranks)
    else:
        known = np.isin(held.ranks, rows.ranks)
        watched = filled_strings(held.frame[known])[0], held.ranks[known]
        model.fit(frame, rows.ranks, eval_set=watched, early_stopping_rounds=PATIENCE)

    def probabilities(some: pd.DataFrame) -> Probabilities:
        found = model.predict_proba(filled_strings(some)[0], thread_count=task.threads)
        return spread(found, np.ravel(model.classes_), task.num_classes)

    return Fitted(probabilities, model.tree_count_)


def ogboost(task: Task, point: Point, rows: Rows, held: Rows | None) -> Fitted:
    tree = import_module("sklearn.tree").DecisionTreeRegressor
    encoder = numbers(rows.frame)
    seen, codes = np.unique(rows.ranks, return_inverse=True)

    def fitted(rounds: int) -> Any:
        model = import_module("ogboost").GradientBoostingOrdinal(
            tree(max_depth=point["max_depth"]), n_estimators=rounds,
            learning_rate=point["learning_rate"], n_class=len(seen), random_state=task.seed,
        )  # fmt: skip
        return model.fit(encoder.transform(rows.frame), codes)

    if held is None:
        model = fitted(point["rounds"])
        return Fitted(
            lambda frame: spread(
                model.predict_proba(encoder.transform(frame)), seen, task.num_classes
            )
        )
    # It cannot be given validation rows, so all rounds are run and the best of them is kept.
    for most in OGBOOST_ROUNDS:
        staged = fitted(most).staged_predict_proba(encoder.transform(held.frame))
        stages = [spread(stage, seen, task.num_classes) for stage in staged]
        best = int(np.argmin([metrics.ranked_probability_score(held.ranks, one) for one in stages]))
        if best < 0.8 * most:
            break
    return Fitted(lambda frame: stages[best], best + 1)  # nobody asks for other rows


# ---- linear models, small networks and kernels ---------------------------------------------------

ALPHA_GRID = grid_of(alpha=(0.01, 0.1, 1.0, 10.0, 100.0, 1000.0))
NETWORK_GRID = grid_of(max_iter=(25, 50, 100, 500), alpha=(0.01, 1.0, 10.0))
KERNEL_GRID = grid_of(C=(0.1, 1.0, 10.0), width=(0.1, 0.3, 1.0, 3.0))


def with_scikit(task: Task, point: Point, rows: Rows, held: Rows | None, place: str) -> Fitted:
    """An estimator that takes numbers alone; `place` is "module:Class"."""
    module, _, name = place.partition(":")
    encoder = numbers(rows.frame)
    features = encoder.transform(rows.frame)
    seen, codes = np.unique(rows.ranks, return_inverse=True)
    make = getattr(import_module(module), name)
    given = dict(point)
    if "width" in given:  # of a kernel, as a multiple of the usual one
        given["gamma"] = given.pop("width") / features.shape[1]
    if "random_state" in make().get_params():
        given["random_state"] = task.seed
    model = make(**given).fit(features, codes)

    def probabilities(frame: pd.DataFrame) -> Probabilities:
        some = encoder.transform(frame)
        if not hasattr(model, "predict_proba"):
            return sure(seen[np.asarray(model.predict(some), dtype=np.int64)], task.num_classes)
        return spread(model.predict_proba(some), seen[model.classes_], task.num_classes)

    return Fitted(probabilities)


def statsmodels_ordered(task: Task, point: Point, rows: Rows, held: Rows | None) -> Fitted:
    ordinal = import_module("statsmodels.miscmodels.ordinal_model")
    encoder = numbers(rows.frame)
    seen, codes = np.unique(rows.ranks, return_inverse=True)
    model = ordinal.OrderedModel(codes, encoder.transform(rows.frame), distr="logit")
    fitted = model.fit(method="lbfgs", maxiter=500, disp=False, skip_hessian=True)

    def probabilities(frame: pd.DataFrame) -> Probabilities:
        found = model.predict(fitted.params, exog=encoder.transform(frame))
        return spread(np.asarray(found), seen, task.num_classes)

    return Fitted(probabilities)


# ---- AutoGluon, in a Python of its own -----------------------------------------------------------


def with_autogluon(preset: str, division: Division, threads: int) -> Outcome:
    """What another Python, named by the environment, makes of the same rows in the same time."""
    with tempfile.TemporaryDirectory() as folder:
        parts = {
            "train": division.train, "validation": division.validation, "test": division.test,
        }  # fmt: skip
        for name, rows in parts.items():
            rows.frame.assign(rank=rows.ranks).to_csv(Path(folder, f"{name}.csv"), index=False)
        settings = {
            "preset": preset, "seconds": AUTO_SECONDS, "threads": threads, "seed": division.number,
            "strings": filled_strings(division.test.frame)[1],
        }  # fmt: skip
        Path(folder, "settings.json").write_text(json.dumps(settings))
        # Its Python has packages of its own: it must not be led to those of this one.
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run(
            [os.environ[AUTOGLUON], Path(__file__).with_name("autogluon_fit.py"), folder],
            env=clean, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
            raise RuntimeError(f"AutoGluon: {last}")
        found = json.loads(Path(folder, "found.json").read_text())
    probabilities = spread(found["probabilities"], found["classes"], division.num_classes)
    return Outcome(
        probabilities, median(probabilities), found["seconds"], {"models": found["models"]}
    )


# ---- everyone ------------------------------------------------------------------------------------


def contestants() -> dict[str, Contestant]:
    """Everyone by name, installed or not."""
    return dict(_echelon()) | dict(_boosters()) | dict(_others()) | dict(_autogluon())


def _echelon() -> Iterator[tuple[str, Contestant]]:
    models = {
        "echelon auto": (echelon.AutoOrdinal, "`AutoOrdinal()`, 60 s at most"),
        "echelon network": (echelon.OrdinalClassifier, "`OrdinalClassifier()`"),
        "echelon mlp": (
            partial(echelon.OrdinalClassifier, backbone="mlp"),
            '`OrdinalClassifier(backbone="mlp")`',
        ),
        "echelon tabm": (
            partial(echelon.OrdinalClassifier, backbone="tabm"),
            '`OrdinalClassifier(backbone="tabm")`',
        ),
        "echelon boosting": (echelon.OrdinalBoosting, "`OrdinalBoosting()`"),
        "echelon linear": (echelon.CumulativeLinkModel, "`CumulativeLinkModel()`"),
    }
    for name, (make, about) in models.items():
        yield name, Contestant(partial(with_echelon, make), f"{about}, as it comes")


def _boosters() -> Iterator[tuple[str, Contestant]]:
    fits: dict[str, tuple[Fit, str]] = {
        "LightGBM classes": (lightgbm_classes, "a class each"),
        "LightGBM L2 + link": (
            lightgbm_linked,
            "regression, and a cumulative link on its score for rows it had not seen",
        ),
        "LightGBM L2": (partial(lightgbm_rounded, objective="l2"), "regression, rounded"),
        "LightGBM L1": (partial(lightgbm_rounded, objective="l1"), "absolute errors, rounded"),
    }
    for name, (fit, about) in fits.items():
        yield (
            name,
            Contestant(
                partial(tuned, fit, LIGHTGBM_GRID),
                f"{about}; {LIGHTGBM_WORDS}",
                "lightgbm",
                "lightgbm",
            ),
        )
    yield "CatBoost classes", Contestant(
        partial(tuned, catboost_classes, CATBOOST_GRID),
        "a class each; depth 4 or 6, penalty 1, 3 or 10, rate 0.05, up to 1,000 rounds",
        "catboost", "catboost",
    )  # fmt: skip
    yield "OGBoost", Contestant(
        partial(tuned, ogboost, OGBOOST_GRID),
        "trees of depth 2, 3 or 5, rate 0.1 or 0.2, up to 300 rounds",
        "ogboost", "ogboost",
    )  # fmt: skip


def _others() -> Iterator[tuple[str, Contestant]]:
    networks = "25, 50, 100 or 500 iterations, penalty 0.01, 1 or 10"
    penalties = "penalty 0.01, 0.1, 1, 10, 100 or 1,000"
    kernels = "C 0.1, 1 or 10, Gaussian kernel of 0.1, 0.3, 1 or 3 times the usual gamma"
    estimators = (
        ("mord", "LogisticAT", "mord", ALPHA_GRID, penalties),
        ("mord", "LogisticIT", "mord", ALPHA_GRID, penalties),
        ("skordinal", "NNPOM", "skordinal.classifiers", NETWORK_GRID, networks),
        ("skordinal", "NNOP", "skordinal.classifiers", NETWORK_GRID, networks),
        ("skordinal", "SVOR", "skordinal.classifiers", KERNEL_GRID, f"labels alone; {kernels}"),
    )
    for package, name, module, grid, about in estimators:
        fit = partial(with_scikit, place=f"{module}:{name}")
        yield f"{package} {name}", Contestant(partial(tuned, fit, grid), about, module, package)
    yield "statsmodels OrderedModel", Contestant(
        partial(tuned, statsmodels_ordered, [{}]), "logit; nothing to choose",
        "statsmodels", "statsmodels",
    )  # fmt: skip
    yield (
        "constant median",
        Contestant(partial(tuned, constant_median, [{}]), "the shares of the classes"),
    )


def _autogluon() -> Iterator[tuple[str, Contestant]]:
    for preset in ("medium", "best"):
        yield f"AutoGluon {preset}", Contestant(
            partial(with_autogluon, f"{preset}_quality"),
            f"preset `{preset}_quality`, {AUTO_SECONDS} s for its search, by the log score",
            AUTOGLUON, "autogluon.tabular",
        )  # fmt: skip
