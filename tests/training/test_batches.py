"""What an epoch draws: every row, and heavy ones more often."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from echelon.data.inputs import Inputs
from echelon.data.kinds.text import TokenLists
from echelon.training.batches import Draws, EncodedRows, count_batches, shuffled_batches

weights = hnp.arrays(
    np.float64, st.integers(1, 60), elements=st.floats(0, 1e6, allow_subnormal=False)
).filter(lambda w: w.any())


@given(weights, st.booleans())
def test_a_row_weighs_its_weight_over_an_epoch(weight: np.ndarray, once: bool) -> None:
    draws = Draws.of(torch.from_numpy(weight), len(weight), once=once)
    each = torch.ones(len(weight)) if draws.weight is None else draws.weight
    counted = torch.bincount(draws.rows, weights=each[draws.rows].double(), minlength=len(weight))
    np.testing.assert_allclose(counted / counted.sum(), weight / weight.sum(), atol=1e-6)
    assert each[draws.rows].mean().item() == pytest.approx(1, rel=1e-5)


@given(weights)
def test_no_draw_weighs_much_more_than_the_average_row(weight: np.ndarray) -> None:
    draws = Draws.of(torch.from_numpy(weight), len(weight))
    assert len(draws.rows) <= 2 * len(weight)
    if draws.weight is not None:
        # at most the mean weight of a row, which is shared by up to twice as many draws
        assert draws.weight.max() <= 2.0 + 1e-5
    drawn = np.unique(draws.rows.numpy())
    np.testing.assert_array_equal(drawn, np.flatnonzero(weight))


@pytest.mark.parametrize("weight", [None, torch.ones(5), torch.full((5,), 3.0)])
def test_equal_weights_are_none(weight: torch.Tensor | None) -> None:
    draws = Draws.of(weight, 5)
    assert draws.weight is None
    assert draws.rows.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_scale_of_the_weights_does_not_matter(scale: float) -> None:
    weight = torch.tensor([1.0, 2.0, 9.0, 0.5], dtype=torch.float64)
    one, other = Draws.of(weight, 4), Draws.of(weight * scale, 4)
    assert torch.equal(one.rows, other.rows)
    torch.testing.assert_close(one.weight, other.weight)


def test_batches_hold_texts_of_like_length() -> None:
    lengths = np.random.default_rng(0).integers(1, 200, size=1000)
    inputs = Inputs({"text": TokenLists.of([[2] * length for length in lengths])})
    rows, every = EncodedRows(inputs, torch.zeros(1000, dtype=torch.long)), torch.arange(1000)
    one, same, other = (
        shuffled_batches(rows, every, 16, False, torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert sorted(torch.cat(one).tolist()) == list(range(1000))
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    padded = sum(len(batch) * lengths[batch].max() for batch in one)
    assert padded < 1.1 * lengths.sum()
    assert np.corrcoef([lengths[b].mean() for b in one], range(len(one)))[0, 1] < 0.5
    full = shuffled_batches(rows, every, 16, True, torch.Generator().manual_seed(1))
    assert {len(batch) for batch in full} == {16}
    shared = shuffled_batches(rows, every, 9, False, torch.Generator().manual_seed(1), least=2)
    assert min(map(len, shared)) >= 2  # 1000 = 111 * 9 + 1
    for made, asked in ((one, (16, False)), (full, (16, True)), (shared, (9, False, 2))):
        assert len(made) == count_batches(1000, *asked)
