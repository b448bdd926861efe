import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from echelon.models.thresholds import threshold_pairs


@given(st.integers(2, 300), st.integers(4, 40), st.integers(0, 100))
def test_sampled_thresholds_stand_for_all(num_classes, most, seed):
    generator = np.random.default_rng(seed)
    ranks = np.arange(num_classes)
    examples = threshold_pairs(ranks, num_classes, most, generator)
    assert len(np.unique(examples.row * num_classes + examples.threshold)) == len(examples.row)
    assert examples.threshold.min() >= 0
    assert examples.threshold.max() <= num_classes - 2
    assert (np.bincount(examples.row) <= max(most, 4)).all()
    # what is below and what is above a rank count for as many thresholds as there are
    above = examples.threshold >= examples.row
    for side, count in ((above, num_classes - 1 - ranks), (~above, ranks)):
        total = np.bincount(examples.row[side], examples.weight[side], minlength=num_classes)
        np.testing.assert_array_equal(total, count)


def test_each_threshold_counts_once_on_average():
    ranks = np.repeat([0, 17, 59], 20_000)
    examples = threshold_pairs(ranks, 60, 12, np.random.default_rng(0))
    for rank in (0, 17, 59):
        of_rank = ranks[examples.row] == rank
        total = np.bincount(examples.threshold[of_rank], examples.weight[of_rank], minlength=59)
        np.testing.assert_allclose(total / 20_000, 1, atol=0.1)
