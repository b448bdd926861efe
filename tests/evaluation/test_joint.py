"""Metrics as functions of the table of true and predicted values."""

import pytest

from echelon.evaluation import metrics


def test_a_predicted_rank_need_not_be_whole() -> None:
    assert metrics.mae([0, 2], [0.5, 1.75]) == pytest.approx(0.375)
    assert metrics.kendall_tau([0, 1, 2], [0.1, 0.2, 0.15]) == pytest.approx(1 / 3)


def test_errors_of_classes_are_distances_in_ranks_not_in_labels_that_occur() -> None:
    assert metrics.amae([0, 4], [4, 0], num_classes=5) == 4.0
    assert metrics.mmae([0, 4], [4, 0], num_classes=5) == 4.0


def test_off_by_three_is_not_off_by_one_for_want_of_classes_between() -> None:
    assert metrics.accuracy_within([0, 3], [3, 0]) == 0.0
