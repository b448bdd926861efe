"""Losses and curves of the methods that split an ordinal label into K-1 binary tasks.

Task k asks whether y > k. The four methods differ only in which (row, task) pairs are active and in
how logits are read as a curve, so the masked binary cross-entropy is written once.
"""

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus as torch_softplus

from echelon.functional._intervals import log1mexp, log_sigmoid, softplus
from echelon.functional._labels import (
    Labels,
    LossParts,
    Weights,
    as_weights,
    finish,
    read,
    reduce_terms,
)
from echelon.functional._precision import as_float

Normaliser = Literal["pairs", "rows", "per_task"]

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
) -> Tensor:
    """Binary cross-entropy on every task (OR-NN, Niu et al. 2016).

    The published network has two logits a task with a softmax; their difference is the one logit
    here, so the model is the same.

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)
        Logit of y > k for each task k.
    ranks : Tensor, shape (...) or (..., K)
    task_weight : shape (K-1,), optional
        Importance of each binary task.
    normaliser : {"pairs", "rows", "per_task"}
    sample_weight, class_weight, ignore_index, reduction
        See :mod:`echelon.functional`, also for the normalisers.

    Examples
    --------
    >>> logits = torch.tensor([[2.0, -1.0]])
    >>> ornn_loss(logits, torch.tensor([1]), reduction="sum")
    tensor(0.4402)
    """
    return _masked_bce(
        logits,
        ranks,
        conditional=False,
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
) -> Tensor:
    """Binary cross-entropy on every task (CORAL, Cao et al. 2020).

    The loss is that of :func:`ornn_loss`; CORAL differs in its head, whose tasks share one weight
    vector. ``normaliser="rows"`` gives the scale of the CORAL paper.

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)
        Logit of y > k for each task k.
    ranks : Tensor, shape (...) or (..., K)
    task_weight : shape (K-1,), optional
        The paper's importance weights.
    normaliser : {"pairs", "rows", "per_task"}
    sample_weight, class_weight, ignore_index, reduction
        See :mod:`echelon.functional`, also for the normalisers.

    Examples
    --------
    >>> coral_loss(torch.zeros(4, 3), torch.tensor([0, 1, 2, 3]), normaliser="rows")
    tensor(2.0794)
    """
    return _masked_bce(
        logits,
        ranks,
        conditional=False,
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
) -> Tensor:
    """Binary cross-entropy of task k on its conditional subset y >= k (CORN, Shi et al.).

    The sum over the tasks of one row is exactly -log P(y) of the curve that
    :func:`corn_log_probabilities` gives.

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)
        Logit of y > k given y >= k for each task k.
    ranks : Tensor, shape (...) or (..., K)
    task_weight : shape (K-1,), optional
        Importance of each binary task.
    normaliser : {"pairs", "rows", "per_task"}
        The default divides by the number of active pairs, as the paper's formula does.
    sample_weight, class_weight, ignore_index, reduction
        See :mod:`echelon.functional`, also for the normalisers.

    Examples
    --------
    >>> logits = torch.tensor([[2.0, -1.0, 5.0]])
    >>> loss = corn_loss(logits, torch.tensor([1]), reduction="sum")
    >>> log_probabilities = corn_log_probabilities(logits)
    >>> torch.testing.assert_close(loss, -log_probabilities[0, 1])
    """
    return _masked_bce(
        logits,
        ranks,
        conditional=True,
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
) -> Tensor:
    """The ablation of CORN: every row trains every task, while the curve stays CORN's.

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)
    ranks : Tensor, shape (...) or (..., K)
    mask : {"all", "published"}
        ``"all"`` follows the paper's words. ``"published"`` follows the code published with the
        paper, which leaves the rows of the lowest rank out of every task.
    task_weight : shape (K-1,), optional
        Importance of each binary task.
    normaliser : {"pairs", "rows", "per_task"}
    sample_weight, class_weight, ignore_index, reduction
        See :mod:`echelon.functional`, also for the normalisers.

    Examples
    --------
    >>> logits, ranks = torch.zeros(2, 3), torch.tensor([0, 2])
    >>> corn_without_subsets_loss(logits, ranks, reduction="none")
    tensor([2.0794, 2.0794])
    >>> corn_without_subsets_loss(logits, ranks, mask="published", reduction="none")
    tensor([0.0000, 2.0794])
    """
    if mask not in _MASKS:
        raise ValueError(f"mask must be one of {', '.join(map(repr, _MASKS))}; got {mask!r}")
    if mask == "published":
        num_classes = as_float(logits).shape[-1] + 1
        if class_weight is None:
            class_weight = [1.0] * num_classes
        given = as_weights(class_weight, "class_weight", (num_classes,), as_float(logits))
        class_weight = torch.cat([torch.zeros_like(given[:1]), given[1:]])
    return _masked_bce(
        logits,
        ranks,
        conditional=False,
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
    reached = torch.cat([nothing, log_sigmoid(logits).cumsum(-1)], -1)  # log P(y >= k), (..., K)
    stopped = torch.cat([log_sigmoid(-logits), nothing], -1)  # log P(y = k | y >= k)
    return reached + stopped


def sorted_log_probabilities(logits: Tensor) -> Tensor:
    """log P(y = k) from logits of y > k that may contradict each other.

    Sorting the exceedances in descending order repairs them and keeps how many are above 0.5, so
    the median is the count rule of the OR-NN and CORAL papers. A rank between two equal
    exceedances has probability 0 and log-probability -inf.

    Parameters
    ----------
    logits : Tensor, shape (..., K-1)

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
    """CORN's conditional subsets: task k is active where y >= k. (..., K-1), of ranks (...)."""
    return ranks.unsqueeze(-1) >= torch.arange(num_tasks, device=ranks.device)


def every_task(ranks: Tensor, num_tasks: int, *, mask: str = "all") -> Tensor:
    """Every task is active, or with ``mask="published"`` none of the lowest rank's. (..., K-1)."""
    active = ranks > 0 if mask == "published" else torch.ones_like(ranks, dtype=torch.bool)
    return active.unsqueeze(-1).expand(*ranks.shape, num_tasks)


def _masked_bce(
    logits: Tensor,
    ranks: Tensor,
    *,
    conditional: bool,
    task_weight: Weights | None,
    normaliser: str,
    sample_weight: Weights | None,
    class_weight: Weights | None,
    ignore_index: int | None,
    reduction: str,
) -> Tensor:
    """Binary cross-entropy over the active (row, task) pairs, for logits (..., K-1).

    A pair is active where y >= k if `conditional`, and always otherwise.
    """
    if normaliser not in _NORMALISERS:
        raise ValueError(
            f"normaliser must be one of {', '.join(map(repr, _NORMALISERS))}; got {normaliser!r}"
        )
    num_tasks = as_float(logits).shape[-1]
    logits, labels = read(
        logits,
        ranks,
        num_tasks + 1,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    if labels.ranks is not None:
        terms = _hard_terms(logits, labels.ranks, conditional)
    else:
        positive, negative = _soft_levels(labels, conditional)
        # 0 * inf would be NaN, and an event without mass must not count at all.
        terms = torch.where(positive > 0, positive * softplus(-logits), 0.0) + torch.where(
            negative > 0, negative * softplus(logits), 0.0
        )
    per_task = None
    if task_weight is not None:
        per_task = as_weights(task_weight, "task_weight", (num_tasks,), logits)
        terms = terms * per_task

    if normaliser == "per_task" and reduction != "none":
        return _reduce_per_task(terms, labels, conditional, per_task, reduction)
    if normaliser == "pairs" and reduction != "none":
        count = _count_pairs(labels, num_tasks, conditional, per_task)
        return reduce_terms(terms, labels, reduction, count)
    return reduce_terms(terms, labels, reduction)


def _hard_terms(logits: Tensor, ranks: Tensor, conditional: bool) -> Tensor:
    """Binary cross-entropy of each pair, (..., K-1), 0 where inactive.

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
    if conditional:
        # at most infinity where active, and at most minus infinity where not
        wrongness = torch.minimum(wrongness, (_HUGE - shortfall).mul_(math.inf))
    return torch_softplus(wrongness, 1, 40)  # past 40 the linear branch is exact in float64 too


def _soft_levels(labels: Labels, conditional: bool) -> tuple[Tensor, Tensor]:
    """Mass on y > k and, among the active rows, on y <= k; each (..., K-1)."""
    assert labels.mass is not None
    positive = labels.mass.flip(-1).cumsum(-1).flip(-1)[..., 1:]
    at_rank = labels.mass[..., :-1]
    return positive, at_rank if conditional else at_rank.cumsum(-1)


def _activity(labels: Labels, num_tasks: int, conditional: bool) -> Tensor:
    """(Expected) activity of each pair, (..., K-1)."""
    if labels.ranks is None:
        positive, negative = _soft_levels(labels, conditional)
        return positive + negative
    active = reached_tasks if conditional else every_task
    return active(labels.ranks, num_tasks)


def _count_pairs(
    labels: Labels, num_tasks: int, conditional: bool, per_task: Tensor | None
) -> Tensor:
    """(Weighted, expected) number of active pairs of each row, (...)."""
    if labels.ranks is None or per_task is not None:
        active = _activity(labels, num_tasks, conditional)
        return active.sum(-1) if per_task is None else (active * per_task).sum(-1)
    # Without weights the count has a closed form that never looks at the pairs.
    if conditional:
        return (labels.ranks + 1).clamp(max=num_tasks)
    return torch.full_like(labels.ranks, num_tasks)


def _reduce_per_task(
    terms: Tensor, labels: Labels, conditional: bool, per_task: Tensor | None, reduction: str
) -> Tensor:
    """Mean within each task, then over all tasks; a task without rows contributes 0."""
    num_tasks = terms.shape[-1]
    active = _activity(labels, num_tasks, conditional).to(terms.dtype)
    if labels.weight is not None:
        terms = terms * labels.weight.unsqueeze(-1)
        active = active * labels.weight.unsqueeze(-1)
    total = terms.reshape(-1, num_tasks).sum(0)
    if reduction == "sum":
        return total.sum()
    # The share of a task in the outer mean goes into its total: parts are divided and summed.
    shares = total.new_tensor(num_tasks) if per_task is None else per_task.sum()
    share = total / shares.masked_fill(shares == 0, 1)
    return finish(LossParts(share, active.reshape(-1, num_tasks).sum(0)), reduction)
