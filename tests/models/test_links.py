"""The links in float64: exact in the tails, and true to their derivatives."""

import mpmath
import numpy as np
import pytest

from echelon.models.links import LINKS, link_of


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("place", [-30.0, -8.0, -1.0, 0.0, 1.0, 4.0])
@pytest.mark.parametrize("width", [1e-9, 1e-3, 0.3, 3.0])
def test_intervals_equal_mpmath_in_far_tails(link: str, place: float, width: float) -> None:
    mpmath.mp.dps = 60
    cdf = {
        "logit": lambda z: 1 / (1 + mpmath.exp(-z)),
        "probit": mpmath.ncdf,
        "cloglog": lambda z: 1 - mpmath.exp(-mpmath.exp(z)),
    }[link]
    lower, upper = mpmath.mpf(place), mpmath.mpf(place) + mpmath.mpf(width)
    expected = float(mpmath.log(cdf(upper) - cdf(lower)))
    found = link_of(link).log_interval(*(np.array([v]) for v in (place, place + width, width)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("link", LINKS)
def test_a_link_agrees_with_itself(link: str) -> None:
    """Both sides add up to 1, the quantile is the inverse, densities and slopes are derivatives."""
    row, x, h = link_of(link), np.linspace(-4.0, 2.0, 25), 1e-5
    np.testing.assert_allclose(np.logaddexp(row.log_cdf(x), row.log_survival(x)), 0, atol=1e-12)
    np.testing.assert_allclose(row.quantile(np.exp(row.log_cdf(x))), x, rtol=1e-9, atol=1e-9)
    rise = (np.exp(row.log_cdf(x + h)) - np.exp(row.log_cdf(x - h))) / (2 * h)
    np.testing.assert_allclose(np.exp(row.log_density(x)), rise, rtol=1e-6)
    bend = (row.log_density(x + h) - row.log_density(x - h)) / (2 * h)
    np.testing.assert_allclose(row.slope(x), bend, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["log", None, 3])
def test_a_link_that_there_is_not_is_told_all_that_there_are(name) -> None:
    with pytest.raises(ValueError, match="link must be one of 'logit', 'probit', 'cloglog'; got"):
        link_of(name)
