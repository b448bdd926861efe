"""Whether counts of new rows are those of the training rows, and how far chance brings them apart.

Everything is counts: of the cells of a column, of classes, of predicted classes. Counts add up over
files and need no row of the training data. If new rows are drawn as the training rows were, which
of all rows are the new ones is a matter of chance alone; so the counts of both are put together,
drawn apart again many times, and what was seen is compared with what such draws give. That keeps
the rate of false alarms for any number of rows and any shares, rare ones too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_FIRST, _DRAWS = 1_000, 10_000
_CLEAR = 0.1  # what the first draws give more often than this, more of them would not make rare
_FEW = 10  # draws beyond what was seen; below so many, a bound says how rare it is
_NOISE = 0.95  # the share of draws whose distance lies below what is called noise
_MOST_POOLED = 10**9  # rows that numpy draws without putting them back


@dataclass(frozen=True)
class Change:
    """How far new counts lie from earlier ones.

    Attributes
    ----------
    distance : float
        The largest difference of shares: of ordered cells the shares at or below an edge (the
        distance of Kolmogorov and Smirnov), of others those of a cell.
    noise : float
        What 95 of 100 draws of as many rows from the same distribution stay below.
    p_value : float
        How often chance alone gives what is as rare.
    place : int
        The cell in which the change is the least likely; -1 is what was missing, and as many as
        there are cells is all that no earlier row held.
    """

    distance: float
    noise: float
    p_value: float
    place: int


class _Shares(NamedTuple):
    differences: Floats  # (draws, events): new share less the earlier one
    standardised: Floats  # the same over what it is expected to be
    pooled: Floats  # (draws, events)


def count_change(
    before: ArrayLike,
    now: ArrayLike,
    *,
    missing: tuple[int, int] = (0, 0),
    ordered: bool = True,
    seed: int = 0,
) -> Change:
    """Compare the counts of cells.

    Parameters
    ----------
    before, now : array-like of int, shape (m,)
        How many of the earlier rows, and of the new ones, each cell has.
    missing : tuple of int
        How many of either have none.
    ordered : bool
        Whether the cells have an order, as the bins of a number and the classes have.
    seed : int

    Examples
    --------
    >>> same = count_change([500, 300, 200], [52, 28, 20])
    >>> round(same.distance, 3), same.p_value > 0.5
    (0.02, True)
    >>> count_change([500, 300, 200], [20, 28, 52]).p_value < 1e-6
    True
    """
    earlier = np.array([missing[0], *np.asarray(before, dtype=np.int64)], dtype=np.int64)
    new = np.array([missing[1], *np.asarray(now, dtype=np.int64)], dtype=np.int64)
    if earlier.shape != new.shape or min(earlier.min(), new.min()) < 0:
        raise ValueError("counts must be as many before as now, and none below 0")
    if not earlier.sum() or not new.sum():
        raise ValueError("counts must be of at least 1 row before and now")
    generator = np.random.default_rng(seed)
    change = _compared(earlier, new, ordered, _FIRST, generator)
    return (
        change if change.p_value > _CLEAR else _compared(earlier, new, ordered, _DRAWS, generator)
    )


def _compared(
    earlier: NDArray[np.int64],
    new: NDArray[np.int64],
    ordered: bool,
    draws: int,
    generator: np.random.Generator,
) -> Change:
    """What was seen beside so many draws; the first cell is what is missing."""
    drawn = _drawn_apart(earlier, new, draws, generator)
    pooled = earlier + new
    seen = _shares(earlier[None], new[None], ordered)
    chance = _shares(pooled - drawn, drawn, ordered)
    distance = float(np.abs(seen.differences).max())
    noise = float(np.quantile(np.abs(chance.differences).max(axis=1), _NOISE))
    strange, expected = np.abs(seen.standardised), np.abs(chance.standardised)
    if not ordered:  # what no earlier row held, all of it together
        unseen = _unseen(earlier[None], new[None])
        by_chance = _unseen(pooled - drawn, drawn)
        spread = by_chance.std()
        if spread > 0:
            strange = np.append(
                strange, np.maximum(unseen - by_chance.mean(), 0)[:, None] / spread, 1
            )
            above = np.maximum(by_chance - by_chance.mean(), 0) / spread
            expected = np.append(expected, above[:, None], axis=1)
    place = int(strange[0].argmax())
    beyond = int((expected.max(axis=1) >= strange[0].max() - 1e-9).sum())
    p_value = (1 + beyond) / (1 + len(drawn))
    if beyond < _FEW and place < seen.differences.shape[1]:
        p_value = min(p_value, _bound(seen, place, earlier, new))
    return Change(distance, noise, p_value, place - 1)


def _drawn_apart(
    earlier: NDArray[np.int64], new: NDArray[np.int64], draws: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """New counts, (draws, cells), as chance would have them among all rows together."""
    pooled, count = earlier + new, int(new.sum())
    if pooled.sum() < _MOST_POOLED:
        apart: NDArray[np.int64] = generator.multivariate_hypergeometric(
            pooled, count, size=draws, method="marginals"
        )
        return apart
    shares = pooled / pooled.sum()
    spread = np.sqrt(earlier.sum() / pooled.sum())  # without putting back, draws spread less
    mean = count * shares
    drawn = generator.multinomial(count, shares, size=draws)
    near: NDArray[np.int64] = np.rint(mean + spread * (drawn - mean)).astype(np.int64)
    return near.clip(0, pooled)


def _shares(earlier: NDArray[np.int64], new: NDArray[np.int64], ordered: bool) -> _Shares:
    """Differences of shares, (draws, events): what is missing, and each cell or edge."""
    differences, standardised, pooled = [], [], []
    for some, is_cells in ((slice(0, 1), False), (slice(1, None), True)):
        rows = [
            (counts[:, 1:] if is_cells else counts).sum(axis=1, keepdims=True).astype(np.float64)
            for counts in (earlier, new)
        ]
        parts = [counts[:, some].astype(np.float64) for counts in (earlier, new)]
        if is_cells and ordered:
            parts = [part.cumsum(axis=1) for part in parts]
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = [part / total for part, total in zip(parts, rows, strict=True)]
            whole = (parts[0] + parts[1]) / (rows[0] + rows[1])
            difference = np.nan_to_num(shares[1] - shares[0])  # 0 where one has no cells at all
            variance = whole * (1 - whole) * (1 / rows[0] + 1 / rows[1])
            strange = np.where(variance > 1e-300, difference / np.sqrt(variance), 0.0)
        differences.append(difference)
        standardised.append(np.nan_to_num(strange))
        pooled.append(np.nan_to_num(whole))
    return _Shares(*(np.concatenate(each, axis=1) for each in (differences, standardised, pooled)))


def _unseen(earlier: NDArray[np.int64], new: NDArray[np.int64]) -> Floats:
    """How many new rows lie in cells that no earlier row has, (draws,)."""
    rows: Floats = np.where(earlier[:, 1:] == 0, new[:, 1:], 0).sum(axis=1).astype(np.float64)
    return rows


def _bound(seen: _Shares, place: int, earlier: NDArray[np.int64], new: NDArray[np.int64]) -> float:
    """At most how likely a share is so far off, by Hoeffding's bound on draws, for all events."""
    events = seen.differences.shape[1]
    share, gap = float(seen.pooled[0, place]), float(seen.differences[0, place])
    rows = [float(counts.sum() if place == 0 else counts[1:].sum()) for counts in (earlier, new)]
    # the shares of both, whose mean over the rows is the pooled one
    off = (gap * rows[0] / sum(rows), -gap * rows[1] / sum(rows))
    exponents = [
        count * _divergence(min(max(share + change, 0.0), 1.0), share)
        for count, change in zip(reversed(rows), off, strict=True)
    ]
    return float(min(1.0, 2 * events * math.exp(-min(700.0, max(exponents)))))


def _divergence(share: float, expected: float) -> float:
    """How much a share says against an expected one, in natural units for each row."""
    total = 0.0
    for part, other in ((share, expected), (1 - share, 1 - expected)):
        if part > 0:
            total += part * math.log(part / other) if other > 0 else math.inf
    return max(total, 0.0)


# ---- values beyond all earlier ones --------------------------------------------------------------


def beyond_p_value(below: int, above: int, before: int, now: int) -> float:
    """How often chance puts so many new rows below the smallest, or above the largest, earlier one.

    Parameters
    ----------
    below, above : int
        How many of the new rows do.
    before, now : int
        How many rows there are.

    Examples
    --------
    >>> round(beyond_p_value(0, 1, 99, 1), 6)  # the largest of 100 is any of them
    0.02
    >>> beyond_p_value(0, 0, 99, 1)
    1.0
    """
    smallest = min(_all_from_new(count, before, now) for count in (below, above))
    return min(1.0, 2 * smallest)


def _all_from_new(count: int, before: int, now: int) -> float:
    """The chance that the outermost of all rows are new ones, so many of them."""
    places = np.arange(count)
    return float(np.exp(np.log((now - places) / (before + now - places)).sum()))


# ---- scores and coverage -------------------------------------------------------------------------


def worse_p_value(mean: float, spread: float, rows: int, before: float, rows_before: int) -> float:
    """How often chance alone makes a mean loss so much larger than it was.

    Parameters
    ----------
    mean, spread : float
        The mean loss of the new rows and the standard deviation of a row's.
    rows : int
    before : float
        The mean loss of rows that the fit had not seen.
    rows_before : int

    Examples
    --------
    >>> round(worse_p_value(0.5, 1.0, 100, 0.5, 100), 3)
    0.5
    """
    error = spread * math.sqrt(1 / rows + 1 / rows_before)
    if error == 0:
        return 0.0 if mean > before else 1.0
    return 0.5 * math.erfc((mean - before) / error / math.sqrt(2))


def coverage_p_value(
    covered: int, rows: int, coverage: float, kept: int, *, seed: int = 0
) -> float:
    """How often intervals that are right hold the truth of so few rows, or of fewer.

    The coverage that a threshold of `kept` rows has is itself a matter of chance, with a beta
    distribution.

    Examples
    --------
    >>> coverage_p_value(90, 100, 0.9, 1000) > 0.4, coverage_p_value(70, 100, 0.9, 1000) < 0.001
    (True, True)
    """
    place = math.ceil((kept + 1) * coverage)
    if place > kept:  # so few that every interval holds everything
        return 1.0
    generator = np.random.default_rng(seed)
    shares = generator.beta(place, kept + 1 - place, size=_DRAWS)
    drawn = generator.binomial(rows, shares)
    return (1 + int((drawn <= covered).sum())) / (1 + _DRAWS)


def adjusted(p_values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Values of several tests, so that the chance of any below a level is at most that level.

    Parameters
    ----------
    p_values : sequence of float
    weights : sequence of float
        The share of the level that each test has, before they are divided by their sum.

    Examples
    --------
    >>> adjusted([0.01, 0.5], [1.0, 1.0])
    [0.02, 1.0]
    """
    total = sum(weights)
    return [
        min(1.0, value * total / weight) for value, weight in zip(p_values, weights, strict=True)
    ]
