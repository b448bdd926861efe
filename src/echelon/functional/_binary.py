"""Losses and curves of the methods that split an ordinal label into K-1 binary tasks.

Task k asks whether y > k. The methods differ only in which (row, task) pairs are active, in what a
pair costs, and in how logits are read as a curve, so the masked sum over the pairs is written once.
"""

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import huber_loss

from echelon.functional._intervals import log1mexp, log_sigmoid, quick_softplus
from echelon.functional._labels import (
    Labels,
    LossParts,
    Weights,
    as_weights,
    finish,
    read,
    reduce_terms,
    with_ranks_last,
)
from echelon.functional._precision import as_float
from echelon.functional._scores import curve_of_margin_fit, cutpoint_distances

Normaliser = Literal["pairs", "rows", "per_task"]
Penalty = Literal["hinge", "smooth_hinge", "squared_hinge", "logistic"]
Thresholds = Literal["all", "immediate"]

_NORMALISERS = ("pairs", "rows", "per_task")
_MASKS = ("all", "published")
_HUGE = 2.0**100  # a power of 2: small integers times it are exact, in float32 too


def ornn_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    task_weight: Weights | None = None,
    ignore_index: int | None = None,
    normaliser: Normaliser = "pairs",
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    """Binary cross-entropy on every task (OR-NN, Niu et al. 2016).

    The published network has two logits a task with a softmax; their difference is the one logit
    here, so the model is the same.

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)
        Logit of y > k for each task k.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    task_weight : shape (K-1,), optional
        Importance of each binary task.
    normaliser : {"pairs", "rows", "per_task"}
        What the mean divides by; see :mod:`echelon.functional`.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`, also for the normalisers.

    Examples
    --------
    >>> logits = torch.tensor([[2.0, -1.0]])
    >>> ornn_loss(logits, torch.tensor([1]), reduction="sum")
    tensor(0.4402)
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
    return _masked_loss(
        logits,
        ranks,
        active="every",
        task_weight=task_weight,
        normaliser=normaliser,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )


def coral_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    task_weight: Weights | None = None,
    ignore_index: int | None = None,
    normaliser: Normaliser = "pairs",
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    """Binary cross-entropy on every task (CORAL, Cao et al. 2020).

    The loss is that of :func:`ornn_loss`; CORAL differs in its head, whose tasks share one weight
    vector. ``normaliser="rows"`` gives the scale of the CORAL paper.

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)
        Logit of y > k for each task k.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    task_weight : shape (K-1,), optional
        The paper's importance weights.
    normaliser : {"pairs", "rows", "per_task"}
        What the mean divides by; see :mod:`echelon.functional`.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`, also for the normalisers.

    Examples
    --------
    >>> coral_loss(torch.zeros(4, 3), torch.tensor([0, 1, 2, 3]), normaliser="rows")
    tensor(2.0794)
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
    return _masked_loss(
        logits,
        ranks,
        active="every",
        task_weight=task_weight,
        normaliser=normaliser,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )


def corn_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    task_weight: Weights | None = None,
    ignore_index: int | None = None,
    normaliser: Normaliser = "pairs",
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    """Binary cross-entropy of task k on its conditional subset y >= k (CORN, Shi et al.).

    The sum over the tasks of one row is exactly -log P(y) of the curve that
    :func:`corn_log_probabilities` gives.

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)
        Logit of y > k given y >= k for each task k.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    task_weight : shape (K-1,), optional
        Importance of each binary task.
    normaliser : {"pairs", "rows", "per_task"}
        The default divides by the number of active pairs, as the paper's formula does.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`, also for the normalisers.

    Examples
    --------
    >>> logits = torch.tensor([[2.0, -1.0, 5.0]])
    >>> loss = corn_loss(logits, torch.tensor([1]), reduction="sum")
    >>> log_probabilities = corn_log_probabilities(logits)
    >>> torch.testing.assert_close(loss, -log_probabilities[0, 1])
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
    return _masked_loss(
        logits,
        ranks,
        active="reached",
        task_weight=task_weight,
        normaliser=normaliser,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )


def corn_without_subsets_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    mask: Literal["all", "published"] = "all",
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    task_weight: Weights | None = None,
    ignore_index: int | None = None,
    normaliser: Normaliser = "pairs",
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    """The ablation of CORN: every row trains every task, while the curve stays CORN's.

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)
        A logit for each threshold.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    mask : {"all", "published"}
        ``"all"`` follows the paper's words. ``"published"`` follows the code published with the
        paper, which leaves the rows of the lowest rank out of every task.
    task_weight : shape (K-1,), optional
        Importance of each binary task.
    normaliser : {"pairs", "rows", "per_task"}
        What the mean divides by; see :mod:`echelon.functional`.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`, also for the normalisers.

    Examples
    --------
    >>> logits, ranks = torch.zeros(2, 3), torch.tensor([0, 2])
    >>> corn_without_subsets_loss(logits, ranks, reduction="none")
    tensor([2.0794, 2.0794])
    >>> corn_without_subsets_loss(logits, ranks, mask="published", reduction="none")
    tensor([0.0000, 2.0794])
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
    if mask not in _MASKS:
        raise ValueError(f"mask must be one of {', '.join(map(repr, _MASKS))}; got {mask!r}")
    if mask == "published":
        num_classes = as_float(logits).shape[-1] + 1
        if class_weight is None:
            class_weight = [1.0] * num_classes
        given = as_weights(class_weight, "class_weight", (num_classes,), as_float(logits))
        class_weight = torch.cat([torch.zeros_like(given[:1]), given[1:]])
    return _masked_loss(
        logits,
        ranks,
        active="every",
        task_weight=task_weight,
        normaliser=normaliser,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )


def margin_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    thresholds: Thresholds = "all",
    penalty: Penalty = "hinge",
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    task_weight: Weights | None = None,
    ignore_index: int | None = None,
    normaliser: Normaliser = "pairs",
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    """Margins of one score among ordered cutpoints: large-margin ordinal regression.

    The sum over cutpoints b_k of h(s_k (f - b_k)), where s_k is 1 if y > k and -1 otherwise. With
    the hinge, ``"immediate"`` are the explicit and ``"all"`` the implicit constraints of Chu and
    Keerthi (2005); the former without the order of the cutpoints, which is given here, is the
    fixed-margin form of Shashua and Levin (2003); other penalties are those of Rennie and Srebro
    (2005). ``penalty="logistic"`` with all thresholds is :func:`coral_loss` of f - b_k.

    Parameters
    ----------
    logits : Tensor, shape (..., K)
        What :class:`echelon.heads.MarginHead` gives; see :func:`margin_log_probabilities`, whose
        scale is fitted along the way by a term that has no value.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    thresholds : {"all", "immediate"}
        Whether a row is compared with every cutpoint, or with those beside its rank.
    penalty : {"hinge", "smooth_hinge", "squared_hinge", "logistic"}
        h(z): max(0, 1-z); that with a parabola between 0 and 1; its square; log(1 + exp(-z)).
    task_weight : shape (K-1,), optional
        Importance of each cutpoint.
    normaliser : {"pairs", "rows", "per_task"}
        What the mean divides by; see :mod:`echelon.functional`.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`, also for the normalisers.

    Examples
    --------
    >>> logits = torch.tensor([[-0.5, 0.0, 1.0]])  # the score is 0.5 above the first cutpoint
    >>> margin_loss(logits, torch.tensor([1]), reduction="sum")
    tensor(1.3069)
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
    for name, value, known in (
        ("thresholds", thresholds, _THRESHOLDS), ("penalty", penalty, _PENALTIES),
    ):  # fmt: skip
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}")
    return _masked_loss(
        logits,
        ranks,
        active=_THRESHOLDS[thresholds],
        of_score=True,
        penalty=_PENALTIES[penalty],
        task_weight=task_weight,
        normaliser=normaliser,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )


def corn_log_probabilities(logits: Tensor) -> Tensor:
    """log P(y = k) by the chain rule over conditional probabilities.

    P(y > k) is the product of sigmoid(z_j) for j <= k, and P(y = k) = P(y > k-1) sigmoid(-z_k).

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)
        A logit for each threshold.

    Returns
    -------
    Tensor, shape (..., K)

    Examples
    --------
    >>> corn_log_probabilities(torch.zeros(1, 3)).exp()
    tensor([[0.5000, 0.2500, 0.1250, 0.1250]])
    """
    logits = as_float(logits)
    nothing = torch.zeros_like(logits[..., :1])
    passed = log_sigmoid(logits)  # log P(y > k | y >= k)
    # In float64 the difference is as good as exact, and spares a second logarithm.
    failed = passed - logits if logits.dtype == torch.float64 else log_sigmoid(-logits)
    reached = torch.cat([nothing, passed.cumsum(-1)], -1)  # log P(y >= k), (..., K)
    stopped = torch.cat([failed, nothing], -1)  # log P(y = k | y >= k)
    return reached + stopped


def sorted_log_probabilities(logits: Tensor) -> Tensor:
    """log P(y = k) from logits of y > k that may contradict each other.

    Sorting the exceedances in descending order repairs them and keeps how many are above 0.5, so
    the median is the count rule of the OR-NN and CORAL papers. A rank between two equal
    exceedances has probability 0 and log-probability -inf.

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)
        A logit for each threshold.

    Returns
    -------
    Tensor, shape (..., K)

    Examples
    --------
    >>> sorted_log_probabilities(torch.tensor([[0.0, 2.0]])).exp()
    tensor([[0.1192, 0.3808, 0.5000]])
    """
    logits = as_float(logits).sort(-1, descending=True).values
    nothing = torch.zeros_like(logits[..., :1])
    # sigmoid(a) - sigmoid(b) = sigmoid(a) sigmoid(-b) (1 - exp(b - a)), exact in both tails
    gaps = log1mexp(logits[..., :-1] - logits[..., 1:])  # (..., K-2)
    above_previous = torch.cat([nothing, log_sigmoid(logits)], -1)  # (..., K)
    not_above = torch.cat([log_sigmoid(-logits), nothing], -1)  # (..., K)
    return above_previous + not_above + torch.cat([nothing, gaps, nothing], -1)


def reached_tasks(ranks: Tensor, num_tasks: int) -> Tensor:
    """CORN's conditional subsets: task k is active where y >= k.

    Parameters
    ----------
    ranks : Tensor, shape (...)
        The true ranks, 0..K-1.
    num_tasks : int
        The number of binary tasks, K-1.

    Returns
    -------
    Tensor of bool, shape (..., K-1)

    Examples
    --------
    >>> reached_tasks(torch.tensor([0, 2]), 3)
    tensor([[ True, False, False],
            [ True,  True,  True]])
    """
    return ranks.unsqueeze(-1) >= torch.arange(num_tasks, device=ranks.device)


def neighbouring_tasks(ranks: Tensor, num_tasks: int) -> Tensor:
    """The thresholds beside the rank: k = y - 1 and k = y. (..., K-1), of ranks (...)."""
    above = ranks.unsqueeze(-1) - torch.arange(num_tasks, device=ranks.device)
    return (above == 0) | (above == 1)


def margin_tasks(ranks: Tensor, num_tasks: int, *, thresholds: Thresholds = "all") -> Tensor:
    """The thresholds that a row of :func:`margin_loss` is compared with.

    Parameters
    ----------
    ranks : Tensor, shape (...)
        The true ranks, 0..K-1.
    num_tasks : int
        The number of binary tasks, K-1.
    thresholds : {"all", "immediate"}
        Whether a row is compared with every threshold or with the two beside its rank.

    Returns
    -------
    Tensor of bool, shape (..., K-1)

    Examples
    --------
    >>> margin_tasks(torch.tensor([1]), 3, thresholds="immediate")
    tensor([[ True,  True, False]])
    """
    return _ACTIVE[_THRESHOLDS[thresholds]](ranks, num_tasks)


def every_task(ranks: Tensor, num_tasks: int, *, mask: str = "all") -> Tensor:
    """Every row trains every task.

    Parameters
    ----------
    ranks : Tensor, shape (...)
        The true ranks, 0..K-1.
    num_tasks : int
        The number of binary tasks, K-1.
    mask : {"all", "published"}
        With "published", rows of the lowest rank train none, as in the published code of the CORN
        paper's ablation.

    Returns
    -------
    Tensor of bool, shape (..., K-1)

    Examples
    --------
    >>> every_task(torch.tensor([0, 2]), 2, mask="published")
    tensor([[False, False],
            [ True,  True]])
    """
    active = ranks > 0 if mask == "published" else torch.ones_like(ranks, dtype=torch.bool)
    return active.unsqueeze(-1).expand(*ranks.shape, num_tasks)


def _hinge(wrongness: Tensor) -> Tensor:
    return (1 + wrongness).relu()


def _smooth_hinge(wrongness: Tensor) -> Tensor:
    hinge = _hinge(wrongness)
    return huber_loss(hinge, torch.zeros_like(hinge), reduction="none")


def _squared_hinge(wrongness: Tensor) -> Tensor:
    return _hinge(wrongness).square()


# What a pair costs, of minus its margin.
_PENALTIES: dict[str, Callable[[Tensor], Tensor]] = {
    "hinge": _hinge,
    "smooth_hinge": _smooth_hinge,
    "squared_hinge": _squared_hinge,
    "logistic": quick_softplus,
}
_THRESHOLDS = {"all": "every", "immediate": "neighbouring"}
_ACTIVE: dict[str, Callable[[Tensor, int], Tensor]] = {
    "every": every_task,
    "reached": reached_tasks,
    "neighbouring": neighbouring_tasks,
}


def _masked_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    active: str,
    penalty: Callable[[Tensor], Tensor] = quick_softplus,
    of_score: bool = False,
    task_weight: Weights | None,
    normaliser: str,
    sample_weight: Weights | None,
    class_weight: Weights | None,
    ignore_index: int | None,
    reduction: str,
) -> Tensor:
    """The penalty over the active (row, task) pairs; by default binary cross-entropy.

    `active` is a name in _ACTIVE. The logits (..., K-1) are those of y > k or, `of_score`, those
    (..., K) of a score among cutpoints, whose margins they give.
    """
    if normaliser not in _NORMALISERS:
        raise ValueError(
            f"normaliser must be one of {', '.join(map(repr, _NORMALISERS))}; got {normaliser!r}"
        )
    num_tasks = as_float(logits).shape[-1] - of_score
    logits, labels = read(
        logits,
        ranks,
        num_tasks + 1,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    fit = None
    if of_score:
        # not by slices: each would fill a whole gradient with zeros
        first, steps, raw_scale = torch.split_with_sizes(logits, [1, num_tasks - 1, 1], -1)
        distances = cutpoint_distances(first, quick_softplus(steps))
        fit = curve_of_margin_fit(logits, raw_scale, distances, labels)
        logits = -distances
    if labels.ranks is not None:
        terms = _hard_terms(logits, labels.ranks, active, penalty)
    else:
        positive, negative = _soft_levels(labels, active)
        # 0 * inf would be NaN, and an event without mass must not count at all.
        terms = torch.where(positive > 0, positive * penalty(-logits), 0.0) + torch.where(
            negative > 0, negative * penalty(logits), 0.0
        )
    per_task = None
    if task_weight is not None:
        per_task = as_weights(task_weight, "task_weight", (num_tasks,), logits)
        terms = terms * per_task
    if fit is not None:
        terms = terms + fit / num_tasks

    if normaliser == "per_task" and reduction != "none":
        return _reduce_per_task(terms, labels, active, per_task, reduction)
    if normaliser == "pairs" and reduction != "none":
        count = _count_pairs(labels, num_tasks, active, per_task)
        return reduce_terms(terms, labels, reduction, count)
    return reduce_terms(terms, labels, reduction)


def _hard_terms(
    logits: Tensor, ranks: Tensor, active: str, penalty: Callable[[Tensor], Tensor]
) -> Tensor:
    """The penalty of each pair, (..., K-1), 0 where inactive.

    softplus of the logit, signed so that large is wrong, is exact where log(1 - p) is not. An
    inactive pair gets a logit so right that its loss and gradient are exactly 0, whatever its own
    logit is. All of this is float arithmetic because boolean masks take several times as long.
    """
    num_tasks = logits.shape[-1]
    tasks = torch.arange(
        0.5 * _HUGE, num_tasks * _HUGE, _HUGE, dtype=logits.dtype, device=logits.device
    )
    # (k + 0.5 - y) * HUGE: below 0 where y > k, HUGE / 2 where y = k, more where y < k
    shortfall = torch.sub(tasks, ranks.unsqueeze(-1), alpha=_HUGE)  # (..., K-1)
    wrongness = logits * shortfall.clamp(-1, 1)
    if active != "every":
        inside = shortfall.abs() if active == "neighbouring" else shortfall
        # At most infinity where active, and at most minus infinity where not. The bound is put on
        # the values alone: every penalty is flat there, and the slope of a bound takes long.
        wrongness.detach().clamp_(max=(_HUGE - inside).mul_(math.inf))
    return penalty(wrongness)


def _soft_levels(labels: Labels, active: str) -> tuple[Tensor, Tensor]:
    """Mass of the active rows on y > k and on y <= k; each (..., K-1)."""
    assert labels.mass is not None
    at_rank = labels.mass[..., :-1]
    if active == "neighbouring":
        return labels.mass[..., 1:], at_rank
    positive = labels.mass.flip(-1).cumsum(-1).flip(-1)[..., 1:]
    return positive, at_rank if active == "reached" else at_rank.cumsum(-1)


def _activity(labels: Labels, num_tasks: int, active: str) -> Tensor:
    """(Expected) activity of each pair, (..., K-1)."""
    if labels.ranks is None:
        positive, negative = _soft_levels(labels, active)
        return positive + negative
    return _ACTIVE[active](labels.ranks, num_tasks)


def _count_pairs(labels: Labels, num_tasks: int, active: str, per_task: Tensor | None) -> Tensor:
    """(Weighted, expected) number of active pairs of each row, (...)."""
    if labels.ranks is None or per_task is not None:
        activity = _activity(labels, num_tasks, active)
        return activity.sum(-1) if per_task is None else (activity * per_task).sum(-1)
    # Without weights the count has a closed form that never looks at the pairs.
    if active == "reached":
        return (labels.ranks + 1).clamp(max=num_tasks)
    if active == "neighbouring":  # two, but for the lowest and the top rank
        return (labels.ranks + 1).clamp(max=2).minimum(num_tasks + 1 - labels.ranks)
    return torch.full_like(labels.ranks, num_tasks)


def _reduce_per_task(
    terms: Tensor, labels: Labels, active: str, per_task: Tensor | None, reduction: str
) -> Tensor:
    """Mean within each task, then over all tasks; a task without rows contributes 0."""
    num_tasks = terms.shape[-1]
    activity = _activity(labels, num_tasks, active).to(terms.dtype)
    if labels.weight is not None:
        terms = terms * labels.weight.unsqueeze(-1)
        activity = activity * labels.weight.unsqueeze(-1)
    total = terms.reshape(-1, num_tasks).sum(0)
    if reduction == "sum":
        return total.sum()
    # The share of a task in the outer mean goes into its total: parts are divided and summed.
    shares = total.new_tensor(num_tasks) if per_task is None else per_task.sum()
    share = total / shares.masked_fill(shares == 0, 1)
    return finish(LossParts(share, activity.reshape(-1, num_tasks).sum(0)), reduction)
