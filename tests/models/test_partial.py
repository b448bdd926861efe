"""Partial proportional odds: its derivatives, its maximum, and thresholds that cross."""

import numpy as np
import pytest
from scipy import optimize, stats

from echelon.models.cumulative import fit_cumulative
from echelon.models.links import LINKS
from echelon.models.partial import fit_partial, slope_places

CDF = {"logit": stats.logistic.cdf, "probit": stats.norm.cdf, "cloglog": stats.gumbel_l.cdf}


def made(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    latent = x[:, 0] + rng.logistic(size=n) * np.exp(0.3 * x[:, 1])
    return x * [1.0, 10.0] + 3.0, np.digitize(latent, [-1.5, 0.0, 1.5])


def log_likelihood(theta, x, ranks, weight, link: str, places) -> float:
    cuts = theta[len(theta) - 3 :]
    at_most = CDF[link](cuts - x @ theta[places].T)
    p = np.diff(at_most, axis=1, prepend=0.0, append=1.0)[np.arange(len(x)), ranks]
    return float(weight @ np.log(np.maximum(p, 1e-300)))


@pytest.mark.parametrize("link", LINKS)
def test_is_the_maximum_with_the_curvature_of_differences(link: str) -> None:
    x, ranks = made()
    weight = np.random.default_rng(1).integers(1, 4, len(x)).astype(float)
    fit = fit_partial(x, ranks, 4, [1], link=link, weight=weight)
    assert fit.converged
    places = slope_places(2, [1], 4)
    best = np.zeros(7)
    best[places] = fit.slopes
    best[4:] = fit.cutpoints
    value = lambda theta: log_likelihood(theta, x, ranks, weight, link, places)  # noqa: E731
    assert value(best) == pytest.approx(fit.log_likelihood, abs=1e-8)
    np.testing.assert_allclose(optimize.approx_fprime(best, value, 1e-6), 0, atol=0.05)
    h = 1e-4 * np.eye(7)
    hessian = [
        [
            (value(best + a + b) - value(best + a - b) - value(best - a + b) + value(best - a - b))
            / (4e-8)
            for b in h
        ]
        for a in h
    ]
    inverse = np.linalg.inv(-np.array(hessian))
    errors, expected = np.sqrt(np.diag(fit.covariance)), np.sqrt(np.diag(inverse))
    np.testing.assert_allclose(errors, expected, rtol=2e-3)


def test_without_free_slopes_it_is_the_proportional_fit() -> None:
    x, ranks = made()
    equal, partial = fit_cumulative(x, ranks, 4), fit_partial(x, ranks, 4, [])
    np.testing.assert_allclose(partial.covariance, equal.covariance, rtol=1e-9)
    assert partial.log_likelihood == pytest.approx(equal.log_likelihood, abs=1e-10)
    assert fit_partial(x, ranks, 4, [0, 1]).log_likelihood > equal.log_likelihood


def test_curves_that_cross_are_put_in_order() -> None:
    x, ranks = made()
    fit = fit_partial(x, ranks, 4, [1])
    far = np.array([[3.0, -200.0], [3.0, 200.0]])
    assert (np.diff(fit.ends(far), axis=1) < 0).any()
    p = np.exp(fit.log_probabilities(far))
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-12)
    assert (p >= 0).all()


def test_aliased_and_separating_columns_are_told() -> None:
    x, ranks = made()
    more = np.column_stack([x, x[:, 0] * 2])
    fit = fit_partial(more, ranks, 4, [2])
    assert fit.aliased == (2,)
    assert np.isnan(np.diag(fit.covariance)[2:5]).all()
    mark = (ranks == 3) & (np.arange(len(ranks)) % 9 == 0)
    assert fit_partial(np.column_stack([x, mark]), ranks, 4, [2]).separated
