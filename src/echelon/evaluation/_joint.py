"""The table of true and predicted values, and every metric that is a function of it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]


class Joint(NamedTuple):
    """The weight (a, b) of each pair of a true value (a,) and a predicted value (b,), ascending."""

    truth: Vector
    prediction: Vector
    weight: NDArray[np.float64]

    @classmethod
    def of_ranks(cls, weight: ArrayLike) -> "Joint":
        """A table (K, K) over all ranks."""
        table = np.asarray(weight, dtype=np.float64)
        ranks = np.arange(len(table), dtype=np.float64)
        return cls(ranks, ranks, table)


def mae(joint: Joint) -> float:
    return float((joint.weight * _distances(joint)).sum() / joint.weight.sum())


def rmse(joint: Joint) -> float:
    return float(np.sqrt((joint.weight * _distances(joint) ** 2).sum() / joint.weight.sum()))


def _class_errors(joint: Joint) -> Vector:
    """MAE of each true value that has any weight."""
    totals = joint.weight.sum(axis=1)
    present = totals > 0
    errors: Vector = (joint.weight * _distances(joint)).sum(axis=1)[present] / totals[present]
    return errors


def amae(joint: Joint) -> float:
    return float(_class_errors(joint).mean())


def mmae(joint: Joint) -> float:
    return float(_class_errors(joint).max())


def accuracy(joint: Joint) -> float:
    return accuracy_within(joint, 0)


def accuracy_within(joint: Joint, k: int = 1) -> float:
    return float((joint.weight * (_distances(joint) <= k)).sum() / joint.weight.sum())


def minimum_sensitivity(joint: Joint) -> float:
    totals = joint.weight.sum(axis=1)
    present = totals > 0
    hits = (joint.weight * (_distances(joint) == 0)).sum(axis=1)
    return float((hits[present] / totals[present]).min())


def linear_kappa(joint: Joint) -> float:
    return _kappa(joint, 1)


def quadratic_kappa(joint: Joint) -> float:
    return _kappa(joint, 2)


def _kappa(joint: Joint, power: int) -> float:
    total = joint.weight.sum()
    costs = _distances(joint) ** power
    observed = (joint.weight * costs).sum() / total
    by_truth, by_prediction = joint.weight.sum(axis=1) / total, joint.weight.sum(axis=0) / total
    chance = by_truth @ costs @ by_prediction
    return 1.0 if chance == 0 else float(1 - observed / chance)


def _pairs(joint: Joint) -> tuple[float, float, float]:
    """Weight of the ordered pairs of rows that agree, and of those that disagree, in order; total.

    A pair of rows weighs the product of their weights; each is counted once.
    """
    weight = joint.weight
    below = np.zeros((weight.shape[0] + 1, weight.shape[1] + 1))
    below[1:, 1:] = weight.cumsum(axis=0).cumsum(axis=1)
    lower_both = below[:-1, :-1]  # truth below and prediction below
    lower_truth_higher_prediction = below[:-1, -1:] - below[:-1, 1:]
    agree = float((weight * lower_both).sum())
    disagree = float((weight * lower_truth_higher_prediction).sum())
    return agree, disagree, float(weight.sum())


def _untied(marginal: Vector) -> float:
    """Weight of the pairs that differ in a value."""
    return float((marginal.sum() ** 2 - (marginal**2).sum()) / 2)


def kendall_tau(joint: Joint) -> float:
    agree, disagree, _ = _pairs(joint)
    differ = _untied(joint.weight.sum(axis=1)) * _untied(joint.weight.sum(axis=0))
    return 0.0 if differ <= 0 else float((agree - disagree) / np.sqrt(differ))


def concordance_index(joint: Joint) -> float:
    agree, disagree, _ = _pairs(joint)
    differ = _untied(joint.weight.sum(axis=1))
    return 0.5 if differ <= 0 else float(0.5 + 0.5 * (agree - disagree) / differ)


def spearman(joint: Joint) -> float:
    total = joint.weight.sum()
    places = []
    for marginal in (joint.weight.sum(axis=1), joint.weight.sum(axis=0)):
        middle = marginal.cumsum() - marginal / 2  # up to a constant, which a correlation ignores
        places.append(middle - (middle * marginal).sum() / total)
    t, p = places
    covariance = t @ joint.weight @ p
    spread = (joint.weight.sum(axis=1) @ t**2) * (joint.weight.sum(axis=0) @ p**2)
    return 0.0 if spread <= 0 else float(np.clip(covariance / np.sqrt(spread), -1, 1))


def _distances(joint: Joint) -> NDArray[np.float64]:
    distances: NDArray[np.float64] = np.abs(joint.truth[:, None] - joint.prediction)
    return distances
