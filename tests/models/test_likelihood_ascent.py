"""The likelihood and its derivatives, and every way to its maximum."""

import numpy as np
import pytest

from echelon.models.cumulative import (
    fit_cumulative,
    robust_covariance,
    row_scores,
)
from echelon.models.links import LINKS
from tests.models.test_cumulative import NOISE, made


def numeric_log_likelihood(link: str, x, ranks, weight, beta, cuts) -> float:
    """Straight from the definition, with a subtraction."""
    cdf = np.concatenate([[-np.inf], cuts, [np.inf]])
    score = x @ beta
    upper, lower = cdf[ranks + 1] - score, cdf[ranks] - score
    p = NOISE[link].cdf(upper) - NOISE[link].cdf(lower)
    return float(weight @ np.log(p))


@pytest.mark.parametrize("link", LINKS)
def test_gradient_and_covariance_equal_differences(link: str) -> None:
    """An independent reference: finite differences of the likelihood as it is defined."""
    x, ranks = made(120, 2, 4, link=link, seed=3)
    x = (x - x.mean(0)) / x.std(0) + 1.0
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=len(x))
    fit = fit_cumulative(x, ranks, 4, link=link, weight=weight)
    best = np.append(fit.coefficients, fit.cutpoints)

    def value(theta: np.ndarray) -> float:
        return numeric_log_likelihood(link, x, ranks, weight, theta[:2], theta[2:])

    h, size = 1e-4, len(best)
    unit = np.eye(size) * h
    gradient = [(value(best + unit[i]) - value(best - unit[i])) / (2 * h) for i in range(size)]
    np.testing.assert_allclose(gradient, 0, atol=1e-5)
    hessian = np.array(
        [
            [
                value(best + unit[i] + unit[j])
                - value(best + unit[i] - unit[j])
                - value(best - unit[i] + unit[j])
                + value(best - unit[i] - unit[j])
                for j in range(size)
            ]
            for i in range(size)
        ]
    ) / (4 * h * h)
    np.testing.assert_allclose(np.linalg.inv(-hessian), fit.covariance, rtol=1e-4, atol=1e-6)
    # and away from the maximum, row by row
    elsewhere = best + 0.3 * np.arange(size)
    moved = type(fit)(
        **{
            **fit.__dict__,
            "coefficients": elsewhere[:2],
            "centred_cutpoints": elsewhere[2:] - fit.centre @ elsewhere[:2],
        }
    )
    slopes = [
        (value(elsewhere + unit[i]) - value(elsewhere - unit[i])) / (2 * h) for i in range(size)
    ]
    np.testing.assert_allclose(weight @ row_scores(moved, x, ranks), slopes, rtol=1e-5, atol=1e-4)


def test_aliased_columns_are_named_and_left_out() -> None:
    x, ranks = made(200, 3)
    more = np.column_stack([x[:, 0], np.full(len(x), 7.0), x[:, 1], x[:, 0] - 2 * x[:, 1], x[:, 2]])
    fit = fit_cumulative(more, ranks, 4)
    assert fit.aliased == (1, 3)
    assert not fit.separated
    np.testing.assert_array_equal(fit.coefficients[[1, 3]], 0)
    assert np.isnan(fit.covariance[[1, 3]]).all()
    whole = fit_cumulative(x, ranks, 4)
    np.testing.assert_allclose(fit.coefficients[[0, 2, 4]], whole.coefficients, rtol=1e-8)
    kept = [0, 2, 4, 5, 6, 7]
    np.testing.assert_allclose(fit.covariance[np.ix_(kept, kept)], whole.covariance, rtol=1e-6)
    robust = robust_covariance(fit, more, ranks)
    np.testing.assert_allclose(
        robust[np.ix_(kept, kept)], robust_covariance(whole, x, ranks), rtol=1e-6
    )
    assert fit_cumulative(more, ranks, 4, ridge=1.0).aliased == (1,)


def test_wide_tables_take_the_way_of_l_bfgs_to_the_same_place(monkeypatch) -> None:
    x, ranks = made(400, 6, 5)
    straight = fit_cumulative(x, ranks, 5, ridge=0.5)
    monkeypatch.setattr("echelon.models.cumulative._WIDE", 1)
    around = fit_cumulative(x, ranks, 5, ridge=0.5)
    assert around.iterations < straight.iterations
    np.testing.assert_allclose(around.coefficients, straight.coefficients, rtol=1e-7)


def test_more_columns_than_rows_can_be_fitted_with_a_penalty() -> None:
    rng = np.random.default_rng(0)
    x, ranks = rng.normal(size=(40, 400)), np.arange(40) % 3
    fit = fit_cumulative(x, ranks, 3, ridge=1.0)
    assert fit.converged
    assert fit_cumulative(x[:, :60], ranks, 3).separated
