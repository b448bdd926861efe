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
