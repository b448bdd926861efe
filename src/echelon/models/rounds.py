"""The rounds of PRank: a perceptron with ordered cutpoints, one row after the other.

Invariant: the cutpoints are whole numbers and in order after every round (Crammer and Singer 2002,
theorem 1). So a row of weight 2 is learnt from twice, and no step has another size than 1.
"""

import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon.models.links import Array


@dataclass
class Perceptron:
    """Coefficients and cutpoints while they learn.

    A row is given the lowest rank r with x.w < b_r. Where that is wrong, every cutpoint on the
    wrong side of the score moves by 1, and the coefficients by as many times the row.

    Attributes
    ----------
    coefficients : array, shape (d,)
        w.
    cutpoints : array, shape (K-1,)
        b.
    late_coefficients, late_cutpoints : array
        The sum over all updates of the update times the rounds before it, for :meth:`averaged`.
    num_rounds : int
    loss : int
        The sum over all rounds of the distance between the rank that was given and the true one.
        If a unit vector separates the ranks by gamma and no row is longer than R, it is at most
        (K-1) (R^2 + 1) / gamma^2.

    Examples
    --------
    >>> state = Perceptron.start(1, 3)
    >>> state.learn(np.array([[-1.0], [0.0], [1.0]]), np.array([0, 1, 2]))
    >>> state.coefficients, state.cutpoints, state.loss
    (array([2.]), array([0., 1.]), 3)
    """

    coefficients: Array
    cutpoints: Array
    late_coefficients: Array
    late_cutpoints: Array
    num_rounds: int = 0
    loss: int = 0

    @classmethod
    def start(cls, num_features: int, num_classes: int) -> "Perceptron":
        """Zeros, as in the paper."""
        d, tasks = num_features, num_classes - 1
        return cls(np.zeros(d), np.zeros(tasks), np.zeros(d), np.zeros(tasks))

    def copy(self) -> "Perceptron":
        """The same, which learns apart."""
        return copy.deepcopy(self)

    def learn(self, features: Array, ranks: NDArray[np.int64]) -> None:
        """One round for each row, (n, d), in their order."""
        num_thresholds = len(self.cutpoints)
        above = np.arange(num_thresholds + 1)[:, None] > np.arange(num_thresholds)  # by rank
        signs = np.where(above, 1.0, -1.0)
        w, b = self.coefficients, self.cutpoints
        for x, rank in zip(features, ranks.tolist(), strict=True):
            score = float(w @ x)
            given = int(np.searchsorted(b, score, side="right"))
            if given != rank:
                self.loss += abs(given - rank)
                sign = signs[rank]
                moves = sign * (sign * (score - b) <= 0)
                total = moves.sum()
                w += total * x
                b -= moves
                self.late_coefficients += self.num_rounds * total * x
                self.late_cutpoints -= self.num_rounds * moves
            self.num_rounds += 1

    def averaged(self) -> tuple[Array, Array]:
        """The means of the coefficients and of the cutpoints over all rounds."""
        rounds = max(self.num_rounds, 1)
        return (
            self.coefficients - self.late_coefficients / rounds,
            self.cutpoints - self.late_cutpoints / rounds,
        )


def presentations(weight: Array, generator: np.random.Generator) -> NDArray[np.int64]:
    """The rows of one pass, in their order: each as often as its weight, on average over passes.

    Examples
    --------
    >>> presentations(np.array([1.0, 0.0, 2.0]), np.random.default_rng(0))
    array([0, 2, 2])
    """
    edges = np.floor(np.append(0.0, weight.cumsum()) + generator.random())
    return np.repeat(np.arange(len(weight)), np.diff(edges).astype(np.int64))
