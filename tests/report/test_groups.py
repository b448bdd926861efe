"""Classes in groups: every class by itself while there are few."""

import numpy as np

from echelon.report.groups import SHOWN_CLASSES, Groups


def test_few_classes_stand_by_themselves() -> None:
    groups = Groups.of(["low", "mid", "high"])
    assert groups.names == ["low", "mid", "high"]
    assert groups.of_rank.tolist() == [0, 1, 2]
    assert groups.note == ""


def test_many_classes_stand_in_groups_that_hold_all_of_them_in_order() -> None:
    groups = Groups.of([str(rank) for rank in range(1000)])
    assert len(groups.names) == SHOWN_CLASSES
    assert (groups.names[0], groups.names[-1]) == ("0 to 33", "967 to 999")
    assert (np.diff(groups.of_rank) >= 0).all()
    assert groups.summed(np.ones((2, 1000))).sum(axis=1).tolist() == [1000, 1000]
    assert "1,000 classes are more than the 30 that a chart shows" in groups.note


def test_labels_that_look_alike_are_told_apart_by_a_number() -> None:
    assert Groups.of(["a", "a"]).names == ["0: a", "1: a"]
