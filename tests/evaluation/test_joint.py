"""Metrics as functions of the table of true and predicted values."""

import numpy as np
import pytest

from echelon.evaluation import metrics
from echelon.evaluation._joint import Joint
from echelon.evaluation.metrics import METRICS


def test_a_predicted_rank_need_not_be_whole() -> None:
    assert metrics.mae([0, 2], [0.5, 1.75]) == pytest.approx(0.375)
    assert metrics.kendall_tau([0, 1, 2], [0.1, 0.2, 0.15]) == pytest.approx(1 / 3)


def test_errors_of_classes_are_distances_in_ranks_not_in_labels_that_occur() -> None:
    assert metrics.amae([0, 4], [4, 0], num_classes=5) == 4.0
    assert metrics.mmae([0, 4], [4, 0], num_classes=5) == 4.0


def test_off_by_three_is_not_off_by_one_for_want_of_classes_between() -> None:
    assert metrics.accuracy_within([0, 3], [3, 0]) == 0.0


OF_JOINT = {name: row.of_joint for name, row in METRICS.items() if row.of_joint is not None}


@pytest.mark.parametrize("name", OF_JOINT)
def test_a_table_of_counts_is_the_rows_that_it_counts(name: str) -> None:
    counts = np.random.default_rng(0).integers(0, 5, size=(4, 4))
    counts[2] = 0  # a class that does not occur
    truth, prediction = (np.repeat(place.ravel(), counts.ravel()) for place in np.indices((4, 4)))
    expected = getattr(metrics, name)(truth, prediction)
    assert OF_JOINT[name](Joint.of_ranks(counts)) == pytest.approx(expected, abs=1e-12)
    assert OF_JOINT[name](Joint.of_ranks(counts * 1e-9)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", OF_JOINT)
def test_where_nothing_varies_a_metric_is_a_number(name: str) -> None:
    """Chance agrees wholly, and no pair of rows differs."""
    for right in (True, False):
        table = np.zeros((3, 3))
        table[1, 1 if right else 2] = 7.0
        assert np.isfinite(OF_JOINT[name](Joint.of_ranks(table)))
