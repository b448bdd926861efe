"""From one score to a curve: P(y <= k) = F(c_k - a f), where the loss gives no probabilities.

Such a loss orders the rows or keeps them on the right side of cutpoints. The curve is fitted along
the way by the likelihood of a cumulative link model whose gradient reaches a and c alone: the value
of the loss, and the gradient of the score, stay those of the method. a > 0, so that a higher score
never means a lower rank.
"""

import torch
from torch import Tensor

from echelon.functional._cumulative import clm_log_probabilities, clm_slope_of_rank
from echelon.functional._intervals import (
    log1mexp,
    log_sigmoid,
    log_softplus,
    quick_softplus,
    softplus,
)
from echelon.functional._labels import Labels
from echelon.functional._precision import as_float, wide

_TINY = 1e-30
_SMALL = 1e-2  # below this log(1 - exp(-x)) is its series to 1e-12


def score_log_probabilities(logits: Tensor) -> Tensor:
    """log P(y = k) of a score with a fitted map to the curve.

    Parameters
    ----------
    logits : Tensor, shape (..., K)
        The score f, which only the loss reads; then what :func:`clm_log_probabilities` takes: the
        first cutpoint minus a f, and K-2 steps. :class:`echelon.heads.ScoreHead` gives them.

    Returns
    -------
    Tensor, shape (..., K)

    Examples
    --------
    >>> score_log_probabilities(torch.tensor([[5.0, 0.0, 1.0]])).exp()
    tensor([[0.5000, 0.2881, 0.2119]])
    """
    return clm_log_probabilities(as_float(logits)[..., 1:])


def margin_log_probabilities(logits: Tensor) -> Tensor:
    """log P(y = k) of a score among its own cutpoints, P(y <= k) = F(a (b_k - f)).

    Only a is fitted: the median is the number of cutpoints below the score, as in the papers.

    Parameters
    ----------
    logits : Tensor, shape (..., K)
        First the lowest cutpoint minus the score, then K-2 numbers whose softplus is the distance
        to the next cutpoint, and one whose softplus is a.

    Returns
    -------
    Tensor, shape (..., K)

    Examples
    --------
    >>> margin_log_probabilities(torch.tensor([[0.0, 1.0, 0.5413]])).exp()  # a = 1
    tensor([[0.5000, 0.2881, 0.2119]])
    """
    logits = as_float(logits)
    steps, scale = logits[..., 1:-1], softplus(logits[..., -1:])
    distances = cutpoint_distances(logits[..., :1], softplus(steps))
    lower, upper = distances[..., :-1] * scale, distances[..., 1:] * scale
    log_width = log_softplus(logits[..., -1:]) + log_softplus(steps)
    middle = (
        log_sigmoid(-lower) + log_sigmoid(upper) + _log1mexp(softplus(steps) * scale, log_width)
    )
    first, last = log_sigmoid(distances[..., :1] * scale), log_sigmoid(-distances[..., -1:] * scale)
    return torch.cat([first, middle, last], -1)


def cutpoint_distances(first: Tensor, widths: Tensor) -> Tensor:
    """b_k - f, (..., K-1), of a first distance (..., 1) and the widths to the next, (..., K-2)."""
    return wide(torch.cat([first, widths], -1)).cumsum(-1).to(first.dtype)


def curve_of_score_fit(logits: Tensor, ranks: Tensor, weight: Tensor | None) -> Tensor:
    """What fits the curve of :func:`score_log_probabilities`, summed over the rows: of value 0.

    Of logits (N, K); the gradient is that of the weighted -log P(y), which does not read the score.
    """
    with torch.no_grad():
        slope = clm_slope_of_rank(logits, ranks, start=1)
        if weight is not None:
            slope = slope.mul_(weight.unsqueeze(-1))
    # The value is put on afterwards: a difference from itself would take a matrix more.
    fit = torch.dot(logits.reshape(-1), slope.view(-1))
    fit.detach().zero_()
    return fit


def curve_of_margin_fit(
    logits: Tensor, raw_scale: Tensor, distances: Tensor, labels: Labels
) -> Tensor:
    """What fits the curve of :func:`margin_log_probabilities`, (..., 1): of value 0.

    `raw_scale` (..., 1) is the last of the logits and `distances` (..., K-1) are theirs. The
    gradient is that of -log P(y), and reaches a alone.
    """
    if labels.ranks is None:
        given = torch.cat([logits.detach()[..., :-1], raw_scale], -1)
        fit = -labels.expectation(margin_log_probabilities(given)).unsqueeze(-1)
        return fit - fit.detach()
    with torch.no_grad():
        slope = _slope_of_scale(logits, raw_scale, distances, labels.ranks.unsqueeze(-1))
    return (raw_scale.detach() - raw_scale) * slope


def _slope_of_scale(logits: Tensor, raw_scale: Tensor, distances: Tensor, place: Tensor) -> Tensor:
    """The derivative of log P(y = place) in the raw scale, (..., 1), of places (..., 1)."""
    num_steps = logits.shape[-1] - 2
    scale = quick_softplus(raw_scale)
    sides = torch.cat([place - 1, place], -1)  # the cutpoints below and above the rank
    inside = sides.clamp(0, num_steps)
    # How far the score is on the right side of both, in units of 1 / a; 0 where there is none.
    signs = torch.tensor([-1.0, 1.0], dtype=logits.dtype, device=logits.device)
    right = distances.gather(-1, inside) * ((sides == inside) * signs)
    slope = (torch.sigmoid(-scale * right) * right).sum(-1, True) * torch.sigmoid(raw_scale)
    if not num_steps:
        return slope
    # of log(1 - exp(-a width)): width / (exp(a width) - 1), which tends to 1 / a
    middle = place.clamp(1, num_steps)
    scaled = (quick_softplus(logits.gather(-1, middle)) * scale).clamp_(_TINY, 80)
    # a itself may underflow, while the slope of its logarithm is 1 there
    raised = raw_scale.clamp(min=-80)
    relative = torch.sigmoid(raised) / quick_softplus(raised)
    return slope + scaled / torch.expm1(scaled) * relative * (middle == place)


def _log1mexp(x: Tensor, log_x: Tensor) -> Tensor:
    """log(1 - exp(-x)) for x > 0, also where x itself underflows."""
    is_small = x < _SMALL
    near = log_x - x / 2 + x.square() / 24
    return torch.where(is_small, near, log1mexp(torch.where(is_small, 1.0, x)))
