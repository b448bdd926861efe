"""Which two columns work together: how much of the variance needs both of them at once.

For a row x and another row, D is the change that two columns make together beyond what each makes
alone, f(x) - f(x with the other's i) - f(x with the other's j) + f(x with both). The mean of
D^2 / 4 is the variance of all terms of f that hold i and j (Liu and Owen 2006).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from echelon.evaluation.recombining import Curves, as_they_are, recombined


@dataclass(frozen=True)
class Interaction:
    """Two columns, and how strong they work together on the expected rank.

    Attributes
    ----------
    columns : tuple of two str
    share : float
        Of the variance of the expected rank over the rows.
    standard_error : float
        Of the share, over the rows.
    """

    columns: tuple[str, str]
    share: float
    standard_error: float


def interactions(
    curves: Curves,
    frame: pd.DataFrame,
    columns: Sequence[str] | None = None,
    *,
    rows: int = 500,
    seed: int = 0,
) -> list[Interaction]:
    """The interaction of every pair of columns, the strongest first.

    Parameters
    ----------
    curves : Curves
    frame : DataFrame
    columns : sequence of str, optional
        The columns to look at; all without it.
    rows : int
        How many rows are looked at.
    seed : int

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> frame = pd.DataFrame(generator.random((400, 3)), columns=["a", "b", "c"])
    >>> def predict(rows):
    ...     p = (rows["a"] * rows["b"] + rows["c"]) / 2
    ...     return np.stack([1 - p, p], axis=1)
    >>> [one.columns for one in interactions(Curves(predict), frame) if one.share > 1e-9]
    [('a', 'b')]
    """
    names = list(frame.columns)
    looked_at = names if columns is None else list(columns)
    generator = np.random.default_rng(seed)
    chosen = generator.permutation(len(frame))[:rows]
    if len(chosen) < 2 or len(looked_at) < 2:
        return []
    others = np.roll(chosen, 1)  # no row is its own other

    def expected_rank(*swapped: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        sources = as_they_are(chosen, len(names))
        for name in swapped:
            sources[:, names.index(name)] = others
        return np.asarray(curves(recombined(frame, sources)).sum(axis=1))

    expected = expected_rank()
    variance = float(expected.var())
    if variance == 0:
        return []
    alone = {name: expected_rank(name) for name in looked_at}
    pairs = []
    for first, second in combinations(looked_at, 2):
        together = expected - alone[first] - alone[second] + expected_rank(first, second)
        squares = together**2 / 4 / variance
        error = float(squares.std(ddof=1) / np.sqrt(len(squares)))
        pairs.append(Interaction((first, second), float(squares.mean()), error))
    return sorted(pairs, key=lambda pair: -pair.share)
