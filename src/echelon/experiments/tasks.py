"""Tasks: a table that is divided once into what is fitted on and what is tested on."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.labels import Labels
from echelon.data.schema import TableSchema
from echelon.data.splits import hold_out


@dataclass(frozen=True)
class Task:
    """A table that is split once: what is fitted on, and what is tested on.

    `ranks` are those of the rows, `test_ranks` those of the test rows. `floor` are the true
    probabilities of the test rows (n, K), where they are known. `split` says which of several
    random divisions of the same table it is, `text` and `image` which columns hold such. `numbers`
    are those of the rows in the file that they come from, for each part: counted from 0, without
    the header. A part without them is a file of its own, whole and in its order.
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
    text: str | None = None
    image: str | None = None
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
        if self.image is None:
            return frame
        cells = [
            cell.tobytes().hex() if isinstance(cell, np.ndarray) else str(cell)
            for cell in frame[self.image]
        ]
        named: pd.DataFrame = frame.assign(**{self.image: cells})
        return named

    @property
    def media(self) -> list[str]:
        """The columns that hold texts or images."""
        return [name for name in (self.text, self.image) if name is not None]

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
    text: str | None = None,
    image: str | None = None,
) -> Task:
    """Split a table once; rows of one group, and twins, stay on one side.

    `text` and `image` name the columns that hold such.
    """
    labels = Labels.of(target, classes)
    ranks = labels.to_ranks(target)
    held = hold_out(
        TableSchema.of(features, text=text, image=image).read(features),
        ranks, test_share, groups=groups,
        generator=np.random.default_rng(split_seed),
    )  # fmt: skip
    # Rows that were left out before, as those without a label, keep their number in the index.
    numbers = np.arange(len(ranks))
    index = features.index
    if pd.api.types.is_integer_dtype(index) and index.is_unique and index.min() >= 0:
        numbers = index.to_numpy(dtype=np.int64)
    return Task(
        name,
        labels,
        features[~held].reset_index(drop=True),
        ranks[~held],
        features[held].reset_index(drop=True),
        ranks[held],
        groups=None if groups is None else np.asarray(groups)[~held],
        split=split_seed,
        text=text,
        image=image,
        details={"test_share": test_share},
        numbers={"train": numbers[~held], "test": numbers[held]},
    )
