"""From one score to a curve: P(y <= k) = F(c_k - a f), for methods whose loss gives no probabilities.

Such a loss orders the rows or keeps them on the right side of cutpoints. The curve is fitted along
the way by the likelihood of a cumulative link model whose gradient reaches a and c alone: the value
of the loss, and the gradient of the score, stay those of the method. a > 0, so that a higher score
never means a lower rank.
"""

import torch
from torch import Tensor

from echelon.functional._cumulative import clm_log_probabilities, clm_log_probability_of_rank
from echelon.functional._intervals import log1mexp, log_sigmoid, log_softplus, softplus
from echelon.functional._labels import Labels
from echelon.functional._precision import as_float, wide

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
    scale = softplus(logits[..., -1:])
    distances, steps = cutpoint_distances(logits[..., :-1]), logits[..., 1:-1]
    lower, upper = distances[..., :-1] * scale, distances[..., 1:] * scale
    log_width = log_softplus(logits[..., -1:]) + log_softplus(steps)
    middle = (
        log_sigmoid(-lower) + log_sigmoid(upper) + _log1mexp(softplus(steps) * scale, log_width)
    )
    first, last = log_sigmoid(distances[..., :1] * scale), log_sigmoid(-distances[..., -1:] * scale)
    return torch.cat([first, middle, last], -1)


def cutpoint_distances(logits: Tensor) -> Tensor:
    """b_k - f, (..., K-1), of a first distance and K-2 steps, (..., K-1)."""
    first, steps = logits[..., :1], logits[..., 1:]
    sums = (wide(first) + wide(softplus(steps)).cumsum(-1)).to(logits.dtype)
    return torch.cat([first, sums], -1)


def curve_of_score_fit(logits: Tensor, labels: Labels) -> Tensor:
    """What fits the curve of :func:`score_log_probabilities`, (...): of value 0.

    The gradient reaches all logits but the score.
    """
    if labels.ranks is None:
        fit = -labels.expectation(score_log_probabilities(logits))
    else:
        fit = -clm_log_probability_of_rank(logits[..., 1:], labels.ranks)
    return fit - fit.detach()


def curve_of_margin_fit(logits: Tensor, distances: Tensor, labels: Labels) -> Tensor:
    """What fits the curve of :func:`margin_log_probabilities`, (...): of value 0.

    `distances` (..., K-1) are those of the logits. The gradient reaches a alone.
    """
    given, raw_scale = logits.detach(), logits[..., -1:]
    if labels.ranks is None:
        fit = -labels.expectation(
            margin_log_probabilities(torch.cat([given[..., :-1], raw_scale], -1))
        )
        return fit - fit.detach()
    place, num_steps = labels.ranks.unsqueeze(-1), logits.shape[-1] - 2
    distances, scale = distances.detach(), softplus(raw_scale)
    is_lowest, is_top = place == 0, place == num_steps + 1
    # towards the lower cutpoint, of which the lowest rank has none, and towards the upper one
    lower = distances.gather(-1, (place - 1).clamp(min=0)) * scale
    upper = distances.gather(-1, place.clamp(max=num_steps)) * scale
    fit = torch.where(is_lowest, 0.0, -log_sigmoid(-lower))
    fit = fit + torch.where(is_top, 0.0, -log_sigmoid(upper))
    if num_steps:
        step = given.gather(-1, place.clamp(1, num_steps))
        log_width = log_softplus(raw_scale) + log_softplus(step)
        between = _log1mexp(softplus(step) * scale, log_width)
        fit = fit - torch.where(is_lowest | is_top, 0.0, between)
    return (fit - fit.detach()).squeeze(-1)


def _log1mexp(x: Tensor, log_x: Tensor) -> Tensor:
    """log(1 - exp(-x)) for x > 0, also where x itself underflows."""
    is_small = x < _SMALL
    near = log_x - x / 2 + x.square() / 24
    return torch.where(is_small, near, log1mexp(torch.where(is_small, 1.0, x)))
