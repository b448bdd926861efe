"""Logarithms of interval probabilities: exact in value and gradient, however far and narrow."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from echelon.functional._intervals import log_normal_cdf, log_normal_interval


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normal_tail_has_the_right_value_and_gradient(dtype: torch.dtype) -> None:
    x = torch.tensor([-1e4, -300, -50, -15.01, -14.99, -5, 0, 5, 40], dtype=dtype)
    x.requires_grad_()
    value = log_normal_cdf(x)
    (slope,) = torch.autograd.grad(value.sum(), x)
    exact = x.detach().double().numpy()
    precision = 1e-6 if dtype == torch.float32 else 1e-10
    np.testing.assert_allclose(value.detach(), norm.logcdf(exact), rtol=precision, atol=1e-30)
    mills = np.exp(norm.logpdf(exact) - norm.logcdf(exact))
    far = exact < -1000  # where the difference of two logarithms of 5e7 says nothing
    mills[far] = -exact[far] - 1 / exact[far]
    np.testing.assert_allclose(slope, mills, rtol=2e-5 if dtype == torch.float32 else 1e-9)


@given(
    lower=st.floats(-1e4, 1e4),
    log_width=st.floats(-40, 9),
)
def test_normal_interval_is_continuous_over_its_branches(lower: float, log_width: float) -> None:
    """Two neighbouring intervals add up to the interval over both."""
    width = math.exp(log_width)
    start = torch.tensor(lower, dtype=torch.float64)

    def piece(offset: float, share: float) -> torch.Tensor:
        return log_normal_interval(
            start + offset,
            start + offset + width * share, torch.tensor(width * share).double(),
            torch.tensor(log_width + math.log(share)).double(),
        )  # fmt: skip

    halves = torch.logaddexp(piece(0, 0.5), piece(width / 2, 0.5))
    whole = piece(0, 1.0)
    torch.testing.assert_close(halves, whole, rtol=1e-7, atol=1e-7)
