"""The rank of a generated image can be measured in it."""

import numpy as np

from echelon.data import make_discs


def test_the_filled_share_can_be_measured() -> None:
    data = make_discs(200, seed=0)
    bright = (data.images > 155).sum((1, 2))
    disc = (data.images > 75).sum((1, 2))
    assert np.corrcoef(bright / disc, data.shares)[0, 1] > 0.99
