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
            f"sample_weight must be non-negative and not all 0; got {weight.min():g} to "
            f"{weight.max():g}"
        )
    return weight
