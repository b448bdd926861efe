"""What the columns of a source are, decided on chunks that are never held together.

The rules are those of tables in memory (:mod:`echelon.data.columns`): they are given a sample of
the different cells, with how often each occurs, in the place of all cells. With up to 16,384
different cells the sample has all of them, and what is decided is the same.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.cells import all_texts, cells_of, has_objects, is_missing
from echelon.data.columns import (
    MEASURED,
    Column,
    Remarks,
    decide_cells,
    kind_of_dtype,
)
from echelon.data.identifiers import identifier_reason, whole_number_reason
from echelon.data.kinds.categories import (
    CATEGORY,
    MAX_CATEGORIES,
    count_names,
    find_codes,
    name_of,
)
from echelon.data.labels import Labels, typed_labels
from echelon.data.missing_codes import emptied
from echelon.data.numerals import decimal_sign
from echelon.data.schema import TableSchema
from echelon.data.sketches import DistinctSketch, FrequentSketch

_MOST_LABELS = 10_000
_SHOWN = 1000  # cells that tell the decimal sign of a table
_REPEATED = 200_000  # cells of a sample: where there are more, they are no names of rows


class ColumnProfile:
    """What is known of one column after some of its chunks.

    Parameters
    ----------
    name : str
    missing_codes : sequence of str
        Cells that stand for no answer.
    """

    def __init__(self, name: str, missing_codes: Sequence[str] = ()) -> None:
        self.name, self.missing_codes = name, tuple(missing_codes)
        self.kinds: set[str] = set()  # that types of chunks say; empty where none says any
        self.declared: dict[str, None] = {}  # categories of chunks whose type names them
        self.rows = 0  # whose cell is not missing
        self.is_whole = True  # whether all numbers that have a type are whole
        self.low, self.high = np.inf, -np.inf  # of the whole numbers
        self.cells, self.frequent = DistinctSketch(), FrequentSketch()
        self.has_objects = self.holds_codes = False

    def add(self, column: "pd.Series[Any]") -> None:
        """Look at one more chunk."""
        column = emptied(column.rename(self.name), self.missing_codes)
        if isinstance(column.dtype, pd.CategoricalDtype):
            counted = column.value_counts(sort=False)
            names = [(name_of(cell), int(count)) for cell, count in counted.items() if count]
            self.declared |= dict.fromkeys(name for name, _ in names if name is not None)
            self.rows += sum(count for _, count in names)
        elif not has_objects(column):
            self.kinds.add(str(kind_of_dtype(column.dtype, self.name)))
            self._add_typed(column)
        else:
            self.has_objects = True
            self._add_cells(column)

    def _add_typed(self, column: "pd.Series[Any]") -> None:
        self.is_whole &= pd.api.types.is_integer_dtype(column.dtype)
        if not self.is_whole:  # other numbers are never the names of rows
            return
        numbers = column.dropna().to_numpy()
        self.rows += len(numbers)
        if len(numbers):
            self.low = min(self.low, float(numbers.min()))
            self.high = max(self.high, float(numbers.max()))
            self.cells.add(numbers)

    def _add_cells(self, column: "pd.Series[Any]") -> None:
        cells = cells_of(column)
        if not all_texts(cells):
            cells = cells[[not is_missing(cell) for cell in cells]]
        self.rows += len(cells)
        if not len(cells):
            return
        places, distinct = pd.factorize(cells)
        counts = np.bincount(places, minlength=len(distinct)).astype(np.int64)
        distinct = np.asarray(distinct, dtype=object)
        self.holds_codes |= bool(find_codes(distinct).any())
        self.cells.add(distinct, counts)
        if not self.cells.is_whole:
            self.frequent.add(dict(zip(distinct.tolist(), counts.tolist(), strict=True)))
        else:  # which has all of them; they are counted when there are too many
            self.frequent.counts = Counter(
                dict(zip(self.cells.cells.tolist(), self.cells.counts.tolist(), strict=True))
            )

    @property
    def samples(self) -> "pd.Series[Any]":
        """Some of the cells that have no type, for a look at how they are written."""
        cells = self.cells.cells if self.has_objects else np.empty(0, dtype=object)
        shown: pd.Series[Any] = pd.Series(cells[:_SHOWN], dtype=object, name=self.name)
        return shown

    def identifier_reason(self) -> str | None:
        """Why the column names rows rather than describing them; None where it does not."""
        if self.declared:
            return None
        if self.kinds and not self.has_objects:
            different = round(self.cells.share * self.rows)
            if not self.is_whole or self.kinds != {"number"}:
                return None
            return whole_number_reason(self.name, self.rows, different, self.low, self.high)
        total = int(self.cells.counts.sum())
        if not self.has_objects or total > _REPEATED:
            return None
        repeated = np.repeat(self.cells.cells, self.cells.counts)
        sample: pd.Series[Any] = pd.Series(repeated, dtype=object, name=self.name)
        return identifier_reason(self.name, sample, each=self.rows / max(1, total))

    def decide(self, remarks: Remarks, decimal: str | None) -> Column:
        """What the column is."""
        if self.declared and not self.kinds and not self.has_objects:
            names = tuple(self.declared)[:MAX_CATEGORIES]
            decided = Column(self.name, CATEGORY, names)
        elif len(self.kinds) == 1 and not self.has_objects and not self.declared:
            (kind,) = self.kinds
            decided = Column(self.name, kind, writing=MEASURED[kind].typed_writing)
        elif not self.kinds and not self.declared:
            decided = self._decide_cells(remarks, decimal)
        else:
            what = ", ".join(sorted([*self.kinds, *["category"] * bool(self.declared)]))
            raise ValueError(
                f"the column {self.name!r} must be of one type in all files, and holds {what}"
                f"{' and strings' * self.has_objects}; write the files anew, or drop it"
            )
        return replace(decided, missing_codes=self.missing_codes)

    def _decide_cells(self, remarks: Remarks, decimal: str | None) -> Column:
        sampled = self.cells.counts
        scale = self.rows / max(1, int(sampled.sum()))
        counts = np.maximum(1, np.round(sampled * scale)).astype(np.int64)
        decided = decide_cells(
            self.name, self.cells.cells, counts, remarks, decimal, holds_codes=self.holds_codes
        )
        if decided.kind != CATEGORY or self.cells.is_whole:
            return decided
        often = self.frequent.counts
        cells: NDArray[Any] = np.array([*often, None], dtype=object)[:-1]
        by_frequency = count_names(cells, np.array([*often.values()], dtype=np.int64))
        return replace(decided, categories=tuple(sorted(by_frequency.index[:MAX_CATEGORIES])))


def decide_columns(
    profiles: Mapping[str, ColumnProfile], decimal: str | None, *, keep_ids: bool = False
) -> tuple[TableSchema, Remarks]:
    """The schema of a source, and what is to be said of its columns.

    Parameters
    ----------
    profiles : mapping from name to ColumnProfile
    decimal : str or None
        The decimal sign, where somebody has said it.
    keep_ids : bool
        Whether columns that look like ids are read as all others are.
    """
    if decimal is None:
        samples = {name: each.samples for name, each in profiles.items() if each.has_objects}
        decimal = decimal_sign(pd.DataFrame(samples)) if samples else None
    remarks = Remarks()
    if not keep_ids:
        reasons = {name: each.identifier_reason() for name, each in profiles.items()}
        remarks.left_out = {name: why for name, why in reasons.items() if why is not None}
    if len(remarks.left_out) == len(profiles):  # nothing else to learn from
        remarks.left_out.clear()
    columns = tuple(
        each.decide(remarks, decimal)
        for name, each in profiles.items()
        if name not in remarks.left_out
    )
    return TableSchema(columns, named=True), remarks


class TargetProfile:
    """The labels of a source, counted.

    Parameters
    ----------
    name : str
        The column that holds them.
    missing_codes : sequence of str
        Cells that stand for no label.
    """

    def __init__(self, name: str, missing_codes: Sequence[str] = ()) -> None:
        self.name, self.missing_codes = name, tuple(missing_codes)
        self.counts: Counter[Any] = Counter()
        self.missing = 0
        self.order: list[Any] | None = None  # that the type of the column says

    def add(self, column: "pd.Series[Any]") -> None:
        """Look at one more chunk."""
        column = emptied(column, self.missing_codes)
        if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered:
            self.order = column.cat.categories.tolist()
        counted = column.value_counts()
        self.counts.update(
            {cell: int(count) for cell, count in zip(counted.index.tolist(), counted, strict=True)}
        )
        self.missing += int(column.isna().sum())
        if len(self.counts) > _MOST_LABELS:
            raise ValueError(
                f"the target must hold ordered classes, and {self.name!r} has more than "
                f"{_MOST_LABELS:,} different values; cut it into classes first, or name another"
            )

    def labels(
        self,
        classes: Sequence[Any] | None,
        check: Callable[[Any, list[Any] | None], None] | None = None,
    ) -> tuple[Labels, dict[Any, int], int]:
        """The classes, the rank of each cell that is a label, and how many rows have none.

        `check` is given the different labels and the named classes first, and may raise.
        """
        order = classes if classes is not None else self.order
        if not self.counts:
            raise ValueError(f"no row has a label in the column {self.name!r}")
        cells = sorted(self.counts, key=lambda cell: (str(type(cell)), cell))
        column = pd.Series(cells, dtype=object, name=self.name)
        if not all(isinstance(cell, str) for cell in cells):
            column = column.infer_objects()
        typed, named = typed_labels(column, None if order is None else list(map(str, order)))
        present = typed.notna().to_numpy()
        if not present.any():
            raise ValueError(f"no row has a label in the column {self.name!r}")
        if check is not None:
            check(typed[present], named)
        labels = Labels.of(typed[present], named)
        ranks = labels.to_ranks(typed[present])
        rank_of = dict(
            zip((cell for cell, there in zip(cells, present, strict=True) if there),
                ranks.tolist(), strict=True)
        )  # fmt: skip
        others = sum(self.counts[cell] for cell in cells if cell not in rank_of)
        return labels, rank_of, self.missing + others
