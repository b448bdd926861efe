"""Labels as people have them."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from echelon.data.labels import Labels, typed_labels


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


@pytest.mark.parametrize(
    ("cells", "classes", "labels", "typed"),
    [
        (["2", "1"], None, [2, 1], None),
        (["2", "1"], ["1", "2", "3"], [2, 1], [1, 2, 3]),
        (["2.5", "1"], ["1", "2.5"], [2.5, 1.0], [1.0, 2.5]),
        (["TRUE", "false"], ["false", "true"], [True, False], [False, True]),
        ([True, None, False], ["false", "true"], [True, None, False], [False, True]),
        (["01", "02"], ["01", "02"], ["01", "02"], ["01", "02"]),
        (["NA", "low"], ["NA", "low"], ["NA", "low"], ["NA", "low"]),
        (["NA", "low"], ["low", "high"], [None, "low"], ["low", "high"]),
        (["1", "?"], None, [1, None], None),
        ([str(2**64 - 1), "3"], None, [2**64 - 1, 3], None),
        ([Decimal("1.50"), Decimal(2)], None, [1.5, 2.0], None),
    ],
)
def test_labels_of_files(cells, classes, labels, typed) -> None:
    column, named = typed_labels(pd.Series(cells, dtype=object), classes)
    assert column.astype(object).where(column.notna(), None).tolist() == labels
    assert named == typed
    assert typed is None or [type(one) for one in named] == [type(one) for one in typed]


def test_the_classes_of_a_model_say_how_its_labels_are_read() -> None:
    column = pd.Series(["1", "2.0", "3"], dtype=object)
    for classes, expected in (([1, 2, 3], [0, 1, 2]), ([1.0, 2.0, 3.0], [0, 1, 2])):
        labels = Labels.of(classes)
        assert labels.to_ranks(labels.read_cells(column)).tolist() == expected
    labels = Labels.of(["a"], classes=["3", "1", "2.0"])
    assert labels.to_ranks(labels.read_cells(column)).tolist() == [1, 2, 0]
    labels = Labels.of([True, False])
    assert labels.to_ranks(labels.read_cells(pd.Series(["TRUE", "false"]))).tolist() == [1, 0]
    with pytest.raises(ValueError, match="label 'many' in y is not in classes"):
        Labels.of([1, 2]).to_ranks(Labels.of([1, 2]).read_cells(pd.Series(["1", "many"])))


def test_large_unsigned_labels_keep_their_order() -> None:
    values = np.array([2**63 + 1, 3, 2**64 - 1], dtype=np.uint64)
    labels = Labels.of(values)
    assert labels.classes.tolist() == [3, 2**63 + 1, 2**64 - 1]
    assert labels.to_ranks(values).tolist() == [1, 0, 2]


def test_dates_in_objects_are_refused_as_dates() -> None:
    with pytest.raises(ValueError, match="labels are dates"):
        Labels.of([dt.date(2020, 1, 1), dt.date(2021, 1, 1)])


def test_integers_are_not_the_strings_of_them() -> None:
    with pytest.raises(ValueError, match="'1' in y is not in classes"):
        Labels.of([1, 2]).to_ranks(["1", "2"])
