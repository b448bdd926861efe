"""Tasks: a table that is divided once into what is fitted on and what is tested on."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.kinds.image import IMAGE
from echelon.data.labels import Labels
from echelon.data.rows import Rows, divide


@dataclass(frozen=True)
class Task:
    """A table that is split once: what is fitted on, and what is tested on.

    `ranks` are those of the rows, `test_ranks` those of the test rows. `floor` are the true
    probabilities of the test rows (n, K), where they are known. `split` says which of several
    random divisions of the same table it is, `columns_by_kind` which columns hold texts and images,
    as ``{"text": "review"}``. `numbers` are those of the rows in the file that they come from, for
    each part: counted from 0, without the header. A part without them is a file of its own, whole
    and in its order.
    """

    name: str
    labels: Labels
    features: pd.DataFrame
    ranks: NDArray[np.int64]
    test_features: pd.DataFrame
    test_ranks: NDArray[np.int64]
    groups: NDArray[Any] | None = None
    validation: tuple[pd.DataFrame, NDArray[np.int64]] | None = None
    floor: NDArray[np.float64] | None = None
    split: int = 0
    columns_by_kind: Mapping[str, str] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the rows and labels, so that changed data are not taken for the same."""
        digest = hashlib.sha256()
        parts = [(self.features, self.ranks), (self.test_features, self.test_ranks)]
        if self.validation is not None:
            parts.append(self.validation)
        for frame, ranks in parts:
            digest.update("\0".join(map(str, frame.columns)).encode())
            hashes = pd.util.hash_pandas_object(self._hashable(frame), index=False).to_numpy()
            digest.update(np.ascontiguousarray(hashes).tobytes())
            digest.update(np.ascontiguousarray(ranks).tobytes())
        if self.groups is not None:
            hashes = pd.util.hash_array(np.asarray(self.groups))
            digest.update(np.ascontiguousarray(hashes).tobytes())
        return digest.hexdigest()[:16]

    def _hashable(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Images that are arrays by their pixels; those that are paths by their paths."""
        image = self.columns_by_kind.get(IMAGE.name)
        if image is None:
            return frame
        cells = [
            cell.tobytes().hex() if isinstance(cell, np.ndarray) else str(cell)
            for cell in frame[image]
        ]
        named: pd.DataFrame = frame.assign(**{image: cells})
        return named

    @property
    def media(self) -> list[str]:
        """The columns that hold texts or images."""
        return [*self.columns_by_kind.values()]

    @property
    def rows(self) -> dict[str, int]:
        """How many there are in each part."""
        counts = {"train": len(self.ranks), "test": len(self.test_ranks)}
        if self.validation is not None:
            counts["valid"] = len(self.validation[1])
        return counts


def table_task(
    name: str,
    features: pd.DataFrame,
    target: Any,
    *,
    classes: Sequence[Any] | None = None,
    groups: Any = None,
    test_share: float = 0.25,
    split_seed: int = 0,
    columns_by_kind: Mapping[str, str] | None = None,
) -> Task:
    """Split a table once; rows of one group, and twins, stay on one side.

    `columns_by_kind` names the columns that hold texts and images.
    """
    labels = Labels.of(target, classes)
    ranks = labels.to_ranks(target)
    columns_by_kind = columns_by_kind or {}
    rows = Rows.of(features, ranks, columns_by_kind, groups)
    held, rest = divide(rows, [test_share], split_seed)
    # Rows that were left out before, as those without a label, keep their number in the index.
    numbers = np.arange(len(ranks))
    index = features.index
    if pd.api.types.is_integer_dtype(index) and index.is_unique and index.min() >= 0:
        numbers = index.to_numpy(dtype=np.int64)
    return Task(
        name,
        labels,
        features[rest].reset_index(drop=True),
        ranks[rest],
        features[held].reset_index(drop=True),
        ranks[held],
        groups=None if rows.groups is None else rows.groups[rest],
        split=split_seed,
        columns_by_kind=columns_by_kind,
        details={"test_share": test_share},
        numbers={"train": numbers[rest], "test": numbers[held]},
    )
