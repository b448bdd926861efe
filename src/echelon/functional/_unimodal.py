"""Distributions with one mode, whatever the network gives."""

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from echelon.functional._intervals import log_softplus, quick_softplus, softplus
from echelon.functional._labels import Weights, read, reduce_terms, with_ranks_last
from echelon.functional._precision import as_float, wide

UnimodalForm = Literal["slopes", "binomial", "poisson"]
"""How a distribution with one mode is made: by slopes that fall, or as one of two families."""

_FORMS = ("slopes", "binomial", "poisson")
_MAX_LOG_TEMPERATURE = 30.0


def unimodal_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    num_classes: int,
    form: UnimodalForm = "slopes",
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    """Negative log-likelihood of a distribution that has one mode by construction.

    Parameters
    ----------
    logits : Tensor, shape (..., K), or (..., 2) for "binomial" and "poisson"
        See :func:`unimodal_log_probabilities`.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    num_classes : int
        The number of ranks, K.
    form : {"slopes", "binomial", "poisson"}
        How a distribution with one mode is made.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`.

    Examples
    --------
    >>> unimodal_loss(torch.zeros(1, 2), torch.tensor([1]), num_classes=3, form="binomial")
    tensor(0.6931)
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
    _require_form(form, logits, num_classes)
    logits, labels = read(
        logits,
        ranks,
        num_classes,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    if form == "slopes":
        logs = _log_softmax_of_slopes(quick_softplus(logits))
    else:
        logs = unimodal_log_probabilities(logits, num_classes=num_classes, form=form)
    # rows in the precision of the logits: to convert all ranks takes longer
    row_loss = -labels.expectation(logs).to(logits.dtype)
    return reduce_terms(row_loss, labels, reduction)


def unimodal_log_probabilities(
    logits: Tensor, *, num_classes: int, form: UnimodalForm = "slopes"
) -> Tensor:
    """log P(y = k) of a distribution that rises to its mode and falls after it.

    Parameters
    ----------
    logits : Tensor, shape (..., K), or (..., 2) for "binomial" and "poisson"
        For ``"slopes"`` K numbers (Cardoso et al. 2023): their softplus are slopes s, and the
        softmax is of min(s_0 + .. + s_k, s_k + .. + s_K-1). For the others (Beckham and Pal 2017)
        a score f and the logarithm of a temperature: the softmax, at that temperature, is of the
        log-probabilities of K-1 draws with the probability sigmoid(f), or of a Poisson
        distribution with the mean softplus(f).
    num_classes : int
        The number of ranks, K.
    form : {"slopes", "binomial", "poisson"}
        How a distribution with one mode is made.

    Returns
    -------
    Tensor, shape (..., K)

    Examples
    --------
    >>> unimodal_log_probabilities(torch.zeros(1, 2), num_classes=3, form="binomial").exp()
    tensor([[0.2500, 0.5000, 0.2500]])
    """
    _require_form(form, logits, num_classes)
    logits = as_float(logits)
    if form == "slopes":
        return _log_softmax_of_slopes(softplus(logits)).to(logits.dtype)
    ranks = torch.arange(num_classes, dtype=logits.dtype, device=logits.device)
    value, log_temperature = logits[..., :1], logits[..., 1:]
    inverse = torch.exp(-log_temperature.clamp(-_MAX_LOG_TEMPERATURE, _MAX_LOG_TEMPERATURE))
    ways = -torch.lgamma(ranks + 1)
    if form == "binomial":
        # what does not depend on the rank is left out: a softmax does not see it
        ways = ways - torch.lgamma(num_classes - ranks)
        logs = ranks * value + (ways + math.lgamma(num_classes))
    else:
        logs = ranks * log_softplus(value) + ways
    return log_softmax(logs * inverse, -1)


def _log_softmax_of_slopes(slopes: Tensor) -> Tensor:
    """log-softmax of min(s_0 + .. + s_k, s_k + .. + s_K-1), in float64, (..., K)."""
    slopes = wide(slopes)
    rising = slopes.cumsum(-1)
    falling = slopes.sum(-1, keepdim=True) - rising + slopes
    # As torch.minimum, half a slope to each of a tie included, with a quicker gradient: the share
    # of `rising` is 0, a half or 1.
    share = (falling - rising).detach().sign_().add_(1).mul_(0.5)
    return log_softmax(torch.lerp(falling, rising, share), -1)


def num_unimodal_logits(num_classes: int, *, form: UnimodalForm = "slopes") -> int:
    """J, the number of logits, of a form.

    Parameters
    ----------
    num_classes : int
        The number of ranks, K.
    form : {"slopes", "binomial", "poisson"}
        How a distribution with one mode is made.

    Examples
    --------
    >>> num_unimodal_logits(5), num_unimodal_logits(5, form="binomial")
    (5, 2)
    """
    return num_classes if form == "slopes" else 2


def _require_form(form: str, logits: Tensor, num_classes: int) -> None:
    if form not in _FORMS:
        raise ValueError(f"form must be one of {', '.join(map(repr, _FORMS))}; got {form!r}")
    expected = num_unimodal_logits(num_classes, form=form)  # type: ignore[arg-type]
    if as_float(logits).shape[-1] != expected:
        raise ValueError(
            f"unimodal with form={form!r} and {num_classes} classes needs logits "
            f"(..., {expected}), as UnimodalHead gives; got {tuple(logits.shape)}"
        )
