"""Rows with what belongs to them: selected, divided and weighed together."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from echelon.data.labels import Labels
from echelon.data.rows import (
    Rows,
    broken_rows,
    class_weights,
    divide,
    hold_validation,
    row_weights,
    without_broken,
)
from echelon.data.schema import TableSchema
from echelon.data.splits import hold_out


def rows(n: int = 60, **more) -> Rows:
    frame = pd.DataFrame({"place": np.arange(float(n)), "kind": ["a", "b"] * (n // 2)})
    schema = TableSchema.of(frame)
    return Rows(schema, schema.read(frame), np.arange(n) % 3, **more)


@pytest.mark.parametrize("chosen", [np.array([5, 1, 1]), np.arange(60) % 7 == 0, slice(3, 9)])
def test_everything_of_a_row_is_selected_with_it(chosen) -> None:
    whole = rows(weight=np.arange(60.0), groups=np.arange(60) * 2)
    some = whole.select(chosen)
    places = np.arange(60)[chosen]
    assert len(some) == len(places)
    np.testing.assert_array_equal(some.table.numbers[:, 0], places)
    np.testing.assert_array_equal(some.table.codes[:, 0], places % 2 + 1)
    np.testing.assert_array_equal(some.ranks, places % 3)
    np.testing.assert_array_equal(some.weight, places)
    np.testing.assert_array_equal(some.groups, places * 2)


def test_a_division_loses_and_repeats_no_row_and_tears_no_group() -> None:
    whole = rows(groups=np.arange(60) // 4)
    training, held = hold_validation(whole, 0.25, seed=3)
    numbers = [part.table.numbers[:, 0] for part in (training, held)]
    assert sorted(np.concatenate(numbers)) == list(range(60))
    assert not set(training.groups) & set(held.groups)
    again = hold_validation(whole, 0.25, seed=3)[1]
    np.testing.assert_array_equal(again.table.numbers, held.table.numbers)
    assert hold_validation(whole, 0, seed=3) == (whole, None)


@pytest.mark.parametrize("groups", [None, np.arange(60) // 3], ids=["rows", "groups"])
def test_each_share_is_one_of_all_rows_and_every_row_is_in_one_subset(groups) -> None:
    """The same as holding out the first, and then of what is left the second."""
    whole = rows(groups=groups)
    masks = divide(whole, [0.2, 0.3], seed=[5, 60])
    np.testing.assert_array_equal(np.sum(masks, axis=0), np.ones(60))
    assert [mask.sum() for mask in masks] == pytest.approx([12, 18, 30], abs=2)
    generator = np.random.default_rng([5, 60])
    first = hold_out(whole.table, whole.ranks, 0.2, groups=groups, generator=generator)
    np.testing.assert_array_equal(masks[0], first)
    left = whole.select(~first)
    second = hold_out(
        left.table, left.ranks, 0.3 * 60 / len(left), groups=left.groups, generator=generator
    )
    np.testing.assert_array_equal(np.flatnonzero(masks[1]), np.flatnonzero(~first)[second])
    (everything,) = divide(whole, [], seed=0)
    assert everything.all()


def test_held_out_rows_that_all_weigh_nothing_count_alike() -> None:
    """As a score that divides by their weight would be no number."""
    _, held = hold_validation(rows(weight=np.zeros(60)), 0.25, seed=0)
    np.testing.assert_array_equal(held.weight, np.ones(len(held)))


def test_balanced_classes_share_the_weight_of_the_rows() -> None:
    labels, ranks = Labels.of([1, 2, 3, 4]), np.array([0, 0, 0, 1, 2, 2])
    weight = np.array([1.0, 2, 3, 1, 5, 5])
    per_class = class_weights("balanced", weight, ranks, labels)
    assert per_class[3] == 1.0  # which has no rows
    each = row_weights(weight, per_class, ranks)
    shares = np.bincount(ranks, weights=each)
    np.testing.assert_allclose(shares, weight.sum() / 3)
    by_hand = class_weights({2: 4.0}, weight, ranks, labels)
    np.testing.assert_array_equal(row_weights(None, by_hand, ranks), [1, 1, 1, 4, 1, 1])
    assert row_weights(weight, None, ranks) is weight


def test_rows_whose_images_are_broken_are_left_out_and_named(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{i}.png") for i in range(4)]
    for path in paths:
        Image.fromarray(np.zeros((4, 4), dtype=np.uint8)).save(path)
    Path(paths[2]).write_bytes(b"no image")
    frame = pd.DataFrame({"photo": paths})
    schema = TableSchema.of(frame, image="photo")
    whole = Rows(schema, schema.read(frame), np.arange(4) % 2, weight=np.arange(4.0))
    assert without_broken(whole, {}) == (whole, {})
    with pytest.warns(UserWarning, match=r"1 of 4 rows are left out, as their images .*2\.png"):
        kept, broken = without_broken(whole, {"image": "skip"})
    assert list(broken) == [2]
    assert broken_rows({"image": frame["photo"].to_numpy()}, {"image": "skip"}) == (
        broken,
        ["image"],
    )
    assert kept.weight.tolist() == [0.0, 1.0, 3.0]
    for path in paths:
        Path(path).write_bytes(b"no image")
    with pytest.raises(ValueError, match="none of the 4 images can be read"):
        without_broken(whole, {"image": "skip"})
