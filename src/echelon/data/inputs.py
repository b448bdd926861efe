"""Rows on demand: what a network takes, put together for some rows at a time.

A table of numbers fits in memory as one tensor. Texts differ in length and pictures are too large,
so their rows are put together when they are asked for.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon.data.images import Pictures
from echelon.data.texts import TokenLists

Batch = dict[str, Tensor]  # "table" (n, d), "text" (n, longest), "image" (n, 3, h, w)
_T = TypeVar("_T")


class Inputs:
    """Encoded features, token ids and pictures of the same n rows; any of them may be absent.

    Parameters
    ----------
    table : Tensor, shape (n, d), optional
    text : TokenLists, or Tensor of shape (n, out), optional
        Token ids, or what a frozen encoder has made of them.
    image : Pictures, optional

    Examples
    --------
    >>> inputs = Inputs(table=torch.ones(2, 3), text=TokenLists.of([[4], [5, 6]]))
    >>> {part: tuple(tensor.shape) for part, tensor in inputs.take(np.array([0])).items()}
    {'table': (1, 3), 'text': (1, 1)}
    """

    def __init__(
        self,
        table: Tensor | None = None,
        text: TokenLists | Tensor | None = None,
        image: Pictures | None = None,
    ) -> None:
        self.table = table
        self.text = text
        self.image = image

    def __len__(self) -> int:
        return len(next(one for one in (self.text, self.image, self.table) if one is not None))

    @property
    def lengths(self) -> NDArray[np.int64] | None:
        """What a row costs in a batch, (n,), where rows differ in it."""
        return self.text.lengths if isinstance(self.text, TokenLists) else None

    def take(self, rows: NDArray[np.int64], seed: tuple[int, ...] | None = None) -> Batch:
        """What the network takes for some rows; with a seed, pictures are augmented by it."""
        batch: Batch = {}
        if self.table is not None:
            batch["table"] = self.table[torch.from_numpy(rows)]
        if isinstance(self.text, TokenLists):
            batch["text"] = self.text.take(rows)
        elif self.text is not None:
            batch["text"] = self.text[torch.from_numpy(rows)]
        if self.image is not None:
            batch["image"] = self.image.take(rows, seed)
        return batch

    def digest(self) -> bytes:
        """A hash of all rows; of pictures by their paths."""
        digest = hashlib.sha256()
        if self.table is not None:
            digest.update(self.table.numpy().tobytes())
        if isinstance(self.text, TokenLists):
            digest.update(self.text.ids.tobytes() + self.text.ends.tobytes())
        elif self.text is not None:
            digest.update(self.text.numpy().tobytes())
        if self.image is not None:
            for cell in self.image.cells:
                content = cell.tobytes() if hasattr(cell, "tobytes") else str(cell).encode()
                digest.update(content + b"\0")
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
            pool.submit(make, one) for one in islice(remaining, workers * ahead)
        ]
        try:
            while waiting:
                result = waiting.pop(0).result()
                for one in islice(remaining, 1):
                    waiting.append(pool.submit(make, one))
                yield result
        finally:
            for future in waiting:
                future.cancel()
