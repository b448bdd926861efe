"""Streams: the rows of a source as a model takes them, slice by slice.

Invariant: to which subset a row belongs is decided by a hash of its cells, or of its group, and by
nothing else. So a group, and rows that are equal, stay on one side, and subsets are the same
however the rows lie in files.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.columns import Remarks, gathered_remarks
from echelon.data.kinds.categories import names_of
from echelon.data.labels import Labels
from echelon.data.missing_codes import emptied
from echelon.data.packing import PackedFolder, pack, ranks_of, weights_of
from echelon.data.profile import ColumnProfile, TargetProfile, decide_columns
from echelon.data.rows import Rows, row_weights
from echelon.data.schema import TableSchema
from echelon.data.slices import Slice
from echelon.data.source import Share, Source

Hashes = NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_MISSING = np.float64(np.nan).view(np.uint64)  # one NaN for all


@dataclass(frozen=True)
class RowStream:
    """The labelled rows of a source, of which nothing is held but what they are.

    Attributes
    ----------
    source : Source
        Of Parquet files.
    schema : TableSchema
    labels : Labels
    rank_of : mapping from cell to int
        The rank of each cell of the target.
    per_class : array, shape (K,), or None
        What a row of each class counts for.
    unlabelled : int
        How many rows have no label.
    remarks : Remarks
        What is to be said of the columns.
    name : str
        The data as messages name them.
    held : PackedFolder or None
        The folder of packed rows, which goes with the stream.
    """

    source: Source
    schema: TableSchema
    labels: Labels
    rank_of: Mapping[Any, int]
    per_class: NDArray[np.float64] | None = None
    unlabelled: int = 0
    remarks: Remarks = field(default_factory=Remarks)
    name: str = ""
    held: PackedFolder | None = None

    @property
    def slices(self) -> list[Slice]:
        """What is read at once, in the order of the files."""
        return self.source.slices

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        source = self.source
        named = [name for name in (source.target, source.weight, source.group) if name is not None]
        return [*(column.name for column in self.schema.columns), *named]

    def subset(self, salt: int, low: float, high: float) -> "RowStream":
        """The rows of some units; see :meth:`echelon.data.source.Source.subset`."""
        return replace(self, source=self.source.subset(salt, low, high))

    def collect(self) -> tuple[pd.DataFrame, NDArray[np.int64], NDArray[np.float64] | None]:
        """All rows in memory: the cells of their columns, their ranks, and their weights."""
        reader = self.reader()
        parts = [reader.cells(part) for part in self.slices]
        frame = pd.concat([part for part, _ in parts], ignore_index=True)
        rows = [part for _, part in parts]
        weights = [part.weight for part in rows if part.weight is not None]
        weight = np.concatenate(weights) if weights else None
        return frame, np.concatenate([part.ranks for part in rows]), weight

    def reader(self) -> "StreamReader":
        """Something that reads slices; each thread needs one of its own."""
        return StreamReader(self)

    def __iter__(self) -> Iterator[tuple[Slice, Rows, Hashes]]:
        reader = self.reader()
        for part in self.slices:
            yield part, *reader.read(part)


class StreamReader:
    """Reads slices of a stream as rows."""

    def __init__(self, stream: RowStream) -> None:
        self._stream = stream
        self._slices = stream.source.reader(stream.columns)

    def cells(self, part: Slice) -> tuple[pd.DataFrame, Rows]:
        """The cells of the columns of the rows that :meth:`read` gives, and these rows."""
        frame = self._slices.read(part)
        rows, _, chosen = self._rows(frame)
        return frame.loc[chosen, [column.name for column in rows.schema.columns]], rows

    def read(self, part: Slice) -> tuple[Rows, Hashes]:
        """The labelled rows of a slice that belong to the source's subset, and their hashes."""
        rows, hashes, _ = self._rows(self._slices.read(part))
        return rows, hashes

    def _rows(self, frame: pd.DataFrame) -> tuple[Rows, Hashes, NDArray[np.bool_]]:
        """The rows of a frame that are meant, their hashes, and which they are."""
        stream, source = self._stream, self._stream.source
        target = emptied(frame[source.target], source.codes.get(source.target, ()))
        ranks = ranks_of(target, stream.rank_of)
        with gathered_remarks():  # which are said once
            table = stream.schema.read(frame)
        weight = None if source.weight is None else weights_of(frame[source.weight])
        groups = None if source.group is None else names_of(frame[source.group])
        hashes = row_hashes(frame, table.numbers, stream.schema) if groups is None else (
            _mixed(_cell_hashes(groups))
        )  # fmt: skip
        rows = Rows(stream.schema, table, ranks, weight, groups)
        chosen = (ranks >= 0) & in_shares(hashes, source.shares)
        if not chosen.all():
            rows, hashes = rows.select(chosen), hashes[chosen]
        if stream.per_class is not None:
            weight = row_weights(rows.weight, stream.per_class, rows.ranks)
            rows = Rows(rows.schema, rows.table, rows.ranks, weight, rows.groups)
        return rows, hashes, chosen


# ---- hashes --------------------------------------------------------------------------------------


def row_hashes(frame: pd.DataFrame, numbers: NDArray[Any], schema: TableSchema) -> Hashes:
    """A hash of the cells of each row, (n,), whatever the order of the columns.

    `numbers` are those that the schema has read from the frame.

    Examples
    --------
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 1.0], "colour": ["red", "red", "red"]})
    >>> schema = TableSchema.of(frame)
    >>> hashes = row_hashes(frame, schema.read(frame).numbers, schema)
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    """
    total = np.zeros(len(frame), dtype=np.uint64)
    for i, column in enumerate(schema.measured):
        cells = numbers[:, i].astype(np.float64) + 0.0  # one zero
        bits = cells.view(np.uint64)
        bits[np.isnan(cells)] = _MISSING
        total += _mixed(bits ^ _salt(column.name))
    for column in schema.categorical:
        names = names_of(emptied(frame[column.name], column.missing_codes))
        total += _mixed(_cell_hashes(names) ^ _salt(column.name))
    return _mixed(total)


def _cell_hashes(names: NDArray[Any]) -> Hashes:
    """A hash of each name, (n,); that of a missing one is 0."""
    places, distinct = pd.factorize(names)
    hashes = pd.util.hash_array(np.asarray(distinct, dtype=object), categorize=False)
    return np.append(hashes, np.uint64(0))[places]


def _salt(name: str) -> np.uint64:
    salted: np.uint64 = pd.util.hash_array(np.array([name], dtype=object), categorize=False)[0]
    return salted


def _mixed(bits: Hashes) -> Hashes:
    """Bits of which every one depends on all (the end of splitmix64), (n,)."""
    bits = bits + np.uint64(_GOLDEN)
    bits ^= bits >> np.uint64(30)
    bits *= _FIRST
    bits ^= bits >> np.uint64(27)
    bits *= _SECOND
    bits ^= bits >> np.uint64(31)
    return bits


def unit_numbers(hashes: Hashes, salt: int) -> NDArray[np.float64]:
    """A number from 0 to 1 for each hash, (n,), another one for every salt."""
    salted = _mixed(hashes ^ _mixed(np.array([salt % 2**64], dtype=np.uint64)))
    numbers: NDArray[np.float64] = (salted >> np.uint64(11)) * 2.0**-53
    return numbers


def in_shares(hashes: Hashes, shares: tuple[Share, ...]) -> NDArray[np.bool_]:
    """Which hashes lie in all of some shares, (n,)."""
    chosen = np.ones(len(hashes), dtype=bool)
    for share in shares:
        numbers = unit_numbers(hashes, share.salt)
        chosen &= (share.low <= numbers) & (numbers < share.high)
    return chosen


# ---- opening -------------------------------------------------------------------------------------


def open_stream(
    source: Source,
    classes: Any = None,
    check_labels: Callable[[Any, list[Any] | None], None] | None = None,
) -> RowStream:
    """Look at a source once, and decide what its columns and its classes are.

    Of Parquet files only the columns whose type does not say what they hold are looked at. Other
    files are then packed.

    Parameters
    ----------
    source : Source
    classes : sequence, optional
        All labels, the lowest first, where the source does not name them.
    check_labels : callable, optional
        Given the different labels and the named classes before they are ranked; it may raise.
    """
    undecided = source.undecided
    target = TargetProfile(source.target, source.codes.get(source.target, ()))
    profiles = {name: ColumnProfile(name, source.codes.get(name, ())) for name in source.features}
    first = None
    for chunk in source.chunks([*undecided, source.target]):
        first = chunk if first is None else first
        target.add(chunk[source.target])
        for name in undecided:
            profiles[name].add(chunk[name])
    assert first is not None
    typed = [name for name in source.features if name not in undecided]
    if typed:  # one slice shows their types
        head = source.reader(typed).read(source.slices[0])
        for name in typed:
            profiles[name].add(head[name])
    schema, remarks = decide_columns(profiles, source.reading.decimal, keep_ids=source.keep_ids)
    order = classes if source.classes is None else source.classes
    labels, rank_of, missing = target.labels(order, check_labels)
    if missing and source.missing_target == "error":
        raise ValueError(
            f"{missing:,} rows of {source.name} have no label in the column {source.target!r}; "
            f"--missing-target drop leaves them out"
        )
    if source.is_parquet:
        return RowStream(source, schema, labels, rank_of, None, missing, remarks, source.name)
    packed, folder = pack(source, schema, rank_of)
    ranks = {rank: rank for rank in range(labels.num_classes)}
    return RowStream(packed, schema, labels, ranks, None, missing, remarks, source.name, folder)
