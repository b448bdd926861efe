"""What each pair of a rank and a threshold counts for, when a reduction is to learn costs.

By the weights W[y, k] = |C[y, k] - C[y, k+1]| the mistakes of the binary tasks bound the cost of
the rank that is predicted (Lin and Li 2012).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from echelon.models.links import Array

COSTS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {"absolute": np.abs, "squared": np.square, "zero_one": lambda away: (away != 0).astype(float)}
)


def task_weights(train_cost: Any, num_classes: int) -> Array:
    """W, (K, K-1), of the cost by its name or of a matrix C (K, K), true by predicted rank.

    Examples
    --------
    >>> task_weights("squared", 3)
    array([[1., 3.],
           [1., 1.],
           [3., 1.]])
    >>> task_weights("zero_one", 3)  # a row counts at the thresholds beside its rank
    array([[1., 0.],
           [1., 1.],
           [0., 1.]])
    """
    known = ", ".join(map(repr, COSTS))
    if isinstance(train_cost, str):
        if train_cost not in COSTS:
            raise ValueError(f"train_cost must be one of {known}, or a matrix; got {train_cost!r}")
        ranks = np.arange(num_classes, dtype=np.float64)
        costs = COSTS[train_cost](np.subtract.outer(ranks, ranks))
    else:
        costs = np.asarray(train_cost, dtype=np.float64)
        shape = num_classes, num_classes
        if costs.shape != shape or not np.isfinite(costs).all():
            raise ValueError(
                f"train_cost must be one of {known}, or a matrix of finite numbers of the shape "
                f"{shape}, true rank by predicted rank; got the shape {costs.shape}"
            )
        steps = np.diff(costs, axis=1)
        below = np.arange(num_classes - 1) < np.arange(num_classes)[:, None]
        if (np.diag(costs) != 0).any() or (np.where(below, -steps, steps) < 0).any():
            raise ValueError(
                "train_cost must have rows that fall to 0 at the true rank and rise behind it, as "
                "the reduction bounds no other costs; decide by the matrix instead: decision=costs"
            )
    weights = np.abs(np.diff(costs, axis=1))
    if not weights.any(0).all():
        raise ValueError("train_cost must tell every two neighbouring ranks apart")
    return weights
