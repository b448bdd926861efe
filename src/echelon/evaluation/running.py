"""Metrics that are collected from parts: of a file, of an epoch, of several devices.

Invariant: what is kept are sums, and dividing comes last, so parts of any size add up to the
metrics of the whole.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.evaluation._joint import Joint
from echelon.evaluation.arguments import as_weight
from echelon.evaluation.metrics import METRICS, confusion_matrix

_OF_ROWS = {name: row.row_losses for name, row in METRICS.items() if row.row_losses is not None}


class RunningScores:
    """Every metric, from one part after the other.

    Parameters
    ----------
    num_classes : int
        The number of ranks, K.

    Examples
    --------
    >>> running = RunningScores(num_classes=3)
    >>> running.update([0, 1], prediction=[0, 2])
    >>> running.update([2], prediction=[2])
    >>> round(running.compute()["mae"], 4)
    0.3333
    """

    def __init__(self, num_classes: int) -> None:
        if num_classes < 2:
            raise ValueError(f"num_classes must be at least 2; got {num_classes}")
        self.num_classes = num_classes
        self._labels = np.zeros((num_classes, num_classes))
        self._losses = np.zeros(len(_OF_ROWS) + 1)  # and, last, their weight

    def update(
        self,
        truth: ArrayLike,
        *,
        prediction: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        """Add rows: what is true of them, and labels, probabilities, or both.

        Parameters
        ----------
        truth : array-like, shape (n,)
            The true ranks, 0..K-1.
        prediction : array-like, shape (n,), optional
            The predicted ranks.
        probabilities : array-like, shape (n, K), optional
            P(y = k) of each row.
        sample_weight : array-like, shape (n,), optional
            What each row counts for; without it, each counts alike.
        """
        if prediction is None and probabilities is None:
            raise ValueError("update needs prediction=, probabilities=, or both")
        n = len(np.asarray(truth))
        if n == 0:
            return
        if sample_weight is not None and not np.any(sample_weight):
            as_weight(np.ones(n) + np.asarray(sample_weight), length=n)  # only its shape can be off
            return
        if prediction is not None:
            self._labels += confusion_matrix(
                truth, prediction, num_classes=self.num_classes, sample_weight=sample_weight
            )
        if probabilities is not None:
            sums, each = [], np.ones(n)
            for row_losses in _OF_ROWS.values():
                losses, weight = row_losses(
                    truth, probabilities, num_classes=self.num_classes, sample_weight=sample_weight
                )
                each = np.ones(n) if weight is None else weight
                sums.append((losses * each).sum())
            self._losses += [*sums, each.sum()]

    def state(self) -> NDArray[np.float64]:
        """All sums as one vector, to be added up over devices."""
        return np.concatenate([self._labels.reshape(-1), self._losses])

    @classmethod
    def from_state(cls, state: ArrayLike, num_classes: int) -> "RunningScores":
        """What a vector of :meth:`state`, or a sum of several, stands for.

        Parameters
        ----------
        state : array-like
            The vector, or the sum of several.
        num_classes : int
            The number of ranks, K.
        """
        values = np.asarray(state, dtype=np.float64)
        size = num_classes * num_classes
        length = size + len(_OF_ROWS) + 1
        if values.shape != (length,):
            raise ValueError(f"state must have the shape {(length,)}; got {values.shape}")
        running = cls(num_classes)
        running._labels = values[:size].reshape(num_classes, num_classes).copy()
        running._losses = values[size:].copy()
        return running

    def __add__(self, other: "RunningScores") -> "RunningScores":
        if self.num_classes != other.num_classes:
            raise ValueError(
                f"scores of {self.num_classes} and of {other.num_classes} classes do not add up"
            )
        return RunningScores.from_state(self.state() + other.state(), self.num_classes)

    @property
    def confusion_matrix(self) -> NDArray[np.float64]:
        """The weight of each pair of true (row) and predicted (column) rank, (K, K)."""
        table: NDArray[np.float64] = self._labels.copy()
        return table

    def compute(self) -> dict[str, float]:
        """Every metric that the rows so far allow, by name."""
        scores: dict[str, float] = {}
        if self._labels.any():
            joint = Joint.of_ranks(self._labels)
            scores = {
                name: row.of_joint(joint)
                for name, row in METRICS.items()
                if row.of_joint is not None
            }
        if self._losses[-1] > 0:
            for name, total in zip(_OF_ROWS, self._losses[:-1], strict=True):
                scores[name] = float(total / self._losses[-1])
        if not scores:
            raise ValueError("there are no rows yet")
        return scores
