"""Sketches: what is known of a column after one look at each of its cells.

Every sketch takes cells chunk by chunk and adds up with others of its kind, so that files and
workers may each make their own. What it gives does not depend on the order beyond its stated error:
quantiles lie within 0.5 % of a rank, a sample of different cells is the same in any order, and a
count of frequent cells is too small by at most :attr:`FrequentSketch.error`.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

RANK_ERROR = 0.005  # of the quantiles, in shares of all numbers
_SIZE = 2048  # of the largest level of a quantile sketch; its usual error is then 0.1 %
_SHRINK = 2 / 3  # how much smaller each lower level is
_SMALLEST = 8
_CELLS = 16_384  # different ones that a sample keeps
_NAMES = 4096  # frequent ones that are counted


class QuantileSketch:
    """The quantiles of numbers that are never held together (Karnin, Lang and Liberty 2016).

    Numbers stand in levels; one of level h stands for 2^h of them. A level that is full is sorted,
    and every other number of it, beginning with the first or the second by chance, goes up.

    Parameters
    ----------
    seed : int
        Of the coins that are thrown.

    Attributes
    ----------
    count : int
        How many numbers were added.
    low, high : float
        The smallest and the largest of them, exactly.

    Examples
    --------
    >>> sketch = QuantileSketch()
    >>> for start in range(0, 100_000, 1000):
    ...     sketch.add(np.arange(start, start + 1000.0))
    >>> bool(abs(sketch.quantiles([0.25])[0] - 25_000) < 0.005 * 100_000)
    True
    >>> sketch.quantiles([0.0, 1.0])
    array([    0., 99999.])
    """

    def __init__(self, seed: int = 0) -> None:
        self.levels: list[NDArray[np.float64]] = [np.empty(0)]
        self.count = 0
        self.low, self.high = np.inf, -np.inf
        self._coins = np.random.default_rng(seed)

    def add(self, numbers: NDArray[np.floating[Any]]) -> None:
        """Add numbers (n,), none of them NaN."""
        if not len(numbers):
            return
        self.count += len(numbers)
        self.low = min(self.low, float(numbers.min()))
        self.high = max(self.high, float(numbers.max()))
        self.levels[0] = np.concatenate([self.levels[0], numbers.astype(np.float64)])
        self._compress()

    def merge(self, other: "QuantileSketch") -> None:
        """Add what another sketch has seen."""
        self.count += other.count
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        while len(self.levels) < len(other.levels):
            self.levels.append(np.empty(0))
        for height, numbers in enumerate(other.levels):
            self.levels[height] = np.concatenate([self.levels[height], numbers])
        self._compress()

    def quantiles(self, shares: Any) -> NDArray[np.float64]:
        """The numbers below which these shares of all lie, each of them one that was added."""
        if not self.count:
            raise ValueError("a sketch of no numbers has no quantiles; add some first")
        numbers = np.concatenate(self.levels)
        weight = np.repeat([2**h for h in range(len(self.levels))], list(map(len, self.levels)))
        order = np.argsort(numbers, kind="stable")
        through = np.cumsum(weight[order])
        wanted = np.asarray(shares, dtype=np.float64)
        places = np.searchsorted(through, wanted * through[-1], side="left")
        result = numbers[order][np.minimum(places, len(order) - 1)]
        result[wanted <= 0], result[wanted >= 1] = self.low, self.high
        return np.asarray(result.clip(self.low, self.high))

    def _compress(self) -> None:
        height = 0
        while height < len(self.levels):
            numbers = self.levels[height]
            if len(numbers) <= self._capacity(height):
                height += 1
                continue
            numbers = np.sort(numbers)
            even = len(numbers) // 2 * 2
            if height + 1 == len(self.levels):
                self.levels.append(np.empty(0))
            raised = numbers[int(self._coins.integers(2)) : even : 2]
            self.levels[height + 1] = np.concatenate([self.levels[height + 1], raised])
            self.levels[height] = numbers[even:]
            height = 0  # where a level was added, those below it have become smaller

    def _capacity(self, height: int) -> int:
        return max(_SMALLEST, int(_SIZE * _SHRINK ** (len(self.levels) - 1 - height)))


class DistinctSketch:
    """A sample of the different cells of a column, with how often each of them occurs.

    It holds the cells with the smallest hashes, so that what it holds is the same in whatever order
    cells come, and a cell is in it with all its occurrences. With few different cells it has all.

    Attributes
    ----------
    cells : array of objects, shape (m,)
    counts : array of int64, shape (m,)
    is_whole : bool
        Whether no cell was left out.

    Examples
    --------
    >>> sketch = DistinctSketch()
    >>> sketch.add(np.array(["red", "blue", "red"], dtype=object))
    >>> dict(zip(sketch.cells.tolist(), sketch.counts.tolist(), strict=True))
    {'blue': 1, 'red': 2}
    """

    def __init__(self, size: int = _CELLS) -> None:
        self.size = size
        self.cells: NDArray[Any] = np.empty(0, dtype=object)
        self.counts = np.empty(0, dtype=np.int64)
        self.is_whole = True
        self._hashes = np.empty(0, dtype=np.uint64)

    @property
    def share(self) -> float:
        """About how many different cells there are, as a share of all cells."""
        return len(self.counts) / max(1, int(self.counts.sum()))

    def add(self, cells: NDArray[Any], counts: NDArray[np.int64] | None = None) -> None:
        """Add cells (n,) of one type, or of several as objects, each as often as `counts` says."""
        if counts is None:
            places, distinct = pd.factorize(cells)
            cells = np.asarray(distinct)
            counts = np.bincount(places[places >= 0], minlength=len(cells)).astype(np.int64)
        hashes = pd.util.hash_array(cells, categorize=False)
        if not self.is_whole and len(self._hashes):
            kept = hashes <= self._hashes[-1]
            cells, counts, hashes = cells[kept], counts[kept], hashes[kept]
        objects = np.empty(len(cells), dtype=object)
        objects[:] = cells.tolist()
        self._take(objects, counts, hashes)

    def merge(self, other: "DistinctSketch") -> None:
        """Add what another sketch has seen."""
        self.is_whole &= other.is_whole
        self._take(other.cells, other.counts, other._hashes)

    def _take(
        self, cells: NDArray[Any], counts: NDArray[np.int64], hashes: NDArray[np.uint64]
    ) -> None:
        every = np.concatenate([self._hashes, hashes])
        self._hashes, first, place = np.unique(every, return_index=True, return_inverse=True)
        totals = np.bincount(place, np.concatenate([self.counts, counts]), len(self._hashes))
        self.counts = totals.astype(np.int64)
        self.cells = np.concatenate([self.cells, cells])[first]
        if len(self._hashes) > self.size:
            self.is_whole = False
            kept = slice(self.size)
            self._hashes, self.counts = self._hashes[kept], self.counts[kept]
            self.cells = self.cells[kept]


class FrequentSketch:
    """How often the most frequent cells of a column occur (Misra and Gries 1982).

    Attributes
    ----------
    counts : Counter
        Of the frequent cells; each is too small by at most `error`.
    error : int
        At most 1/4096 of all cells; 0 where there are fewer different ones.

    Examples
    --------
    >>> sketch = FrequentSketch(size=2)
    >>> sketch.add(["a"] * 5 + ["b"] * 3 + ["c"])
    >>> sketch.counts, sketch.error
    (Counter({'a': 4, 'b': 2}), 1)
    """

    def __init__(self, size: int = _NAMES) -> None:
        self.size = size
        self.counts: Counter[Any] = Counter()
        self.error = 0

    def add(self, cells: Iterable[Any]) -> None:
        """Add cells, or cells with their counts as a mapping."""
        self.counts.update(cells)
        self._cut()

    def merge(self, other: "FrequentSketch") -> None:
        """Add what another sketch has seen."""
        self.error += other.error
        self.add(other.counts)

    def _cut(self) -> None:
        if len(self.counts) <= self.size:
            return
        less = sorted(self.counts.values(), reverse=True)[self.size]
        self.error += less
        self.counts = Counter({c: n - less for c, n in self.counts.items() if n > less})
