"""The interior-point method against a general solver, and at its limits."""

import numpy as np
from scipy.optimize import linprog

from echelon.models.interior_point import Demands, minimise


def demands(n: int = 30, *, ordered: bool, penalty: float = 1.0, seed: int = 0) -> Demands:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    ranks = np.digitize(x @ [1.0, -0.5] + 0.6 * rng.normal(size=n), [-0.6, 0.0, 0.6])
    above = ranks[:, None] - np.arange(3)
    sign = np.where(above > 0, 1.0, -1.0)
    if ordered:
        sign = sign * ((above == 0) | (above == 1))
    cost = rng.uniform(0.2, 2.0, size=(n, 3))
    return Demands(x, sign, cost, np.eye(3), np.array([penalty, penalty, 0, 0, 0]), ordered)


def test_no_point_near_the_minimum_is_better() -> None:
    rng = np.random.default_rng(0)
    for ordered in (False, True):
        problem = demands(ordered=ordered)
        found = minimise(problem, 1e-11)
        assert found.gap < 1e-10
        assert found.objective == problem.objective(found.point)
        for size in (1e-3, 1e-2, 0.1):
            for _ in range(100):
                other = found.point + size * rng.normal(size=5)
                if ordered and (np.diff(other[2:]) < 0).any():
                    continue
                assert problem.objective(other) >= found.objective


def test_with_hardly_any_penalty_it_is_a_linear_program() -> None:
    """Which another method of scipy solves."""
    for ordered in (False, True):
        problem = demands(ordered=ordered, penalty=1e-9)
        found = minimise(problem, 1e-11)
        rows, columns = np.nonzero(problem.sign)
        sign = problem.sign[rows, columns]
        margins = np.column_stack([problem.features[rows], -np.eye(3)[columns]]) * sign[:, None]
        slack = np.eye(len(rows))
        above = -np.column_stack([margins, slack])
        if ordered:
            steps = np.zeros((2, above.shape[1]))
            steps[:, 2:5] = -np.diff(np.eye(3), axis=0)
            above = np.concatenate([above, steps])
        limits = np.concatenate([-np.ones(len(rows)), np.zeros(len(above) - len(rows))])
        cost = np.concatenate([np.zeros(5), problem.cost[rows, columns]])
        bounds = [(None, None)] * 5 + [(0, None)] * len(rows)
        expected = linprog(cost, A_ub=above, b_ub=limits, bounds=bounds)
        np.testing.assert_allclose(found.objective, expected.fun, rtol=1e-6)


def test_the_duals_make_the_coefficients() -> None:
    problem = demands(ordered=False)
    found = minimise(problem, 1e-11)
    np.testing.assert_allclose(found.duals @ problem.features, found.point[:2], atol=1e-7)


def test_the_order_is_kept_where_it_costs_something() -> None:
    """Ranks of one feature of which the middle one lies above the highest, which has more rows."""
    x = np.array([[0.0], [0.2], [3.0], [3.2], [1.0], [1.1], [1.2], [1.3]])
    ranks = np.array([0, 0, 1, 1, 2, 2, 2, 2])
    above = ranks[:, None] - np.arange(2)
    sign = np.where(above > 0, 1.0, -1.0) * ((above == 0) | (above == 1))
    common = (x, sign, np.tile([20.0, 1.0], (8, 1)), np.eye(2), np.array([1.0, 0.0, 0.0]))
    free = minimise(Demands(*common, ordered=False), 1e-10).point
    kept = minimise(Demands(*common, ordered=True), 1e-10).point
    assert free[1] > free[2] + 0.1
    assert abs(kept[1] - kept[2]) < 1e-4


def test_extreme_costs_and_features_end_in_numbers() -> None:
    for factor in (1e-6, 1e6):
        problem = demands(ordered=False)
        scaled = Demands(
            problem.features * factor,
            problem.sign,
            problem.cost / factor,
            problem.to_cutpoints,
            problem.penalty,
            ordered=False,
        )
        found = minimise(scaled, 1e-10)
        assert np.isfinite(found.point).all()
        assert found.gap < 1e-5
