"""Rows on demand: what a network takes, put together for some rows at a time.

A table of numbers fits in memory as one tensor. Texts differ in length and images are too large,
so their rows are put together when they are asked for.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon.data.kinds.base import Reading

Batch = dict[str, Tensor]  # by kind: features (n, d), token ids (n, longest), pixels (n, 3, h, w)
_T = TypeVar("_T")


class Inputs:
    """What a network takes of the same n rows, by kind.

    Parameters
    ----------
    parts : mapping from kind to Tensor or Reading
        Encoded features (n, d) as a tensor, and what is put together on demand.

    Examples
    --------
    >>> from echelon.data.kinds.text import TokenLists
    >>> inputs = Inputs({"table": torch.ones(2, 3), "text": TokenLists.of([[4], [5, 6]])})
    >>> {kind: tuple(tensor.shape) for kind, tensor in inputs.take(np.array([0])).items()}
    {'table': (1, 3), 'text': (1, 1)}
    """

    def __init__(self, parts: Mapping[str, Tensor | Reading]) -> None:
        self.parts = dict(parts)

    def __len__(self) -> int:
        return len(next(iter(self.parts.values())))

    @property
    def _readings(self) -> list[Reading]:
        return [part for part in self.parts.values() if not isinstance(part, Tensor)]

    @property
    def lengths(self) -> NDArray[np.int64] | None:
        """What a row costs in a batch, (n,), where rows differ in it."""
        lengths = (reading.lengths for reading in self._readings)
        return next((each for each in lengths if each is not None), None)

    @property
    def is_slow(self) -> bool:
        """Whether threads that read ahead are worth their while."""
        return any(reading.is_slow for reading in self._readings)

    def take(self, rows: NDArray[np.int64], seed: tuple[int, ...] | None = None) -> Batch:
        """What the network takes for some rows; with a seed, images are augmented by it."""
        return {
            kind: part[torch.from_numpy(rows)]
            if isinstance(part, Tensor)
            else part.take(rows, seed)
            for kind, part in self.parts.items()
        }

    def replaced(self, kind: str, part: Tensor | Reading) -> "Inputs":
        """The same rows with another part of one kind."""
        return Inputs({**self.parts, kind: part})

    def digest(self) -> bytes:
        """A hash of all rows; of images by their paths."""
        digest = hashlib.sha256()
        for part in self.parts.values():
            contents = [part.numpy().tobytes()] if isinstance(part, Tensor) else part.contents()
            for content in contents:
                digest.update(content)
        return digest.digest()


def prefetched(
    make: Callable[[Any], _T], wanted: Iterable[Any], workers: int, ahead: int = 2
) -> Iterator[_T]:
    """`make` of each of the wanted, in order, made by threads while the caller is busy.

    Parameters
    ----------
    make : callable
    wanted : iterable
        What to call it with.
    workers : int
        Threads; 0 makes each when it is asked for.
    ahead : int
        How many a thread may be ahead.
    """
    if workers == 0:
        yield from map(make, wanted)
        return
    remaining = iter(wanted)
    with ThreadPoolExecutor(workers, thread_name_prefix="echelon") as pool:
        waiting: list[Future[_T]] = [
            pool.submit(make, item) for item in islice(remaining, workers * ahead)
        ]
        try:
            while waiting:
                result = waiting.pop(0).result()
                for item in islice(remaining, 1):
                    waiting.append(pool.submit(make, item))
                yield result
        finally:
            for future in waiting:
                future.cancel()
