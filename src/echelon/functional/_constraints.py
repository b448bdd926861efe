"""Cross-entropy under pairwise constraints on a score of the logits: CNNPOR as a family.

Invariant: no array is larger than the logits. The hinges of all pairs are a sum that is linear as
long as no pair enters or leaves it; who is inside, sorting tells.
"""

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from echelon.functional._coupled import read_coupled, row_count
from echelon.functional._labels import LossParts, Weights, finish
from echelon.functional._pairs import hinge_of_pairs
from echelon.functional._precision import wide

PairScore = Literal["step", "upper", "lower", "expected"]
Pairs = Literal["neighbours", "all"]
PairReduction = Literal["mean", "sum"]

_CHOICES = {
    "score": ("step", "upper", "lower", "expected"),
    "pairs": ("neighbours", "all"),
    "pair_reduction": ("mean", "sum"),
}


def cnnpor_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    pair_weight: float = 1.0,
    score: PairScore = "step",
    pairs: Pairs = "neighbours",
    pair_reduction: PairReduction = "mean",
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy plus hinges on pairs of rows, our form of CNNPOR (Liu, Kong and Goh 2018).

    For a pair of rows in the batch, the first of rank k and the second of a higher one, a score g_k
    must be larger for the second by a margin of 1. On which function the paper puts its constraint
    could not be read, so it is an option. Time grows with N log N for neighbours and for
    ``score="expected"``, and with N K log(N K) for other scores of all pairs; memory with N K.

    Parameters
    ----------
    logits : Tensor, shape (N, K)
        No extra dimensions: the rows of a batch are coupled.
    ranks : Tensor, shape (N,)
        The true ranks, 0..K-1.
    pair_weight : float
        What the pairwise term counts for; at 0 the loss is :func:`ce_loss`.
    score : {"step", "upper", "lower", "expected"}
        g_k: logit k+1 minus logit k, which separates the two ranks; logit k+1; minus logit k; or,
        whatever k, the expected rank, which is one ranking function as in RankingSVM.
    pairs : {"neighbours", "all"}
        Whether the second row is of rank k+1, or of any rank above k.
    pair_reduction : {"mean", "sum"}
        Whether the hinges are averaged over the pairs of the batch, or divided by its rows alone.
    sample_weight, class_weight, ignore_index, reduction
        See :mod:`echelon.functional`; a pair weighs the product of its rows. No
        ``reduction="none"``, and no process group of several devices.

    Examples
    --------
    >>> from echelon.functional import ce_loss
    >>> logits, ranks = torch.zeros(2, 2), torch.tensor([0, 1])
    >>> cnnpor_loss(logits, ranks) - ce_loss(logits, ranks)
    tensor(1.)
    """
    if not (pair_weight >= 0 and math.isfinite(pair_weight)):
        raise ValueError(f"pair_weight must be a number of at least 0; got {pair_weight}")
    given = {"score": score, "pairs": pairs, "pair_reduction": pair_reduction}
    for name, value in given.items():
        if value not in _CHOICES[name]:
            listed = ", ".join(map(repr, _CHOICES[name]))
            raise ValueError(f"{name} must be one of {listed}; got {value!r}")
    logits, ranks, weight = read_coupled(
        "cnnpor",
        logits,
        ranks,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    num_classes = logits.shape[-1]
    if weight is None:
        row_total = cross_entropy(logits, ranks, reduction="sum")
    else:
        row_total = (cross_entropy(logits, ranks, reduction="none") * weight).sum()
    if pairs == "all" and score == "expected":
        of_pairs = hinge_of_pairs(_expected_rank(logits), ranks, weight, num_classes)
    else:
        of_row = torch.ones_like(logits[:, 0]) if weight is None else weight
        of_pairs = _hinge_by_threshold(logits, ranks, of_row, score, pairs)
    rows = row_count(logits, weight)
    pair_count = rows if pair_reduction == "sum" else of_pairs.count
    total = torch.stack([row_total, pair_weight * of_pairs.total])
    return finish(LossParts(total, torch.stack([rows, pair_count])), reduction)


def _expected_rank(logits: Tensor) -> Tensor:
    """(N,)."""
    ranks = torch.arange(logits.shape[-1], dtype=logits.dtype, device=logits.device)
    return (torch.softmax(logits, -1) * ranks).sum(-1)


def _scores(logits: Tensor, score: str) -> Tensor:
    """g_k of each row, (N, K-1)."""
    if score == "step":
        return logits.diff(dim=-1)
    if score == "upper":
        return logits[:, 1:]
    if score == "lower":
        return -logits[:, :-1]
    return _expected_rank(logits).unsqueeze(-1).expand(-1, logits.shape[-1] - 1)


def _hinge_by_threshold(
    logits: Tensor, ranks: Tensor, weight: Tensor, score: str, pairs: str
) -> LossParts:
    """Weighted sum of max(0, 1 + g_k(lower) - g_k(upper)) over the pairs of every threshold k."""
    num_tasks = logits.shape[-1] - 1
    scores = _scores(logits, score)
    # A row of rank k is the lower of a pair by its g_k; the clamp serves the top rank, which is no
    # lower one. It is the upper of one by its g_(k-1) or, of all pairs, by every g below its rank.
    low_at = ranks.clamp(max=num_tasks - 1)
    low_weight = weight * (ranks < num_tasks)
    if pairs == "neighbours":
        at = torch.stack([low_at, (ranks - 1).clamp_(min=0)], 1)  # (N, 2)
        keys = wide(scores.gather(1, at))
        high_weight = (weight * (ranks > 0)).unsqueeze(1)
    else:
        every = torch.arange(num_tasks, device=logits.device)
        at = torch.cat([low_at.unsqueeze(1), every.expand_as(scores)], 1)  # (N, K)
        keys = wide(torch.cat([scores.gather(1, low_at.unsqueeze(1)), scores], 1))
        high_weight = weight.unsqueeze(1) * (ranks.unsqueeze(1) > every)
    with torch.no_grad():
        # A row's first key is that of the lower one, which must be a margin below.
        shifted = keys.clone()
        shifted[:, 0] += 1
        lows = torch.zeros_like(keys)
        lows[:, 0] = low_weight
        highs = torch.zeros_like(keys)
        highs[:, 1:] = high_weight
        at = at.reshape(-1)
        order = torch.argsort(shifted.reshape(-1))
        order = order[torch.argsort(at[order], stable=True)]  # by threshold, then by score
        task = at[order]
        lows, highs = lows.reshape(-1)[order], highs.reshape(-1)[order]
        low_totals, high_totals = (
            values.new_zeros(num_tasks).index_add_(0, task, values) for values in (lows, highs)
        )
        # Inside are the uppers before a lower one, and the lowers after an upper one.
        highs_before = highs.cumsum(0) - highs - (high_totals.cumsum(0) - high_totals)[task]
        lows_after = low_totals.cumsum(0)[task] - lows.cumsum(0)
        slope = torch.empty_like(highs)
        slope[order] = lows * highs_before - highs * lows_after
        slope = slope.view_as(keys)
        middle = keys.mean() if len(keys) else keys.sum()
        of_margins = slope[:, 0].sum()
        count = torch.dot(low_totals, high_totals)
    # Slopes add up to 0 within a threshold; keys around 0 keep the sum exact.
    total = of_margins + ((keys - middle) * slope).sum()
    return LossParts(total.to(logits.dtype), count.to(logits.dtype))
