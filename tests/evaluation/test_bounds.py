"""The theorem of the paper, on data."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from echelon import METHODS, method
from echelon.evaluation import cost_bound
from echelon.evaluation.metrics import mae


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    num_classes, rows = draw(st.integers(2, 7)), draw(st.integers(1, 12))
    truth = draw(arrays("int64", rows, elements=st.integers(0, num_classes - 1)))
    exceedance = draw(arrays("float64", (rows, num_classes - 1), elements=st.floats(0, 1)))
    costs = draw(arrays("float64", (num_classes, num_classes), elements=st.floats(0, 100)))
    np.fill_diagonal(costs, 0)
    return truth, -np.sort(-exceedance, axis=1), costs


@given(problems())
def test_the_inequality_holds_for_any_costs(problem) -> None:
    result = cost_bound(*problem)
    assert result.expected_cost <= result.bound + 1e-9


@given(problems())
def test_both_sides_equal_a_plain_loop(problem) -> None:
    truth, exceedance, costs = problem
    cost = bound = 0.0
    for y, row in zip(truth, exceedance, strict=True):
        cost += costs[y, sum(p > 0.5 for p in row)]
        for k, p in enumerate(row):
            if (p > 0.5) != (y > k):
                bound += abs(costs[y, k] - costs[y, k + 1])
    result = cost_bound(truth, exceedance, costs)
    assert result.expected_cost == pytest.approx(cost / len(truth))
    assert result.bound == pytest.approx(bound / len(truth))


@given(problems())
def test_absolute_costs_make_it_an_equality(problem) -> None:
    truth, exceedance, costs = problem
    ranks = np.arange(len(costs))
    absolute = abs(ranks[:, None] - ranks)
    result = cost_bound(truth, exceedance, absolute)
    assert result.expected_cost == pytest.approx(result.bound)
    assert result.expected_cost == pytest.approx(mae(truth, (exceedance > 0.5).sum(1)))


@given(problems(), st.integers(1, 3))
def test_convex_costs_bound_any_curve(problem, power: int) -> None:
    """Also one that contradicts itself, as its labels are still counts of exceedances."""
    truth, exceedance, costs = problem
    generator = np.random.default_rng(len(truth))
    shuffled = generator.permuted(exceedance, axis=1)
    ranks = np.arange(len(costs))
    convex = abs(ranks[:, None] - ranks) ** power * generator.random((len(costs), 1))
    result = cost_bound(truth, shuffled, convex)
    assert result.expected_cost <= result.bound + 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_curve_it_holds_for(name: str) -> None:
    made = method(name, 5)
    torch.manual_seed(0)
    curve = made.curve(made.head(3)(torch.randn(50, 3) * 9).detach())
    costs = np.random.default_rng(0).random((5, 5)) * (1 - np.eye(5))
    result = cost_bound(np.arange(50) % 5, curve.exceedance, costs)
    assert 0 < result.expected_cost <= result.bound


def test_weights_are_whole_copies() -> None:
    truth, exceedance = [0, 2], [[0.9, 0.1], [0.9, 0.2]]
    costs = [[0, 1, 5], [1, 0, 1], [7, 1, 0]]
    twice = cost_bound([0, 2, 2], [*exceedance, exceedance[1]], costs)
    assert cost_bound(truth, exceedance, costs, sample_weight=[1, 2]) == pytest.approx(twice)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truth": [0, 3]}, r"truth must be whole numbers in 0\.\.2"),
        ({"truth": [0, 1.5]}, r"truth must be whole numbers in 0\.\.2"),
        ({"exceedance": [[0.9, 0.1]]}, r"exceedance must have the shape \(2, K-1\).*got \(1, 2\)"),
        ({"exceedance": [[0.9, 0.1], [1.2, 0.1]]}, "must be probabilities; got 0.1 to 1.2"),
        ({"exceedance": [[0.9, 0.1], [0.2, 0.9]]}, r"contradicts itself.*RankCurve\.exceedance"),
        ({"cost_matrix": np.ones((3, 3))}, "zero diagonal"),
        ({"cost_matrix": np.zeros((2, 2))}, r"shape \(3, 3\).*got \(2, 2\)"),
        ({"cost_matrix": np.full((3, 3), np.nan)}, "must be finite"),
        ({"sample_weight": [1.0, -1.0]}, "non-negative"),
    ],
)
def test_wrong_arguments(change, message: str) -> None:
    arguments = {
        "truth": [0, 2],
        "exceedance": [[0.9, 0.1], [0.9, 0.2]],
        "cost_matrix": 1 - np.eye(3),
        **change,
    }
    with pytest.raises(ValueError, match=message):
        cost_bound(**arguments)
