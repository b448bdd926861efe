"""Compare methods on one table: the same split for all, several seeds each, with baselines.

A constant (the shares of the classes in training) and a linear cumulative model stand in every
comparison unasked, so that a gain can be seen as one; on generated data also the best possible
predictor.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from echelon.curve import RankCurve
from echelon.data.friedman import make_friedman
from echelon.data.labels import Labels
from echelon.data.splits import hold_out
from echelon.data.tables import TableSchema
from echelon.estimators import OrdinalClassifier
from echelon.evaluation import metrics
from echelon.methods import METHODS
from echelon.runs import Run, read_run, write_run

CONSTANT, LINEAR, FLOOR = "constant", "clm linear", "best possible"
_ROLES = {CONSTANT: "baseline", LINEAR: "baseline", FLOOR: "floor"}
FIREMAN_ROWS = {"train": 30_922, "valid": 1_628, "test": 8_138}  # of the CORN paper's partition

Report = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """A table that is split once: what is fitted on, and what is tested on.

    `ranks` are those of the rows, `test_ranks` those of the test rows. `floor` are the true
    probabilities of the test rows (n, K), where they are known.
    """

    name: str
    labels: Labels
    features: pd.DataFrame
    ranks: NDArray[np.int64]
    test_features: pd.DataFrame
    test_ranks: NDArray[np.int64]
    groups: NDArray[Any] | None = None
    validation: tuple[pd.DataFrame, NDArray[np.int64]] | None = None
    floor: NDArray[np.float64] | None = None
    details: dict[str, Any] = field(default_factory=dict)


def table_task(
    name: str,
    features: pd.DataFrame,
    target: Any,
    *,
    classes: Sequence[Any] | None = None,
    groups: Any = None,
    test_share: float = 0.25,
    split_seed: int = 0,
) -> Task:
    """Split a table once; rows of one group, and twins, stay on one side."""
    labels = Labels.of(target, classes)
    ranks = labels.to_ranks(target)
    held = hold_out(
        TableSchema.of(features).read(features), ranks, test_share, groups=groups,
        generator=np.random.default_rng(split_seed),
    )  # fmt: skip
    return Task(
        name,
        labels,
        features[~held].reset_index(drop=True),
        ranks[~held],
        features[held].reset_index(drop=True),
        ranks[held],
        groups=None if groups is None else np.asarray(groups)[~held],
        details={"test_share": test_share, "split_seed": split_seed},
    )


def generated_task(num_classes: int = 16, data_seed: int = 0) -> Task:
    """Fireman as echelon generates it: Friedman's function, in the sizes of the CORN paper."""
    names = [f"V{i}" for i in range(1, 11)]
    parts = {
        name: make_friedman(rows, num_classes, seed=3 * data_seed + i)
        for i, (name, rows) in enumerate(FIREMAN_ROWS.items())
    }
    frames = {name: pd.DataFrame(one.features, columns=names) for name, one in parts.items()}
    return Task(
        "fireman (generated)",
        Labels(np.arange(num_classes)),
        frames["train"],
        parts["train"].ranks,
        frames["test"],
        parts["test"].ranks,
        validation=(frames["valid"], parts["valid"].ranks),
        floor=parts["test"].bayes_probabilities,
        details={"data_seed": data_seed},
    )


def compare_methods(
    task: Task,
    methods: Sequence[str],
    seeds: int,
    folder: str | Path,
    *,
    parameters: dict[str, Any] | None = None,
    on_run: Report | None = None,
) -> list[Run]:
    """Fit every method with every seed, and write each result to a folder of its own.

    Parameters
    ----------
    task : Task
    methods : sequence of str
        Names of ``echelon.METHODS``.
    seeds : int
        How many: 0, 1, .. seeds-1.
    folder : path
        Where the run folders go; finished runs that are there are kept and not run again.
    parameters : dict, optional
        Of :class:`echelon.OrdinalClassifier`, the same for all methods.
    on_run : callable, optional
        Called with the name of each run that ends.
    """
    check_request(methods, seeds)
    folder = Path(folder)
    jobs: list[tuple[str, int | None, Callable[[], _Result]]] = [
        (CONSTANT, None, lambda: _constant(task)),
        (LINEAR, None, lambda: _fit(task, 0, _linear_parameters(parameters))),
    ]
    if task.floor is not None:
        jobs.insert(0, (FLOOR, None, lambda: _floor(task)))
    for method in dict.fromkeys(methods):
        chosen = {**(parameters or {}), "method": method}
        for number in range(seeds):
            jobs.append((method, number, functools.partial(_fit, task, number, chosen)))
    runs = []
    for name, seed, job in jobs:
        place = folder / (name.replace(" ", "-") if seed is None else f"{name}-seed{seed}")
        asked = {
            "command": "compare",
            "method": name,
            "role": _ROLES.get(name, "method"),
            "seed": seed,
            "split": "test",
            "data": task.name,
            "classes": task.labels.classes.tolist(),
            "rows": {"train": len(task.ranks), "test": len(task.test_ranks)},
            "parameters": {k: v for k, v in (parameters or {}).items() if v is not None},
            **task.details,
        }
        runs.append(_kept(place, asked) or _write(place, asked, task, job()))
        if on_run is not None:
            on_run(place.name)
    return runs


def check_request(methods: Sequence[str], seeds: int) -> None:
    """Raise for methods that are not there, or no seeds, before anything is run."""
    unknown = [name for name in methods if name not in METHODS]
    if unknown or not methods:
        raise ValueError(
            f"methods must be of {', '.join(METHODS)}; got "
            f"{', '.join(unknown) if unknown else 'none'}"
        )
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1; got {seeds}")


# ---- one run -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Result:
    probabilities: NDArray[np.float64]
    prediction: NDArray[np.int64]
    crossings: NDArray[np.float64]
    history: list[dict[str, float]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


def _kept(place: Path, asked: dict[str, Any]) -> Run | None:
    """A finished run of the same configuration; an error for one of another."""
    if not (place / "DONE").is_file():
        return None
    run = read_run(place)
    for name, value in asked.items():
        if run.config.get(name) != value:
            raise ValueError(
                f"{place} holds a finished run with {name} = {run.config.get(name)!r} instead of "
                f"{value!r}; choose another folder"
            )
    return run


def _write(place: Path, asked: dict[str, Any], task: Task, result: _Result) -> Run:
    scores = metrics.all_scores(task.test_ranks, result.prediction, result.probabilities)
    write_run(
        place,
        config={**asked, **result.extra},
        history=result.history,
        metrics=scores,
        predictions={
            "truth": task.test_ranks,
            "prediction": result.prediction,
            "probabilities": result.probabilities.astype(np.float32),
            "crossings": result.crossings.astype(np.float32),
        },
    )
    return read_run(place)


def _fit(task: Task, seed: int, parameters: dict[str, Any]) -> _Result:
    model = OrdinalClassifier(**parameters, classes=task.labels.classes.tolist(), random_state=seed)
    own: dict[str, Any] = {} if task.validation is None else {
        "X_val": task.validation[0], "y_val": task.labels.from_ranks(task.validation[1]),
    }  # fmt: skip
    model.fit(task.features, task.labels.from_ranks(task.ranks), groups=task.groups, **own)
    curve = model.predict_curve(task.test_features)
    extra: dict[str, Any] = {"best_epoch": model.best_epoch_}
    if parameters.get("backbone") == "linear" and parameters["method"] == "clm":
        extra["coefficients"] = model.coefficients()
    return _Result(
        curve.probabilities.double().cpu().numpy(),
        curve.label(model.decision_rule()).cpu().numpy(),
        curve.crossings().cpu().numpy(),
        model.history_,
        extra,
    )


def _linear_parameters(parameters: dict[str, Any] | None) -> dict[str, Any]:
    shared = {k: v for k, v in (parameters or {}).items() if k in ("device", "decision")}
    return {
        **shared,
        "method": "clm",
        "backbone": "linear",
        "settings": {"scaling": "standard"},  # so that coefficients are per standard deviation
    }


def _constant(task: Task) -> _Result:
    counts = np.bincount(task.ranks, minlength=task.labels.num_classes)
    return _of_probabilities(np.tile(counts / counts.sum(), (len(task.test_ranks), 1)))


def _floor(task: Task) -> _Result:
    assert task.floor is not None
    return _of_probabilities(task.floor)


def _of_probabilities(probabilities: NDArray[np.float64]) -> _Result:
    curve = RankCurve(torch.from_numpy(probabilities).log())
    return _Result(probabilities, curve.median().numpy(), np.zeros(len(probabilities)))
