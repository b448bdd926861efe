"""Rows that are worth a look: where a model errs, is surprised, or does not know."""

import numpy as np
from numpy.typing import NDArray

EXPLORED = 150  # rows of each order


def explored_orders(
    truth: NDArray[np.int64],
    prediction: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    most: int = EXPLORED,
) -> dict[str, NDArray[np.int64]]:
    """The places of the first rows of three orders.

    Parameters
    ----------
    truth, prediction : array, shape (n,)
        Ranks.
    probabilities : array, shape (n, K)
    most : int
        How many rows of each order.

    Returns
    -------
    dict of arrays
        By `error`, the largest first and among equals the more surprising; by `surprise`, where the
        truth seemed least likely; by `uncertainty`, where many classes seemed likely.

    Examples
    --------
    >>> sure, unsure = [0.9, 0.1], [0.5, 0.5]
    >>> orders = explored_orders(np.array([0, 1]), np.array([0, 0]), np.array([unsure, sure]), 1)
    >>> {name: order.tolist() for name, order in orders.items()}
    {'error': [1], 'surprise': [1], 'uncertainty': [0]}
    """
    surprise = -np.log(np.maximum(probabilities[np.arange(len(truth)), truth], 1e-30))
    entropy = -(probabilities * np.log(np.maximum(probabilities, 1e-30))).sum(axis=1)
    keys = {
        "error": np.abs(truth - prediction) + 1e-3 * surprise / surprise.max().clip(1),
        "surprise": surprise,
        "uncertainty": entropy,
    }
    return {name: np.argsort(-key, kind="stable")[:most] for name, key in keys.items()}
