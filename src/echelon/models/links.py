"""The links of the cumulative link model in float64: distribution functions and their logarithms.

Invariant: no probability is had by subtracting one probability from another, so that rows far away
from narrow intervals keep their likelihood and its derivatives.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

_LOG_SQRT_2PI = np.log(2 * np.pi) / 2
_SMALL_STEP = 0.1  # below this the expansion around the middle is exact to 1e-11
_MAX_EXPONENT = 80.0  # where exp(-exp(.)) has long been 0, its logarithm stays finite


@dataclass(frozen=True)
class Link:
    """A distribution function F of P(y <= k) = F(cutpoint - score), and what a fit needs of it.

    `log_cdf` and `log_survival` are log F and log(1 - F); `log_interval(lower, upper, width)` is
    log(F(upper) - F(lower)), where the width is given too because the difference of the ends may
    have lost it. `log_density` is log f, `slope` f'/f and `quantile` the inverse of F. All of them
    work on arrays of any one shape.
    """

    name: str
    log_cdf: Callable[[Array], Array]
    log_survival: Callable[[Array], Array]
    log_interval: Callable[[Array, Array, Array], Array]
    log_density: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    quantile: Callable[[Array], Array]


def log1mexp(x: Array) -> Array:
    """log(1 - exp(-x)) for x >= 0; -inf at 0."""
    with np.errstate(divide="ignore"):
        near = np.log(-np.expm1(-np.minimum(x, 1.0)))
    return np.where(x < 1.0, near, np.log1p(-np.exp(-np.maximum(x, 1.0))))


def _log_sigmoid(x: Array) -> Array:
    return -np.logaddexp(0.0, -x)


def _logit_interval(lower: Array, upper: Array, width: Array) -> Array:
    # F(u) - F(l) = F(u) F(-l) (1 - exp(l - u))
    return _log_sigmoid(upper) + _log_sigmoid(-lower) + log1mexp(width)


def _normal_interval(lower: Array, upper: Array, width: Array) -> Array:
    middle = (lower + upper) / 2
    # By symmetry the interval can be moved to the left tail, where logarithms are exact.
    mirrored = middle > 0
    left, right = np.where(mirrored, -upper, lower), np.where(mirrored, -lower, upper)
    # A narrow interval: its width times the density in the middle, and two terms of the series.
    narrow = width * np.maximum(np.abs(middle), 1.0) < _SMALL_STEP
    squared = np.where(narrow, middle, 0.0) ** 2
    step = np.where(narrow, width, 0.0) ** 2
    series = step * (squared - 1) / 24 + step**2 * (squared**2 - 6 * squared + 3) / 1920
    with np.errstate(divide="ignore"):
        log_width = np.log(width)
    log_narrow = -squared / 2 - _LOG_SQRT_2PI + log_width + np.log1p(series)
    log_right = special.log_ndtr(right)
    drop = np.where(narrow, 1.0, log_right - special.log_ndtr(left))
    wide: Array = np.where(narrow, log_narrow, log_right + log1mexp(drop))
    return wide


def _exp(x: Array) -> Array:
    return np.exp(np.minimum(x, _MAX_EXPONENT))


def _cloglog_interval(lower: Array, upper: Array, width: Array) -> Array:
    # exp(-exp(l)) - exp(-exp(u)) = exp(-exp(l)) (1 - exp(-rise)), rise = exp(u) - exp(l)
    share = -np.expm1(-width)
    rise = _exp(upper) * share
    tiny = rise < 1e-9
    with np.errstate(divide="ignore"):
        log_rise = upper + np.log(share)
    return -_exp(lower) + np.where(tiny, log_rise - rise / 2, log1mexp(np.where(tiny, 1.0, rise)))


def _log_cloglog(x: Array) -> Array:
    small = _exp(np.minimum(x, -5.0))
    series = x - small / 2 + small**2 / 24
    return np.where(x < -5.0, series, log1mexp(_exp(np.maximum(x, -5.0))))


LINKS: Mapping[str, Link] = MappingProxyType(
    {
        link.name: link
        for link in (
            Link(
                "logit",
                log_cdf=_log_sigmoid,
                log_survival=lambda x: _log_sigmoid(-x),
                log_interval=_logit_interval,
                log_density=lambda x: _log_sigmoid(x) + _log_sigmoid(-x),
                slope=lambda x: -np.tanh(x / 2),
                quantile=special.logit,
            ),
            Link(
                "probit",
                log_cdf=special.log_ndtr,
                log_survival=lambda x: special.log_ndtr(-x),
                log_interval=_normal_interval,
                log_density=lambda x: -(x**2) / 2 - _LOG_SQRT_2PI,
                slope=lambda x: -x,
                quantile=special.ndtri,
            ),
            Link(
                "cloglog",
                log_cdf=_log_cloglog,
                log_survival=lambda x: -_exp(x),
                log_interval=_cloglog_interval,
                log_density=lambda x: x - _exp(x),
                slope=lambda x: 1 - _exp(x),
                quantile=lambda p: np.log(-np.log1p(-p)),
            ),
        )
    }
)


def link_of(name: Any) -> Link:
    """The row of a link, or an error that lists the known ones.

    Examples
    --------
    >>> float(np.exp(link_of("logit").log_cdf(np.array(0.0))))
    0.5
    """
    if not isinstance(name, str) or name not in LINKS:
        raise ValueError(f"link must be one of {', '.join(map(repr, LINKS))}; got {name!r}")
    return LINKS[name]
