"""Losses on a softmax over the K ranks."""

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax

from echelon.functional._labels import (
    Labels,
    LossParts,
    Weights,
    finish,
    read,
    reduce_terms,
)
from echelon.functional._precision import as_float, without_autocast

Distance = Literal["absolute", "squared"]

_DISTANCES = ("absolute", "squared")
_MIN_TEMPERATURE = 1e-6
_HUGE = 1e30  # beyond any hinge; 1e30 * (K - 1)^2 still fits float32


def ce_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy, which knows nothing of the order.

    Parameters
    ----------
    logits : Tensor, shape (..., K)
    ranks : Tensor, shape (...) or (..., K)
    sample_weight, class_weight, ignore_index, reduction
        See :mod:`echelon.functional`.

    Examples
    --------
    >>> ce_loss(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor(1.3863)
    """
    logits, labels = read(
        logits,
        ranks,
        as_float(logits).shape[-1],
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    return reduce_terms(_row_cross_entropy(logits, labels), labels, reduction)


def _row_cross_entropy(logits: Tensor, labels: Labels) -> Tensor:
    """Cross-entropy of each row, (...)."""
    if labels.ranks is None:
        return -labels.expectation(log_softmax(logits, -1))
    # torch's own is one operator, but wants the classes second
    if logits.dim() == 2:
        return cross_entropy(logits, labels.ranks, reduction="none")
    flat_logits = logits.reshape(-1, logits.shape[-1])
    flat = cross_entropy(flat_logits, labels.ranks.reshape(-1), reduction="none")
    return flat.view(labels.ranks.shape)


def sord_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    distance: Distance = "absolute",
    temperature: float = 1.0,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy against soft targets that fall off with the distance (SORD, Diaz and Marathe).

    The target of rank r is proportional to exp(-phi(r, k) / temperature).

    Parameters
    ----------
    logits : Tensor, shape (..., K)
    ranks : Tensor, shape (...) or (..., K)
    distance : {"absolute", "squared"}
        phi, between ranks.
    temperature : float
        The loss tends to :func:`ce_loss` as it goes to 0.
    sample_weight, class_weight, ignore_index, reduction
        See :mod:`echelon.functional`.

    Examples
    --------
    >>> logits = torch.tensor([[0.0, 1.0, 2.0]])
    >>> sord_loss(logits, torch.tensor([2]), distance="squared", temperature=2.0)
    tensor(0.9112)
    """
    if distance not in _DISTANCES:
        raise ValueError(
            f"distance must be one of {', '.join(map(repr, _DISTANCES))}; got {distance!r}"
        )
    if not (temperature >= _MIN_TEMPERATURE and math.isfinite(temperature)):
        raise ValueError(
            f"temperature must be a number of at least {_MIN_TEMPERATURE}; got {temperature}"
        )
    num_classes = as_float(logits).shape[-1]
    logits, labels = read(
        logits,
        ranks,
        num_classes,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    targets = _soft_targets(labels, num_classes, distance, temperature, logits.dtype)
    return reduce_terms(-targets * log_softmax(logits, -1), labels, reduction)


def _soft_targets(
    labels: Labels, num_classes: int, distance: str, temperature: float, dtype: torch.dtype
) -> Tensor:
    """Expected target distribution of each row, (..., K)."""
    classes = torch.arange(num_classes, dtype=dtype, device=labels.device)
    centres = classes if labels.ranks is None else labels.ranks.to(dtype)
    offsets = centres.unsqueeze(-1) - classes  # (..., K), or (K, K) for soft labels
    phi = offsets.abs() if distance == "absolute" else offsets.square()
    targets = torch.softmax(phi.mul_(-1 / temperature), -1)
    if labels.mass is None:
        return targets
    with without_autocast(targets.device):
        return labels.mass @ targets


def cnnpor_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    pair_weight: float = 1.0,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy plus a pairwise term between neighbouring ranks, after CNNPOR (Liu et al.).

    The pairwise term is echelon's form of the idea: for every pair in the batch with ranks k and
    k+1, the score that separates the two (logit k+1 minus logit k) must be larger for the second
    by a margin of 1, penalised by a hinge and averaged over the pairs. Time and memory grow with
    the square of the batch.

    Parameters
    ----------
    logits : Tensor, shape (N, K)
        No extra dimensions: the rows of a batch are coupled.
    ranks : Tensor, shape (N,)
    pair_weight : float
        What the pairwise term counts for; at 0 the loss is :func:`ce_loss`.
    sample_weight, class_weight, ignore_index, reduction
        See :mod:`echelon.functional`; a pair weighs the product of its rows. No
        ``reduction="none"``, and no process group of several devices.

    Examples
    --------
    >>> logits, ranks = torch.zeros(2, 2), torch.tensor([0, 1])
    >>> cnnpor_loss(logits, ranks) - ce_loss(logits, ranks)
    tensor(1.)
    """
    if not (pair_weight >= 0 and math.isfinite(pair_weight)):
        raise ValueError(f"pair_weight must be a number of at least 0; got {pair_weight}")
    _require_one_flat_batch(as_float(logits), reduction)
    logits, labels = read(
        logits,
        ranks,
        as_float(logits).shape[-1],
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    if labels.ranks is None:
        raise ValueError(
            "cnnpor couples rows by their ranks, so soft labels have no meaning; pass integer ranks"
        )
    row_loss = _row_cross_entropy(logits, labels)
    weight = labels.weight

    pair_total = _neighbour_hinge(logits, labels.ranks, weight)
    if weight is None:
        weight = torch.ones_like(row_loss)
    else:
        row_loss = row_loss * weight
    total = torch.stack([row_loss.sum(), pair_weight * pair_total])
    per_class = weight.new_zeros(logits.shape[-1]).index_add(0, labels.ranks, weight)
    count = torch.stack([weight.sum(), (per_class[:-1] * per_class[1:]).sum()])
    return finish(LossParts(total, count), reduction)


def _neighbour_hinge(logits: Tensor, ranks: Tensor, weight: Tensor | None) -> Tensor:
    """Weighted sum of the hinges over all pairs of neighbouring ranks."""
    num_classes = logits.shape[-1]
    # step k = logit k+1 - logit k. A row of rank k is the lower of a pair by its step k, and the
    # upper of one by its step k-1; the clamps only serve rows that have no such partner.
    steps = logits.diff(dim=-1)  # (N, K-1)
    as_lower = steps.gather(1, ranks.clamp(max=num_classes - 2).unsqueeze(1))  # (N, 1)
    as_upper = steps.gather(1, (ranks - 1).clamp(min=0).unsqueeze(1)).squeeze(1)  # (N,)
    # Float arithmetic instead of an (N, N) mask: 0 for neighbours, huge for all other pairs.
    numbers = ranks.to(logits.dtype)
    others = (numbers - numbers.unsqueeze(1)).sub_(1).square_().mul_(_HUGE)  # (lower, upper)
    hinge = (1 + as_lower - as_upper).sub_(others).relu_()
    if weight is None:
        return hinge.sum()
    with without_autocast(logits.device):
        return weight @ hinge @ weight


def _require_one_flat_batch(logits: Tensor, reduction: str) -> None:
    couples = "cnnpor couples the rows of a batch"
    if reduction == "none":
        raise ValueError(
            f"{couples}, so a row has no loss of its own; use reduction='mean' or 'sum'"
        )
    if logits.dim() != 2:
        raise ValueError(
            f"{couples}, so logits must be (N, K); got {tuple(logits.shape)}: flatten them if all "
            f"positions may be compared with each other"
        )
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return
    if distributed.get_world_size() > 1:
        raise ValueError(
            f"{couples}, and pairs across devices would be missed; train on one device or choose "
            f"another method"
        )


def rps_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Ranked probability score: squared errors of P(y > k), summed over the K-1 thresholds.

    Parameters
    ----------
    logits : Tensor, shape (..., K)
    ranks : Tensor, shape (...) or (..., K)
    sample_weight, class_weight, ignore_index, reduction
        See :mod:`echelon.functional`.

    Examples
    --------
    >>> rps_loss(torch.zeros(1, 4), torch.tensor([0]))
    tensor(0.8750)
    """
    num_classes = as_float(logits).shape[-1]
    logits, labels = read(
        logits,
        ranks,
        num_classes,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    probabilities = torch.softmax(logits, -1)
    # P(y <= k), (..., K). The last is 1, and so is its target: it adds (1e-7)^2 and saves a slice.
    below = probabilities.cumsum(-1)
    if labels.ranks is not None:
        after = torch.arange(1, num_classes + 1, dtype=logits.dtype, device=logits.device)
        not_above = (after - labels.ranks.unsqueeze(-1)).clamp_(0, 1)  # 1{y <= k}
        terms = (below - not_above).square()
    else:
        assert labels.mass is not None
        mass_below = labels.mass.cumsum(-1)
        mass_above = labels.mass.sum(-1, keepdim=True) - mass_below
        terms = mass_above * below.square() + mass_below * (1 - below).square()
    return reduce_terms(terms, labels, reduction)


def softmax_log_probabilities(logits: Tensor) -> Tensor:
    """log P(y = k) of a softmax, (..., K) from logits (..., K).

    Examples
    --------
    >>> softmax_log_probabilities(torch.zeros(1, 4)).exp()
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
    return log_softmax(as_float(logits), -1)
