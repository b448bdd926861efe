"""Labels that the curves of unseen rows find unlikely, and how many of them chance would give.

A curve that is right gives every label its due: among many rows, one in a hundred has a label that
its curve puts into the last hundredth. So a few unlikely labels are no news; more of them than
labels drawn from the curves themselves would show are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon.evaluation.calibration import apply_calibration, fit_calibration

UNLIKELY = 0.01  # the probability, of a label or one farther out, below which a label is suspect
_DRAWS = 400
_MOST = 97.5  # percentile of what chance gives

Floats = NDArray[np.float64]


class Suspects(NamedTuple):
    """What was found.

    Attributes
    ----------
    order : array of int, shape (n,)
        The rows, the least likely label first.
    likelihood : array of float, shape (n,)
        Of each row, in their own order: how probable its label, or one farther out, is.
    likely : array of int, shape (n,)
        The rank that each row should perhaps have.
    unlikely : int
        How many rows have a likelihood below :data:`UNLIKELY`.
    by_chance, at_most : float
        How many that would be by chance alone: the mean, and what 39 of 40 draws do not exceed.
    """

    order: NDArray[np.int64]
    likelihood: Floats
    likely: NDArray[np.int64]
    unlikely: int
    by_chance: float
    at_most: float

    @property
    def beyond_chance(self) -> int:
        """How many more there are than by chance; 0 where chance may have given them all."""
        return round(self.unlikely - self.by_chance) if self.unlikely > self.at_most else 0


def likelihoods(ranks: NDArray[np.int64], probabilities: Floats) -> Floats:
    """How probable the label of each row, or one farther out on its side, is, (n,).

    Examples
    --------
    >>> curve = np.array([[0.7, 0.2, 0.1]])
    >>> likelihoods(np.array([2]), curve).round(3), likelihoods(np.array([0]), curve).round(3)
    (array([0.1]), array([0.7]))
    """
    rows = np.arange(len(ranks))
    below = probabilities.cumsum(1)[rows, ranks]
    above = probabilities[:, ::-1].cumsum(1)[:, ::-1][rows, ranks]
    likelihood: Floats = np.minimum(below, above)
    return likelihood


def find_suspects(ranks: NDArray[np.int64], probabilities: Floats, *, seed: int = 0) -> Suspects:
    """Rank the rows by how unlikely their labels are.

    Parameters
    ----------
    ranks : array of int, shape (n,)
    probabilities : array, shape (n, K)
        Of models that have not seen the row, as :func:`echelon.cross_val_curve` gives them. Their
        temperature is mended first, as curves that are too sure find too many labels unlikely.
    seed : int
        Of the labels that are drawn from the curves.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> curves = generator.dirichlet(np.ones(4), 500)
    >>> ranks = np.array([generator.choice(4, p=curve) for curve in curves])
    >>> find_suspects(ranks, curves).beyond_chance
    0
    """
    mended = apply_calibration(probabilities, fit_calibration(ranks, probabilities, "temperature"))
    likelihood = likelihoods(ranks, mended)
    generator = np.random.default_rng(seed)
    cumulative = mended.cumsum(1)
    counts = []
    for _ in range(_DRAWS):
        drawn = (
            (cumulative < generator.random((len(ranks), 1))).sum(1).clip(max=mended.shape[1] - 1)
        )
        counts.append(int((likelihoods(drawn, mended) < UNLIKELY).sum()))
    return Suspects(
        order=np.argsort(likelihood, kind="stable"),
        likelihood=likelihood,
        likely=(cumulative < 0.5).sum(1).clip(max=mended.shape[1] - 1),
        unlikely=int((likelihood < UNLIKELY).sum()),
        by_chance=float(np.mean(counts)),
        at_most=float(np.percentile(counts, _MOST)),
    )
