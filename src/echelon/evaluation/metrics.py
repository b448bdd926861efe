"""Metrics of predicted ranks. Arguments are alike everywhere: truth first, then the prediction."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def mae(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean absolute error in ranks.

    Parameters
    ----------
    truth, prediction : array-like, shape (n,)
        Ranks; a prediction need not be a whole number.
    num_classes : int, optional
        K; ranks outside 0..K-1 then raise.
    sample_weight : array-like, shape (n,), optional

    Examples
    --------
    >>> mae([0, 4], [4, 0], num_classes=5)
    4.0
    """
    truth, prediction, weight = _read(truth, prediction, num_classes, sample_weight)
    return float(np.average(np.abs(truth - prediction), weights=weight))


def rmse(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Root of the mean squared error in ranks.

    Parameters
    ----------
    truth, prediction : array-like, shape (n,)
        Ranks; a prediction need not be a whole number.
    num_classes : int, optional
        K; ranks outside 0..K-1 then raise.
    sample_weight : array-like, shape (n,), optional

    Examples
    --------
    >>> rmse([0, 1, 2, 3], [0, 1, 2, 1])
    1.0
    """
    truth, prediction, weight = _read(truth, prediction, num_classes, sample_weight)
    return float(np.sqrt(np.average((truth - prediction) ** 2, weights=weight)))


def accuracy(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the rows whose rank is predicted exactly.

    Parameters
    ----------
    truth, prediction : array-like, shape (n,)
    num_classes : int, optional
        K; ranks outside 0..K-1 then raise.
    sample_weight : array-like, shape (n,), optional

    Examples
    --------
    >>> accuracy([0, 1, 2, 3], [0, 1, 2, 1])
    0.75
    """
    truth, prediction, weight = _read(truth, prediction, num_classes, sample_weight)
    return float(np.average(truth == prediction, weights=weight))


def quadratic_weighted_kappa(
    truth: ArrayLike,
    prediction: ArrayLike,
    *,
    num_classes: int | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Cohen's kappa with squared weights: 1 minus the squared error over that of chance.

    Chance pairs every truth with every prediction. 1 is perfect, 0 is chance; where truth and
    prediction are one and the same constant, it is 1.

    Parameters
    ----------
    truth, prediction : array-like, shape (n,)
    num_classes : int, optional
        K; ranks outside 0..K-1 then raise.
    sample_weight : array-like, shape (n,), optional

    Examples
    --------
    >>> quadratic_weighted_kappa([0, 1, 2], [0, 1, 2])
    1.0
    """
    truth, prediction, weight = _read(truth, prediction, num_classes, sample_weight)
    observed = np.average((truth - prediction) ** 2, weights=weight)
    means = [np.average(values, weights=weight) for values in (truth, prediction)]
    spreads = [
        np.average((values - mean) ** 2, weights=weight)
        for values, mean in zip((truth, prediction), means, strict=True)
    ]
    # E (t - p)^2 of independent t and p
    chance = spreads[0] + spreads[1] + (means[0] - means[1]) ** 2
    return 1.0 if chance == 0 else float(1 - observed / chance)


def ranked_probability_score(
    truth: ArrayLike,
    probabilities: ArrayLike,
    *,
    num_classes: int | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean over the rows of the squared errors of P(y <= k), summed over the thresholds.

    Parameters
    ----------
    truth : array-like, shape (n,)
    probabilities : array-like, shape (n, K)
        Each row sums to 1.
    num_classes : int, optional
        K, which the probabilities then must have.
    sample_weight : array-like, shape (n,), optional

    Examples
    --------
    >>> ranked_probability_score([0], [[0.5, 0.25, 0.25]])
    0.3125
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 2 or (num_classes is not None and p.shape[1] != num_classes):
        wanted = "K" if num_classes is None else num_classes
        raise ValueError(f"probabilities must have the shape (n, {wanted}); got {p.shape}")
    if not (np.isfinite(p).all() and (p >= 0).all() and np.allclose(p.sum(1), 1, atol=1e-3)):
        raise ValueError("probabilities must be non-negative and sum to 1 in every row")
    truth, _, weight = _read(truth, np.zeros(len(p)), p.shape[1], sample_weight)
    below = p.cumsum(axis=1)[:, :-1]
    not_above = truth[:, None] <= np.arange(p.shape[1] - 1)
    return float(np.average(((below - not_above) ** 2).sum(axis=1), weights=weight))


OF_PROBABILITIES = frozenset({"ranked_probability_score"})
OF_LABELS = frozenset({"mae", "rmse", "accuracy", "quadratic_weighted_kappa"})
HIGHER_IS_BETTER = frozenset({"accuracy", "quadratic_weighted_kappa"})


def _read(
    truth: ArrayLike,
    prediction: ArrayLike,
    num_classes: int | None,
    sample_weight: ArrayLike | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    true_ranks = as_vector("truth", truth)
    predicted = as_vector("prediction", prediction, length=len(true_ranks))
    if num_classes is not None:
        for name, values in (("truth", true_ranks), ("prediction", predicted)):
            if values.min() < 0 or values.max() > num_classes - 1:
                raise ValueError(
                    f"{name} must lie in 0..{num_classes - 1}; got {values.min():g} to "
                    f"{values.max():g}"
                )
    if sample_weight is None:
        return true_ranks, predicted, None
    return true_ranks, predicted, as_weight(sample_weight, length=len(true_ranks))


def as_vector(name: str, values: ArrayLike, *, length: int | None = None) -> NDArray[np.float64]:
    """A non-empty vector of finite numbers, or an error that says what came instead."""
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers; got dtype {array.dtype}")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a non-empty vector; got the shape {array.shape}")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} must have {length} values, as truth has; got {len(array)}")
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite; got {(~np.isfinite(numbers)).sum()} that are not")
    return numbers


def as_weight(values: ArrayLike, *, length: int) -> NDArray[np.float64]:
    """Non-negative weights that are not all 0."""
    weight = as_vector("sample_weight", values, length=length)
    if weight.min() < 0 or weight.sum() == 0:
        raise ValueError(
            f"sample_weight must be non-negative and not all zero; got weights from "
            f"{weight.min():g} to {weight.max():g}"
        )
    return weight
