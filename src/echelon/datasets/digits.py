"""The handwritten digits, as ordered classes."""

import numpy as np
from numpy.typing import NDArray


def load_digits() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The handwritten digits that scikit-learn brings: images (1797, 8, 8) and ranks 0..9.

    A digit read as its neighbour is a small error, which makes them ordered classes.

    Examples
    --------
    >>> images, ranks = load_digits()
    >>> images.shape, int(images.max()), ranks[:3].tolist()
    ((1797, 8, 8), 240, [0, 1, 2])
    """
    from sklearn.datasets import load_digits as load

    loaded = load()
    return (loaded.images * 15).astype(np.uint8), loaded.target.astype(np.int64)
