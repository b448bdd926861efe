"""Methods with one score per row: the cumulative link model and regression on the rank."""

import math
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding

from echelon.functional._intervals import (
    log_cloglog,
    log_cloglog_survival,
    log_normal_cdf,
    log_normal_interval,
    log_sigmoid,
    log_softplus,
    quick_softplus,
    softplus,
)
from echelon.functional._labels import Weights, read, reduce_terms, with_ranks_last
from echelon.functional._precision import as_float, wide

Link = Literal["logit", "probit", "cloglog"]
"""The distribution of the noise around a score: logistic, normal, or of proportional hazards."""

_LINKS = ("logit", "probit", "cloglog")
_FAR = 1e30  # a distance at which a probability is 1, its logarithm and its slope 0
_TABLED = 256  # classes up to which what is the same for all rows of a rank is kept
_MAX_LOG_SIGMA = 30.0  # keeps squared residuals of 1e4 spreads finite in float32
_NARROW = (
    2e-3  # below this two terms of a series and a difference of float64 are both exact to 1e-12
)
_SQRT_HALF = math.sqrt(0.5)
_SCALE_OF_MASS = 2 / math.sqrt(math.pi)


def clm_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    link: Link = "logit",
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    """Negative log-likelihood of the cumulative link model (McCullagh 1980).

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)
        What :class:`echelon.heads.CutpointHead` gives; see :func:`clm_log_probabilities`.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    link : {"logit", "probit", "cloglog"}
        The distribution of the noise around the score.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`.

    Examples
    --------
    >>> logits = torch.tensor([[0.0, 1.0]])
    >>> clm_loss(logits, torch.tensor([0]))
    tensor(0.6931)
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
    logits, labels = read(
        logits,
        ranks,
        as_float(logits).shape[-1] + 1,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    _require_link(link)
    if labels.ranks is None:
        costs = -labels.expectation(clm_log_probabilities(logits, link=link))
    elif link == "logit" and reduction == "mean" and labels.always_counts():
        # The common case, kept short: every operator here costs microseconds.
        return _logit_costs(logits, labels.ranks, labels.num_rows())
    else:
        costs = clm_costs_of_rank(logits, labels.ranks, link)
    if link != "cloglog" or reduction != "mean":
        return reduce_terms(costs, labels, reduction)
    # Rows may lose up to exp(80), so that the sum of a large batch needs more room than its mean.
    return reduce_terms(wide(costs), labels, reduction).to(logits.dtype)


def clm_log_probabilities(logits: Tensor, *, link: Link = "logit") -> Tensor:
    """log P(y = k) where P(y <= k) = F(cutpoint_k - score), with ordered cutpoints.

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)
        First the lowest cutpoint minus the score, then K-2 numbers whose softplus is the distance
        to the next cutpoint: any logits give ordered cutpoints, and no probability is lost when
        the score is far away from close cutpoints.
    link : {"logit", "probit", "cloglog"}
        F is the logistic function, the normal distribution function or 1 - exp(-exp(.)). The last
        is clamped where its argument exceeds 80.

    Returns
    -------
    Tensor, shape (..., K)

    Examples
    --------
    >>> clm_log_probabilities(torch.tensor([[0.0, 1.0]])).exp()
    tensor([[0.5000, 0.2881, 0.2119]])
    """
    _require_link(link)
    logits = as_float(logits)
    first, steps = logits[..., :1], logits[..., 1:]  # (..., 1), (..., K-2)
    widths = softplus(steps)
    # cutpoint_k - score, (..., K-1): where a large score cancels a large cutpoint, nothing is lost
    sums = (wide(first) + wide(widths).cumsum(-1)).to(logits.dtype)
    distances = torch.cat([first, sums], -1)
    lower, upper = distances[..., :-1], distances[..., 1:]  # (..., K-2) each, of the middle ranks
    last = distances[..., -1:]
    if link == "logit":
        # 1 - exp(-softplus(step)) = sigmoid(step), so no difference is ever taken
        middle = log_sigmoid(-lower) + log_sigmoid(upper) + log_sigmoid(steps)
        return torch.cat([log_sigmoid(first), middle, log_sigmoid(-last)], -1)
    if link == "probit":
        middle = log_normal_interval(lower, upper, widths, log_softplus(steps))
        ends = log_normal_cdf(first), log_normal_cdf(-last)
        return torch.cat([ends[0], middle, ends[1]], -1)
    # exp(upper) - exp(lower) = exp(lower + step), as exp(softplus(step)) - 1 = exp(step)
    middle = log_cloglog_survival(lower) + log_cloglog(lower + steps)
    return torch.cat([log_cloglog(first), middle, log_cloglog_survival(last)], -1)


def clm_costs_of_rank(logits: Tensor, ranks: Tensor, link: Link = "logit") -> Tensor:
    """-log P(y = rank), (...), of logits (..., K-1).

    It is had from the two cutpoints beside the rank alone, in a fraction of the time that
    :func:`clm_log_probabilities` takes.
    """
    if link == "logit":
        return _logit_costs(logits, ranks)
    num_classes = logits.shape[-1] + 1
    # not by slices: each would fill a whole gradient with zeros
    first, steps = torch.split_with_sizes(logits, [1, num_classes - 2], -1)
    place = ranks.unsqueeze(-1)
    # The lowest and the top rank have no step: one that is far away has no cost and no slope.
    far = torch.full_like(first, _FAR)
    step = torch.cat([far, steps, far], -1).gather(-1, place).squeeze(-1)
    # The lower cutpoint minus the score, from the widths of the ranks between; of the lowest rank,
    # which has none, the upper one.
    number = torch.arange(1, num_classes - 1, dtype=logits.dtype, device=logits.device)
    is_below = (place - number).clamp_(0, 1)  # (..., K-2): 1 for those ranks
    between = (softplus(steps) * is_below).sum(-1, dtype=_sum_dtype(logits))
    distance = first.squeeze(-1) + between
    is_lowest, is_top = ranks == 0, ranks == num_classes - 1
    # Where it is thrown away, a step that is far away would become a NaN in the gradient.
    step = torch.where(is_lowest | is_top, 0.0, step)
    width = softplus(step)
    lower, upper = distance.to(logits.dtype), (distance + width).to(logits.dtype)
    if link == "probit":
        middle = log_normal_interval(lower, upper, width, log_softplus(step))
        ends = log_normal_cdf(torch.where(is_lowest, lower, -lower))
    else:
        middle = log_cloglog_survival(lower) + log_cloglog(lower + step)
        ends = torch.where(is_lowest, log_cloglog(lower), log_cloglog_survival(lower))
    return -torch.where(is_lowest | is_top, ends, middle)


def clm_slope_of_rank(logits: Tensor, ranks: Tensor, start: int = 0) -> Tensor:
    """The derivative of -log P(y = rank) in the logits, of the logit link, as wide as they are.

    The logits (..., start + K-1) may begin with some that have no say. For what is only fitted
    along the way this takes half the operators of autograd's derivative.
    """
    return _slope(logits, _of_rank(logits, ranks, start), start)


class _OfRank(NamedTuple):
    """What the cost of a rank and its slope are made of, with the logit link.

    P(y = rank) is P(y > rank - 1) P(y <= rank) sigmoid(step), see :func:`clm_log_probabilities`:
    the sigmoids of three numbers. The lowest and the top rank have a step that is far away, so that
    two of them are 1; at the lowest P(y <= rank) stands in the first place.
    """

    factors: Tensor  # (..., 3): P(y = rank) is the product of their sigmoids
    shares: Tensor  # (..., start + K-1): how much of a logit's distance is in minus the first
    place: Tensor  # (..., 1): where the step stands in the logits, or a place of no weight


def _of_rank(logits: Tensor, ranks: Tensor, start: int = 0) -> _OfRank:
    """See :class:`_OfRank`; of logits (..., start + K-1)."""
    num_logits = logits.shape[-1]
    num_classes = num_logits - start + 1
    if num_classes <= _TABLED and type(ranks) is Tensor and not torch.compiler.is_compiling():
        table = _table_of_shares(num_classes, start, logits.dtype, logits.device)
        # of one dimension looked up in half the time
        looked_up = table.index_select(0, ranks) if ranks.dim() == 1 else embedding(ranks, table)
        shares, far = looked_up.split_with_sizes([num_logits, 1], -1)
    else:
        shares, far = _shares(ranks, num_classes, start, logits.dtype)
    # A large score may cancel a large cutpoint: both are summed in double precision.
    distances = quick_softplus(logits)
    distances.narrow(-1, start, 1).copy_(logits.narrow(-1, start, 1))
    lower = distances.mul_(shares).sum(-1, True, dtype=_sum_dtype(logits)).to(logits.dtype)
    place = ranks.unsqueeze(-1).clamp(max=num_classes - 2)
    if start:
        place += start
    step = logits.gather(-1, place) + far
    factors = torch.cat([-lower, lower + quick_softplus(step), step], -1)
    return _OfRank(factors, shares, place)


def _shares(
    ranks: Tensor, num_classes: int, start: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The shares of :class:`_OfRank`, (..., start + K-1), and how far a step is away, (..., 1).

    1 for the widths of the ranks between; of the score 1, and -1 at the lowest rank.
    """
    rank = ranks.unsqueeze(-1).to(dtype)
    number = torch.arange(-start, num_classes - 1, dtype=dtype, device=ranks.device)
    shares = (rank - number).clamp_(0, 1)
    shares.narrow(-1, 0, start).zero_()
    shares.narrow(-1, start, 1).copy_((rank - 0.5).sign_())
    is_end = (rank == 0) | (rank == num_classes - 1)
    return shares, torch.zeros_like(rank).masked_fill_(is_end, _FAR)


@lru_cache(maxsize=16)
def _table_of_shares(
    num_classes: int, start: int, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Both results of :func:`_shares` side by side, for every rank: (K, start + K).

    Looked up, they take a quarter of the time.
    """
    with torch.inference_mode(False):
        every_rank = torch.arange(num_classes, device=device)
        return torch.cat(_shares(every_rank, num_classes, start, dtype), -1)


def _slope(logits: Tensor, parts: _OfRank, start: int = 0) -> Tensor:
    """The derivative of the cost in the logits, in closed form."""
    above, below, wide_enough = parts.factors.sigmoid().split_with_sizes([1, 1, 1], -1)
    slope = torch.sigmoid(logits)
    slope.narrow(-1, start, 1).fill_(1)
    slope = slope.mul_(parts.shares).mul_(below - above)
    return slope.scatter_add_(-1, parts.place, below * wide_enough - 1)


def _logit_costs(logits: Tensor, ranks: Tensor, count: int | None = None) -> Tensor:
    """-log P(y = rank) with the logit link, (...), or their sum over a count."""
    if not torch.compiler.is_compiling():
        try:
            costs: Tensor = _LogitCosts.apply(logits, ranks, count)  # type: ignore[no-untyped-call]
        except RuntimeError:  # torch.func and derivatives in forward mode want plain operators
            pass
        else:
            return costs
    return _together(_of_rank(logits, ranks), count)


def _together(parts: _OfRank, count: int | None) -> Tensor:
    costs = quick_softplus(-parts.factors)
    return costs.sum(-1) if count is None else costs.sum() / count


class _LogitCosts(torch.autograd.Function):
    """What :func:`_logit_costs` gives, with its gradient in closed form.

    That takes two thirds of the time of autograd's gradient. The second derivative is autograd's.
    In the form that torch.func takes, each call would cost as much as what is saved.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, ranks: Tensor, count: int | None) -> Tensor:
        parts = _of_rank(logits, ranks)
        if ctx.needs_input_grad[0]:
            ctx.count = count
            ctx.save_for_backward(logits, ranks, _slope(logits, parts))
        return _together(parts, count)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        logits, ranks, slope = ctx.saved_tensors
        (gradient,) = gradients
        if torch.is_grad_enabled():  # for a derivative of the derivative
            costs = _together(_of_rank(logits, ranks), ctx.count)
            (slope,) = torch.autograd.grad(costs, logits, gradient, create_graph=True)
            return slope, None, None
        of_rows = gradient.unsqueeze(-1) if ctx.count is None else gradient / ctx.count
        return slope * of_rows, None, None


def _sum_dtype(like: Tensor) -> torch.dtype:
    """In which a sum of many widths loses nothing, where the device has it."""
    return like.dtype if like.device.type == "mps" else torch.float64


def regression_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    num_classes: int,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    """Squared error of the predicted value against the rank.

    The spread is fitted along the way by the likelihood of the rank under
    :func:`regression_log_probabilities`, whose gradient reaches only the spread: the value of the
    loss and the gradient of the prediction are those of squared error.

    Parameters
    ----------
    logits : Tensor, shape (..., 2)
        Predicted value on the scale of ranks, and log_sigma.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    num_classes : int
        K, for checking the ranks.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`.

    Examples
    --------
    >>> regression_loss(torch.tensor([[1.5, 0.0]]), torch.tensor([3]), num_classes=5)
    tensor(2.2500)
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
    _require_value_and_spread(logits)
    logits, labels = read(
        logits,
        ranks,
        num_classes,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    value, log_sigma = logits.unbind(-1)
    # The likelihood is that of the rank's cell, as in the curve. That of the rank as a number would
    # count the rounding to whole ranks as spread, which the cells then add once more. What fits the
    # spread has the value 0, and a gradient only to log_sigma.
    if labels.mass is None:
        assert labels.ranks is not None
        offset = value - labels.ranks
        squared = offset.square()
        with torch.no_grad():
            slope = _slope_of_log_sigma(offset, log_sigma, labels.ranks, num_classes)
    else:
        every_rank = torch.arange(num_classes, device=logits.device)
        offset = value.unsqueeze(-1) - every_rank
        squared = (labels.mass * offset.square()).sum(-1)
        with torch.no_grad():
            per_rank = _slope_of_log_sigma(offset, log_sigma.unsqueeze(-1), every_rank, num_classes)
            slope = labels.expectation(per_rank)
    fit_of_sigma = (log_sigma.detach() - log_sigma) * slope
    return reduce_terms(squared + fit_of_sigma, labels, reduction)


def _slope_of_log_sigma(
    offset: Tensor, log_sigma: Tensor, ranks: Tensor, num_classes: int
) -> Tensor:
    """The derivative of log P(y = rank) in log_sigma, (...), of values minus their ranks, (...).

    Of a cell from l to u, in spreads around the value, it is (l d(l) - u d(u)) / (F(u) - F(l)), d
    being the normal density. Divided by d(u) nothing underflows: F / d is a scaled error function.
    """
    clamped = log_sigma.clamp(-_MAX_LOG_SIGMA, _MAX_LOG_SIGMA)
    # Lengths are in spreads times the root of 2, as the error function has them.
    width = torch.exp(-wide(clamped)) * _SQRT_HALF
    half = width / 2
    is_low, is_top = ranks == 0, ranks == num_classes - 1
    is_open = is_low | is_top
    # By symmetry values are above the middle of a cell, and cells without a second end open below.
    away = width * torch.where(is_low, offset, torch.where(is_top, -offset, offset.abs()))
    # d(l) / d(u) is 1 + fall; an open cell has no l
    fall = torch.expm1(away * width * -2).masked_fill_(is_open, -1.0)
    # u - l (1 + fall) without a difference of the ends, and the mass; an l that counts 0 times must
    # be finite, hence its sign
    steep = (away + half) * fall + width
    scaled_mass: Tensor = torch.special.erfcx(away - half)
    scaled_mass = scaled_mass - (1 + fall) * torch.special.erfcx(away.abs() + half)
    # Of a narrow cell little would be left of that difference: two terms of its series.
    squared = away.square() * 2
    narrow = torch.addcmul(squared, width.square(), 1 - 2 * squared, value=1 / 6) - 1
    is_wide = (width * away.clamp(min=1) >= _NARROW) | is_open
    slope = torch.where(is_wide, steep / scaled_mass * -_SCALE_OF_MASS, narrow)
    # beyond its limits log_sigma has no say
    return (slope * (clamped == log_sigma)).to(offset.dtype)


def regression_log_probabilities(logits: Tensor, *, num_classes: int) -> Tensor:
    """log P(y = k) of a normal distribution cut halfway between the ranks.

    Parameters
    ----------
    logits : Tensor, shape (..., 2)
        Predicted value on the scale of ranks, and log_sigma.
    num_classes : int
        The number of ranks, K.

    Returns
    -------
    Tensor, shape (..., K)

    Examples
    --------
    >>> regression_log_probabilities(torch.tensor([[1.0, 0.0]]), num_classes=3).exp()
    tensor([[0.3085, 0.3829, 0.3085]])
    """
    _require_value_and_spread(logits)
    logits = as_float(logits)
    value = logits[..., :1]
    log_sigma = logits[..., 1:].clamp(-_MAX_LOG_SIGMA, _MAX_LOG_SIGMA)
    inverse = torch.exp(-log_sigma)
    cuts = torch.arange(num_classes - 1, device=logits.device, dtype=logits.dtype) + 0.5
    distances = (cuts - value) * inverse  # (..., K-1)
    lower, upper = distances[..., :-1], distances[..., 1:]  # (..., K-2) each
    middle = log_normal_interval(lower, upper, inverse, -log_sigma)
    first = log_normal_cdf(distances[..., :1])
    last = log_normal_cdf(-distances[..., -1:])
    return torch.cat([first, middle, last], -1)


def link_quantile(probability: Tensor, link: Link) -> Tensor:
    """The inverse of a link's distribution function: where P(y <= k) has this value.

    Parameters
    ----------
    probability : Tensor, shape (...)
        Between 0 and 1.
    link : {"logit", "probit", "cloglog"}
        The distribution whose quantiles are wanted.

    Returns
    -------
    Tensor, shape (...)

    Examples
    --------
    >>> link_quantile(torch.tensor([0.5, 0.975]), "probit").round(decimals=2)
    tensor([0.0000, 1.9600])
    """
    _require_link(link)
    if link == "logit":
        return torch.logit(probability)
    if link == "probit":
        quantile: Tensor = torch.special.ndtri(probability)
        return quantile
    return torch.log(-torch.log1p(-probability))


def _require_link(link: str) -> None:
    if link not in _LINKS:
        raise ValueError(f"link must be one of {', '.join(map(repr, _LINKS))}; got {link!r}")


def _require_value_and_spread(logits: Tensor) -> None:
    if as_float(logits).shape[-1] != 2:
        raise ValueError(
            f"regression needs logits (..., 2), the value and log_sigma, as RegressionHead gives; "
            f"got {tuple(logits.shape)}"
        )
