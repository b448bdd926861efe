import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from echelon.models.thresholds import threshold_pairs


@given(st.integers(2, 300), st.booleans(), st.integers(0, 100))
def test_sampled_thresholds_stand_for_all(num_classes, sampled, seed):
    ranks = np.arange(num_classes)
    most = 0 if sampled else num_classes**2
    pairs = threshold_pairs(ranks, num_classes, most, np.random.default_rng(seed))
    assert len(np.unique(pairs.row * num_classes + pairs.threshold)) == len(pairs.row)
    assert pairs.threshold.min() >= 0
    assert pairs.threshold.max() <= num_classes - 2
    if sampled:
        assert (np.bincount(pairs.row) <= 2 * np.log2(num_classes) + 2).all()
    else:
        assert len(pairs.row) == num_classes * (num_classes - 1)
    # what is below and what is above a rank count for as many thresholds as there are
    above = pairs.threshold >= pairs.row
    for side, count in ((above, num_classes - 1 - ranks), (~above, ranks)):
        total = np.bincount(pairs.row[side], pairs.weight[side], minlength=num_classes)
        np.testing.assert_array_equal(total, count)


def test_each_threshold_counts_once_on_average():
    ranks = np.repeat([0, 17, 59], 20_000)
    pairs = threshold_pairs(ranks, 60, 0, np.random.default_rng(0))
    for rank in (0, 17, 59):
        of_rank = ranks[pairs.row] == rank
        total = np.bincount(pairs.threshold[of_rank], pairs.weight[of_rank], minlength=59)
        np.testing.assert_allclose(total / 20_000, 1, atol=0.15)
