"""Why a row gets its curve: what each column contributes, by sampled permutations.

A background row turns into the explained row, one column after the other, in a random order; what
a column changes when its turn comes is its contribution in that order (Shapley values by sampling,
Strumbelj and Kononenko 2014). Every chain begins at a background row and ends at the row itself,
and every background row begins as many chains as any other. So the contributions add up to what the
row has beyond the mean of the background, however few the chains are. Chains come in pairs whose
orders are each other's reverse, which takes out most of the noise (Mitchell and others 2022).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from echelon.evaluation.recombining import Curves, Floats, Integers, recombined
from echelon.evaluation.words import WordReason

_COMPOSITES = 20_000  # rows that are put together at once
_SMALL = 0.005  # of a probability: a smaller change is not worth a sentence


@dataclass(frozen=True)
class RowReasons:
    """What the columns of a row contribute to its curve.

    Attributes
    ----------
    row : int
        Its place in the table.
    columns : tuple of str
    named_cells : tuple of str
        Each column with what it holds, as a sentence names it.
    start : array, shape (K-1,)
        The mean P(y > k) of the background.
    exceedance : array, shape (K-1,)
        P(y > k) of the row.
    contributions : array, shape (columns, K-1)
        What each column adds to every P(y > k); together they lead from `start` to `exceedance`.
    standard_errors : array, shape (columns,)
        Of the contributions to the expected rank.
    exceedance_standard_errors : array, shape (columns, K-1)
        Of the contributions to every P(y > k).
    words : list of WordReason
        What the words of its texts do.
    """

    row: int
    columns: tuple[str, ...]
    named_cells: tuple[str, ...]
    start: Floats
    exceedance: Floats
    contributions: Floats
    standard_errors: Floats
    exceedance_standard_errors: Floats
    words: list[WordReason] = field(default_factory=list)

    @property
    def rank_contributions(self) -> Floats:
        """What each column adds to the expected rank, (columns,)."""
        total: Floats = self.contributions.sum(axis=1)
        return total

    @property
    def telling_threshold(self) -> int:
        """The k at which P(y > k) of the row differs most from that of the background."""
        return int(np.abs(self.exceedance - self.start).argmax())

    def sentences(
        self, classes: Sequence[Any], threshold: int | None = None, most: int = 5
    ) -> list[str]:
        """The largest contributions to P(y > threshold) in plain words, one after the other.

        Parameters
        ----------
        classes : sequence of K labels, in rank order
        threshold : int, optional
            Without it, the one at which the row differs most from the background.
        most : int
            How many columns have a sentence of their own; the others share one.
        """
        k = self.telling_threshold if threshold is None else threshold
        what = f"the chance of {classes[k + 1]}{' or higher' if k + 2 < len(classes) else ''}"
        parts, reached, end = self.contributions[:, k], float(self.start[k]), self.exceedance[k]
        large = [int(i) for i in np.argsort(-np.abs(parts), kind="stable")[:most]]
        steps = _within_bounds([i for i in large if abs(parts[i]) >= _SMALL], parts, reached)
        if not steps:
            return [f"nothing stands out: {what} is {_percent(float(end))} %, as for other rows"]
        said: list[str] = []
        for step in steps:
            after = reached + float(sum(parts[i] for i in step))
            named = " and ".join(self.named_cells[i] for i in step)
            verb = "raise" if after > reached else "lower"
            verb = f"together {verb}" if len(step) > 1 else f"{verb}s"
            said.append(f"{named} {verb} {'it' if said else what} from {_pair(reached, after)}")
            reached = after
        left = len(parts) - sum(map(len, steps))
        if left and abs(end - reached) >= _SMALL:
            others = "the other column" if left == 1 else f"the other {left} columns together"
            verb = ("raise" if end > reached else "lower") + ("s" if left == 1 else "")
            said.append(f"{others} {verb} it from {_pair(reached, float(end))}")
        return said


def row_reasons(
    curves: Curves,
    frame: pd.DataFrame,
    rows: Sequence[int],
    background: pd.DataFrame,
    named_cells: Sequence[Sequence[str]],
    *,
    chains: int | None = None,
    seed: int = 0,
) -> list[RowReasons]:
    """What the columns of some rows contribute.

    Parameters
    ----------
    curves : Curves
    frame : DataFrame
    rows : sequence of int
        The places of the rows to explain.
    background : DataFrame of m rows
        What the rows are compared with; the same columns.
    named_cells : sequence of sequences of str
        For each of the rows, its columns with what they hold.
    chains : int, optional
        An even multiple of m, or m itself where that is even; by default m, or 2 m where m is odd.
    seed : int

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [0.0, 0.2, 0.8], "b": [0.0, 0.1, 0.1]})
    >>> def predict(rows):
    ...     p = rows["a"] + rows["b"]
    ...     return np.stack([1 - p, p], axis=1)
    >>> (reasons,) = row_reasons(Curves(predict), frame, [2], frame[:2], [["a 0.8", "b 0.1"]])
    >>> reasons.rank_contributions.round(3).tolist()
    [0.7, 0.05]
    >>> reasons.sentences(["healthy", "severe"])[0]
    'a 0.8 raises the chance of severe from 15 to 85 %'
    """
    size, width = len(background), len(frame.columns)
    if not size:
        raise ValueError("a background needs at least 1 row; got none")
    if list(background.columns) != list(frame.columns):
        raise ValueError("the background must have the columns of the table, in the same order")
    count = (size if size % 2 == 0 else 2 * size) if chains is None else chains
    if count % size or count % 2 or count < 2:
        raise ValueError(
            f"chains must be an even number and a multiple of the {size} background rows, so that "
            f"contributions add up; got {count}"
        )
    generator = np.random.default_rng(seed)
    forward = np.stack([generator.permutation(width) for _ in range(count // 2)])
    orders = np.stack([forward, forward[:, ::-1]], axis=1).reshape(count, width)
    turn = np.argsort(orders, axis=1)  # (chains, columns)
    # Both halves of a pair begin at rows of their own, drawn without order.
    begins = np.concatenate([generator.permutation(size) for _ in range(count // size)])
    both = pd.concat([background, frame], ignore_index=True)
    starts, places = curves(background), np.asarray(rows, dtype=np.int64)
    ends = curves(frame.iloc[places]) if len(places) else np.zeros((0, starts.shape[1]))
    reasons = []
    together = max(1, _COMPOSITES // max(1, count * (width - 1)))
    for first in range(0, len(places), together):
        some = places[first : first + together]
        changes = _changes_of_turns(
            curves, both, size + some, turn, begins, starts, ends[first : first + together]
        )
        for i, row in enumerate(some):
            parts = np.empty_like(changes[i])  # (chains, columns, K-1)
            np.put_along_axis(parts, orders[:, :, None], changes[i], axis=1)
            pairs = parts.reshape(count // 2, 2, width, -1).mean(axis=1)
            reasons.append(
                RowReasons(
                    row=int(row),
                    columns=tuple(frame.columns),
                    named_cells=tuple(named_cells[first + i]),
                    start=starts.mean(axis=0),
                    exceedance=ends[first + i],
                    contributions=parts.mean(axis=0),
                    standard_errors=_error(pairs.sum(axis=2)),
                    exceedance_standard_errors=_error(pairs),
                )
            )
    return reasons


def _changes_of_turns(
    curves: Curves,
    both: pd.DataFrame,
    rows: Integers,
    turn: Integers,
    begins: Integers,
    starts: Floats,
    ends: Floats,
) -> Floats:
    """What each turn of each chain changes, (rows, chains, turns, K-1)."""
    chains, width = turn.shape
    stages = np.arange(1, width)
    is_own = turn[:, None, :] < stages[None, :, None]  # (chains, stages, columns)
    sources = np.where(is_own[None], rows[:, None, None, None], begins[None, :, None, None])
    between = np.zeros((len(rows), chains, 0, starts.shape[1]))
    if width > 1:
        asked = curves(recombined(both, sources.reshape(-1, width)))
        between = asked.reshape(len(rows), chains, width - 1, -1)
    first = np.broadcast_to(starts[begins][None, :, None], (*between.shape[:2], 1, starts.shape[1]))
    last = np.broadcast_to(ends[:, None, None], first.shape)
    return np.diff(np.concatenate([first, between, last], axis=2), axis=2)


def spread_rows(values: Floats, count: int) -> Integers:
    """The places of rows that stand for all: evenly spread over the order of their values.

    Examples
    --------
    >>> spread_rows(np.array([5.0, 1.0, 3.0, 2.0, 4.0, 0.0]), 3)
    array([1, 2, 0])
    """
    if count < 1:
        raise ValueError(f"a background needs at least 1 row; got {count}")
    order = np.argsort(values, kind="stable")
    if count >= len(order):
        return order
    return order[((np.arange(count) + 0.5) * len(order) / count).astype(np.int64)]


def _error(values: Floats) -> Floats:
    """The standard error of the mean over the first axis; NaN for a single value."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def _within_bounds(places: list[int], parts: Floats, start: float) -> list[list[int]]:
    """Contributions in an order in which the probability that is reached is one at every step.

    The largest that fits comes next. Where none does, the largest and those that outweigh it make
    one step together; where nothing outweighs it, what is left has no step.
    """
    left, steps, reached = list(places), [], start

    def fits(value: float) -> bool:
        return -_SMALL <= value <= 1 + _SMALL

    while left:
        step = next(([i] for i in left if fits(reached + parts[i])), None)
        if step is None:
            step, total = [left[0]], reached + parts[left[0]]
            for i in left[1:]:
                if not fits(total) and np.sign(parts[i]) != np.sign(total - 0.5):
                    step.append(i)
                    total += parts[i]
            if not fits(total):
                break
        steps.append(step)
        reached += sum(parts[i] for i in step)
        left = [i for i in left if i not in step]
    return steps


def _pair(before: float, after: float) -> str:
    """Two probabilities in percent, with so many digits that they differ."""
    digits = 0 if round(100 * before) != round(100 * after) else 1
    return f"{_percent(before, digits)} to {_percent(after, digits)} %"


def _percent(value: float, digits: int = 0) -> str:
    shown = f"{100 * value:.{digits}f}"
    return shown.removeprefix("-") if float(shown) == 0 else shown
