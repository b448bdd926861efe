"""Single rows of a run: which are worth a look, and what their columns held."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon.evaluation.exploring import explored_orders
from echelon.terminal import visible

_MOST_COLUMNS = 60
_CELL_LENGTH = 80  # characters of a cell that are kept to be shown


def row_orders(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.int64]]:
    """The places of the rows that are worth a look, in three orders, of each the first 150.

    Parameters
    ----------
    arrays : mapping
        With `truth` and `prediction`, (n,), and `probabilities`, (n, K), of a run.

    Returns
    -------
    dict
        ``"error"``: the largest misses first; ``"surprise"``: the truth seemed least likely;
        ``"uncertainty"``: many classes seemed likely.

    Examples
    --------
    >>> p = np.array([[0.9, 0.1], [0.5, 0.5], [0.8, 0.2]])
    >>> orders = row_orders({"truth": np.array([0, 0, 1]), "prediction": np.zeros(3, int),
    ...                      "probabilities": p})
    >>> orders["error"].tolist(), orders["uncertainty"].tolist()
    ([2, 1, 0], [1, 2, 0])
    """
    truth, prediction = (arrays[name].astype(np.int64) for name in ("truth", "prediction"))
    return explored_orders(truth, prediction, arrays["probabilities"].astype(np.float64))


def column_cells(
    frame: Any, arrays: Mapping[str, NDArray[Any]], apart: Sequence[str | None] = ()
) -> dict[str, NDArray[Any]]:
    """What the columns of a table hold in the rows that are worth a look, as arrays of texts.

    Only those rows are written down, so that a run does not hold a copy of the data.

    Parameters
    ----------
    frame : DataFrame
        The n rows that were scored.
    arrays : mapping
        As for :func:`row_orders`.
    apart : sequence of str
        Columns that are shown elsewhere, as texts and images are.

    Returns
    -------
    dict
        `cell_rows`, (m,), the places of the rows; `cell_names`, (columns,); `cells`, (m, columns).
    """
    names = [name for name in frame.columns if name not in apart][:_MOST_COLUMNS]
    if not names or not len(frame):
        return {}
    places = np.unique(np.concatenate(list(row_orders(arrays).values())))
    rows = frame[names].iloc[places]
    cells = [[_cell_text(cell) for cell in rows[name]] for name in names]
    return {
        "cell_rows": places.astype(np.int64),
        "cell_names": np.array([_cut(str(name)) for name in names], dtype=np.str_),
        "cells": np.array(cells, dtype=np.str_).T,
    }


def _cell_text(cell: Any) -> str:
    """A cell as people read it; a missing one is empty."""
    if cell is None or cell != cell or str(cell) in ("<NA>", "NaT"):
        return ""
    return _cut(f"{cell:.6g}" if isinstance(cell, (float, np.floating)) else str(cell))


def _cut(text: str) -> str:
    # numpy would drop NUL at the end of a text; here it is visible, as all controls are
    shown = visible(text.replace("\n", " "))
    return shown if len(shown) <= _CELL_LENGTH else f"{shown[: _CELL_LENGTH - 1]}…"


def check_cells(arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
    """Raise where the cells that a file holds do not belong to its rows."""
    present = [name for name in ("cell_rows", "cell_names", "cells") if name in arrays]
    if not present:
        return
    if len(present) < 3:
        raise ValueError("cells, cell_names and cell_rows must all be there, or none of them")
    places, names, cells = (arrays[name] for name in ("cell_rows", "cell_names", "cells"))
    if places.ndim != 1 or places.dtype.kind not in "iu" or len(np.unique(places)) != len(places):
        raise ValueError("cell_rows must be integers, each of them once")
    if len(places) and (places.min() < 0 or places.max() >= rows):
        raise ValueError("cell_rows must be places of rows")
    if names.dtype.kind != "U" or cells.dtype.kind != "U":
        raise ValueError("cells and cell_names must be texts")
    if names.ndim != 1 or cells.shape != (len(places), len(names)):
        raise ValueError("cells must have a row for each of cell_rows, a column for each name")
