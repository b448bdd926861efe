"""Rows put together from the cells of other rows, which is what every explanation asks about.

Invariant: a model is only ever asked about cells that some row holds, so a frame's types stay what
they are, and numbers, dates, categories, gaps, texts and images are all treated alike.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# From rows to P(y = k), (n, K).
Predict = Callable[[pd.DataFrame], Any]
# Called with how many rows were asked about since the last call, and what for.
Report = Callable[[int, str], None]

ORDERED = ("number", "date")  # kinds whose cells have an order
_MOST_CATEGORIES = 65  # of a column of strings; one with more holds something else
_BATCH = 20_000  # rows that are asked about at once


class Curves:
    """The function that is explained: from rows to P(y > k), (n, K-1).

    Parameters
    ----------
    predict : callable
        From a frame of rows to P(y = k), (n, K).
    report : callable, optional
        ``report(rows, what)`` after each call, for a progress bar.

    Examples
    --------
    >>> curves = Curves(lambda frame: np.tile([0.2, 0.3, 0.5], (len(frame), 1)))
    >>> curves(pd.DataFrame({"size": [1.0]})).round(6)
    array([[0.8, 0.5]])
    """

    def __init__(self, predict: Predict, report: Report | None = None) -> None:
        self._predict, self._report = predict, report
        self.doing = ""

    def __call__(self, frame: pd.DataFrame) -> Floats:
        """P(y > k) of the rows of a frame."""
        parts = []
        for start in range(0, len(frame), _BATCH):
            some = frame.iloc[start : start + _BATCH]
            p = np.asarray(self._predict(some), dtype=np.float64)
            if p.ndim != 2 or len(p) != len(some) or p.shape[1] < 2:
                raise ValueError(
                    f"predict must give P(y = k) of the shape ({len(some)}, K), K at least 2; got "
                    f"{p.shape}"
                )
            if not np.isfinite(p).all():
                raise ValueError(
                    "the model gives no probabilities for some rows, but NaN, so they cannot be "
                    "explained; leave out rows with numbers that are too large"
                )
            parts.append(p[:, :0:-1].cumsum(axis=1)[:, ::-1])
            if self._report is not None:
                self._report(len(some), self.doing)
        return np.concatenate(parts)


def recombined(frame: pd.DataFrame, sources: Integers) -> pd.DataFrame:
    """Rows whose cells each come from a row of a frame.

    Parameters
    ----------
    frame : DataFrame of n rows and p columns
    sources : array, shape (m, p)
        The place of the row that each cell is taken from.

    Examples
    --------
    >>> frame = pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]})
    >>> recombined(frame, np.array([[0, 1], [1, 1]]))
       size colour
    0   1.0   blue
    1   2.0   blue
    """
    made: pd.DataFrame = pd.DataFrame(
        {name: frame[name].array.take(sources[:, i]) for i, name in enumerate(frame.columns)}
    )
    return made


def as_they_are(rows: Sequence[int] | Integers, columns: int) -> Integers:
    """The sources of rows that keep all of their cells, (m, p)."""
    return np.repeat(np.asarray(rows, dtype=np.int64)[:, None], columns, axis=1)


def column_kinds(frame: pd.DataFrame, kinds: Mapping[str, str] | None = None) -> dict[str, str]:
    """What each column holds: "number", "date", "category" or anything else that was said.

    Parameters
    ----------
    frame : DataFrame
    kinds : mapping from column to kind, optional
        What is known. A column of which nothing is said is judged by its type; strings that are
        too many for categories are "cell": nothing is known of them but that they differ.

    Examples
    --------
    >>> frame = pd.DataFrame({"size": [1.0], "colour": ["red"], "note": ["so"]})
    >>> column_kinds(frame, {"note": "text"})
    {'size': 'number', 'colour': 'category', 'note': 'text'}
    """
    if frame.columns.duplicated().any():
        twice = frame.columns[frame.columns.duplicated()].tolist()
        raise ValueError(f"the table has several columns named {twice[0]!r}; rename them")
    if not len(frame) or not len(frame.columns):
        raise ValueError(f"there is nothing to explain in a table of the shape {frame.shape}")
    known = dict(kinds or {})
    return {name: known.get(name) or _kind_of(frame[name]) for name in frame.columns}


def _kind_of(column: "pd.Series[Any]") -> str:
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return "date"
    if pd.api.types.is_numeric_dtype(column.dtype):  # booleans too
        return "number"
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "category"
    try:
        return "category" if column.nunique(dropna=False) <= _MOST_CATEGORIES else "cell"
    except TypeError:  # cells that cannot be compared, such as images
        return "cell"


def positions(column: "pd.Series[Any]", kind: str) -> Floats:
    """Where the cells of an ordered column lie, (n,), NaN where missing."""
    if kind == "date":
        column = column.dt.tz_convert(None) if getattr(column.dt, "tz", None) else column
        moments = column.to_numpy().astype("datetime64[us]")
        return np.where(np.isnat(moments), np.nan, moments.astype(np.int64))
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def cell_words(cell: Any, kind: str) -> str:
    """A cell as a sentence shows it; empty where it is missing.

    Examples
    --------
    >>> cell_words(71.0, "number"), cell_words(pd.Timestamp("2024-02-29"), "date")
    ('71', '2024-02-29')
    >>> cell_words(None, "category")
    ''
    """
    is_single = not isinstance(cell, (np.ndarray, list, dict))
    if is_single and pd.isna(cell):
        return ""
    if kind == "number":
        return _number_words(float(cell))
    if kind == "date":
        moment = pd.Timestamp(cell)
        return str(moment.date()) if moment == moment.normalize() else f"{moment:%Y-%m-%d %H:%M}"
    if kind == "category":
        return str(cell)
    return f"this {kind}"


def _number_words(value: float) -> str:
    if value.is_integer() and abs(value) < 1e7:
        return str(int(value))
    return f"{value:.4g}"


def named_cell(column: str, cell: Any, kind: str) -> str:
    """A column and its cell as the subject of a sentence.

    Examples
    --------
    >>> named_cell("age", 71.0, "number"), named_cell("age", np.nan, "number")
    ('age 71', 'age (missing)')
    """
    words = cell_words(cell, kind)
    return f"{column} {words}" if words else f"{column} (missing)"
