"""Reading the arguments of metrics: what is wrong is said before anything is computed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.evaluation._joint import Joint

Vector = NDArray[np.float64]


def joint_of(
    truth: ArrayLike,
    prediction: ArrayLike,
    num_classes: int | None,
    classes: Sequence[Any] | None,
    sample_weight: ArrayLike | None,
) -> Joint:
    """The table of true and predicted values, (values, predicted values), with their weights."""
    true_ranks, predicted, weight, _ = read(truth, prediction, num_classes, classes, sample_weight)
    values, rows = np.unique(true_ranks, return_inverse=True)
    predicted_values, columns = np.unique(predicted, return_inverse=True)
    cells = rows.reshape(-1) * len(predicted_values) + columns.reshape(-1)
    table = np.bincount(cells, weights=weight, minlength=len(values) * len(predicted_values))
    shape = (len(values), len(predicted_values))
    return Joint(values, predicted_values, table.reshape(shape).astype(np.float64))


def count(
    true_ranks: Vector, predicted: Vector, weight: Vector | None, size: int
) -> NDArray[np.float64]:
    """The weight of each pair of true (row) and predicted (column) rank, (size, size)."""
    cells = true_ranks.astype(np.int64) * size + predicted.astype(np.int64)
    table = np.bincount(cells, weights=weight, minlength=size * size)
    return table.reshape(size, size).astype(np.float64)


def read(
    truth: ArrayLike,
    prediction: ArrayLike,
    num_classes: int | None,
    classes: Sequence[Any] | None,
    sample_weight: ArrayLike | None,
) -> tuple[Vector, Vector, Vector | None, int | None]:
    """The true and predicted ranks (n,), the weights (n,) or None, and K, all checked."""
    if classes is not None:
        num_classes = _checked_size(classes, num_classes)
        truth, prediction = (
            to_ranks(name, values, classes)
            for name, values in (("truth", truth), ("prediction", prediction))
        )
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
        return true_ranks, predicted, None, num_classes
    return true_ranks, predicted, as_weight(sample_weight, length=len(true_ranks)), num_classes


def read_probabilities(
    truth: ArrayLike,
    probabilities: ArrayLike,
    num_classes: int | None,
    classes: Sequence[Any] | None,
    sample_weight: ArrayLike | None,
) -> tuple[NDArray[np.int64], NDArray[np.float64], Vector | None]:
    """The true ranks (n,), the probabilities (n, K) and the weights (n,) or None, all checked."""
    if classes is not None:
        num_classes = _checked_size(classes, num_classes)
        truth = to_ranks("truth", truth, classes)
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 2 or (num_classes is not None and p.shape[1] != num_classes):
        wanted = "K" if num_classes is None else num_classes
        raise ValueError(f"probabilities must have the shape (n, {wanted}); got {p.shape}")
    if not (np.isfinite(p).all() and (p >= 0).all() and np.allclose(p.sum(1), 1, atol=1e-3)):
        raise ValueError("probabilities must be non-negative and sum to 1 in every row")
    values, _, weight, _ = read(truth, np.zeros(len(p)), p.shape[1], None, sample_weight)
    if (values != np.floor(values)).any():
        raise ValueError("truth must be whole numbers, the places of the probabilities")
    return values.astype(np.int64), p, weight


def to_ranks(name: str, values: ArrayLike, classes: Sequence[Any]) -> NDArray[np.int64]:
    """The places of labels (n,) among the classes, or an error that names one that is not there."""
    places = {label: rank for rank, label in enumerate(np.asarray(classes).tolist())}
    array: NDArray[Any] = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a vector of labels; got the shape {array.shape}")
    ranks = [places.get(label, -1) for label in array.tolist()]
    if -1 in ranks:
        wrong = array.tolist()[ranks.index(-1)]
        raise ValueError(
            f"{name} has the label {wrong!r}, which is not one of the classes "
            f"{', '.join(map(repr, list(places)[:20]))}; give all classes in rank order"
        )
    return np.array(ranks, dtype=np.int64)


def _checked_size(classes: Sequence[Any], num_classes: int | None) -> int:
    if num_classes is not None and num_classes != len(classes):
        raise ValueError(f"num_classes is {num_classes}, but there are {len(classes)} classes")
    return len(classes)


def as_vector(name: str, values: ArrayLike, *, length: int | None = None) -> Vector:
    """A non-empty vector of finite numbers, or an error that says what came instead."""
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be numbers; got dtype {array.dtype}. For labels, give classes=[...] in "
            f"rank order"
        )
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a non-empty vector; got the shape {array.shape}")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} must have {length} values, as truth has; got {len(array)}")
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite; got {(~np.isfinite(numbers)).sum()} that are not")
    return numbers


def as_weight(values: ArrayLike, *, length: int) -> Vector:
    """Non-negative weights that are not all 0."""
    weight = as_vector("sample_weight", values, length=length)
    if weight.min() < 0 or weight.sum() == 0:
        raise ValueError(
            f"sample_weight must be non-negative and not all zero; got weights from "
            f"{weight.min():g} to {weight.max():g}"
        )
    return weight
