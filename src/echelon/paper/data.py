"""The data of the CORN paper as partitions: what all readers share, and the reviews.

Each reader gives the paper's protocol: ranks from 0, classes balanced where the paper did so, and
subsets of 75, 5 and 20 % for training, validation and test. A partition that was published as three
files is read as it is. Texts that stand twice stay in one subset.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.files import typed_table
from echelon.data.rows import Rows, divide

SUBSETS = ("train", "valid", "test")
_SHARES = {"test": 0.20, "valid": 0.05}
_DIVIDED = (*_SHARES, "train")
_TRIPADVISOR_PER_CLASS = 1400


@dataclass(frozen=True)
class Partition:
    """A published data set in three subsets.

    Attributes
    ----------
    name : str
    features : mapping from "train", "valid" and "test" to DataFrame
        One column: the text, or the image or its whole path.
    ranks : mapping from the same to array of int64
        0..K-1.
    classes : tuple
        What the ranks stand for, the lowest first.
    columns_by_kind : mapping
        The column of its kind, as parameters of :class:`echelon.OrdinalClassifier`.
    groups : mapping from the same to array, optional
        What stays on one side wherever rows are divided, such as the person on an image.
    """

    name: str
    features: Mapping[str, pd.DataFrame]
    ranks: Mapping[str, NDArray[np.int64]]
    classes: tuple[Any, ...]
    columns_by_kind: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, NDArray[Any]] | None = None

    def labels(self, subset: str) -> NDArray[Any]:
        """The classes of the rows of a subset, (n,)."""
        labels: NDArray[Any] = np.array(self.classes)[self.ranks[subset]]
        return labels

    def swapped(self) -> "Partition":
        """The same with validation and test swapped, as in the published runs on faces."""
        places = {"train": "train", "valid": "test", "test": "valid"}
        return replace(
            self,
            features={new: self.features[old] for new, old in places.items()},
            ranks={new: self.ranks[old] for new, old in places.items()},
            groups=None
            if self.groups is None
            else {new: self.groups[old] for new, old in places.items()},
        )

    def balanced(self, seed: int) -> "Partition":
        """The same with as many rows of each class as the rarest has, within each subset."""
        features, ranks, groups = {}, {}, {}
        for number, subset in enumerate(SUBSETS):
            given = self.ranks[subset]
            counts = np.bincount(given, minlength=len(self.classes))
            if not counts.all():
                raise ValueError(
                    f"every class must occur in every subset of {self.name} to be balanced; the "
                    f"subset {subset} has no {self.classes[int(counts.argmin())]!r}: give more rows"
                )
            kept = balance(given, int(counts.min()), np.random.default_rng([seed, 2, number]))
            features[subset] = self.features[subset].iloc[kept].reset_index(drop=True)
            ranks[subset] = given[kept]
            if self.groups is not None:
                groups[subset] = self.groups[subset][kept]
        return replace(self, features=features, ranks=ranks, groups=groups or None)


def read_coursera(path: str | Path, *, seed: int = 0) -> Partition:
    """Course reviews with 1 to 5 stars.

    Parameters
    ----------
    path : str or Path
        The paper's balanced file (`TEXT_COLUMN_NAME`, `LABEL_COLUMN_NAME`), or the raw one (`Id`,
        `Review`, `Label`), which is balanced to its rarest class.
    seed : int
        Of the balancing and of the split.
    """
    frame = typed_table(path, apart=("TEXT_COLUMN_NAME", "Review"))
    if "TEXT_COLUMN_NAME" in frame:
        text, label, per_class = "TEXT_COLUMN_NAME", "LABEL_COLUMN_NAME", None
    else:
        text, label = "Review", "Label"
        require_columns(frame, path, text, label)
        per_class = int(frame[label].value_counts().min())
    return _reviews("coursera", frame, text, label, per_class, seed)


def read_tripadvisor(path: str | Path, *, seed: int = 0) -> Partition:
    """Hotel reviews with 1 to 5 stars, columns `Review` and `Rating`, balanced to 1,400 a class."""
    frame = typed_table(path, apart=("Review",))
    require_columns(frame, path, "Review", "Rating")
    return _reviews("tripadvisor", frame, "Review", "Rating", _TRIPADVISOR_PER_CLASS, seed)


def balance(
    ranks: NDArray[np.int64], per_class: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Rows, sorted, of which at most `per_class` have the same rank, drawn at random."""
    kept = [
        generator.permutation(np.flatnonzero(ranks == rank))[:per_class]
        for rank in np.unique(ranks)
    ]
    return np.sort(np.concatenate(kept))


def three_parts(rows: Rows, seed: int) -> dict[str, NDArray[np.int64]]:
    """Places of rows of "train", "valid" and "test": 75, 5 and 20 %, groups and twins in one."""
    masks = divide(rows, [*_SHARES.values()], seed)
    return {part: np.flatnonzero(mask) for part, mask in zip(_DIVIDED, masks, strict=True)}


def divided(
    name: str,
    frame: pd.DataFrame,
    ranks: NDArray[np.int64],
    classes: tuple[Any, ...],
    columns_by_kind: Mapping[str, str],
    seed: int,
    groups: NDArray[Any] | None = None,
) -> Partition:
    """A partition of one table, divided at random; groups and twins stay in one subset."""
    rows = three_parts(Rows.of(frame, ranks, columns_by_kind, groups), seed)
    return Partition(
        name,
        {subset: frame.iloc[rows[subset]].reset_index(drop=True) for subset in SUBSETS},
        {subset: ranks[rows[subset]] for subset in SUBSETS},
        classes,
        columns_by_kind,
        None if groups is None else {subset: groups[rows[subset]] for subset in SUBSETS},
    )


def _reviews(
    name: str, frame: pd.DataFrame, text: str, label: str, per_class: int | None, seed: int
) -> Partition:
    classes = (1, 2, 3, 4, 5)
    ranks = checked_ranks(frame[label] - 1, len(classes), label)
    if per_class is not None:
        kept = balance(ranks, per_class, np.random.default_rng([seed, 1]))
        frame, ranks = frame.iloc[kept].reset_index(drop=True), ranks[kept]
    texts = frame[[text]]
    columns = {"text": text}
    return divided(name, texts, ranks, classes, columns, seed)


def checked_ranks(column: "pd.Series[Any]", num_classes: int, label: str) -> NDArray[np.int64]:
    """The ranks of a column, (n,), or an error where they are none of so many classes."""
    ranks = column.to_numpy(dtype=np.int64)
    if len(ranks) == 0 or ranks.min() < 0 or ranks.max() >= num_classes:
        given = "no rows" if len(ranks) == 0 else f"{ranks.min()} to {ranks.max()}"
        raise ValueError(f"{label} must give ranks from 0 to {num_classes - 1}; these are {given}")
    return ranks


def require_columns(frame: pd.DataFrame, path: str | Path, *columns: str) -> None:
    """Raise where a file lacks a column."""
    missing = [name for name in columns if name not in frame]
    if missing:
        raise ValueError(
            f"{path} lacks the column {missing[0]!r}; it has: {', '.join(map(str, frame.columns))}"
        )
