"""Differentiable sorting networks (Petersen et al. 2021, 2022): a loss on the order of short lists.

A network of comparators sorts a list of scores. Each comparator is relaxed: it mixes its two values
by a share that rises with their difference, so that the network gives a doubly stochastic matrix
in place of a permutation.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from echelon.functional._coupled import finish_score, read_coupled
from echelon.functional._labels import LossParts, Weights
from echelon.functional._precision import wide

SortingNetwork = Literal["odd_even", "bitonic"]
Relaxation = Literal["cauchy", "logistic", "logistic_phi", "reciprocal", "gaussian", "optimal"]

_NETWORKS = ("odd_even", "bitonic")
_SMALLEST_SHARE = 1e-6  # of a position, before its logarithm
_PHI = 0.25  # how far logistic_phi shrinks a difference
_LONGEST_LIST = 256


def diffsort_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    network: SortingNetwork = "odd_even",
    distribution: Relaxation = "cauchy",
    steepness: float = 10.0,
    list_size: int = 8,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross-entropy between a relaxed sorting of the scores and the right order.

    The batch, in its order, is cut into lists; the last one begins again with the first rows where
    too few are left. Rows of equal rank may stand in any order: the target of a row are the places
    of its rank, in equal shares.

    Parameters
    ----------
    logits : Tensor, shape (N, K)
        What :class:`echelon.heads.ScoreHead` gives; see :func:`score_log_probabilities`, whose map
        is fitted along the way by a term that has no value.
    ranks : Tensor, shape (N,)
        The true ranks, 0..K-1.
    network : {"odd_even", "bitonic"}
        The bitonic network has fewer layers and needs a list size that is a power of 2.
    distribution : {"cauchy", "logistic", "logistic_phi", "reciprocal", "gaussian", "optimal"}
        The distribution function of the relaxation. ``"cauchy"``, ``"reciprocal"`` and
        ``"optimal"`` give a monotone network; ``"logistic_phi"`` is the logistic one of a
        difference divided by its 0.25th power, as in the paper of 2021.
    steepness : float
        What the difference of two scores is multiplied by.
    list_size : int
        Rows of a list, from 2 to 256.
    sample_weight, class_weight, ignore_index, reduction
        See :mod:`echelon.functional`; a row weighs in its list's loss, and one of weight 0 is in no
        list. No ``reduction="none"``, and no process group of several devices.

    Examples
    --------
    >>> logits, ranks = torch.zeros(2, 2), torch.tensor([0, 1])
    >>> diffsort_loss(logits, ranks, list_size=2)
    tensor(0.6931)
    """
    _require_options(network, distribution, steepness, list_size)
    logits, ranks, given = read_coupled(
        "diffsort",
        logits,
        ranks,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    score = logits[:, 0]
    if len(ranks) == 0:
        parts = LossParts(score.sum(), score.new_zeros(()))
        return finish_score(logits, ranks, given, parts, reduction)
    weight = torch.ones_like(score) if given is None else given
    rows, is_list = _lists(weight, list_size)  # (lists, n), (lists, 1)
    of_row = weight[rows] * is_list
    shares = relaxed_sort(wide(score)[rows], network, distribution, steepness)
    shares = shares.clamp(_SMALLEST_SHARE, 1 - _SMALLEST_SHARE)
    target = _right_places(ranks[rows], shares.dtype)
    costs = torch.where(target > 0, target * shares.log(), 0.0)
    costs = costs + (1 - target) * torch.log1p(-shares)
    # the mean over the places of a row, summed over the rows
    total = -(costs.mean(-1) * of_row).sum().to(logits.dtype)
    return finish_score(logits, ranks, given, LossParts(total, of_row.sum()), reduction)


def relaxed_sort(
    scores: Tensor, network: str = "odd_even", distribution: str = "cauchy", steepness: float = 10.0
) -> Tensor:
    """The relaxed permutation matrices of lists of scores.

    Parameters
    ----------
    scores : Tensor, shape (lists, n)

    Returns
    -------
    Tensor, shape (lists, n, n)
        The share of score i in place j of the ascending order: rows and columns sum to 1.
    """
    size = scores.shape[-1]
    share = _RELAXATIONS[distribution]
    identity = torch.eye(size, dtype=scores.dtype, device=scores.device)
    # A row a place: what it holds of each score; the scores are sorted along with it.
    held = identity.expand(len(scores), -1, -1)
    # What is compiled keeps its own constants, and cannot look into a cache.
    layers = _layers if torch.compiler.is_compiling() else _remembered_layers
    partners, signs = zip(*layers(network, size), strict=True)
    rising = torch.tensor(signs, dtype=scores.dtype, device=scores.device) * steepness
    for places, slope in zip(torch.tensor(partners, device=scores.device), rising, strict=True):
        other = scores.index_select(1, places)
        difference = other - scores
        if distribution == "logistic_phi":  # the difference is shrunk before it is made steep
            difference = difference / (difference.abs() + 1e-10).pow(_PHI)
        keeps = share(difference * slope)
        scores = torch.lerp(other, scores, keeps)
        held = torch.lerp(held.index_select(1, places), held, keeps.unsqueeze(2))
    return held.transpose(1, 2)


def _lists(weight: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The rows (lists, size) of each list, and whether it is one, (lists, 1).

    Rows that count come first and in their order, and begin again at the end: rows that do not
    count leave no trace. A list is none where all of its rows were in earlier ones.
    """
    number = len(weight)
    counts = weight > 0
    order = torch.argsort((~counts).to(torch.int8), stable=True)
    present = counts.sum()
    lists = -(-number // size)
    slots = torch.arange(lists * size, device=weight.device).reshape(lists, size)
    return order[slots % present.clamp(min=1)], (slots[:, :1] < present).to(weight.dtype)


def _right_places(ranks: Tensor, dtype: torch.dtype) -> Tensor:
    """The mean of all right permutation matrices, (lists, n, n), of ranks (lists, n)."""
    lower = (ranks.unsqueeze(2) > ranks.unsqueeze(1)).sum(2, keepdim=True)  # how many are below i
    equal = (ranks.unsqueeze(2) == ranks.unsqueeze(1)).sum(2, keepdim=True)  # i itself included
    places = torch.arange(ranks.shape[1], device=ranks.device)
    return ((places >= lower) & (places < lower + equal)).to(dtype) / equal


def _layers(network: str, size: int) -> tuple[tuple[tuple[int, ...], tuple[float, ...]], ...]:
    """For each layer, with whom each place is compared, and 1 where it is to hold the lower one.

    A place without a partner is compared with itself, which changes nothing.
    """
    layers = []
    for pairs in _odd_even(size) if network == "odd_even" else _bitonic(size):
        partner, sign = list(range(size)), [1.0] * size
        for low, high in pairs:
            partner[low], partner[high], sign[high] = high, low, -1.0
        layers.append((tuple(partner), tuple(sign)))
    return tuple(layers)


_remembered_layers = lru_cache(maxsize=32)(_layers)


def _odd_even(size: int) -> list[list[tuple[int, int]]]:
    return [[(i, i + 1) for i in range(layer % 2, size - 1, 2)] for layer in range(size)]


def _bitonic(size: int) -> list[list[tuple[int, int]]]:
    layers, block = [], 2
    while block <= size:
        distance = block // 2
        while distance:
            lows = [i for i in range(size) if not i & distance]
            ways = [(i, i + distance) for i in lows]
            # ascending where the block's bit is not set, else descending
            layers.append([pair if not pair[0] & block else pair[::-1] for pair in ways])
            distance //= 2
        block *= 2
    return layers


def _cauchy(v: Tensor) -> Tensor:
    return torch.atan(v) / math.pi + 0.5


def _reciprocal(v: Tensor) -> Tensor:
    return v / (2 * (2 + v.abs())) + 0.5


def _gaussian(v: Tensor) -> Tensor:
    share: Tensor = torch.special.ndtr(v)
    return share


def _optimal(v: Tensor) -> Tensor:
    """Straight between -1/4 and 1/4, and 1 - 1/(16 v) beyond, or its mirror image."""
    is_far = v.abs() > 0.25
    away = torch.where(is_far, v, 1.0)
    far = (away > 0).to(v.dtype) - 1 / (16 * away)
    return torch.where(is_far, far, v + 0.5)


_RELAXATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "cauchy": _cauchy,
    "logistic": torch.sigmoid,
    "logistic_phi": torch.sigmoid,
    "reciprocal": _reciprocal,
    "gaussian": _gaussian,
    "optimal": _optimal,
}


def _require_options(network: str, distribution: str, steepness: float, list_size: int) -> None:
    for name, value, known in (
        ("network", network, _NETWORKS), ("distribution", distribution, _RELAXATIONS),
    ):  # fmt: skip
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}")
    if not (steepness > 0 and math.isfinite(steepness)):
        raise ValueError(f"steepness must be a number above 0; got {steepness}")
    if not (isinstance(list_size, int) and 2 <= list_size <= _LONGEST_LIST):
        raise ValueError(
            f"list_size must be a whole number from 2 to {_LONGEST_LIST}; got {list_size!r}"
        )
    if network == "bitonic" and list_size & (list_size - 1):
        raise ValueError(
            f"list_size must be a power of 2 for the bitonic network; got {list_size}: choose one, "
            f"or network='odd_even'"
        )
