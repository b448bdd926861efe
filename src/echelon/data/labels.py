"""From labels as people have them to ranks, and back.

Invariant: `classes` are in rank order, and every label of a column is one of them. An order is
never guessed for strings: an alphabetical one would be wrong without anybody noticing.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

_SHOWN = 8


class Labels:
    """The classes of a target in rank order.

    Parameters
    ----------
    classes : array, shape (K,)
        Distinct labels, the lowest rank first.

    Examples
    --------
    >>> labels = Labels.of(["mid", "low", "mid"], classes=["low", "mid", "high"])
    >>> labels.to_ranks(["mid", "low", "mid"])
    array([1, 0, 1])
    >>> labels.classes.tolist()
    ['low', 'mid', 'high']
    """

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes = classes

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.classes)

    @classmethod
    def of(cls, y: Any, classes: Sequence[Any] | None = None) -> "Labels":
        """The classes of labels `y`, or the given ones.

        Parameters
        ----------
        y : array-like, shape (n,)
            Integers, floats, booleans, an ordered pandas Categorical, or, with `classes`,
            strings.
        classes : sequence, optional
            All labels in rank order; labels that do not occur are allowed.
        """
        if classes is not None:
            return cls(_given_classes(classes))
        column = _as_series(y)
        if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered:
            _refuse_missing(column)
            return cls(_require_two(np.asarray(column.cat.categories)))
        values = _plain_values(column)
        if values.dtype.kind not in "biuf":
            found = pd.unique(pd.Series(values)).tolist()
            raise ValueError(
                f"labels are strings, whose order is not known: say it with classes=[...], the "
                f"lowest first; found {_listed(found)}"
            )
        found = np.unique(values)
        if found.dtype.kind == "f":
            _refuse_continuous(found)
        return cls(_require_two(found))

    def to_ranks(self, y: Any) -> NDArray[np.int64]:
        """Ranks (n,) of labels `y`; raises for a label that is not among the classes."""
        values = _plain_values(_as_series(y))
        try:
            ranks = pd.Index(self.classes).get_indexer(pd.Index(values))
        except TypeError:  # labels that cannot even be compared with the classes
            ranks = np.full(len(values), -1)
        unknown = ranks < 0
        if unknown.any():
            wrong = pd.unique(pd.Series(values)[unknown]).tolist()
            raise ValueError(
                f"label {wrong[0]!r} in y is not in classes {_listed(self.classes.tolist())}; add "
                f"it to `classes` or remove those {int(unknown.sum())} rows"
            )
        return np.asarray(ranks, dtype=np.int64)

    def from_ranks(self, ranks: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Labels of ranks."""
        labels: NDArray[Any] = self.classes[ranks]
        return labels


def _given_classes(classes: Sequence[Any]) -> NDArray[Any]:
    if isinstance(classes, str):
        raise ValueError(f"classes must be a list of labels; got the string {classes!r}")
    values = _plain_values(_as_series(list(classes)))
    if len(pd.unique(pd.Series(values))) != len(values):
        raise ValueError(f"classes must be distinct; got {_listed(values.tolist())}")
    return _require_two(values)


def _as_series(y: Any) -> "pd.Series[Any]":
    if isinstance(y, pd.Series):
        column = y.reset_index(drop=True)
    elif isinstance(y, pd.Categorical):
        column = pd.Series(y)
    else:
        values = np.asarray(y.to_numpy() if isinstance(y, pd.DataFrame) else y)
        if values.ndim == 2 and values.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected; its column is taken",
                DataConversionWarning,
                stacklevel=2,
            )
            values = values[:, 0]
        if values.ndim != 1:
            raise ValueError(f"y must be one column of labels; got the shape {values.shape}")
        column = pd.Series(values.tolist() if values.dtype.kind == "O" else values)
    if len(column) == 0:
        raise ValueError("y is empty: there is nothing to learn from")
    return column


def _plain_values(column: "pd.Series[Any]") -> NDArray[Any]:
    """Values as numbers or as objects (strings), none of them missing."""
    _refuse_missing(column)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise ValueError("labels are dates; cut them into ordered classes first, with pandas.cut")
    if pd.api.types.is_bool_dtype(column.dtype):
        return column.to_numpy(dtype=bool)
    if pd.api.types.is_integer_dtype(column.dtype):
        return column.to_numpy(dtype=np.int64)
    if pd.api.types.is_float_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64)
        if np.isinf(values).any():
            raise ValueError("labels contain an infinity; remove those rows")
        return values
    return column.astype(str).to_numpy(dtype=object)


def _refuse_missing(column: "pd.Series[Any]") -> None:
    missing = int(column.isna().sum())
    if missing:
        raise ValueError(f"y has {missing} missing labels (NaN); remove those rows")


def _refuse_continuous(found: NDArray[Any]) -> None:
    if len(found) > 50 and (found != np.floor(found)).any():
        raise ValueError(
            f"Unknown label type: continuous, {len(found)} different values; cut them into "
            f"ordered classes first, for example with pandas.qcut(y, 10, labels=False)"
        )


def _require_two(classes: NDArray[Any]) -> NDArray[Any]:
    if len(classes) < 2:
        raise ValueError(
            f"needs at least 2 classes; got one class, {classes.tolist()[0]!r}. If other classes "
            f"exist, name them all with classes=[...]"
        )
    return classes


def _listed(values: list[Any]) -> str:
    shown = ", ".join(repr(value) for value in values[:_SHOWN])
    return f"[{shown}]" if len(values) <= _SHOWN else f"[{shown}, ... {len(values)} in all]"
