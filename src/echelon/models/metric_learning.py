"""Linear maps after which neighbours are alike in rank: by a gradient, or by evolution.

Both begin with the columns as they are, and end with nothing that is worse by their own measure.
"""

import contextlib
import inspect
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import differential_evolution
from scipy.spatial.distance import cdist

from echelon.models.chains import chain_objective
from echelon.models.links import Array

_PENALTY = 0.01  # of the trace
_OF_CLASS, _OF_OTHERS = 5, 15  # neighbours that make triplets
_STEP, _FASTER, _SLOWER = 0.1, 1.01, 0.5
_LEAST_STEPS, _MOST_STEPS, _TOLERANCE = 50, 1_000, 1e-7
_NEIGHBORHOOD, _CHAIN = 50, 3
_POPULATION, _GENERATIONS, _BOUND = 100, 150, 100.0


class LearntMap(NamedTuple):
    """A map L (d', d), its measure and that of the columns as they are, and what it took."""

    matrix: Array
    measure: float
    start: float
    steps: int


class _Triplets(NamedTuple):
    """Row i should be nearer to j than to l: places of pairs (i, j) and (i, l) among `pairs`."""

    pairs: NDArray[np.int64]  # (p, 2)
    near: NDArray[np.int64]
    far: NDArray[np.int64]


def learn_by_gradient(
    x: Array, ranks: NDArray[np.int64], *, time_limit: float | None = None
) -> LearntMap:
    """The metric M = L'L of small trace by which rows of nearer ranks are nearer (LODML).

    It minimises 0.01 tr(M) + the mean over triplets of max(0, 1 + d(i, j) - d(i, l)), d the squared
    distance by M: j and l are of the 15 nearest rows of other ranks, both above or both below, and
    j's rank is nearer to i's; or j is of the 5 nearest of i's rank. Steps follow the gradient and
    keep M positive semidefinite.

    Parameters
    ----------
    x : array, shape (n, d)
    ranks : array, shape (n,)
    time_limit : float, optional
        Seconds after which the best metric so far is taken.
    """
    begun, d = time.monotonic(), x.shape[1]
    triplets = _triplets(x, ranks)
    metric = np.eye(d)
    if len(triplets.near) == 0:
        return LearntMap(metric, 0.0, 0.0, 0)
    differences = x[triplets.pairs[:, 0]] - x[triplets.pairs[:, 1]]  # (p, d)
    measure, gradient = _triplet_loss(metric, differences, triplets)
    start = measure
    best = metric, measure
    step, taken = _STEP, 0
    for taken in range(1, _MOST_STEPS + 1):
        if time_limit is not None and time.monotonic() - begun > time_limit:
            break
        moved = _positive(metric - step * gradient)
        loss, gradient_there = _triplet_loss(moved, differences, triplets)
        fell = loss < measure
        small = abs(measure - loss) < _TOLERANCE
        step *= _FASTER if fell else _SLOWER
        metric, measure, gradient = moved, loss, gradient_there
        if measure < best[1]:
            best = metric, measure
        if small and taken >= _LEAST_STEPS:
            break
    values, vectors = np.linalg.eigh(best[0])
    return LearntMap((vectors * np.sqrt(values.clip(min=0))).T, best[1], start, taken)


def _triplet_loss(metric: Array, differences: Array, triplets: _Triplets) -> tuple[float, Array]:
    """The measure of a metric and its gradient, (d, d)."""
    squared = np.einsum("pd,pd->p", differences @ metric, differences)
    short = 1 + squared[triplets.near] - squared[triplets.far]
    active = short > 0
    weights = np.bincount(triplets.near[active], minlength=len(squared)).astype(np.float64)
    weights -= np.bincount(triplets.far[active], minlength=len(squared))
    gradient = _PENALTY * np.eye(len(metric))
    gradient += (differences * weights[:, None]).T @ differences / len(short)
    return _PENALTY * float(np.trace(metric)) + float(short[active].sum()) / len(short), gradient


def _positive(metric: Array) -> Array:
    """The nearest matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh((metric + metric.T) / 2)
    positive: Array = (vectors * values.clip(min=0)) @ vectors.T
    return positive


def _triplets(x: Array, ranks: NDArray[np.int64]) -> _Triplets:
    distances = cdist(x, x)
    np.fill_diagonal(distances, np.inf)
    order = np.argsort(distances, axis=1, kind="stable")[:, :-1]
    pairs: list[tuple[int, int]] = []
    near: list[NDArray[np.int64]] = []
    far: list[NDArray[np.int64]] = []
    for i, nearest in enumerate(order):
        away = ranks[nearest] - ranks[i]
        others = nearest[away != 0][:_OF_OTHERS]
        friends = nearest[away == 0][:_OF_CLASS]
        start = len(pairs)
        pairs += [(i, int(j)) for j in (*friends, *others)]
        steps = np.concatenate([np.zeros(len(friends)), ranks[others] - ranks[i]])
        # of one direction, or from the row's own rank, and farther
        apart = np.abs(steps) > np.abs(steps)[:, None]
        apart &= (steps * steps[:, None] > 0) | (steps[:, None] == 0)
        first, second = np.nonzero(apart)
        near.append(start + first)
        far.append(start + second)
    empty = np.zeros(0, dtype=np.int64)
    return _Triplets(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.concatenate([empty, *near]),
        np.concatenate([empty, *far]),
    )


def learn_by_chains(
    x: Array,
    ranks: NDArray[np.int64],
    *,
    seed: int,
    time_limit: float | None = None,
    generations: int = _GENERATIONS,
) -> LearntMap:
    """The map with the most chains of neighbours, by differential evolution (CMOML).

    A population of 100 maps, of which one is the columns as they are, over 150 generations; chains
    of 3 among the 50 nearest rows. The measure is their mean number a row.

    Parameters
    ----------
    x : array, shape (n, d)
        One evaluation takes O(n^2 (d + log n)): some hundred rows.
    ranks : array, shape (n,)
    seed : int
    time_limit : float, optional
        Seconds after which the best map so far is taken.
    generations : int
    """
    begun, d = time.monotonic(), x.shape[1]
    evaluations = 0
    best: tuple[float, Array] = (-np.inf, np.eye(d))

    def chains(entries: Array) -> float:
        nonlocal evaluations, best
        if time_limit is not None and evaluations and time.monotonic() - begun > time_limit:
            raise _OutOfTimeError
        evaluations += 1
        matrix = entries.reshape(d, d)
        objective = chain_objective(x @ matrix.T, ranks, neighborhood=_NEIGHBORHOOD, length=_CHAIN)
        if objective > best[0]:
            best = objective, matrix.copy()
        return -objective

    start = -chains(np.eye(d).ravel())
    population = np.random.default_rng(seed).random((_POPULATION, d * d))
    population[0] = np.eye(d).ravel()
    with contextlib.suppress(_OutOfTimeError):
        differential_evolution(
            chains,
            [(-_BOUND, _BOUND)] * (d * d),
            init=population,
            maxiter=generations,
            polish=False,
            **_seeded(seed),
        )
    rows = max(len(ranks), 1)
    return LearntMap(best[1], best[0] / rows, start / rows, evaluations)


class _OutOfTimeError(Exception):
    """The time limit is over."""


def _seeded(seed: int) -> dict[str, Any]:
    """The seed by the name that this scipy has for it."""
    names = inspect.signature(differential_evolution).parameters
    return {"rng" if "rng" in names else "seed": np.random.default_rng(seed)}
