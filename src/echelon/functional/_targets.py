"""Soft targets: how the mass of a rank is spread over its neighbours.

A target is a distribution over the K ranks. Exponential ones follow distances between the ranks,
which may be known; the others are densities on [0, 1], cut into K equal intervals.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon.functional._labels import Labels
from echelon.functional._precision import without_autocast

Distance = Literal["absolute", "squared", "squared_log"]
Density = Literal["exponential", "beta", "binomial", "triangular"]

_DISTANCES = ("absolute", "squared", "squared_log")
_DENSITIES = ("exponential", "beta", "binomial", "triangular")
_MIN_TEMPERATURE = 1e-6
_NODES = 32  # of a quadrature: exact to 1e-12 for these densities
_NEIGHBOUR = 0.01  # the mass of a triangle in each of the intervals beside its own


def require_targets(
    num_classes: int,
    distance: str,
    temperature: float,
    density: str,
    positions: Sequence[float] | None,
) -> list[float]:
    """Where the ranks stand, on the scale of their distances; raises for wrong options."""
    if distance not in _DISTANCES:
        raise ValueError(
            f"distance must be one of {', '.join(map(repr, _DISTANCES))}; got {distance!r}"
        )
    if not (temperature >= _MIN_TEMPERATURE and math.isfinite(temperature)):
        raise ValueError(
            f"temperature must be a number of at least {_MIN_TEMPERATURE}; got {temperature}"
        )
    if density not in _DENSITIES:
        raise ValueError(
            f"density must be one of {', '.join(map(repr, _DENSITIES))}; got {density!r}"
        )
    if positions is None:
        if distance == "squared_log":
            raise ValueError(
                "distance='squared_log' needs positions above 0, as ranks count from 0; pass "
                "positions, the value of each class"
            )
        places = [float(k) for k in range(num_classes)]
    else:
        places = [float(position) for position in positions]
    if len(places) != num_classes and num_classes >= 2:
        raise ValueError(
            f"positions must be {num_classes} numbers, one for each class; got {len(places)}"
        )
    rises = all(low < high for low, high in pairwise(places))
    if not (rises and all(map(math.isfinite, places))):
        raise ValueError(f"positions must be finite and rise from class to class; got {places}")
    if distance == "squared_log":
        if places[0] <= 0:
            raise ValueError(f"distance='squared_log' needs positions above 0; got {places[0]:g}")
        places = [math.log(place) for place in places]
    if density != "exponential" and (
        distance != "absolute" or temperature != 1.0 or positions is not None
    ):
        raise ValueError(
            f"density={density!r} has no distance, temperature or positions; leave them out"
        )
    return places


def falling_targets(
    labels: Labels, places: Sequence[float], distance: str, temperature: float, like: Tensor
) -> Tensor:
    """softmax(-phi / temperature) of each row, (..., K), or its mean under a soft label."""
    position = torch.tensor(places, dtype=like.dtype, device=like.device)
    centres = position if labels.ranks is None else position[labels.ranks]
    offsets = centres.unsqueeze(-1) - position  # (..., K), or (K, K) for soft labels
    phi = offsets.abs_() if distance == "absolute" else offsets.square_()
    return _of_labels(labels, torch.softmax(phi.mul_(-1 / temperature), -1))


def density_targets(labels: Labels, num_classes: int, density: str, like: Tensor) -> Tensor:
    """The intervals' masses of each row's density, (..., K), or their mean under a soft label."""
    table = _table_op if torch.compiler.is_compiling() else _table_like
    rows: Tensor = table(density, num_classes, like.detach())
    return _of_labels(labels, rows if labels.ranks is None else rows[labels.ranks])


def _table_like(density: str, num_classes: int, like: Tensor) -> Tensor:
    return torch.tensor(_table(density, num_classes), dtype=like.dtype, device=like.device)


# Compiled code cannot look into a cache or into numpy, so that the table is an operator there.
_table_op = torch.library.custom_op(
    "echelon::density_table",
    _table_like,
    mutates_args=(),
    schema="(str density, int num_classes, Tensor like) -> Tensor",
)


@_table_op.register_fake
def _(density: str, num_classes: int, like: Tensor) -> Tensor:
    return like.new_empty(num_classes, num_classes)


def _of_labels(labels: Labels, targets: Tensor) -> Tensor:
    if labels.mass is None:
        return targets
    with without_autocast(targets.device):
        return labels.mass @ targets


@lru_cache(maxsize=64)
def _table(density: str, num_classes: int) -> tuple[tuple[float, ...], ...]:
    """The target of every rank, (K, K)."""
    rows = {"beta": _beta, "binomial": _binomial, "triangular": _triangular}[density](num_classes)
    return tuple(tuple(row) for row in (rows / rows.sum(1, keepdims=True)).tolist())


def _binomial(num_classes: int) -> NDArray[np.float64]:
    """K-1 draws, each with a probability from 0.1 for the lowest rank to 0.9 for the top."""
    k, draws = np.arange(num_classes), num_classes - 1
    p = np.linspace(0.1, 0.9, num_classes)[:, None]
    ways = [math.comb(draws, int(i)) for i in k]
    masses: NDArray[np.float64] = np.exp(
        np.array([math.log(each) for each in ways]) + k * np.log(p) + (draws - k) * np.log1p(-p)
    )
    return masses


def _beta(num_classes: int) -> NDArray[np.float64]:
    """A beta density of each rank, integrated over K equal intervals."""
    middle = (np.arange(num_classes) + 0.5) / num_classes
    size = 4 * num_classes**2 * middle * (1 - middle) - 1  # a + b, for a deviation of 1 / (2 K)
    a, b = middle * size, (1 - middle) * size
    # The outer ones would rise without end towards 0 and 1; the tables have a = 1 there.
    a[0], b[-1] = 1.0, 1.0
    a[-1], b[0] = 2 * num_classes - 2.0, 2 * num_classes - 2.0
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    x = (np.arange(num_classes)[:, None] + (nodes + 1) / 2) / num_classes  # (K, nodes)
    logs = (a - 1)[:, None, None] * np.log(x) + (b - 1)[:, None, None] * np.log1p(-x)
    logs -= logs.max((1, 2), keepdims=True)
    masses: NDArray[np.float64] = np.exp(logs) @ weights
    return masses


def _triangular(num_classes: int) -> NDArray[np.float64]:
    """A triangle around the middle of each rank's interval, and half of one at both ends."""
    root = math.sqrt(2 * _NEIGHBOUR)
    rows = np.zeros((num_classes, num_classes))
    for k in range(1, num_classes - 1):
        rows[k, k - 1 : k + 2] = _NEIGHBOUR, 1 - 2 * _NEIGHBOUR, _NEIGHBOUR
    # What the end ranks give away, from the equations of the paper.
    share = (1 - 2 * _NEIGHBOUR) * root * (root - 1)
    first = ((1 - math.sqrt(1 - 4 * share)) / 2) ** 2
    shrunk = share * ((num_classes - 1) / num_classes) ** 2
    last = ((1 - math.sqrt(1 - 4 * shrunk)) / 2) ** 2
    rows[0, :2] = 1 - first, first
    rows[-1, -2:] = last, 1 - last
    return rows
