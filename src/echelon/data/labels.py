"""From labels as people have them to ranks, and back.

Invariant: `classes` are in rank order, and every label of a column is one of them. An order is
never guessed for strings: an alphabetical one would be wrong without anybody noticing.
"""

import datetime as dt
import warnings
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.cells import MISSING_NAMES, is_missing
from echelon.data.kinds.categories import is_code
from echelon.data.kinds.numbers import number_of
from echelon.data.matching import matched, meant_classes

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
            distinct = pd.unique(pd.Series(values)).tolist()
            raise ValueError(
                f"labels are strings, whose order is not known: say it with classes=[...], the "
                f"lowest first; found {_listed(distinct)}"
            )
        distinct = np.unique(values)
        if distinct.dtype.kind == "f":
            _refuse_continuous(distinct)
        return cls(_require_two(distinct))

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
            raise self._unknown(wrong[0], int(unknown.sum()))
        return np.asarray(ranks, dtype=np.int64)

    def _unknown(self, label: Any, rows: int) -> ValueError:
        classes = self.classes.tolist()
        if self._is_encoded(label):
            return ValueError(
                f"y holds whole numbers, such as {label!r}, and the classes are strings, "
                f"{_listed(classes)}: something has encoded the labels by letter before they came "
                f"here, as VotingClassifier, StackingClassifier and cross_val_predict do; give "
                f"them echelon.as_ranks(y, classes), and leave out classes here"
            )
        meant = meant_classes([label], classes).get(label)
        hint = f" (did you mean {meant!r}?)" if meant is not None else ""
        return ValueError(
            f"label {label!r} in y is not in classes {_listed(classes)}{hint}; add it to "
            f"the classes or remove those {rows} rows"
        )

    def _is_encoded(self, label: Any) -> bool:
        """Whether a label is a number in the place of a string, as an encoder puts it there."""
        text = str(label)
        return (
            self.classes.dtype.kind == "O"
            and not isinstance(label, str)
            and text.isdigit()
            and int(text) < self.num_classes
        )

    def read_cells(self, column: "pd.Series[Any]") -> "pd.Series[Any]":
        """The labels of a column of a file, whose cells may be strings, in the type of the classes.

        A string that stands for nothing is missing; one that cannot be a class raises.

        Examples
        --------
        >>> column = pd.Series(["2", "1.0"], dtype=object)
        >>> Labels(np.array([1, 2])).read_cells(column).tolist()
        [2, 1]
        """
        if not _has_strings(column):
            return column
        kind = "string" if self.classes.dtype.kind == "O" else _KINDS[self.classes.dtype.kind]
        given = set(map(str, self.classes.tolist()))
        if kind == "string":
            column = matched(column, self.classes.tolist())
        cells = [_label(cell, kind, given) for cell in column]
        wrong = [cell for cell in cells if isinstance(cell, str)]
        if wrong and kind != "string":
            raise self._unknown(wrong[0], len(wrong))
        labels: pd.Series[Any] = pd.Series(cells, dtype=object, name=column.name)
        return labels if kind == "string" else labels.infer_objects()

    def from_ranks(self, ranks: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Labels of ranks."""
        labels: NDArray[Any] = self.classes[ranks]
        return labels


def as_ranks(y: Any, classes: Sequence[Any]) -> NDArray[np.int64]:
    """Labels as ranks 0 to K-1, (n,), which nothing can sort into another order.

    Give these to what sorts labels by letter: `VotingClassifier`, `StackingClassifier`,
    ``cross_val_predict(method="predict_proba")`` and the scorer ``neg_log_loss`` of scikit-learn.
    Ranks sort as what they are. ``numpy.asarray(classes)[ranks]`` gives the labels back.

    Parameters
    ----------
    y : array-like, shape (n,)
        The labels of the rows.
    classes : sequence
        All labels, the lowest first.

    Examples
    --------
    >>> as_ranks(["mid", "low", "high"], ["low", "mid", "high"])
    array([1, 0, 2])
    """
    return Labels.of(y, classes).to_ranks(y)


def typed_labels(
    column: "pd.Series[Any]", classes: Sequence[str] | None = None
) -> "tuple[pd.Series[Any], list[Any] | None]":
    """The labels of a column of a file, and the classes that were named for it, in one type.

    Cells that are strings are whole numbers, numbers, booleans or strings if all of them are; codes
    with leading zeros are strings. Numbers that are all whole are whole numbers, also where a
    program has written a point for them, as pandas does beside missing ones. Whatever is named
    among the classes is a label, also ``"NA"``, and so is what differs from one of them only by
    case or spaces.

    Parameters
    ----------
    column : Series of n cells
    classes : sequence of str, optional
        As they were named, the lowest first.

    Examples
    --------
    >>> typed_labels(pd.Series(["2", "1"]), ["1", "2"])[1]
    [1, 2]
    >>> typed_labels(pd.Series(["NA", "low"]), ["NA", "low"])[0].tolist()
    ['NA', 'low']
    >>> typed_labels(pd.Series(["1.0", "2.0"]))[0].tolist()
    [1, 2]
    """
    given = set(classes or ())
    if _has_strings(column):
        column = matched(column, classes or ())
        all_cells = column.tolist()
        texts = {cell for cell in all_cells if isinstance(cell, str)}  # few, of many rows
        others = [cell for cell in all_cells if not isinstance(cell, str)]
        kind = _common_kind([cell for cell in (*texts, *others) if not _is_missing(cell, given)])
        label_of = {cell: _label(cell, kind, given) for cell in texts}
        cells = [
            label_of[cell] if isinstance(cell, str) else _label(cell, kind, given)
            for cell in all_cells
        ]
        column = pd.Series(cells, dtype=object, index=column.index, name=column.name)
        column = column if kind == "string" else column.infer_objects()
    else:
        dtype = column.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            dtype = dtype.categories.dtype
        kind = _KINDS.get(getattr(dtype, "kind", "O"), "string")
    if pd.api.types.is_float_dtype(column.dtype) and all(map(_is_whole_number, classes or ())):
        column = _without_points(column)
        kind = "number" if pd.api.types.is_float_dtype(column.dtype) else "whole number"
    elif kind == "whole number" and not all(map(_is_whole_number, classes or ())):
        kind = "number"  # some of the classes lie between those that occur
    if classes is None:
        return column, None
    try:
        return column, [_TYPED[kind](name) for name in classes]
    except (KeyError, ValueError):
        wanted = "true and false" if kind == "boolean" else "numbers"
        raise ValueError(
            f"--classes must be {wanted}, as the column {column.name!r} is; got "
            f"{', '.join(classes)}"
        ) from None


_KINDS = {"b": "boolean", "i": "whole number", "u": "whole number", "f": "number"}
_BOOLEANS = {"true": True, "false": False}
_TYPED: dict[str, Any] = {
    "boolean": lambda text: _BOOLEANS[text.strip().casefold()],
    "whole number": lambda text: int(text) if _is_whole(text) else int(float(text)),
    "number": float,
    "string": str,
}


def _has_strings(column: "pd.Series[Any]") -> bool:
    return pd.api.types.is_object_dtype(column.dtype) or isinstance(column.dtype, pd.StringDtype)


def _is_missing(cell: Any, given: set[str]) -> bool:
    if isinstance(cell, str):
        return cell not in given and cell.strip() in MISSING_NAMES
    return is_missing(cell)


def _common_kind(cells: list[Any]) -> str:
    """What all cells are: the narrowest of boolean, whole number, number and string."""
    if all(str(cell).strip().casefold() in _BOOLEANS for cell in cells):
        return "boolean"
    if any(isinstance(cell, (bool, np.bool_)) or is_code(cell) for cell in cells):
        return "string"
    numbers = [number_of(cell) for cell in cells]
    if any(
        number is None or str(cell).strip().casefold() in _BOOLEANS
        for cell, number in zip(cells, numbers, strict=True)
    ):
        return "string"
    present = [cell for cell, number in zip(cells, numbers, strict=True) if number == number]
    return "whole number" if all(map(_is_whole, present)) else "number"


def _is_whole(cell: Any) -> bool:
    try:
        return isinstance(cell, (str, int, np.integer)) and int(cell) == int(cell)
    except ValueError:
        return False


def _is_whole_number(text: str) -> bool:
    number = number_of(text)
    return number is not None and number == number and number.is_integer()


def _without_points(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Numbers as whole ones, where all that are not missing are such."""
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    missing = np.isnan(values)
    present = values[~missing]
    if not len(present) or (present != np.floor(present)).any() or np.abs(present).max() >= 2**53:
        return column
    return column.astype("Int64" if missing.any() else np.int64)


def _label(cell: Any, kind: str, given: set[str]) -> Any:
    """A cell as a label of a kind; None where it is missing, itself where it is of another kind."""
    if _is_missing(cell, given):
        return None
    if kind == "string":
        return str(cell)
    number = number_of(cell)
    if number is None or kind == "boolean":
        return _BOOLEANS.get(str(cell).strip().casefold(), cell)
    if number != number:
        return None
    if kind == "number" or not np.isfinite(number) or number != int(number):
        return number
    return int(cell) if _is_whole(cell) else int(number)


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
    elif isinstance(y, (list, tuple)) and y and all(type(label) is int for label in y):
        # numpy makes floats of whole numbers that are small and such as only fit unsigned ones
        column = pd.Series(list(y), dtype=object).infer_objects()
    else:
        values = np.asarray(y.to_numpy() if isinstance(y, pd.DataFrame) else y)
        if values.ndim == 2 and values.shape[1] == 1:
            from sklearn.exceptions import DataConversionWarning

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
        # only as unsigned ones have the largest their place
        large = bool(column.max() > np.iinfo(np.int64).max)
        return column.to_numpy(dtype=np.uint64 if large else np.int64)
    if pd.api.types.is_float_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64)
        if np.isinf(values).any():
            raise ValueError("labels contain an infinity; remove those rows")
        return values
    cells = column.to_numpy(dtype=object)
    if all(isinstance(cell, Decimal) for cell in cells):
        return cells.astype(np.float64)
    if all(isinstance(cell, dt.date) for cell in cells):
        raise ValueError("labels are dates; cut them into ordered classes first, with pandas.cut")
    return np.array([str(cell) for cell in cells], dtype=object)


def _refuse_missing(column: "pd.Series[Any]") -> None:
    missing = int(column.isna().sum())
    if missing:
        raise ValueError(f"y has {missing} missing labels (NaN); remove those rows")


def _refuse_continuous(values: NDArray[Any]) -> None:
    if len(values) > 50 and (values != np.floor(values)).any():
        raise ValueError(
            f"Unknown label type: continuous, {len(values)} different values; cut them into "
            f"ordered classes first, for example with pandas.qcut(y, 10, labels=False)"
        )


def _require_two(classes: NDArray[Any]) -> NDArray[Any]:
    if len(classes) < 2:
        raise ValueError(
            f"needs at least 2 classes; got one class, {classes.tolist()[0]!r}. If other classes "
            f"exist, name them all with classes=[...] (--classes on the command line)"
        )
    return classes


def _listed(values: list[Any]) -> str:
    shown = ", ".join(repr(value) for value in values[:_SHOWN])
    return f"[{shown}]" if len(values) <= _SHOWN else f"[{shown}, ... {len(values)} in all]"
