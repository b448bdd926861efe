"""Tables of a cumulative link model with known parameters, and what tests find in many of them."""

import numpy as np
from scipy import stats

from echelon.models.cumulative import fit_cumulative
from echelon.models.proportionality import SlopeRows, brant_test, likelihood_ratio_test

BETA = np.array([0.8, -0.5])
CUTS = np.array([-1.2, 0.3, 1.6])
NOISE = {"logit": stats.logistic, "probit": stats.norm, "cloglog": stats.gumbel_l}


def simulated(
    seed: int, n: int = 500, *, link: str = "logit", violation: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """A column of numbers and one of 0 and 1.

    With a violation v the slope of the first column is 0.8 - v at the lowest threshold, 0.8 at the
    middle and 0.8 + v at the highest one.
    """
    rng = np.random.default_rng([seed, 77])
    x = np.column_stack([rng.normal(size=n), rng.integers(0, 2, n)])
    slopes = BETA + violation * np.outer([-1.0, 0.0, 1.0], [1.0, 0.0])
    ends = CUTS - x @ slopes.T
    below = NOISE[link].cdf(np.maximum.accumulate(ends, axis=1))
    return x, (rng.uniform(size=n)[:, None] > below).sum(axis=1)


def rejections(tables: int, *, n: int = 500, violation: float = 0.0) -> dict[str, float]:
    """The share of tables in which each test of equal slopes has a p-value below 0.05."""
    found: dict[str, list[bool]] = {"brant": [], "likelihood_ratio": []}
    for seed in range(tables):
        x, ranks = simulated(seed, n, violation=violation)
        rows = SlopeRows(x, ranks, 4, "logit", np.ones(n), {"a": [0], "b": [1]})
        equal = fit_cumulative(x, ranks, 4).log_likelihood
        tests = {
            "brant": brant_test(rows),
            "likelihood_ratio": likelihood_ratio_test(rows, equal),
        }
        for name, test in tests.items():
            assert test.overall is not None
            assert test.overall.p_value is not None
            found[name].append(test.overall.p_value < 0.05)
    return {name: float(np.mean(each)) for name, each in found.items()}
