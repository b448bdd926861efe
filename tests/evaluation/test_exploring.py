"""The rows that the page shows are those that the orders promise."""

import numpy as np

from echelon.evaluation.exploring import explored_orders


def test_the_orders_are_by_error_surprise_and_uncertainty() -> None:
    generator = np.random.default_rng(0)
    p = generator.dirichlet(np.ones(4), size=400)
    truth, prediction = generator.integers(0, 4, 400), p.argmax(axis=1)
    orders = explored_orders(truth, prediction, p)
    assert {name: len(order) for name, order in orders.items()} == dict.fromkeys(
        ("error", "surprise", "uncertainty"), 150
    )
    errors = np.abs(truth - prediction)
    assert (np.diff(errors[orders["error"]]) <= 0).all()
    assert (np.diff(p[np.arange(400), truth][orders["surprise"]]) >= 0).all()
    entropy = -(p * np.log(p)).sum(axis=1)
    assert (np.diff(entropy[orders["uncertainty"]]) <= 1e-12).all()
