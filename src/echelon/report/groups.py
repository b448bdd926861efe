"""Classes as charts show them: many of them stand together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHOWN_CLASSES = 30  # in a chart; more are shown in groups


@dataclass(frozen=True)
class Groups:
    """Classes as charts show them: each by itself, or consecutive ones together.

    `of_rank` says to which group each rank belongs, (K,).
    """

    names: list[str]
    of_rank: NDArray[np.int64]

    @classmethod
    def of(cls, classes: Sequence[str]) -> "Groups":
        """As many groups as there are classes, or `SHOWN_CLASSES` of about the same size.

        Examples
        --------
        >>> Groups.of([str(i) for i in range(60)]).names[:2]
        ['0 to 1', '2 to 3']
        """
        count = min(len(classes), SHOWN_CLASSES)
        of_rank = np.arange(len(classes)) * count // max(1, len(classes))
        names = []
        for group in range(count):
            ranks = np.flatnonzero(of_rank == group)
            first, last = (classes[rank] for rank in (ranks[0], ranks[-1]))
            names.append(first if len(ranks) == 1 else f"{first} to {last}")
        if len(set(names)) < count:  # labels that look alike
            names = [f"{number}: {name}" for number, name in enumerate(names)]
        return cls(names, of_rank.astype(np.int64))

    @property
    def note(self) -> str:
        """What a reader must know of them; nothing where every class is by itself."""
        if len(self.names) == len(self.of_rank):
            return ""
        return (
            f" {len(self.of_rank):,} classes are more than the {SHOWN_CLASSES} that a chart shows: "
            f"consecutive ones stand together."
        )

    def summed(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of ranks, (..., K), added up in each group, (..., groups)."""
        starts = np.searchsorted(self.of_rank, np.arange(len(self.names)))
        summed: NDArray[Any] = np.add.reduceat(values, starts, axis=-1)
        return summed
