"""The theorem of the CORN paper as a tool: the cost of a prediction, and what bounds it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from echelon.evaluation.arguments import as_vector, as_weight


class CostBound(NamedTuple):
    """Both sides of the theorem of :func:`cost_bound`.

    Parameters
    ----------
    expected_cost : float
        The mean cost of the labels; it is never above the bound.
    bound : float
        The mean sum of weighted binary errors.

    Examples
    --------
    >>> both = CostBound(expected_cost=1.0, bound=1.5)
    >>> both.expected_cost <= both.bound
    True
    """

    expected_cost: float
    bound: float


def cost_bound(
    truth: ArrayLike,
    exceedance: ArrayLike,
    cost_matrix: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> CostBound:
    """The mean cost of the 0.5-count labels, and the sum of weighted binary errors that bounds it.

    For truth y and label q, the number of exceedances above 0.5, the theorem says that
    ``C[y, q] <= sum over k of |C[y, k] - C[y, k+1]| * 1{task k is predicted wrongly}``. It holds
    for any costs, if the curve is consistent; and for any curve, if every row of the costs is
    convex, as absolute and squared ones are (Li and Lin 2007).

    Parameters
    ----------
    truth : array-like of int, shape (n,)
        The true ranks, 0..K-1.
    exceedance : array-like, shape (n, K-1)
        P(y > k). Unless every row of the costs is convex, whether it is above 0.5 must not come
        back once lost, as for every :class:`echelon.RankCurve`.
    cost_matrix : array-like, shape (K, K)
        Cost of predicting rank j (column) when rank i (row) is true; the diagonal is 0.
    sample_weight : array-like, shape (n,), optional
        What each row counts for; without it, each counts alike.

    Examples
    --------
    >>> absolute = abs(np.subtract.outer(np.arange(3), np.arange(3)))
    >>> cost_bound([0, 2], [[0.9, 0.6], [0.8, 0.7]], absolute)
    CostBound(expected_cost=1.0, bound=1.0)
    """
    ranks = as_vector("truth", truth).astype(np.int64)
    above = np.asarray(exceedance, dtype=np.float64)
    if above.ndim != 2 or above.shape[0] != len(ranks) or above.shape[1] == 0:
        raise ValueError(
            f"exceedance must have the shape ({len(ranks)}, K-1), a row for each truth; got "
            f"{above.shape}"
        )
    num_classes = above.shape[1] + 1
    if (
        not np.array_equal(ranks, np.asarray(truth))
        or ranks.min() < 0
        or ranks.max() >= num_classes
    ):
        raise ValueError(f"truth must be whole numbers in 0..{num_classes - 1}; got {truth!r}")
    if not ((above >= 0) & (above <= 1)).all():
        raise ValueError(
            f"exceedance must be probabilities; got {above.min():g} to {above.max():g}"
        )
    costs = _as_costs(cost_matrix, num_classes)
    weight = None if sample_weight is None else as_weight(sample_weight, length=len(ranks))

    predicted_tasks = above > 0.5  # (n, K-1)
    rounding = 1e-9 * np.abs(costs).max()
    is_convex = bool((np.diff(costs, 2, axis=1) >= -rounding).all())
    if not is_convex and (predicted_tasks[:, 1:] > predicted_tasks[:, :-1]).any():
        raise ValueError(
            "exceedance contradicts itself: P(y > k+1) is above 0.5 where P(y > k) is not. For "
            "costs that are not convex the theorem needs a consistent curve; take "
            "RankCurve.exceedance, which is"
        )
    labels = predicted_tasks.sum(axis=1)
    true_tasks = ranks[:, None] > np.arange(num_classes - 1)
    steps = np.abs(np.diff(costs, axis=1))[ranks]  # (n, K-1)
    return CostBound(
        expected_cost=float(np.average(costs[ranks, labels], weights=weight)),
        bound=float(
            np.average((steps * (predicted_tasks != true_tasks)).sum(axis=1), weights=weight)
        ),
    )


def _as_costs(
    cost_matrix: ArrayLike, num_classes: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    costs = np.asarray(cost_matrix, dtype=np.float64)
    if costs.shape != (num_classes, num_classes):
        raise ValueError(
            f"cost_matrix must have the shape {(num_classes, num_classes)}, true rank by predicted "
            f"rank; got {costs.shape}"
        )
    if not np.isfinite(costs).all():
        raise ValueError("cost_matrix must be finite; got an infinity or NaN in it")
    if np.diag(costs).any():
        raise ValueError(
            f"cost_matrix must have a zero diagonal: the right rank costs nothing; got "
            f"{np.diag(costs).tolist()}"
        )
    return costs
