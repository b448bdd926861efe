"""How much worse a model gets when a column is shuffled: permutation importance (Breiman 2001).

The measure is the ranked probability score, the sum over k of (P(y > k) - 1{y > k})^2: it looks at
the whole curve, so that a column counts that only moves probabilities and no label.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from echelon.evaluation.recombining import Curves, Floats, Integers, as_they_are, recombined


@dataclass(frozen=True)
class Importance:
    """What shuffling one column, or several together, costs.

    Attributes
    ----------
    columns : tuple of str
        The columns that were shuffled together.
    values : array, shape (repeats,)
        The increase of the mean ranked probability score in each repeat.
    """

    columns: tuple[str, ...]
    values: Floats

    @property
    def mean(self) -> float:
        """The mean increase."""
        return float(self.values.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean over the repeats; NaN for a single one."""
        if len(self.values) < 2:
            return float("nan")
        return float(self.values.std(ddof=1) / np.sqrt(len(self.values)))


def permutation_importance(
    curves: Curves,
    frame: pd.DataFrame,
    ranks: ArrayLike | None = None,
    *,
    groups: Sequence[Sequence[str]] | None = None,
    repeats: int = 5,
    shuffles: ArrayLike | None = None,
    seed: int = 0,
) -> list[Importance]:
    """The importance of each column, the largest first.

    Parameters
    ----------
    curves : Curves
    frame : DataFrame of n rows
    ranks : array-like, shape (n,), optional
        The true ranks. Without them the score is the one to be expected if the model were right:
        the increase is then the mean squared distance of the curves before and after.
    groups : sequence of sequences of str, optional
        Columns that are shuffled together; without it, each is shuffled alone.
    repeats : int
        How often each is shuffled.
    shuffles : array-like, shape (repeats, n), optional
        The orders of the rows to use, instead of random ones. They are the same for every column.
    seed : int

    Examples
    --------
    >>> frame = pd.DataFrame({"size": np.linspace(0, 1, 50), "noise": np.linspace(1, 0, 50)})
    >>> curves = Curves(lambda rows: np.stack([1 - rows["size"], rows["size"]], axis=1))
    >>> for one in permutation_importance(curves, frame, np.arange(50) // 25):
    ...     print(one.columns, round(one.mean, 2))
    ('size',) 0.24
    ('noise',) 0.0
    """
    n, names = len(frame), list(frame.columns)
    if shuffles is None:
        if repeats < 1:
            raise ValueError(f"repeats must be at least 1; got {repeats}")
        generator = np.random.default_rng(seed)
        orders = np.stack([generator.permutation(n) for _ in range(repeats)])
    else:
        orders = np.asarray(shuffles, dtype=np.int64)
        if orders.ndim != 2 or (np.sort(orders, axis=1) != np.arange(n)).any():
            raise ValueError(f"shuffles must be orders of the {n} rows; got {orders.shape}")
    chosen = [(name,) for name in names] if groups is None else [tuple(g) for g in groups]
    for name in (name for group in chosen for name in group):
        if name not in names:
            raise ValueError(f"groups name {name!r}; the columns are: {', '.join(names)}")
    before = curves(frame)
    above = None
    if ranks is not None:
        true = np.asarray(ranks)
        if true.shape != (n,):
            raise ValueError(f"ranks must have {n} values, one for each row; got {true.shape}")
        above = true[:, None] > np.arange(before.shape[1])

    def increase(after: Floats) -> float:
        if above is None:
            return float(((after - before) ** 2).sum(axis=1).mean())
        return float((((after - above) ** 2) - ((before - above) ** 2)).sum(axis=1).mean())

    importances = []
    for group in chosen:
        places = [names.index(name) for name in group]
        values = []
        for order in orders:
            sources = as_they_are(np.arange(n), len(names))
            sources[:, places] = order[:, None]
            values.append(increase(curves(recombined(frame, sources))))
        importances.append(Importance(group, np.array(values)))
    return sorted(importances, key=lambda importance: -importance.mean)


def correlated_groups(
    frame: pd.DataFrame, kinds: dict[str, str], least: float
) -> list[tuple[str, ...]]:
    """The columns in groups: two that are correlated so much, directly or by others, share one.

    Between numbers and dates the correlation is Spearman's, without its sign; between a category
    and a number the correlation ratio of its ranks; between two categories Cramér's V. Other
    columns stay alone.

    Parameters
    ----------
    frame : DataFrame
    kinds : mapping from column to kind
    least : float
        From 0 to 1.

    Examples
    --------
    >>> size = np.arange(20.0)
    >>> frame = pd.DataFrame({"cm": size, "inch": size / 2.54, "other": np.cos(7 * size)})
    >>> correlated_groups(frame, dict.fromkeys(frame, "number"), 0.8)
    [('cm', 'inch'), ('other',)]
    """
    if not 0 < least <= 1:
        raise ValueError(f"a correlation to group by lies above 0 and up to 1; got {least}")
    names = list(frame.columns)
    group_of = list(range(len(names)))
    for i in range(len(names)):
        for j in range(i):
            if group_of[i] == group_of[j]:
                continue
            if association(frame, kinds, names[i], names[j]) >= least:
                joined, left = sorted((group_of[i], group_of[j]))
                group_of = [joined if number == left else number for number in group_of]
    numbers = dict.fromkeys(group_of)
    return [
        tuple(name for name, group in zip(names, group_of, strict=True) if group == number)
        for number in numbers
    ]


def association(frame: pd.DataFrame, kinds: dict[str, str], first: str, second: str) -> float:
    """How much one column tells of another, from 0 to 1, on the rows in which both are there."""
    known = ("number", "date", "category")
    if kinds[first] not in known or kinds[second] not in known:
        return 0.0
    both = frame[[first, second]].dropna()
    if len(both) < 3:
        return 0.0
    if kinds[first] == "category" and kinds[second] == "category":
        return _cramer(pd.factorize(both[first])[0], pd.factorize(both[second])[0])
    if "category" in (kinds[first], kinds[second]):
        category, number = (first, second) if kinds[first] == "category" else (second, first)
        return _ratio(pd.factorize(both[category])[0], both[number].rank().to_numpy(np.float64))
    return _correlation(*(both[name].rank().to_numpy(np.float64) for name in (first, second)))


def _correlation(x: Floats, y: Floats) -> float:
    x, y = x - x.mean(), y - y.mean()
    length = np.sqrt((x @ x) * (y @ y))
    return float(abs(x @ y) / length) if length else 0.0


def _ratio(codes: Integers, y: Floats) -> float:
    counts = np.bincount(codes)
    means = np.bincount(codes, y) / np.maximum(counts, 1)
    total = ((y - y.mean()) ** 2).sum()
    return float(np.sqrt((counts * (means - y.mean()) ** 2).sum() / total)) if total else 0.0


def _cramer(first: Integers, second: Integers) -> float:
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1.0)
    smaller = min(table.shape) - 1
    if not smaller:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(np.sqrt((((table - expected) ** 2) / expected).sum() / table.sum() / smaller))
