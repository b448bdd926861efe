"""Logarithms of the probability of an interval, without subtracting one probability from another.

Invariant: every function is finite with a finite gradient wherever the probability is not exactly
zero, also in the branch that `torch.where` throws away (an infinity there would become a NaN in the
gradient).
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid
from torch.nn.functional import softplus as torch_softplus

_LOG_2 = math.log(2)
_LOG_SQRT_2PI = math.log(2 * math.pi) / 2
_TAIL = -15.0  # below this the asymptotic series of the normal tail is exact to 1e-11
_ONNX_TAIL = -5.0  # below this ONNX has no normal distribution function; the series: to 4e-5
_SMALL_STEP = 0.1  # below this the expansion around the middle is exact to 1e-11
_MAX_EXPONENT = 80.0  # exp(80) = 5.5e34 still fits float32


def log1mexp(x: Tensor) -> Tensor:
    """log(1 - exp(-x)) for x >= 0; -inf, without a gradient, at 0."""
    nothing, small = x <= 0, x < _LOG_2
    near = torch.log(-torch.expm1(-torch.where(small & ~nothing, x, _LOG_2)))
    far = torch.log1p(-torch.exp(-torch.where(small, _LOG_2, x)))
    return torch.where(nothing, -math.inf, torch.where(small, near, far))


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)), exact in float64 too."""
    return -log_sigmoid(-x)


def quick_softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)), exact in float64 too, for losses.

    One operator that runs in the calling thread on small batches, where torch's logsigmoid wakes
    others. It may round a row by its place in the batch, which a curve must not, and its gradient
    overflows where that of the loss exceeds 1e20.
    """
    # past 40 the linear branch is exact; rows that do not lie side by side would go one by one
    return torch_softplus(x.contiguous(), 1, 40)


def log_sigmoid(x: Tensor) -> Tensor:
    """log(1 / (1 + exp(-x))), exact in float64 too.

    Torch's own function rounds a row alike wherever it stands in a batch, but an ONNX graph has the
    logarithm of a sigmoid for it, and a runtime's sigmoid ends at 1e-8, which calibration makes
    visible. So a graph gets softplus instead.
    """
    if torch.compiler.is_compiling():
        return -torch_softplus(-x, 1, 40)
    return logsigmoid(x)


def log_softplus(x: Tensor) -> Tensor:
    """log(log(1 + exp(x))), for x of any size."""
    small = x < -10
    near = x - torch.where(small, x, -10.0).exp() / 2
    far = softplus(torch.where(small, -10.0, x)).log()
    return torch.where(small, near, far)


def log_normal_cdf(x: Tensor) -> Tensor:
    """log of the standard normal distribution function.

    torch.special.log_ndtr is right in value, but in float32 its gradient is wrong by a factor in
    the far tail: 64930 instead of 10000 at -1e4.
    """
    start = _tail_start()
    in_tail = x < start
    far = torch.where(in_tail, x, start)
    tail = -far.square() / 2 - torch.log(-far) - _LOG_SQRT_2PI + _log_tail_series(far)
    near: Tensor = torch.special.log_ndtr(torch.where(in_tail, start, x))
    return torch.where(in_tail, tail, near)


def log_normal_interval(lower: Tensor, upper: Tensor, width: Tensor, log_width: Tensor) -> Tensor:
    """log of the standard normal probability of [lower, upper], of a width > 0.

    All four are asked for because neither can be had from the others: the difference of the ends
    loses a small width, a sum loses a small end, and the width may underflow while its logarithm
    does not.
    """
    middle = (lower + upper) / 2
    # By symmetry the interval can be moved to the left tail, where logarithms are exact.
    mirrored = middle > 0
    # |upper| <= |lower| from here on
    lower, upper = torch.where(mirrored, -upper, lower), torch.where(mirrored, -lower, upper)

    # A narrow interval: its width times the density in the middle, and two terms of the series.
    narrow = width * middle.abs().clamp(min=1) < _SMALL_STEP
    squared = middle.square()
    step = torch.where(narrow, width, 0.0).square()
    bend = torch.where(narrow, squared, 0.0)
    series = step * (bend - 1) / 24 + step.square() * (bend.square() - 6 * bend + 3) / 1920
    log_density = -squared / 2 - _LOG_SQRT_2PI
    log_narrow = log_density + log_width + torch.log1p(series)

    # A wide one: logcdf(upper) + log(1 - exp(-drop)) with drop = logcdf(upper) - logcdf(lower).
    start = _tail_start()
    in_tail = upper < start
    tail_upper, tail_lower = upper.clamp(max=start), lower.clamp(max=start)
    tail_drop = (
        -width * (tail_upper + tail_lower) / 2  # difference of squares, without subtracting them
        + torch.log(tail_lower / tail_upper)
        + _log_tail_series(tail_upper)
        - _log_tail_series(tail_lower)
    )
    log_cdf = log_normal_cdf(upper)
    drop = torch.where(in_tail, tail_drop, log_cdf - log_normal_cdf(lower))
    log_wide = log_cdf + log1mexp(torch.where(narrow, 1.0, drop))
    return torch.where(narrow, log_narrow, log_wide)


def _tail_start() -> float:
    return _ONNX_TAIL if torch.onnx.is_in_onnx_export() else _TAIL


def _log_tail_series(x: Tensor) -> Tensor:
    """log of cdf(x) / (density(x) / -x) for x far in the left tail."""
    u = 1 / x.square()
    # 1 - u + 3u^2 - 15u^3 + 105u^4 - 945u^5 + 10395u^6
    series = u * (-1 + u * (3 + u * (-15 + u * (105 + u * (-945 + u * 10395)))))
    return torch.log1p(series)


def log_cloglog_survival(x: Tensor) -> Tensor:
    """log(exp(-exp(x))), clamped at x = 80."""
    return -x.clamp(max=_MAX_EXPONENT).exp()


def log_cloglog(x: Tensor) -> Tensor:
    """log(1 - exp(-exp(x))), exact in both tails."""
    small = x < -5
    e = torch.where(small, x, -5.0).exp()
    near = x - e / 2 + e.square() / 24
    far = log1mexp(torch.where(small, -5.0, x).clamp(max=_MAX_EXPONENT).exp())
    return torch.where(small, near, far)
