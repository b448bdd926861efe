"""Splits that are fair: a group, and twins of a row, stay on one side."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.kinds.base import cell_bits, cell_kind
from echelon.data.schema import RawTable


def hold_out(
    table: RawTable,
    ranks: NDArray[np.int64],
    fraction: float,
    *,
    groups: Any = None,
    generator: np.random.Generator,
) -> NDArray[np.bool_]:
    """Mark about `fraction` of the rows, (n,), each class in its share where that is possible.

    Rows of one group are marked together, and so are twins: rows that are equal in every column,
    or that have the same image or the same text of at least eight words: a network remembers what
    it has seen, whatever the numbers beside it. Shorter texts are phrases that anyone may write.
    At least one row is marked and at least one is not.

    Parameters
    ----------
    table : RawTable of n rows
    ranks : array, shape (n,)
    fraction : float
        Between 0 and 1.
    groups : array-like, shape (n,), optional
    generator : numpy.random.Generator

    Examples
    --------
    >>> table = RawTable(np.arange(100.0)[:, None], np.zeros((100, 0), dtype=np.int64))
    >>> ranks = np.arange(100) % 4
    >>> held = hold_out(table, ranks, 0.2, generator=np.random.default_rng(0))
    >>> np.bincount(ranks[held]).tolist()
    [5, 5, 5, 5]
    """
    if not 0 < fraction < 1:
        raise ValueError(f"a held-out fraction must lie between 0 and 1; got {fraction}")
    n = len(ranks)
    if n < 2:
        raise ValueError(f"needs at least 2 rows to hold some of them out; got n_samples={n}")
    units = _units(table, groups)
    num_units = int(units.max()) + 1
    if num_units == 1:
        raise ValueError(
            "all rows are equal or of one group, so none can be held out; give rows that differ, "
            "or in Python set validation_fraction=0 or pass X_val and y_val"
        )
    # Units in random order, sorted by class: every 1/fraction-th of them is a stratified sample.
    first_row = np.unique(units, return_index=True)[1]
    order = generator.permutation(num_units)
    order = order[np.argsort(ranks[first_row][order], kind="stable")]
    sizes = np.bincount(units, minlength=num_units)[order]
    chosen = _systematic(sizes, fraction, float(generator.random()))
    if not chosen.any():
        chosen[generator.integers(num_units)] = True
    if chosen.all():
        chosen[generator.integers(num_units)] = False
    marked = np.zeros(num_units, dtype=bool)
    marked[order] = chosen
    held: NDArray[np.bool_] = marked[units]
    return held


def _systematic(sizes: NDArray[np.int64], fraction: float, start: float) -> NDArray[np.bool_]:
    """Which of the units to take, so that at any point about `fraction` of the rows are taken."""
    if (sizes == 1).all():
        through = np.arange(len(sizes) + 1) * fraction + start
        return np.asarray(np.diff(np.floor(through)) > 0)
    chosen = np.zeros(len(sizes), dtype=bool)
    due = start - 0.5  # rows that are still to be taken
    for i, size in enumerate(sizes.tolist()):
        due += size * fraction
        if due >= size / 2:
            chosen[i] = True
            due -= size
    return chosen


def folds(
    table: RawTable, num_folds: int, *, groups: Any = None, generator: np.random.Generator
) -> NDArray[np.int64]:
    """A fold number 0..num_folds-1 for each row, (n,); groups and twins share theirs."""
    units = _units(table, groups)
    num_units = int(units.max()) + 1
    if not 2 <= num_folds <= num_units:
        raise ValueError(
            f"folds must lie between 2 and the number of different rows or groups, {num_units}; "
            f"got {num_folds}"
        )
    numbers = np.arange(num_units) % num_folds
    return np.asarray(generator.permutation(numbers)[units], dtype=np.int64)


def count_units(table: RawTable, groups: Any = None) -> int:
    """How many groups, or different rows without any, there are to be divided.

    Examples
    --------
    >>> table = RawTable(np.array([[1.0], [1.0], [2.0]]), np.zeros((3, 0), dtype=np.int64))
    >>> count_units(table), count_units(table, ["a", "a", "a"])
    (2, 1)
    """
    return int(_units(table, groups).max()) + 1


def _units(table: RawTable, groups: Any) -> NDArray[np.int64]:
    """Numbers 0.. of what must stay together, (n,)."""
    ties = [_twins(table)]
    if groups is not None:
        given = pd.factorize(np.asarray(groups), use_na_sentinel=False)[0]
        if len(given) != len(table):
            raise ValueError(f"groups must have {len(table)} values, one a row; got {len(given)}")
        ties.append(given)
    for kind, cells in table.cells.items():
        ties.append(_same_cells(cells, alone=cell_kind(kind).alone(cells)))
    if len(ties) == 1:
        return ties[0]
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    # One tie may join two others: rows are in one unit if any chain of ties leads from one to
    # the other. Nodes are the numbers of the first tie, then those of the second, ..
    starts = np.cumsum([0, *(int(tie.max()) + 1 for tie in ties)])
    first, *others = (tie + start for tie, start in zip(ties, starts[:-1], strict=True))
    edges = (np.tile(first, len(others)), np.concatenate(others))
    graph = coo_matrix((np.ones(len(edges[0]), np.int8), edges), shape=(starts[-1], starts[-1]))
    components = connected_components(graph, directed=False)[1][first]
    return np.asarray(pd.factorize(components)[0], dtype=np.int64)


def _twins(table: RawTable) -> NDArray[np.int64]:
    """Numbers 0.. of the different rows, (n,), by a hash of each."""
    generator = np.random.default_rng(0)
    hashed = np.zeros(len(table), dtype=np.uint64)
    cells = [cell_bits(column) for column in table.cells.values()]
    for column in (*table.numbers.T, *table.codes.T, *cells):
        values = np.ascontiguousarray(column)
        if values.dtype.kind == "f":
            values = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
        bits = pd.util.hash_array(values)
        hashed = hashed * np.uint64(generator.integers(1, 2**63) | 1) + bits
    return np.asarray(pd.factorize(hashed)[0], dtype=np.int64)


def _same_cells(cells: NDArray[Any], alone: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Numbers 0.. of the different cells, (n,); those that are alone are like no other."""
    numbers = np.asarray(pd.factorize(cell_bits(cells))[0], dtype=np.int64)
    numbers[alone] = numbers.max(initial=0) + 1 + np.arange(alone.sum())
    return np.asarray(pd.factorize(numbers)[0], dtype=np.int64)
