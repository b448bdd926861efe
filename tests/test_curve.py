"""What is read off a curve."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from echelon import RankCurve


@st.composite
def curves(draw: st.DrawFn) -> RankCurve:
    num_classes, seed = draw(st.integers(2, 9)), draw(st.integers(0, 2**31))
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(5, num_classes, generator=generator) * draw(st.sampled_from([0.1, 3, 30]))
    return RankCurve(torch.log_softmax(logits.double(), -1))


def expected_cost(curve: RankCurve, costs: Tensor) -> Tensor:
    """Expected cost of every possible label, (rows, K), by a plain sum."""
    rows = []
    for p in curve.probabilities:
        rows.append([sum(p[i] * costs[i, j] for i in range(len(p))) for j in range(len(p))])
    return torch.tensor(rows, dtype=torch.float64)


@given(curves())
def test_each_decision_minimises_its_own_cost(curve: RankCurve) -> None:
    ranks = torch.arange(curve.num_classes)
    difference = ranks.unsqueeze(0) - ranks.unsqueeze(1)
    decisions = {
        "absolute": (difference.abs(), curve.median()),
        "squared": (difference.square(), curve.mean().round().long()),
        "zero-one": ((difference != 0).long(), curve.mode()),
        "skewed": (torch.where(difference > 0, 3, 1) * difference.abs(), None),
    }
    for costs, label in decisions.values():
        by_cost = curve.decide(costs)
        cost = expected_cost(curve, costs.double())
        best = cost.min(-1).values
        for one in (by_cost, label) if label is not None else (by_cost,):
            chosen = cost.gather(1, one.unsqueeze(1)).squeeze(1)
            torch.testing.assert_close(chosen, best, rtol=1e-9, atol=1e-9)


@given(curves())
def test_mean_is_the_expected_rank(curve: RankCurve) -> None:
    ranks = torch.arange(curve.num_classes, dtype=torch.float64)
    torch.testing.assert_close(curve.mean(), curve.probabilities @ ranks)


def test_ties_go_to_the_lower_rank() -> None:
    half = RankCurve(torch.tensor([[0.5, 0.0, 0.5]]).log())
    assert half.median().item() == 0
    assert half.mode().item() == 0
    assert half.decide(torch.tensor([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]])).item() == 0


def test_equal_costs_are_equal_whatever_rounding_says() -> None:
    """With tenths, whose sums are not exact, the cheapest label is still the lowest of equals."""
    ranks = torch.arange(6)
    absolute = (ranks.unsqueeze(0) - ranks.unsqueeze(1)).abs()
    for shares in itertools.product(range(6), repeat=5):
        if sum(shares) > 10:
            continue
        row = torch.tensor([[*shares, 10 - sum(shares)]]) / 10
        curve = RankCurve(row.log())
        assert curve.decide(absolute) == curve.median(), shares


def test_rounding_does_not_decide_a_tie() -> None:
    # 0.1 + 0.2 + 0.2 is not 0.5 in binary, on either side, whatever the order of summation.
    for row in ([0.5, 0.1, 0.2, 0.2], [0.1, 0.2, 0.2, 0.5], [0.2, 0.3, 0.3, 0.2]):
        for dtype in (torch.float32, torch.float64):
            curve = RankCurve(torch.tensor([row], dtype=dtype).log())
            cumulative = torch.tensor(row).cumsum(0)
            lowest = next(k for k, share in enumerate(cumulative.tolist()) if share > 0.5 - 1e-6)
            assert curve.median().item() == lowest


def test_cost_matrix_is_checked() -> None:
    curve = RankCurve(torch.zeros(2, 3))
    with pytest.raises(
        ValueError, match=r"shape \(3, 3\), true rank by predicted rank; got \(2, 2\)"
    ):
        curve.decide(torch.zeros(2, 2))
    with pytest.raises(ValueError, match="must be finite"):
        curve.decide(torch.full((3, 3), float("inf")))


def test_repr_says_what_it_holds() -> None:
    assert repr(RankCurve(torch.zeros(2, 7, 3))) == "RankCurve(rows=(2, 7), num_classes=3)"


def test_crossings_are_the_largest_rise() -> None:
    raw = torch.tensor([[0.9, 0.5, 0.7, 0.4, 0.6], [0.9, 0.8, 0.7, 0.7, 0.1]])
    curve = RankCurve(torch.zeros(2, 6), raw_exceedance=raw)
    torch.testing.assert_close(curve.crossings(), torch.tensor([0.2, 0.0]))


def test_numpy_and_lists_are_taken_for_tensors() -> None:
    logs = torch.tensor([[0.5, 0.2, 0.3], [0.1, 0.2, 0.7]]).log()
    curve = RankCurve(logs)
    cuts, costs = [0.7, 1.2], [[0.0, 1, 2], [1, 0, 1], [9, 9, 0]]
    frozen = np.array(cuts)
    frozen.flags.writeable = False
    for numbers in (frozen, cuts):
        assert torch.equal(curve.cut(numbers), curve.cut(torch.tensor(cuts)))
        assert torch.equal(curve.label(numbers), curve.cut(torch.tensor(cuts)))
    for numbers in (np.array(costs), costs):
        assert torch.equal(curve.decide(numbers), curve.decide(torch.tensor(costs)))
        assert torch.equal(curve.label(numbers), curve.decide(torch.tensor(costs)))
    assert torch.equal(curve.rows(np.array([1])).median(), curve.median()[1:])
    assert torch.equal(RankCurve(logs.numpy()).probabilities, curve.probabilities)
    with pytest.raises(ValueError, match=r"cutpoints must have the shape \(2,\); got \(3,\)"):
        curve.cut(np.zeros(3))
