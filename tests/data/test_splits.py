"""Splits: the share, the classes, and what must stay together."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon.data.schema import RawTable, TableSchema
from echelon.data.splits import _units, folds, hold_out


def make_table(rows: int, distinct: int, seed: int = 0) -> RawTable:
    generator = np.random.default_rng(seed)
    kinds = generator.normal(size=(distinct, 3))
    return RawTable(kinds[generator.integers(distinct, size=rows)], np.zeros((rows, 0), np.int64))


@given(
    rows=st.integers(2, 300), distinct=st.integers(2, 300), seed=st.integers(0, 99),
    fraction=st.floats(0.01, 0.9), groups=st.booleans(),
)  # fmt: skip
def test_twins_and_groups_stay_together(
    rows: int, distinct: int, seed: int, fraction: float, groups: bool
) -> None:
    table = make_table(rows, distinct, seed)
    generator = np.random.default_rng(seed)
    ids = generator.integers(max(2, rows // 4), size=rows) if groups else None
    ranks = generator.integers(4, size=rows)
    if len(np.unique(_units(table, ids))) == 1:
        with pytest.raises(ValueError, match="all rows are equal or of one group"):
            hold_out(table, ranks, fraction, groups=ids, generator=generator)
        return
    held = hold_out(table, ranks, fraction, groups=ids, generator=generator)
    assert 0 < held.sum() < rows
    for left in np.flatnonzero(held):
        twins = (table.numbers == table.numbers[left]).all(axis=1)
        assert held[twins].all()
        if ids is not None:
            assert held[ids == ids[left]].all()


def test_share_and_classes() -> None:
    table = RawTable(np.arange(10_000.0)[:, None], np.zeros((10_000, 0), np.int64))
    ranks = np.repeat([0, 1, 2], [9000, 900, 100])
    held = hold_out(table, ranks, 0.1, generator=np.random.default_rng(0))
    assert np.bincount(ranks[held]).tolist() == pytest.approx([900, 90, 10], abs=1)


def test_missing_values_and_signed_zeros_are_equal() -> None:
    numbers = np.array([[np.nan, 0.0], [np.nan, -0.0], [1.0, 2.0], [3.0, 4.0]])
    table = RawTable(numbers, np.zeros((4, 0), np.int64))
    for seed in range(20):
        held = hold_out(table, np.zeros(4, int), 0.4, generator=np.random.default_rng(seed))
        assert held[0] == held[1]


def test_wrong_fraction() -> None:
    with pytest.raises(ValueError, match=r"between 0 and 1; got 1\.5"):
        hold_out(make_table(9, 9), np.zeros(9, int), 1.5, generator=np.random.default_rng(0))


@pytest.mark.parametrize("size", [1, 2, 5, 20])
@pytest.mark.parametrize("fraction", [0.05, 0.2, 0.5])
def test_groups_of_any_size_are_held_out_in_their_share(size: int, fraction: float) -> None:
    table = RawTable(np.arange(2000.0)[:, None], np.zeros((2000, 0), np.int64))
    groups, ranks = np.arange(2000) // size, np.arange(2000) // size % 4
    held = hold_out(table, ranks, fraction, groups=groups, generator=np.random.default_rng(0))
    assert abs(held.mean() - fraction) <= max(0.005, size / 2000)
    for rank in range(4):
        assert abs(held[ranks == rank].mean() - fraction) <= 4 * size / 2000 + 0.005


def test_equal_texts_and_images_stay_on_one_side() -> None:
    texts = [f"a text of enough words to be remembered {i // 2}" for i in range(100)]
    frame = pd.DataFrame({"text": texts, "x": np.arange(100.0)})
    table = TableSchema.of(frame, text="text").read(frame)
    held = hold_out(table, np.arange(100) % 3, 0.3, generator=np.random.default_rng(0))
    assert (held[::2] == held[1::2]).all()
    assert 28 <= held.sum() <= 32
    number = folds(table, 5, generator=np.random.default_rng(0))
    assert (number[::2] == number[1::2]).all()
    for common in ("", "very good course"):  # what many write does not tie their rows together
        table = TableSchema.of(frame, text="text").read(frame.assign(text=common))
        held = hold_out(table, np.arange(100) % 3, 0.3, generator=np.random.default_rng(0))
        assert 28 <= held.sum() <= 32
    alone = frame[["text"]].assign(text=["good", "bad"] * 50)
    table = TableSchema.of(alone, text="text").read(alone)
    held = hold_out(table, np.arange(100) % 3, 0.3, generator=np.random.default_rng(0))
    assert len(set(held[::2])) == len(set(held[1::2])) == 1  # as rows that are equal in all columns
