"""A survey of a stream: one pass that divides its rows and learns what its columns hold.

What models learn from columns in memory (medians, quantiles, which categories occur) they learn
here from :attr:`Survey.table`: few rows whose columns, each for itself, hold what all training rows
hold, within the error of the sketches. The rows of it are no rows of the source.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon.data.rows import Rows
from echelon.data.schema import RawTable, TableSchema
from echelon.data.sketches import QuantileSketch
from echelon.data.stream import Hashes, RowStream, unit_numbers

MOST_HELD = 100_000  # rows that are held out; they stay in memory
_TABLE_ROWS = 10_000  # of the table that stands for all rows: shares have four digits
_HELD_OUT = 0x5EED  # the salt of what is held out, beside the seed


@dataclass(frozen=True)
class Survey:
    """What is known of the rows of a stream after one pass.

    Attributes
    ----------
    stream : RowStream
    seed : int
    fraction : float
        The share of the units that is held out.
    counts : array of int64, shape (slices, K)
        How many training rows of each class each slice has.
    weights : array of float64, shape (K,)
        What the training rows of each class weigh together.
    counting : array of int64, shape (K,)
        Training rows of each class with a weight above 0.
    held : Rows or None
        Those that are held out.
    table : RawTable
        Rows that stand for all training rows, column by column.
    digest : int
        Of all training rows, whatever their order.
    """

    stream: RowStream
    seed: int
    fraction: float
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]
    counting: NDArray[np.int64]
    held: Rows | None
    table: RawTable
    digest: int

    @property
    def num_rows(self) -> int:
        """Training rows."""
        return int(self.counts.sum())

    @property
    def class_counts(self) -> NDArray[np.int64]:
        """Training rows of each class, (K,)."""
        return np.asarray(self.counts.sum(axis=0))

    def rows_of_table(self) -> Rows:
        """What :attr:`table` holds, as rows."""
        return Rows(self.stream.schema, self.table, np.zeros(len(self.table), dtype=np.int64))

    def is_training(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Which rows are trained on, (n,), by their hashes."""
        return ~_held_out(hashes, self.fraction, self.seed)

    def absent(self) -> list[str]:
        """Sentences about classes that there are and that a subset lacks."""
        classes = self.stream.labels.classes.tolist()
        subsets = {"training": self.class_counts}
        if self.held is not None:
            subsets["validation"] = np.bincount(self.held.ranks, minlength=len(classes))
        return [
            f"no {name} row has the class {', '.join(repr(classes[k]) for k in lacking)}"
            for name, counts in subsets.items()
            if len(lacking := np.flatnonzero((counts == 0) & (sum(subsets.values()) > 0)))
        ]


def survey(
    stream: RowStream,
    fraction: float,
    seed: int,
    on_slice: Callable[[int, str], None] | None = None,
) -> Survey:
    """Divide the rows of a stream, and learn from those that are trained on.

    Parameters
    ----------
    stream : RowStream
    fraction : float
        The share to hold out, of which there are at most 100,000 rows; 0 for none.
    seed : int
        Which rows those are.
    on_slice : callable, optional
        Called with 1 and the name of the data after each slice.
    """
    rows_there = sum(part.rows for part in stream.slices)
    fraction = min(fraction, MOST_HELD / rows_there)
    num_classes = stream.labels.num_classes
    counts = np.zeros((len(stream.slices), num_classes), dtype=np.int64)
    weights = np.zeros(num_classes)
    counting, digest = np.zeros(num_classes, dtype=np.int64), 0
    columns = TableSketch(stream.schema)
    held: list[Rows] = []
    for place, (_, rows, hashes) in enumerate(stream):
        out = _held_out(hashes, fraction, seed)
        if out.any():
            held.append(rows.select(out))
            rows, hashes = rows.select(~out), hashes[~out]
        counts[place] = np.bincount(rows.ranks, minlength=num_classes)
        weights += np.bincount(rows.ranks, rows.weight, minlength=num_classes)
        counted = rows.ranks if rows.weight is None else rows.ranks[rows.weight > 0]
        counting += np.bincount(counted, minlength=num_classes)
        digest = (digest + int(hashes.sum(dtype=np.uint64))) % 2**64
        columns.add(rows.table)
        if on_slice is not None:
            on_slice(1, stream.name)
    if not counts.any():
        raise ValueError(
            f"{stream.name} has no row to train on; give more rows, or set validation_fraction=0"
        )
    return Survey(
        stream, seed, fraction, counts, weights, counting,
        counted_alike(joined(held)) if held else None, columns.table(), digest,
    )  # fmt: skip


def _held_out(hashes: Hashes, fraction: float, seed: int) -> NDArray[np.bool_]:
    if not fraction:
        return np.zeros(len(hashes), dtype=bool)
    return np.asarray(unit_numbers(hashes, _HELD_OUT + seed) < fraction)


def counted_alike(rows: Rows) -> Rows:
    """Rows to judge a fit by: where none of them weighs anything, all count alike."""
    if rows.weight is None or rows.weight.any():
        return rows
    return replace(rows, weight=np.ones_like(rows.weight))


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows of several chunks, one after the other."""
    first = parts[0]

    def together(of: Any) -> Any:
        return None if of(first) is None else np.concatenate([of(part) for part in parts])

    table = RawTable(
        together(lambda part: part.table.numbers), together(lambda part: part.table.codes)
    )
    return Rows(
        first.schema,
        table,
        together(lambda part: part.ranks),
        together(lambda part: part.weight),
        together(lambda part: part.groups),
    )


class TableSketch:
    """Sketches of the columns of a table, one chunk after the other.

    Parameters
    ----------
    schema : TableSchema

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [3.0, None, 1.0], "colour": ["red", "blue", "red"]})
    >>> sketch = TableSketch(TableSchema.of(frame))
    >>> sketch.add(TableSchema.of(frame).read(frame))
    >>> sketch.table(3).numbers.tolist(), sketch.table(3).codes.tolist()
    ([[1.0], [3.0], [nan]], [[1], [2], [2]])
    """

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema
        self.rows = 0
        self.quantiles = [QuantileSketch(seed) for seed in range(len(schema.numeric))]
        self.codes = [
            np.zeros(len(column.categories) + 1, dtype=np.int64) for column in schema.categorical
        ]

    def add(self, table: RawTable) -> None:
        """Look at one more chunk."""
        self.rows += len(table)
        for i, sketch in enumerate(self.quantiles):
            column = table.numbers[:, i]
            sketch.add(column[~np.isnan(column)])
        for i, counts in enumerate(self.codes):
            counts += np.bincount(table.codes[:, i], minlength=len(counts))

    def merge(self, other: "TableSketch") -> None:
        """Add what another sketch of such columns has seen."""
        self.rows += other.rows
        for sketch, more in zip(self.quantiles, other.quantiles, strict=True):
            sketch.merge(more)
        for counts, others in zip(self.codes, other.codes, strict=True):
            counts += others

    def table(self, most: int = _TABLE_ROWS) -> RawTable:
        """At most so many rows that hold, column by column, what all rows hold.

        A column has its quantiles in ascending order, then its gaps; its smallest and its largest
        number are exact, and what occurs at all, a gap or a category, occurs here.
        """
        size = min(self.rows, most)
        numbers = np.full((size, len(self.quantiles)), np.nan)
        for i, sketch in enumerate(self.quantiles):
            if not sketch.count:
                continue
            present = _kept(np.array([sketch.count, self.rows - sketch.count]), size)[0]
            shares = (np.arange(present) + 0.5) / present
            numbers[:present, i] = sketch.quantiles(shares)
            numbers[present - 1, i] = sketch.high
            if present > 1:
                numbers[0, i] = sketch.low
        codes = np.zeros((size, len(self.codes)), dtype=np.int64)
        for i, counts in enumerate(self.codes):
            codes[:, i] = np.repeat(np.arange(len(counts)), _kept(counts, size))
        return RawTable(numbers, codes)


def _kept(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Counts that sum to a size in about the same shares; what was there stays, at least once."""
    total = int(counts.sum())
    if total <= size:
        return counts
    kept = np.where(counts > 0, np.maximum(1, counts * size // total), 0)
    kept[np.argmax(kept)] += size - int(kept.sum())
    return kept
