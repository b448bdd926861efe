"""What the engines read and check before they compute anything."""

from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.models.links import Array


def is_whole(value: Any, least: int = 1) -> TypeGuard[int]:
    """Whether a value is a whole number (numpy's too, but no boolean) of at least so much."""
    is_number = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return is_number and int(value) >= least


def as_features(
    features: ArrayLike, *, rows: int | None = None, columns: int | None = None
) -> Array:
    """Finite numbers, (n, d), or an error that says what came instead."""
    x = np.asarray(features, dtype=np.float64)
    if x.ndim != 2 or (columns is not None and x.shape[1] != columns):
        wanted = "d" if columns is None else columns
        raise ValueError(f"features must have the shape (n, {wanted}); got {x.shape}")
    if rows is not None and len(x) != rows:
        raise ValueError(f"features have {len(x)} rows and ranks {rows}; each row needs a rank")
    if not np.isfinite(x).all():
        raise ValueError(
            f"features must be finite; got {(~np.isfinite(x)).sum()} cells that are not. Fill or "
            f"drop the rows with missing values"
        )
    return x


def as_ranks(ranks: ArrayLike, num_classes: int, *, length: int | None = None) -> NDArray[np.int64]:
    """Ranks 0..K-1, (n,), or an error that says what came instead."""
    y: NDArray[np.generic] = np.asarray(ranks)
    if y.ndim != 1 or not y.size or y.dtype.kind not in "iu":
        raise ValueError(
            f"ranks must be a non-empty vector of integers; got the shape {y.shape} of {y.dtype}"
        )
    if num_classes < 2:
        raise ValueError(f"num_classes must be at least 2; got {num_classes}")
    whole: NDArray[np.int64] = y.astype(np.int64)
    if whole.min() < 0 or whole.max() >= num_classes:
        raise ValueError(
            f"ranks must lie in 0..{num_classes - 1}; got {whole.min()} to {whole.max()}"
        )
    if length is not None and len(whole) != length:
        raise ValueError(f"features have {length} rows and ranks {len(whole)}")
    return whole


def as_weight(weight: ArrayLike | None, length: int) -> Array:
    """Weights (n,), not negative and not all 0; ones where none are given."""
    if weight is None:
        return np.ones(length)
    given = np.asarray(weight, dtype=np.float64)
    if given.shape != (length,):
        raise ValueError(f"weight must have {length} values, one a row; got {given.shape}")
    if not np.isfinite(given).all() or given.min() < 0 or given.sum() == 0:
        raise ValueError(
            f"weight must be finite, not negative and not all 0; got {given.min():g} to "
            f"{given.max():g}"
        )
    return given
