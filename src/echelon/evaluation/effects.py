"""Which way a column works: accumulated local effects (Apley and Zhu 2020).

A column is moved only to the next of its values, and only in rows that lie there; the mean changes
are then added up from value to value. So nothing is asked about rows that cannot be, such as one of
a child with the weight of an adult, which is what partial dependence does.

- Numbers and dates move between quantiles, or between their values where those are few.
- Categories are put in an order in which neighbours are alike in the other columns, and move to
  their neighbours in it. A gap in a column of categories is one more category.
- A gap in numbers or dates is compared with the median, in the rows that have the gap.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from echelon.evaluation.recombining import (
    ORDERED,
    Curves,
    Floats,
    Integers,
    as_they_are,
    cell_words,
    positions,
    recombined,
)

_FLAT = 0.02  # of the range of the ranks: less than this is no effect to speak of
_ONE_WAY = 0.15  # the share of all movement that may go the other way


@dataclass(frozen=True)
class Effect:
    """What a column does to the curve, at some points of it.

    Attributes
    ----------
    column, kind : str
    cells : list
        The cell of each point: in ascending order for numbers and dates, in the order of likeness
        for categories. None stands for a gap, which comes last.
    rows : array, shape (points,)
        How many rows lie at each point, or between it and the one before.
    exceedance : array, shape (points, K-1)
        The effect on every P(y > k); its mean over the rows is 0.
    spread : array, shape (points,)
        How different the change of the expected rank from the point before is in different rows:
        its standard deviation. 0 where the column does the same in every row.
    exceedance_spread : array, shape (points, K-1)
        The same of every P(y > k).
    """

    column: str
    kind: str
    cells: list[Any]
    rows: Integers
    exceedance: Floats
    spread: Floats
    exceedance_spread: Floats

    @property
    def expected_rank(self) -> Floats:
        """The effect on the expected rank, (points,)."""
        total: Floats = self.exceedance.sum(axis=1)
        return total

    @property
    def direction(self) -> str:
        """Which way it works, in words.

        Numbers and dates raise, lower, or do both; of categories, the lowest and the highest are
        named.
        """
        effect = self.expected_rank
        if np.ptp(effect) < _FLAT * self.exceedance.shape[1]:
            return "hardly matters"
        known = [i for i, cell in enumerate(self.cells) if cell is not None]
        if self.kind in ORDERED and len(known) > 1:
            steps = np.diff(effect[known])
            up, down = steps[steps > 0].sum(), -steps[steps < 0].sum()
            if down <= _ONE_WAY * (up + down):
                return "more of it raises the class" if self.kind == "number" else "later is higher"
            if up <= _ONE_WAY * (up + down):
                return "more of it lowers the class" if self.kind == "number" else "later is lower"
            top = self._name(known[int(np.argmax(effect[known]))])
            bottom = self._name(known[int(np.argmin(effect[known]))])
            return f"rises and falls: highest at {top}, lowest at {bottom}"
        top, bottom = self._name(int(effect.argmax())), self._name(int(effect.argmin()))
        return f"highest for {top}, lowest for {bottom}"

    def _name(self, place: int) -> str:
        return cell_words(self.cells[place], self.kind) or "missing"


def local_effect(
    curves: Curves,
    frame: pd.DataFrame,
    column: str,
    kinds: Mapping[str, str],
    *,
    points: int = 20,
    before: Floats | None = None,
) -> Effect | None:
    """The accumulated local effects of a column; None where it is of no such kind, or constant.

    Parameters
    ----------
    curves : Curves
    frame : DataFrame of n rows
    column : str
    kinds : mapping from column to kind
    points : int
        The most steps of a number or a date.
    before : array, shape (n, K-1), optional
        The curves of the rows as they are, if they are known.

    Examples
    --------
    >>> frame = pd.DataFrame({"size": np.linspace(0, 1, 101), "other": np.zeros(101)})
    >>> curves = Curves(lambda rows: np.stack([1 - rows["size"], rows["size"]], axis=1))
    >>> effect = local_effect(curves, frame, "size", {"size": "number"}, points=4)
    >>> effect.cells, effect.expected_rank.round(2).tolist()
    ([0.0, 0.25, 0.5, 0.75, 1.0], [-0.5, -0.25, 0.0, 0.25, 0.5])
    >>> effect.direction
    'more of it raises the class'
    """
    kind = kinds[column]
    if before is None:
        before = curves(frame)
    if kind in ORDERED:
        place, level_of, holders, is_between = _ordered_levels(frame[column], kind, points)
    elif kind == "category":
        place, level_of, holders = _category_levels(frame, column, kinds, before)
        is_between = False
    else:
        return None
    missing = np.flatnonzero(place < 0)
    if len(holders) < 2 and not (len(holders) and len(missing)):
        return None
    at = frame.columns.get_loc(column)
    steps, width = len(holders) - 1, before.shape[1]

    def moved(rows: Integers, levels: Integers) -> Floats:
        """The curves of rows at levels; those that lie there already are known."""
        result = before[rows]
        asked = np.ones(len(rows), bool) if is_between else level_of[rows] != levels
        if asked.any():
            sources = as_they_are(rows[asked], len(frame.columns))
            sources[:, at] = holders[levels[asked]]
            result = result.copy()
            result[asked] = curves(recombined(frame, sources))
        return result

    rows = np.flatnonzero(place >= 0)
    if is_between:  # a row between two values moves from the lower to the higher one
        row, step = rows, np.maximum(level_of[rows], 1)
    else:  # a row at a value moves to both of its neighbours
        up, down = rows[level_of[rows] < steps], rows[level_of[rows] > 0]
        row, step = np.concatenate([down, up]), np.concatenate([level_of[down], level_of[up] + 1])
    change = moved(row, step) - moved(row, step - 1) if steps else np.zeros((0, width))
    mean, spread = _by_step(change, step, steps)
    _, rank_spread = _by_step(change.sum(axis=1, keepdims=True), step, steps)
    values = np.concatenate([np.zeros((1, width)), mean.cumsum(axis=0)])
    spread = np.concatenate([np.zeros((1, width)), spread])
    rank_spread = np.concatenate([np.zeros((1, 1)), rank_spread])
    counts = np.bincount(np.maximum(level_of[rows], 1 if is_between else 0), minlength=steps + 1)
    shares = counts.astype(np.float64)
    if is_between:  # rows lie between two points, half at each
        shares[:-1] += counts[1:] / 2
        shares[1:] -= counts[1:] / 2
    cells = frame[column].iloc[holders].tolist()
    if kind == "category":
        cells = [None if pd.isna(cell) else cell for cell in cells]
    if len(missing):
        middle = np.full(len(missing), _median_level(shares))
        gap = before[missing] - moved(missing, middle)
        of_gap = gap.std(axis=0), gap.sum(axis=1).std(keepdims=True)
        values = np.concatenate([values, values[middle[:1]] + gap.mean(axis=0)])
        spread = np.concatenate([spread, of_gap[0][None]])
        rank_spread = np.concatenate([rank_spread, of_gap[1][None]])
        counts, shares = np.append(counts, len(missing)), np.append(shares, len(missing))
        cells.append(None)
    values = values - (shares @ values) / shares.sum()
    return Effect(column, kind, cells, counts, values, rank_spread[:, 0], spread)


def _by_step(change: Floats, step: Integers, steps: int) -> tuple[Floats, Floats]:
    """The mean and the standard deviation over the rows of each step, (steps, outputs)."""
    counts = np.maximum(np.bincount(step, minlength=steps + 1)[1:, None], 1)
    mean, square = np.zeros((steps + 1, change.shape[1])), np.zeros((steps + 1, change.shape[1]))
    np.add.at(mean, step, change)
    mean = mean[1:] / counts
    if len(change):
        np.add.at(square, step, (change - mean[step - 1]) ** 2)
    return mean, np.sqrt(square[1:] / counts)


def _median_level(shares: Floats) -> int:
    return int(np.searchsorted(shares.cumsum(), shares.sum() / 2))


def _ordered_levels(
    column: "pd.Series[Any]", kind: str, points: int
) -> tuple[Floats, Integers, Integers, bool]:
    """Where cells lie, -1 where missing; their levels; a row at each; if rows lie between them."""
    where = positions(column, kind)
    known = np.flatnonzero(~np.isnan(where))
    values, first = np.unique(where[known], return_index=True)
    is_between = len(values) > points + 1
    if is_between:  # quantiles that are values of rows
        shares = np.linspace(0, 1, points + 1)
        edges = np.unique(np.quantile(where[known], shares, method="inverted_cdf"))
        first = first[np.searchsorted(values, edges)]
        values = edges
    level_of = np.full(len(where), -1)
    level_of[known] = np.searchsorted(values, where[known])
    return np.where(np.isnan(where), -1.0, 0.0), level_of, known[first], is_between


def _category_levels(
    frame: pd.DataFrame, column: str, kinds: Mapping[str, str], before: Floats
) -> tuple[Floats, Integers, Integers]:
    """As for numbers, in an order of likeness; gaps are a category."""
    codes, _ = pd.factorize(frame[column], use_na_sentinel=True)
    codes = np.where(codes < 0, codes.max() + 1, codes)
    present, codes = np.unique(codes, return_inverse=True)
    size = len(present)
    order = np.arange(size)
    if size > 2:
        order = _order_of_likeness(_distances(frame, column, kinds, codes, size))
    means = np.bincount(codes, before.sum(axis=1)) / np.bincount(codes)
    if size > 1 and means[order[0]] > means[order[-1]]:
        order = order[::-1]
    level_of = np.argsort(order)[codes]
    holders = np.array([np.flatnonzero(level_of == level)[0] for level in range(size)])
    return np.zeros(len(frame)), level_of, holders


def _distances(
    frame: pd.DataFrame, column: str, kinds: Mapping[str, str], codes: Integers, size: int
) -> Floats:
    """How different the rows of two categories are in the other columns, (size, size)."""
    total = np.zeros((size, size))
    for name in frame.columns:
        kind = kinds[name]
        if name == column or kind not in (*ORDERED, "category"):
            continue
        if kind == "category":
            other = pd.factorize(frame[name])[0] + 1
            shares = np.zeros((size, other.max() + 1))
            np.add.at(shares, (codes, other), 1.0)
            shares /= shares.sum(axis=1, keepdims=True)
            total += np.abs(shares[:, None] - shares[None]).sum(axis=2) / 2
        else:
            where = positions(frame[name], kind)
            known = ~np.isnan(where)
            if not known.any():
                continue
            edges = np.unique(np.quantile(where[known], np.linspace(0, 1, 21)))
            table = np.zeros((size, len(edges) + 1))
            np.add.at(table, (codes[known], np.searchsorted(edges, where[known])), 1.0)
            below = table.cumsum(axis=1) / np.maximum(table.sum(axis=1, keepdims=True), 1)
            # How far apart they lie in shares of all rows; the largest gap of the two
            # distributions would be 1 for any that do not overlap, near or far.
            total += np.abs(below[:, None] - below[None]).mean(axis=2)
    return total


def _order_of_likeness(distances: Floats) -> Integers:
    """Places on the line that keeps the distances best: the first axis of classical scaling."""
    squared = distances**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1, keepdims=True) + squared.mean()
    _, axes = np.linalg.eigh(-centred / 2)
    return np.argsort(axes[:, -1], kind="stable")
