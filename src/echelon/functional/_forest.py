"""A forest of soft trees: the routes to its leaves, the mixture of them, its loss and its curve.

Invariant: no probability is had by subtraction. A tree sends a row left with the probability
sigmoid(unit) and right with sigmoid(-unit), so that the routes of a row sum to 1; a forest is the
mean of its trees. The loss is a sum of logarithms of sums of leaves, which is why the update of the
leaves by :func:`grown_shares` never raises it.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from echelon.functional._binary import sorted_log_probabilities
from echelon.functional._labels import Weights, read, reduce_terms, with_ranks_last
from echelon.functional._precision import as_float, wide

Leaves = Literal["softmax", "bernoulli"]
"""What a leaf holds: a distribution over the ranks, or the chance of passing each threshold."""
LeafUpdate = Literal["gradient", "em"]
"""How leaves learn: with the other parameters, or by steps of expectation maximisation."""
Criterion = Literal["exceedance", "nll"]

_CHOICES = {
    "leaves": ("softmax", "bernoulli"),
    "leaf_update": (None, "gradient", "em"),
    "criterion": (None, "exceedance", "nll"),
}
_DEEPEST = 10  # levels of splits: 1,024 leaves of a tree
_MOST_NODES = 2**16  # of all trees together
_SMALLEST = {torch.float64: 1e-300, torch.float32: 1e-37}  # probabilities, before their logarithm


def forest_loss(
    logits: Tensor,
    ranks: Tensor,
    *,
    num_classes: int,
    trees: int = 5,
    depth: int = 5,
    units: int | None = None,
    leaves: Leaves = "softmax",
    leaf_update: LeafUpdate | None = None,
    criterion: Criterion | None = None,
    sample_weight: Weights | None = None,
    class_weight: Weights | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    dim: int = -1,
) -> Tensor:
    """The loss of a forest of soft trees, our form of CORF (Zhu et al. 2021).

    Every split is a sigmoid of a linear unit on the features, so that a row reaches all leaves,
    with probabilities. The line of such forests is that of Kontschieder et al. (2015) and Shen et
    al. (2017, 2018). The primary text of CORF could not be read: its construction follows from its
    abstract and that line, its leaf rule from the loss.

    Parameters
    ----------
    logits : Tensor, shape (..., J)
        What :class:`echelon.heads.ForestHead` gives, logarithms of probabilities: log P(y = k) of
        the mixture, J = K; with ``leaves="bernoulli"`` log P(y > k) and then log P(y <= k),
        J = 2 (K-1). They are taken at their word, and not normalised once more.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    num_classes : int
        The number of ranks, K.
    trees, depth : int
        The number of trees, and of the levels of splits of each; at depth 0 a tree is one leaf.
    units : int, optional
        Outputs of the layer that the splits read. By default each split has its own; with fewer
        the splits share them, drawn once and always alike.
    leaves : {"softmax", "bernoulli"}
        What a leaf holds: a distribution over the ranks, from which every curve is consistent; or,
        as in the paper, K-1 probabilities P(y > k) that need not be ordered, so that the curve may
        contradict itself and is sorted.
    leaf_update : {"gradient", "em"}, optional
        How leaves learn: with all else, or by expectation maximisation along the way, without a
        step size (see :class:`echelon.heads.ForestHead`). By default softmax leaves learn by
        gradient and Bernoulli leaves, as in the paper, by their own update.
    criterion : {"exceedance", "nll"}, optional
        ``"exceedance"``, the paper's and the default, is binary cross-entropy of P(y > k) summed
        over the thresholds; ``"nll"`` is -log P(y), of softmax leaves alone.
    sample_weight, class_weight, ignore_index, reduction, dim
        See :mod:`echelon.functional`.

    Examples
    --------
    >>> logits = torch.tensor([[0.5, 0.25, 0.25]]).log()
    >>> forest_loss(logits, torch.tensor([1]), num_classes=3, criterion="nll")
    tensor(1.3863)
    >>> forest_loss(logits, torch.tensor([1]), num_classes=3)  # -log 0.5 - log 0.75
    tensor(0.9808)
    """
    logits, ranks = with_ranks_last(logits, ranks, dim)
    _require_options(logits, num_classes, trees, depth, units, leaves, leaf_update, criterion)
    logits, labels = read(
        logits,
        ranks,
        num_classes,
        sample_weight=sample_weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    if criterion == "nll":
        return reduce_terms(-labels.expectation(logits), labels, reduction)
    if leaves == "bernoulli":
        log_above, log_below = logits.chunk(2, -1)  # (..., K-1) each
    else:
        shares = wide(logits).exp()
        log_above = _log(shares.flip(-1).cumsum(-1).flip(-1)[..., 1:])
        log_below = _log(shares.cumsum(-1)[..., :-1])
    if labels.ranks is not None:
        thresholds = torch.arange(num_classes - 1, device=logits.device)
        terms = torch.where(labels.ranks.unsqueeze(-1) > thresholds, log_above, log_below)
    else:
        assert labels.mass is not None
        below = labels.mass.cumsum(-1)[..., :-1]
        above = labels.mass.flip(-1).cumsum(-1).flip(-1)[..., 1:]
        terms = above * log_above + below * log_below
    return reduce_terms(-terms.sum(-1).to(logits.dtype), labels, reduction)


def forest_log_probabilities(logits: Tensor, *, leaves: Leaves = "softmax") -> Tensor:
    """log P(y = k), (..., K), of what a forest gives.

    Softmax leaves give it themselves, and only rounding is taken out; Bernoulli leaves give P(y >
    k) in any order, which is sorted.

    Parameters
    ----------
    logits : Tensor, shape (..., J)
        As for :func:`forest_loss`.
    leaves : {"softmax", "bernoulli"}
        What a leaf holds: a distribution over the ranks, or the chance of passing each threshold.

    Examples
    --------
    >>> forest_log_probabilities(torch.tensor([[0.5, 0.25, 0.25]]).log()).exp()
    tensor([[0.5000, 0.2500, 0.2500]])
    """
    logits = as_float(logits)
    if leaves == "softmax":
        return log_softmax(logits, -1)
    return sorted_log_probabilities(_exceedance_logits(logits))


def forest_raw_exceedance(logits: Tensor) -> Tensor:
    """P(y > k) as Bernoulli leaves give it, before it is sorted.

    Parameters
    ----------
    logits : Tensor, shape (..., 2 (K-1))
        What :class:`echelon.heads.ForestHead` with ``leaves="bernoulli"`` gives.

    Returns
    -------
    Tensor, shape (..., K-1)

    Examples
    --------
    >>> forest_raw_exceedance(torch.zeros(1, 4))
    tensor([[0.5000, 0.5000]])
    """
    return torch.sigmoid(_exceedance_logits(as_float(logits)))


def num_forest_logits(num_classes: int, *, leaves: Leaves = "softmax") -> int:
    """J, the number of logits, of a kind of leaves.

    Parameters
    ----------
    num_classes : int
        The number of ranks, K.
    leaves : {"softmax", "bernoulli"}
        What a leaf holds.

    Examples
    --------
    >>> num_forest_logits(5), num_forest_logits(5, leaves="bernoulli")
    (5, 8)
    """
    return num_classes if leaves == "softmax" else 2 * (num_classes - 1)


def updates_leaves(*, leaves: Leaves = "softmax", leaf_update: LeafUpdate | None = None) -> bool:
    """Whether leaves learn by an update of their own; where nothing is said, Bernoulli leaves do.

    Parameters
    ----------
    leaves : {"softmax", "bernoulli"}
        What a leaf holds.
    leaf_update : {"gradient", "em"}, optional
        How leaves learn.

    Examples
    --------
    >>> updates_leaves(), updates_leaves(leaves="bernoulli")
    (False, True)
    """
    if leaf_update is None:
        return leaves == "bernoulli"
    return leaf_update == "em"


def leaf_routes(units: Tensor) -> Tensor:
    """The probability of each leaf of each tree.

    Parameters
    ----------
    units : Tensor, shape (..., trees, splits)
        The logit of going left at each of 2^depth - 1 splits: the root, then its children from left
        to right, and so on.

    Returns
    -------
    Tensor, shape (..., trees, 2^depth)
        From left to right; they sum to 1.

    Examples
    --------
    >>> leaf_routes(torch.tensor([[0.0, 100.0, 0.0]]))
    tensor([[0.5000, 0.0000, 0.2500, 0.2500]])
    """
    # (..., trees, 1); a sum over nothing would do for both, but ONNX Runtime sums it to nothing
    has_splits = units.shape[-1] > 0
    routes = torch.ones_like(units[..., :1]) if has_splits else units.new_ones(*units.shape[:-1], 1)
    start, width = 0, 1
    while start < units.shape[-1]:
        level = units[..., start : start + width]
        both = torch.stack([torch.sigmoid(level), torch.sigmoid(-level)], -1)
        routes = (routes.unsqueeze(-1) * both).flatten(-2)
        start, width = start + width, 2 * width
    return routes


def log_mixture(routes: Tensor, shares: Tensor) -> Tensor:
    """log of the mean, over the trees, of what the leaves hold.

    Parameters
    ----------
    routes : Tensor, shape (..., trees, leaves)
        How much of a row reaches each leaf, as :func:`leaf_routes` gives it.
    shares : Tensor, shape (trees, leaves, J)
        The distribution over the ranks that each leaf holds.

    Returns
    -------
    Tensor, shape (..., J)

    Examples
    --------
    >>> routes = torch.tensor([[[0.5, 0.5]]])  # one row, one tree, two leaves
    >>> log_mixture(routes, torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])).exp().float()
    tensor([[0.5000, 0.5000]])
    """
    trees = shares.shape[0]
    mixed = wide(routes).flatten(-2) @ wide(shares).flatten(0, 1)
    return _log(mixed / trees)


def grown_shares(shares: Tensor, slopes: Tensor, dim: int) -> Tensor:
    """Leaves after one step of expectation maximisation, which never raises the loss.

    Where a loss is minus a sum of logarithms of sums of shares with weights of at least 0, each
    share grows with minus its slope, and those along `dim` are brought back to a sum of 1.

    Parameters
    ----------
    shares, slopes : Tensor
        Probabilities that sum to 1 along `dim`, and the loss's derivative in each.
    dim : int
        The dimension along which the shares of a leaf sum to 1.

    Examples
    --------
    >>> grown_shares(torch.tensor([0.5, 0.5]), torch.tensor([-1.0, -3.0]), dim=0)
    tensor([0.2500, 0.7500])
    """
    grown = shares * -slopes
    total = grown.sum(dim, keepdim=True)
    # a leaf that no row reaches stays what it is
    return torch.where(total > 0, grown / total.masked_fill(total <= 0, 1), shares)


def _exceedance_logits(logits: Tensor) -> Tensor:
    log_above, log_below = logits.chunk(2, -1)
    return log_above - log_below


def _log(probabilities: Tensor) -> Tensor:
    return probabilities.clamp(min=_SMALLEST[probabilities.dtype]).log()


def _require_options(
    logits: Tensor,
    num_classes: int,
    trees: int,
    depth: int,
    units: int | None,
    leaves: str,
    leaf_update: str | None,
    criterion: str | None,
) -> None:
    given = {"leaves": leaves, "leaf_update": leaf_update, "criterion": criterion}
    for name, value in given.items():
        known = _CHOICES[name]
        if value not in known:
            listed = ", ".join(repr(choice) for choice in known if choice is not None)
            raise ValueError(f"{name} must be one of {listed}; got {value!r}")
    if leaves == "bernoulli" and criterion == "nll":
        raise ValueError(
            "criterion 'nll' needs a distribution over the ranks, which leaves='bernoulli' has "
            "not; use criterion='exceedance' or leaves='softmax'"
        )
    if not (_is_whole(trees) and trees >= 1):
        raise ValueError(f"trees must be a whole number of at least 1; got {trees!r}")
    if not (_is_whole(depth) and 0 <= depth <= _DEEPEST):
        raise ValueError(f"depth must be a whole number from 0 to {_DEEPEST}; got {depth!r}")
    if trees * 2**depth > _MOST_NODES:
        raise ValueError(
            f"a forest must have at most {_MOST_NODES:,} leaves; {trees} trees of depth {depth} "
            f"have {trees * 2**depth:,}: use fewer trees or a lower depth"
        )
    if units is not None and not (_is_whole(units) and units >= 1):
        raise ValueError(f"units must be a whole number of at least 1, or None; got {units!r}")
    expected = num_forest_logits(num_classes, leaves=leaves)  # type: ignore[arg-type]
    if as_float(logits).shape[-1] != expected:
        raise ValueError(
            f"forest with leaves={leaves!r} and {num_classes} classes needs logits "
            f"(..., {expected}), as ForestHead gives; got {tuple(logits.shape)}"
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
