"""Sketches: within the stated error everywhere, and the same in whatever order they are merged."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon.data.sketches import RANK_ERROR, DistinctSketch, FrequentSketch, QuantileSketch

SHARES = np.linspace(0, 1, 1001)


def farthest(sketch: QuantileSketch, numbers: np.ndarray) -> float:
    """The largest distance of a quantile's share from the ranks that its number has."""
    ordered = np.sort(numbers)
    guess = sketch.quantiles(SHARES)
    low = np.searchsorted(ordered, guess, side="left") / len(ordered)
    high = np.searchsorted(ordered, guess, side="right") / len(ordered)
    return float(np.maximum(low - SHARES, SHARES - high).max())


COLUMNS = {
    "uniform": lambda rng: rng.random(500_000),
    "heavy": lambda rng: rng.standard_cauchy(500_000),
    "ascending": lambda rng: np.arange(500_000.0),
    "descending": lambda rng: -np.arange(500_000.0),
    "few values": lambda rng: rng.poisson(2.0, 500_000).astype(float),
    "one far away": lambda rng: np.append(rng.normal(size=500_000), 1e20),
    "small": lambda rng: rng.random(37),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_quantiles_lie_within_the_error_everywhere(name: str) -> None:
    numbers = COLUMNS[name](np.random.default_rng(0))
    sketch = QuantileSketch()
    for chunk in np.array_split(numbers, 23):
        sketch.add(chunk)
    assert farthest(sketch, numbers) <= RANK_ERROR
    assert sketch.quantiles([0.0, 1.0]).tolist() == [numbers.min(), numbers.max()]
    assert sum(map(len, sketch.levels)) < 8000
    assert sketch.count == len(numbers)


def test_sketches_add_up_in_any_order_within_the_error() -> None:
    rng = np.random.default_rng(1)
    numbers = np.sort(rng.lognormal(size=300_000))  # every file another range
    for order in (range(20), reversed(range(20)), rng.permutation(20)):
        chunks = np.array_split(numbers, 20)
        sketches = []
        for seed, chunk in enumerate(chunks):
            sketches.append(QuantileSketch(seed))
            sketches[-1].add(chunk)
        whole = QuantileSketch()
        for place in order:
            whole.merge(sketches[place])
        assert whole.count == len(numbers)
        assert farthest(whole, numbers) <= RANK_ERROR


def test_few_numbers_are_kept_as_they_are() -> None:
    sketch = QuantileSketch()
    sketch.add(np.array([3.0, 1.0, 2.0]))
    assert sketch.quantiles([0, 0.34, 0.5, 1]).tolist() == [1.0, 2.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="no numbers"):
        QuantileSketch().quantiles([0.5])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from("abcdefghij"), min_size=1), st.integers(1, 6), st.randoms())
def test_a_sample_of_cells_does_not_depend_on_their_order(cells, parts, random) -> None:
    def sketched(order: list[str]) -> DistinctSketch:
        whole = DistinctSketch(size=4)
        for some in np.array_split(np.array(order, dtype=object), parts):
            part = DistinctSketch(size=4)
            part.add(some)
            whole.merge(part)
        return whole

    shuffled = list(cells)
    random.shuffle(shuffled)
    first, second = sketched(cells), sketched(shuffled)
    assert first.cells.tolist() == second.cells.tolist()
    assert first.counts.tolist() == second.counts.tolist()
    for cell, count in zip(first.cells, first.counts, strict=True):
        assert cells.count(cell) == count
    assert first.is_whole == (len(set(cells)) <= 4)


def test_the_share_of_different_cells_is_that_of_all_rows() -> None:
    """A column with a value for every row is told from one with a value for every two."""
    unique, twice = DistinctSketch(), DistinctSketch()
    for start in range(0, 200_000, 50_000):
        unique.add(np.arange(start, start + 50_000))
        twice.add(np.arange(start, start + 50_000) // 2)
    assert unique.share == 1.0
    assert twice.share == 0.5


def test_frequent_cells_are_counted_within_the_error() -> None:
    rng = np.random.default_rng(0)
    rare = [f"r{i}" for i in rng.integers(0, 1_000_000, 100_000)]
    often = [f"c{i}" for i in range(50) for _ in range(1000)]
    cells = np.array(rare + often, dtype=object)
    rng.shuffle(cells)
    whole = FrequentSketch()
    for some in np.array_split(cells, 10):
        part = FrequentSketch()
        part.add(some.tolist())
        whole.merge(part)
    assert whole.error <= len(cells) / 4096
    top = dict(whole.counts.most_common(50))
    assert set(top) == {f"c{i}" for i in range(50)}
    assert all(1000 - whole.error <= count <= 1000 for count in top.values())
