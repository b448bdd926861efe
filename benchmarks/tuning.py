"""How every peer of the accuracy benchmark chooses its settings: in one way.

Each point of a grid is fitted to the training rows, with early stopping on the validation rows
where it has rounds, and the point of the lowest ranked probability score on the validation rows is
fitted again to all rows. A peer that gives labels alone counts as sure of them, so that its points
are chosen by their mean absolute error.
"""

import time
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.evaluation import metrics
from sets import Division, Ranks, Rows

Probabilities = NDArray[np.float64]


class Outcome(NamedTuple):
    """What a contestant says of the test rows, the seconds of its fit and what it chose."""

    probabilities: Probabilities
    ranks: Ranks
    seconds: float
    chosen: dict[str, Any]


class Task(NamedTuple):
    """What a fit is told beside its rows and its settings."""

    num_classes: int
    seed: int
    threads: int


class Fitted(NamedTuple):
    """Probabilities (n, K) of the rows of a frame, and the rounds that early stopping kept."""

    probabilities: Callable[[pd.DataFrame], Probabilities]
    rounds: int | None = None


Point = dict[str, Any]
# Settings, rows to fit and, while settings are chosen, the validation rows.
Fit = Callable[[Task, Point, Rows, Rows | None], Fitted]


def tuned(fit: Fit, grid: Sequence[Point], division: Division, threads: int) -> Outcome:
    """Choose a point of the grid on the validation rows and fit it to all rows."""
    task = Task(division.num_classes, division.number, threads)
    started = time.perf_counter()
    chosen = dict(grid[0])
    if len(grid) > 1:
        chosen = choose(fit, grid, task, division.train, division.validation)
    fitted = fit(task, chosen, division.everything, None)
    seconds = time.perf_counter() - started
    probabilities = fitted.probabilities(division.test.frame)
    return Outcome(probabilities, median(probabilities), seconds, chosen)


def choose(fit: Fit, grid: Sequence[Point], task: Task, train: Rows, held: Rows) -> Point:
    """The best point, with its number of rounds; one that cannot be fitted is passed over."""
    best: tuple[float, Point] | None = None
    failure: Exception | None = None
    for point in grid:
        try:
            fitted = fit(task, point, train, held)
            found = fitted.probabilities(held.frame)
            score = float(metrics.ranked_probability_score(held.ranks, found))
        except Exception as error:
            failure = error
            continue
        if best is None or score < best[0]:
            rounds = {} if fitted.rounds is None else {"rounds": fitted.rounds}
            best = score, point | rounds
    if best is None:
        raise RuntimeError(f"no point of the grid could be fitted: {failure}") from failure
    return best[1]


def grid_of(**values: Sequence[Any]) -> list[Point]:
    """Every combination of the values."""
    return [
        dict(zip(values, combination, strict=True)) for combination in product(*values.values())
    ]


def median(probabilities: Probabilities) -> Ranks:
    """The lowest rank that is reached with a probability of one half, shape (n,)."""
    return (probabilities.cumsum(axis=1)[:, :-1] < 0.5 - 1e-12).sum(axis=1)


def spread(found: Any, classes: Any, num_classes: int) -> Probabilities:
    """Probabilities of the classes that a library saw, as (n, K) that sum to 1."""
    result = np.zeros((len(found), num_classes))
    result[:, np.asarray(classes, dtype=np.int64)] = np.clip(found, 0, None)
    if not np.isfinite(result).all() or (result.sum(axis=1) <= 0).any():
        raise ValueError("it gave probabilities that are not finite or all 0")
    return result / result.sum(axis=1, keepdims=True)


def sure(ranks: Any, num_classes: int) -> Probabilities:
    """Labels alone, as if they were sure."""
    return np.eye(num_classes)[np.asarray(ranks, dtype=np.int64)]
