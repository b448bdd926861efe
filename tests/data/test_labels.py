"""Labels as people have them."""

import numpy as np
import pandas as pd
import pytest

from echelon.data.labels import Labels


@pytest.mark.parametrize(
    ("y", "classes", "expected"),
    [
        ([3, 1, 7, 1], None, [1, 3, 7]),
        ([2.5, 1.0, 2.5], None, [1.0, 2.5]),
        ([True, False], None, [False, True]),
        (["b", "a"], ["b", "a"], ["b", "a"]),
        ([1, 2], [3, 2, 1], [3, 2, 1]),
        (
            pd.Categorical(["hi", "lo"], ["lo", "mid", "hi"], ordered=True),
            None,
            ["lo", "mid", "hi"],
        ),
        (pd.Series([4, 2], index=[9, 8]), None, [2, 4]),
        (pd.Series([1, 2], dtype="Int64"), None, [1, 2]),
        (np.array([[1], [2]])[:, 0], None, [1, 2]),
    ],
)
def test_classes_are_in_rank_order(y, classes, expected) -> None:
    labels = Labels.of(y, classes)
    assert labels.classes.tolist() == expected
    ranks = labels.to_ranks(y)
    assert labels.from_ranks(ranks).tolist() == list(np.asarray(y))


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (
            ["low", "high"],
            None,
            r"order is not known: say it with classes=\[\.\.\.\].*'low', 'high'",
        ),
        (pd.Categorical(["a", "b"]), None, "order is not known"),
        ([], None, "y is empty"),
        ([1, np.nan], None, "1 missing labels"),
        (pd.Series([1, None], dtype="Int64"), None, "1 missing labels"),
        (["a", None], ["a", "b"], "1 missing labels"),
        ([1, 1], None, "at least 2 classes; got one class, 1"),
        ([1, 2], [1], "at least 2 classes"),
        ([1, 2], [1, 1, 2], "classes must be distinct"),
        ([1, 2], "12", "classes must be a list"),
        ([1.0, np.inf], None, "infinity"),
        (np.random.default_rng(0).random(200), None, r"Unknown label type: continuous.*qcut"),
        (pd.to_datetime(pd.Series(["2020-01-01", "2021-01-01"])), None, "labels are dates"),
        (np.zeros((3, 2)), None, r"one column of labels; got the shape \(3, 2\)"),
    ],
)
def test_what_is_refused(y, classes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Labels.of(y, classes).to_ranks(y)


def test_another_label_is_named_and_counted() -> None:
    labels = Labels.of(["low"], classes=["low", "mid"])
    with pytest.raises(ValueError, match=r"'high' in y is not in classes \['low', 'mid'\].*2 rows"):
        labels.to_ranks(["low", "high", "high"])


def test_integers_are_not_the_strings_of_them() -> None:
    with pytest.raises(ValueError, match="'1' in y is not in classes"):
        Labels.of([1, 2]).to_ranks(["1", "2"])
