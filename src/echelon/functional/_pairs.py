"""Ranking by the pairs and the lists of a batch: RankingSVM, RankNet, ListNet."""

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.functional import softplus as torch_softplus

from echelon.functional._coupled import finish_score, read_coupled
from echelon.functional._labels import LossParts, Weights
from echelon.functional._precision import wide

RankingPenalty = Literal["hinge", "logistic", "listnet"]

_PENALTIES = ("hinge", "logistic", "listnet")
_MOST_PAIRS = 2**18  # 512 rows with each other: more than that costs more than the network
_NOWHERE = -1e30  # the score of a row that is not there


def ranking_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    penalty: RankingPenalty = "hinge",
    gap_weight: bool = False,
    temperature: float = 1.0,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The order of the scores: every row above all rows of lower ranks in its batch.

    ``"hinge"`` is the RankingSVM of Joachims (2002), the mean of max(0, 1 - d) over the pairs with
    y_i > y_j and d = f_i - f_j, in time N log N + N K. ``"logistic"`` is RankNet (Burges et al.
    2005), the mean of log(1 + exp(-d)); of more than 512 rows it compares those of equal groups,
    which are every so manieth row of the batch, and counts for all pairs. ``"listnet"`` is the
    top-one form of ListNet (Cao et al. 2007): cross-entropy between softmax(y / temperature) and
    softmax(f) over the batch.

    Parameters
    ----------
    logits : Tensor, shape (N, K)
        What :class:`echelon.heads.ScoreHead` gives; see :func:`score_log_probabilities`, whose map
        is fitted along the way by a term that has no value.
    ranks : Tensor, shape (N,)
        The true ranks, 0..K-1.
    penalty : {"hinge", "logistic", "listnet"}
        What a pair in the wrong order costs: as RankingSVM, RankNet or ListNet.
    gap_weight : bool
        Whether a pair weighs y_i - y_j times as much; for pairs alone.
    temperature : float
        How even the target of ``"listnet"`` is; the other forms do not use it.
    sample_weight, class_weight, ignore_index, reduction
        See :mod:`echelon.functional`; a pair weighs the product of its rows. No
        ``reduction="none"``, and no process group of several devices.

    Examples
    --------
    >>> logits = torch.tensor([[0.0, 0.0], [0.25, 0.0]])
    >>> ranking_loss(logits, torch.tensor([0, 1]))
    tensor(0.7500)
    """
    if penalty not in _PENALTIES:
        raise ValueError(
            f"penalty must be one of {', '.join(map(repr, _PENALTIES))}; got {penalty!r}"
        )
    if not isinstance(gap_weight, bool):
        raise ValueError(f"gap_weight must be true or false; got {gap_weight!r}")
    if gap_weight and penalty == "listnet":
        raise ValueError("gap_weight weighs pairs, and 'listnet' has none; leave it out")
    if not (temperature > 0 and math.isfinite(temperature)):
        raise ValueError(f"temperature must be a number above 0; got {temperature}")
    logits, ranks, weight = read_coupled(
        "ranking",
        logits,
        ranks,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    score = logits[:, 0]
    if penalty == "hinge":
        parts = hinge_of_pairs(score, ranks, weight, logits.shape[-1], gap_weight)
    else:
        of_row = torch.ones_like(score) if weight is None else weight
        if penalty == "listnet":
            parts = _listnet(score, ranks, of_row, temperature)
        else:
            count = _weight_of_pairs(ranks, of_row, logits.shape[-1], gap_weight)
            parts = LossParts(_logistic_of_pairs(score, ranks, of_row, gap_weight, count), count)
    return finish_score(logits, ranks, weight, parts, reduction)


def _weight_of_pairs(
    ranks: Tensor, weight: Tensor, num_classes: int, by_gap: bool = False
) -> Tensor:
    """The weight of all pairs of different ranks."""
    per_class = weight.new_zeros(num_classes).index_add(0, ranks, weight)
    below = per_class.cumsum(0)[:-1]  # of ranks up to k, (K-1,)
    above = per_class[1:].flip(0).cumsum(0).flip(0) if by_gap else per_class[1:]
    return (below * above).sum()


def hinge_of_pairs(
    score: Tensor, ranks: Tensor, weight: Tensor | None, num_classes: int, by_gap: bool = False
) -> LossParts:
    """Weighted sum of max(0, 1 - (f_i - f_j)) over the pairs with y_i > y_j, and their weight.

    The sum is linear in the scores as long as no pair enters or leaves it. So all that is needed is
    the weight of the pairs inside, for each row: with the rows in the order of their scores, a
    difference of two running sums by rank. No array is larger than rows by ranks.
    """
    if len(score) == 0:
        return LossParts(score.sum(), score.new_zeros(()))
    scores = wide(score)
    with torch.no_grad():
        # Whole numbers tell who is inside, so that both rows of a pair are told the same.
        values, order = torch.sort(scores)
        ranks = ranks[order]
        start = torch.searchsorted(values, values - 1, right=True)  # the first above f_i - 1
        places = torch.arange(len(values), device=score.device)
        stop = torch.searchsorted(start, places, right=True)  # the first i with f_i >= f_j + 1
        # [n, k]: the weight of ranks below k among the rows up to n, (N, K+1)
        thresholds = torch.arange(num_classes + 1, dtype=values.dtype, device=score.device)
        itself = (thresholds - ranks.unsqueeze(1)).clamp_(0, 1)
        if weight is not None:
            of_row = wide(weight)[order]
            itself = itself.mul_(of_row.unsqueeze(1))
        running = itself.cumsum(0)
        last = stop - 1
        if by_gap:  # the number of thresholds between the two ranks is their difference
            beyond = (running[:, -1:] - running).flip(1).cumsum(1).flip(1)
            running, itself = running.cumsum(1), itself.cumsum(1)
            as_lower = beyond[last, ranks + 1]
        else:
            as_lower = running[last, -1] - running[last, ranks + 1]  # of rows that should beat j
        below = running[-1, ranks]
        # of rows that i should beat
        as_upper = below - running[start, ranks] + itself[start, ranks]
        of_pairs = as_lower - as_upper
        if weight is None:
            count, inside = below.sum(), as_upper.sum()
        else:
            count, inside = torch.dot(of_row, below), torch.dot(of_row, as_upper)
            of_pairs = of_pairs.mul_(of_row)
        slope = torch.empty_like(values).scatter_(0, order, of_pairs)
        # Slopes add up to 0; scores around 0 keep the sum exact.
        value = inside + torch.dot(scores - values[len(values) // 2], slope)
    total = torch.dot(scores, slope)
    total.detach().copy_(value)
    return LossParts(total.to(score.dtype), count.to(score.dtype))


def _logistic_of_pairs(
    score: Tensor, ranks: Tensor, weight: Tensor, by_gap: bool, count: Tensor
) -> Tensor:
    """Weighted sum of log(1 + exp(f_j - f_i)) over the pairs with y_i > y_j."""
    rows = len(score)
    groups = max(1, math.ceil(rows**2 / _MOST_PAIRS))
    missing = -rows % groups
    # Every so manieth row, so that groups of a sorted batch are alike; what is missing weighs 0.
    score, numbers, weight = (
        pad(values, (0, missing)).reshape(-1, groups).T
        for values in (score, ranks.to(score.dtype), weight)
    )  # (groups, rows of each)
    gap = (numbers.unsqueeze(2) - numbers.unsqueeze(1)).clamp_(min=0)
    pairs = (gap if by_gap else gap.clamp_(max=1)) * weight.unsqueeze(2) * weight.unsqueeze(1)
    wrongness = score.unsqueeze(1) - score.unsqueeze(2)  # f_j - f_i
    total = (torch_softplus(wrongness, 1, 40) * pairs).sum()
    if groups == 1:
        return total
    sampled = pairs.sum()
    return total * (count / sampled.masked_fill(sampled == 0, 1))


def _listnet(score: Tensor, ranks: Tensor, weight: Tensor, temperature: float) -> LossParts:
    """Cross-entropy of the batch as one list, which counts as its rows do."""
    if len(score) == 0:
        return LossParts(score.sum(), score.new_zeros(()))
    is_there = weight > 0
    log_weight = torch.where(is_there, weight, 1.0).log()
    target = ranks.to(score.dtype) / temperature + log_weight
    target = torch.softmax(torch.where(is_there, target, _NOWHERE), 0)
    total = torch.logsumexp(torch.where(is_there, score + log_weight, _NOWHERE), 0)
    count = weight.sum()
    return LossParts(count * (target * (total - score)).sum(), count)
