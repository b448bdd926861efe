"""The weights of tasks, and the bound that they are for."""

import numpy as np
import pytest

from echelon.models.train_costs import COSTS, task_weights


def test_absolute_costs_weigh_all_tasks_alike() -> None:
    assert (task_weights("absolute", 5) == 1).all()


@pytest.mark.parametrize("name", COSTS)
def test_mistakes_of_the_tasks_bound_the_cost(name: str) -> None:
    """Of answers that fall with the threshold; of any answers where the costs are convex."""
    rng = np.random.default_rng(0)
    ranks = np.arange(6)
    costs = COSTS[name](np.subtract.outer(ranks, ranks).astype(float))
    weights = task_weights(name, 6)
    np.testing.assert_array_equal(weights, task_weights(costs, 6))
    for _ in range(2000):
        answers = rng.random(5) > 0.5
        if name == "zero_one":
            answers = np.sort(answers)[::-1]
        truth, given = int(rng.integers(6)), int(answers.sum())
        mistakes = answers != (truth > np.arange(5))
        assert costs[truth, given] <= weights[truth] @ mistakes + 1e-12


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("cubic", "train_cost must be one of 'absolute', 'squared', 'zero_one', or a matrix"),
        (np.ones((2, 2)), r"of the shape \(3, 3\).*got the shape \(2, 2\)"),
        (np.array([[0, 1, np.nan], [1, 0, 1], [1, 1, 0]]), "finite numbers"),
        (np.array([[0, 2, 1], [1, 0, 1], [2, 1, 0]]), "fall to 0 at the true rank and rise"),
        (np.array([[1, 2, 3], [1, 0, 1], [2, 1, 0]]), "fall to 0 at the true rank and rise"),
        (np.zeros((3, 3)), "tell every two neighbouring ranks apart"),
    ],
)
def test_costs_that_a_reduction_cannot_learn(cost, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task_weights(cost, 3)
