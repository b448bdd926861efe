"""Counts of new rows in the bins of the training columns, which a model file holds.

Counts add up over the chunks of a file. Rows are read as the model reads them, so that what it
takes for missing is counted as missing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.kinds.categories import MAX_CATEGORIES, names_of
from echelon.data.missing_codes import emptied
from echelon.data.schema import RawTable, TableSchema


@dataclass
class ColumnCounts:
    """The counts of one column, of the training rows and of new ones.

    Attributes
    ----------
    name, kind : str
    is_ordered : bool
        Whether its cells are bins of numbers, in their order, or categories.
    edges : array, shape (m,)
        Of numbers and dates: bin i holds what lies at or below edge i, and above the one before.
    categories : tuple of str
        Of categories, in the order of the counts.
    before, now : array of int, shape (m,)
    missing_before, missing : int
    below, above : int
        How many new values lie below the smallest, or above the largest, of the training rows.
    unseen : Counter of str
        Categories that no training row had.
    """

    name: str
    kind: str
    is_ordered: bool
    before: NDArray[np.int64]
    missing_before: int
    edges: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    categories: tuple[str, ...] = ()
    now: NDArray[np.int64] = field(init=False)
    missing: int = 0
    below: int = 0
    above: int = 0
    unseen: "Counter[str]" = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.now = np.zeros_like(self.before)

    @property
    def rows_before(self) -> int:
        """How many training rows there were."""
        return int(self.before.sum()) + self.missing_before

    @property
    def rows(self) -> int:
        """How many new rows there are."""
        return int(self.now.sum()) + self.missing + self.above + self.unseen.total()

    def add_numbers(self, values: NDArray[Any]) -> None:
        """Count numbers, (n,), NaN where missing."""
        present = values[~np.isnan(values)].astype(np.float64)
        self.missing += len(values) - len(present)
        if not len(self.edges):  # training had none
            self.above += len(present)
            return
        places = np.searchsorted(self.edges, present)
        self.now += np.bincount(places, minlength=len(self.edges) + 1)[: len(self.edges)]
        self.above += int((places == len(self.edges)).sum())
        self.below += int((present < self.edges[0]).sum())

    def add_codes(self, codes: NDArray[np.int64], names: NDArray[Any] | None) -> None:
        """Count categories by their codes, (n,); `names` tell the unseen from the missing."""
        counts = np.bincount(codes, minlength=len(self.before) + 1)
        self.now += counts[1:]
        unknown = int(counts[0])
        if names is not None:
            fresh = [name for name in names[codes == 0] if name is not None]
            self.unseen.update(fresh)
            unknown -= len(fresh)
        self.missing += unknown


def column_counts(
    schema: TableSchema, summaries: Sequence[Mapping[str, Any]]
) -> dict[str, ColumnCounts]:
    """What the training columns held, by name, with no new row counted yet.

    Columns of which the summary has no counts, as texts and images, are left out.

    Examples
    --------
    >>> from echelon.data.summary import summarise_columns
    >>> rows = pd.DataFrame({"size": np.arange(100.0), "colour": ["red", "blue"] * 50})
    >>> schema = TableSchema.of(rows)
    >>> counts = column_counts(schema, summarise_columns(schema, schema.read(rows)))
    >>> new = pd.DataFrame({"size": [5.0, 200.0, None], "colour": ["red", "green", "green"]})
    >>> add_counts(counts, schema, new, schema.read(new))
    >>> counts["size"].above, counts["size"].missing, counts["colour"].unseen
    (1, 1, Counter({'green': 2}))
    """
    by_name = {str(summary["name"]): summary for summary in summaries}
    counts = {}
    for column in schema.columns:
        bins = by_name.get(column.name, {}).get("bins")
        if bins is None:
            continue
        before = np.array(bins["counts"], dtype=np.int64)
        edges = np.array(bins.get("edges", ()), dtype=np.float64)
        is_ordered = "edges" in bins
        if (
            before.ndim != 1
            or (before < 0).any()
            or len(before) != (len(edges) if is_ordered else len(column.categories))
            or not (np.diff(edges) > 0).all()
        ):
            raise ValueError(f"the counts of the column {column.name!r} are not those of its cells")
        counts[column.name] = ColumnCounts(
            column.name, column.kind, is_ordered, before, int(bins["missing"]), edges,
            column.categories,
        )  # fmt: skip
    return counts


def add_counts(
    counts: Mapping[str, ColumnCounts], schema: TableSchema, frame: pd.DataFrame, table: RawTable
) -> None:
    """Count new rows: a frame, and the same as the schema reads it."""
    for i, column in enumerate(schema.measured):
        if column.name in counts:
            counts[column.name].add_numbers(table.numbers[:, i])
    for i, column in enumerate(schema.categorical):
        if column.name not in counts:
            continue
        codes, names = table.codes[:, i], None
        # where rare categories share the code of the missing, they cannot be told apart
        if len(column.categories) < MAX_CATEGORIES and (codes == 0).any():
            names = names_of(emptied(frame[column.name], column.missing_codes))
        counts[column.name].add_codes(codes, names)
