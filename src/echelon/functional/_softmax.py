"""Losses on a softmax over the K ranks."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax

from echelon.functional._intervals import quick_softplus
from echelon.functional._labels import (
    Labels,
    Weights,
    read,
    reduce_terms,
    with_ranks_last,
)
from echelon.functional._precision import as_float, without_autocast
from echelon.functional._targets import (
    Density,
    Distance,
    density_targets,
    falling_targets,
    require_targets,
)


def ce_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    """Cross-entropy, which knows nothing of the order.

    Parameters
    ----------
    logits : Tensor, shape (..., K)
        A logit for each rank.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`.

    Examples
    --------
    >>> ce_loss(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor(1.3863)
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
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
    density: Density = "exponential",
    positions: Sequence[float] | None = None,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    """Cross-entropy against soft targets that fall off with the distance (SORD, Diaz and Marathe).

    The target of rank r is proportional to exp(-phi(r, k) / temperature), unless another `density`
    is asked for.

    Parameters
    ----------
    logits : Tensor, shape (..., K)
        A logit for each rank.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    distance : {"absolute", "squared", "squared_log"}
        phi, between the positions of two ranks; the last is the square of the difference of their
        logarithms, and needs `positions` above 0.
    temperature : float
        The loss tends to :func:`ce_loss` as it goes to 0.
    density : {"exponential", "beta", "binomial", "triangular"}
        ``"binomial"`` has K-1 draws with a probability from 0.1 to 0.9 (Liu et al. 2020).
        ``"triangular"`` leaves a hundredth to each neighbour (Vargas et al. 2023). ``"beta"``, of K
        equal intervals, is our closed form of the tables of Vargas et al. (2022): its mean is the
        middle of the rank's interval, its standard deviation half the interval's width. None of
        the three has a temperature, a distance or positions.
    positions : K numbers that rise, optional
        Where the ranks stand, if the distances between them are known; by default 0..K-1.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`.

    Examples
    --------
    >>> logits = torch.tensor([[0.0, 1.0, 2.0]])
    >>> sord_loss(logits, torch.tensor([2]), distance="squared", temperature=2.0)
    tensor(0.9112)
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
    num_classes = as_float(logits).shape[-1]
    places = require_targets(num_classes, distance, temperature, density, positions)
    logits, labels = read(
        logits,
        ranks,
        num_classes,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    if density == "exponential":
        targets = falling_targets(labels, places, distance, temperature, logits)
    else:
        targets = density_targets(labels, num_classes, density, logits)
    return reduce_terms(-targets * log_softmax(logits, -1), labels, reduction)


def oll_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    power: float = 1.5,
    margin: float = 0.0,
    ce_share: float = 0.0,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    r"""Ordinal log loss: -log(1 - p_k) of every other rank, times a power of its distance.

    Castagnos et al. (2022); the class-distance weighted cross-entropy of Polat et al. (2022) is the
    same formula. The true rank itself has no term: the others are pushed away, the farther the
    harder.

    Parameters
    ----------
    logits : Tensor, shape (..., K)
        A logit for each rank.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    power : float
        The power that the distance \|y - k\| is raised to.
    margin : float
        A probability, below 1, that other ranks may have at no cost: our form of the margin of
        Polat et al., -log(min(1, 1 - p_k + margin)).
    ce_share : float
        From 0 to 1, the share of :func:`ce_loss` in a mixture of both.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`.

    Examples
    --------
    >>> oll_loss(torch.zeros(1, 3), torch.tensor([0]), power=1.0)
    tensor(1.2164)
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
    if not (power >= 0 and math.isfinite(power)):
        raise ValueError(f"power must be a number of at least 0; got {power}")
    if not 0 <= margin < 1:
        raise ValueError(f"margin must be a number of at least 0 and below 1; got {margin}")
    if not 0 <= ce_share <= 1:
        raise ValueError(f"ce_share must be a number of at least 0 and at most 1; got {ce_share}")
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
    if labels.mass is None:
        assert labels.ranks is not None
        # A row of powers, read from the place where its rank stands: few powers for many rows.
        line = torch.arange(1 - num_classes, num_classes, dtype=logits.dtype, device=logits.device)
        line = line.abs_().pow_(power)
        line[num_classes - 1] = 0  # 0^0 is 1, and the true rank has no term
        first = (num_classes - 1 - labels.ranks).flatten()
        distances = line.unfold(0, num_classes, 1).index_select(0, first).view_as(logits)
    else:
        classes = torch.arange(num_classes, dtype=logits.dtype, device=logits.device)
        between = (classes.unsqueeze(-1) - classes).abs_().pow_(power)
        between.fill_diagonal_(0)  # 0^0 is 1, and the true rank has no term
        with without_autocast(logits.device):
            distances = labels.mass @ between
    row_loss = -(distances * _log_absence(logits, margin)).sum(-1)
    if ce_share:
        of_rank = _row_cross_entropy(logits, labels)
        row_loss = (1 - ce_share) * row_loss + ce_share * of_rank
    return reduce_terms(row_loss, labels, reduction)


def _log_absence(logits: Tensor, margin: float) -> Tensor:
    """log(1 - p_k) of a softmax, (..., K), exact where p_k is close to 1."""
    probabilities = torch.softmax(logits, -1)
    if margin:
        return torch.log1p(margin - probabilities).clamp(max=0)
    # Only the highest of a row can be close to 1, and 1 minus it is what the others have together.
    highest = logits.detach().max(-1, keepdim=True).indices  # argmax takes longer
    others = logits.scatter(-1, highest, -math.inf)
    # Around the highest of the others, so that close numbers lose nothing to a large sum.
    centre = others.detach().amax(-1, keepdim=True)
    together = (others - centre).exp().sum(-1, keepdim=True).log()
    log_absence = -quick_softplus(logits.gather(-1, highest) - centre - together)
    # where it is thrown away, a 1 would give an endless slope
    near = torch.log1p(-probabilities.scatter(-1, highest, 0.0))
    return near.scatter(-1, highest, log_absence)


def rps_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    """Ranked probability score: squared errors of P(y > k), summed over the K-1 thresholds.

    Parameters
    ----------
    logits : Tensor, shape (..., K)
        A logit for each rank.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`.

    Examples
    --------
    >>> rps_loss(torch.zeros(1, 4), torch.tensor([0]))
    tensor(0.8750)
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
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
    """log P(y = k) of a softmax.

    Parameters
    ----------
    logits : Tensor, shape (..., K)
        A logit for each rank.

    Returns
    -------
    Tensor, shape (..., K)

    Examples
    --------
    >>> softmax_log_probabilities(torch.zeros(1, 4)).exp()
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
    return log_softmax(as_float(logits), -1)
