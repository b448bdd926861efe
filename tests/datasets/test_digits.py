"""The digits come as images and ranks."""

import numpy as np

from echelon.data import load_digits


def test_digits() -> None:
    images, ranks = load_digits()
    assert images.dtype == np.uint8
    assert set(ranks) == set(range(10))
