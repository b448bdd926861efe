"""Every generator: rows of a known population: classes even, floors true, seeds of one kind."""

import numpy as np
import pytest

from echelon.data import make_discs, make_reviews
from echelon.evaluation import metrics

MAKERS = [make_reviews, make_discs]


@pytest.mark.parametrize("make", MAKERS)
def test_classes_are_even_in_the_population(make) -> None:
    one, other = make(1500, num_classes=4, seed=1), make(1500, num_classes=4, seed=2)
    np.testing.assert_array_equal(one.boundaries, other.boundaries)
    counts = np.bincount(np.concatenate([one.ranks, other.ranks]), minlength=4)
    assert np.abs(counts / 3000 - 0.25).max() < 0.04  # five standard deviations
    assert one.num_classes == 4


@pytest.mark.parametrize("make", MAKERS)
def test_the_floor_is_calibrated(make) -> None:
    data = make(3000, seed=3)
    probabilities = data.bayes_probabilities
    np.testing.assert_allclose(probabilities.sum(1), 1)
    for rank in range(5):
        expected, found = probabilities[:, rank].mean(), (data.ranks == rank).mean()
        assert abs(expected - found) < 0.04
    # better than what the shares of the classes alone allow, and not perfect
    median = (probabilities.cumsum(1) < 0.5).sum(1)
    assert 0.2 < metrics.mae(data.ranks, median) < 0.5 < metrics.mae(data.ranks, median * 0 + 2)


@pytest.mark.parametrize("make", MAKERS)
def test_the_seed_decides(make) -> None:
    one, same, other = make(20, seed=1), make(20, seed=1), make(20, seed=2)
    np.testing.assert_array_equal(one.ranks, same.ranks)
    for name in ("texts", "images"):
        if hasattr(one, name):
            assert np.array_equal(getattr(one, name), getattr(same, name))
            assert not np.array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be at least 1"),
        ({"n": 5, "num_classes": 1}, "num_classes must be at least 2"),
        ({"n": 5, "noise": 0.0}, "noise must be a finite number greater than 0"),
    ],
)
def test_what_is_refused(make, options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**options)
