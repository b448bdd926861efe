"""What every loss does first: read logits, labels and weights, and refuse what is wrong.

Invariant: after :func:`read`, logits are at least float32, hard ranks lie in 0..K-1, and a row
that must not count has weight 0 and harmless logits: no loss needs to think of any of this again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from echelon.functional._precision import as_float

Weights = Tensor | Sequence[float]
"""Weights as they may be given: a tensor, or numbers in a list."""

_REDUCTIONS = ("mean", "sum", "none")
_WEIGHTS = frozenset({"sample_weight", "class_weight"})
_PARTS = "_parts"  # how loss_parts() asks a loss not to divide; not for users
_KNOWN_REDUCTIONS = frozenset({*_REDUCTIONS, _PARTS})
_INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


class Labels(NamedTuple):
    """Labels of a batch: hard ranks or, for soft labels, the mass on each rank.

    Exactly one of `ranks` and `mass` is set.
    """

    ranks: Tensor | None  # (...) int64
    mass: Tensor | None  # (..., K), class weights included
    weight: Tensor | None  # (...) what each row counts for; None is 1 everywhere

    def expectation(self, per_rank: Tensor) -> Tensor:
        """Pick the value of each row's rank, or the expected value under its soft label.

        Parameters
        ----------
        per_rank : Tensor, shape (..., K)

        Returns
        -------
        Tensor, shape (...)
        """
        if self.mass is not None:
            # 0 * -inf would be NaN, and a rank without mass must not count at all.
            return torch.where(self.mass > 0, self.mass * per_rank, 0.0).sum(-1)
        assert self.ranks is not None
        return per_rank.gather(-1, self.ranks.unsqueeze(-1)).squeeze(-1)

    @property
    def device(self) -> torch.device:
        """Where the labels are."""
        if self.ranks is not None:
            return self.ranks.device
        assert self.mass is not None
        return self.mass.device

    def num_dims(self) -> int:
        """How many dimensions a row's place has."""
        if self.ranks is not None:
            return self.ranks.dim()
        assert self.mass is not None
        return self.mass.dim() - 1

    def num_rows(self) -> int:
        """How many rows there are, those that do not count included."""
        if self.ranks is not None:
            return self.ranks.numel()
        assert self.mass is not None
        return self.mass[..., 0].numel()

    def always_counts(self) -> bool:
        """Whether no weight can make the count 0."""
        return self.weight is None and self.ranks is not None and self.ranks.numel() > 0

    def row_count(self) -> Tensor | None:
        """Mass of each row, (...); None stands for 1 everywhere."""
        return None if self.mass is None else self.mass.sum(-1)


@dataclass
class LossParts:
    """A loss before the division: add these up over devices or batches, then take the mean.

    The mean loss is the sum of `total / count` over their elements. Both are scalars for a loss
    with one ratio; a loss with several (one per task, or CNNPOR's two terms) has one element each.
    Only `total` carries a gradient.

    Parameters
    ----------
    total : Tensor
        The weighted sum of the losses.
    count : Tensor
        What the mean divides it by, of the same shape.

    Examples
    --------
    >>> batches = [LossParts(torch.tensor(6.0), torch.tensor(3)),
    ...            LossParts(torch.tensor(2.0), torch.tensor(1))]
    >>> sum(batches).mean()
    tensor(2.)
    """

    total: Tensor
    count: Tensor

    def __add__(self, other: "LossParts") -> "LossParts":
        return LossParts(self.total + other.total, self.count + other.count)

    def __radd__(self, other: Any) -> "LossParts":
        # sum() starts from 0
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def mean(self) -> Tensor:
        """The ratio; 0 where nothing counts, so that a batch of ignored rows is harmless."""
        ratios = self.total / self.count.masked_fill(self.count == 0, 1)
        return ratios.sum() if ratios.dim() else ratios


def read(
    logits: Tensor,
    ranks: Tensor,
    num_classes: int,
    *,
    sample_weight: Weights | None,
    class_weight: Weights | None,
    ignore_index: int | None,
    reduction: str,
) -> tuple[Tensor, Labels]:
    """Check the arguments of a loss and bring them into one form.

    Parameters
    ----------
    logits : Tensor, shape (..., J)
        What the method's head gives.
    ranks : Tensor, shape (...) of integers, or (..., K) of floats for soft labels
        The true ranks, 0..K-1, or a distribution over the ranks for each row.
    num_classes : int
        K.
    sample_weight : shape (...)
    class_weight : shape (K,)
    """
    if reduction not in _KNOWN_REDUCTIONS:
        raise ValueError(
            f"reduction must be one of {', '.join(map(repr, _REDUCTIONS))}; got {reduction!r}"
        )
    if num_classes < 2:
        raise ValueError(f"logits must be for at least 2 classes; got {tuple(logits.shape)}")
    logits = as_float(logits)
    batch_shape = logits.shape[:-1]
    if not isinstance(ranks, Tensor):
        raise ValueError(f"ranks must be a tensor; got {type(ranks).__name__}: use torch.tensor")
    if ranks.device != logits.device:
        raise ValueError(
            f"logits are on {logits.device} and ranks on {ranks.device}; move the ranks with "
            f"ranks.to(logits.device)"
        )
    weight = per_class = None
    if sample_weight is not None:
        weight = as_weights(sample_weight, "sample_weight", batch_shape, logits)
    if class_weight is not None:
        per_class = as_weights(class_weight, "class_weight", (num_classes,), logits)

    if ranks.dtype not in _INTEGERS:
        _require_soft_shape(ranks, batch_shape, num_classes)
        if ignore_index is not None:
            raise ValueError(
                "ignore_index needs integer ranks; give soft labels that must not count a "
                "sample_weight of 0"
            )
        mass = ranks.to(logits.dtype)
        if weight is not None:
            dead = (weight == 0).unsqueeze(-1)
            logits, mass = logits.masked_fill(dead, 0.0), mass.masked_fill(dead, 1 / num_classes)
        mass = _checked_distribution(mass)
        return logits, Labels(None, mass if per_class is None else mass * per_class, weight)

    if ranks.shape != batch_shape:
        raise ValueError(
            f"ranks must have the shape of the logits without the last dimension, "
            f"{tuple(batch_shape)}; got {tuple(ranks.shape)} for logits {tuple(logits.shape)} "
            f"(a distribution over ranks must be floating point)"
        )
    if ranks.dtype != torch.int64:
        ranks = ranks.long()
    if ignore_index is not None:
        keep = ranks != ignore_index
        ranks = ranks.masked_fill(~keep, 0)
        kept = keep.to(logits.dtype)
        weight = kept if weight is None else torch.where(keep, weight, 0.0)
    ranks = _checked_ranks(ranks, num_classes, ignore_index)
    if per_class is not None:
        of_row = per_class[ranks]
        weight = of_row if weight is None else weight * of_row
    if weight is not None:
        # Such a row may hold anything, NaN included: its logits must not reach loss or gradient.
        logits = logits.masked_fill((weight == 0).unsqueeze(-1), 0.0)
    return logits, Labels(ranks, None, weight)


def with_ranks_last(logits: Tensor, ranks: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Logits, and soft labels beside them, with the dimension of their tasks or ranks put last.

    Parameters
    ----------
    logits : Tensor
        Its dimension `dim` has the size J, such as (N, J, height, width) for a `dim` of 1.
    ranks : Tensor
        Integers without that dimension, which stay as they are, or soft labels with K in it.
    dim : int
        The dimension that has the size J, and of soft labels K.

    Examples
    --------
    >>> logits, ranks = with_ranks_last(torch.zeros(2, 4, 8, 8), torch.zeros(2, 8, 8).long(), 1)
    >>> logits.shape, ranks.shape
    (torch.Size([2, 8, 8, 4]), torch.Size([2, 8, 8]))
    """
    if dim == -1 or not isinstance(logits, Tensor):
        return logits, ranks
    if not -logits.dim() <= dim < logits.dim():
        raise ValueError(
            f"dim must be a dimension of the logits {tuple(logits.shape)}, such as 1 for "
            f"(N, J, height, width); got {dim}"
        )
    is_soft = isinstance(ranks, Tensor) and ranks.is_floating_point()
    if is_soft and ranks.dim() == logits.dim():
        ranks = ranks.movedim(dim, -1)
    return logits.movedim(dim, -1), ranks


def reduce_terms(
    terms: Tensor, labels: Labels, reduction: str, row_count: Tensor | None = None
) -> Tensor:
    """Reduce losses of rows, (...), or of rows and tasks, (..., J).

    `row_count` (...) is what a row of weight 1 counts in a mean: whole numbers of at least 1, or
    any floats. Without it a row counts 1, or the mass of its soft label.
    """
    if row_count is None:
        row_count = labels.row_count()
    if reduction == "mean" and labels.always_counts() and not _may_be_zero(row_count):
        # The common case, kept short: every operator here costs microseconds.
        if row_count is None and terms.dim() == labels.num_dims():
            return terms.mean()
        return terms.sum() / (labels.num_rows() if row_count is None else row_count.sum())
    # One sum over everything is quicker than one per row, so rows are summed only where needed.
    if terms.dim() > labels.num_dims() and (labels.weight is not None or reduction == "none"):
        terms = terms.sum(-1)
    if labels.weight is not None:
        terms = terms * labels.weight
        row_count = labels.weight if row_count is None else row_count * labels.weight
    if reduction == "none":
        return terms
    total = terms.sum()
    if reduction == "sum":
        return total
    count = total.new_full((), labels.num_rows()) if row_count is None else row_count.sum()
    return finish(LossParts(total, count.to(total.dtype)), reduction)


def _may_be_zero(row_count: Tensor | None) -> bool:
    return row_count is not None and row_count.is_floating_point()


def finish(parts: LossParts, reduction: str) -> Tensor:
    """Divide, unless the parts themselves or their sum were asked for."""
    if reduction == _PARTS:
        return cast(Tensor, parts)  # loss_parts() casts it back
    return parts.total.sum() if reduction == "sum" else parts.mean()


def loss_parts(
    loss: Callable[..., Tensor],
    logits: Tensor,
    ranks: Tensor,
    *,
    weigh_count: bool = True,
    **options: Any,
) -> LossParts:
    """The sum and the count of a loss, not yet divided.

    With several devices or accumulated batches, add up both and divide at the end: the result is
    the loss of all rows together, which a mean of means is not.

    Parameters
    ----------
    loss : one of the loss functions of this package
        CNNPOR's pairs are those within a batch: pairs across batches are in no part.
    logits : Tensor, shape (..., J)
        What the method's head gives.
    ranks : Tensor, shape (...) or (..., K)
        The true ranks, 0..K-1, or soft labels, a distribution over the ranks for each row.
    weigh_count : bool
        Whether rows count as much as they weigh. In training they must not: a batch that is
        divided by its own weight makes a heavy row count for at most one batch, whatever its
        weight. With weights of mean 1 over all rows and ``False``, every batch is divided by what
        an average batch of its rows weighs.
    **options
        Whatever the loss takes, except `reduction`.

    Examples
    --------
    >>> import torch
    >>> from echelon.functional import corn_loss, loss_parts
    >>> logits, ranks = torch.randn(8, 4), torch.arange(8) % 5
    >>> one, two = (loss_parts(corn_loss, logits[s], ranks[s]) for s in (slice(3), slice(3, 8)))
    >>> torch.testing.assert_close((one + two).mean(), corn_loss(logits, ranks))
    """
    parts = cast(LossParts, loss(logits, ranks, reduction=_PARTS, **options))
    if weigh_count or not _WEIGHTS & options.keys():
        return parts
    unweighted = {name: value for name, value in options.items() if name not in _WEIGHTS}
    with torch.no_grad():
        plain = cast(LossParts, loss(logits, ranks, reduction=_PARTS, **unweighted))
    return LossParts(parts.total, plain.count)


def as_weights(weights: Weights, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Weights of a given shape, in the dtype and on the device of the logits."""
    tensor = torch.as_tensor(weights, dtype=like.dtype, device=like.device)
    if tensor.shape != shape:
        raise ValueError(f"{name} must have the shape {tuple(shape)}; got {tuple(tensor.shape)}")
    if torch.compiler.is_compiling():
        unit: Tensor = _weights_check_op(tensor.detach(), name)
        return tensor * unit
    if tensor.is_cpu:
        _raise_for_weights(tensor, name)
    elif not tensor.is_meta:  # without waiting for the device
        torch._assert_async(_are_weights(tensor), f"{name} must be finite and not negative")
    return tensor


def _raise_for_weights(weights: Tensor, name: str) -> None:
    if weights.numel() and not _are_weights(weights):
        wrong = weights[~((weights >= 0) & torch.isfinite(weights))]
        raise ValueError(
            f"{name} must be finite and not negative; got {float(wrong[0]):g}. A row that must not "
            f"count has a weight of 0"
        )


def _are_weights(weights: Tensor) -> Tensor:
    # a NaN spoils both ends
    lowest, highest = torch.aminmax(weights.detach())
    return (lowest >= 0) & torch.isfinite(highest)


def _require_soft_shape(ranks: Tensor, batch_shape: torch.Size, num_classes: int) -> None:
    if ranks.is_floating_point() and ranks.shape == (*batch_shape, num_classes):
        return
    if ranks.shape == batch_shape or not ranks.is_floating_point():
        raise ValueError(
            f"ranks must be integers; got {ranks.dtype}: convert whole numbers with ranks.long()"
        )
    raise ValueError(
        f"soft labels must have the shape {(*batch_shape, num_classes)}, a distribution over the "
        f"{num_classes} ranks for each row; got {tuple(ranks.shape)}"
    )


def _checked_ranks(ranks: Tensor, num_classes: int, ignore_index: int | None) -> Tensor:
    if torch.compiler.is_compiling():
        checked: Tensor = _rank_check_op(ranks, num_classes, ignore_index is not None)
        return checked
    _raise_for_ranks(ranks, num_classes, ignore_index is not None)
    return ranks


def _raise_for_ranks(ranks: Tensor, num_classes: int, ignoring: bool) -> None:
    if ranks.numel() == 0 or ranks.is_meta:
        return
    lowest, highest = torch.aminmax(ranks)
    if ranks.is_cpu:
        low, high = int(lowest), int(highest)
    else:  # one wait for the device, not two
        low, high = torch.stack([lowest, highest]).tolist()
    if low >= 0 and high < num_classes:
        return
    wrong = int(low if low < 0 else high)
    advice = "ranks count from 0"
    if not ignoring:
        advice += f"; to leave out rows marked {wrong}, pass ignore_index={wrong}"
    raise ValueError(
        f"rank {wrong} is outside 0..{num_classes - 1} (there are {num_classes} classes); {advice}"
    )


def _checked_distribution(mass: Tensor) -> Tensor:
    if torch.compiler.is_compiling():
        unit: Tensor = _distribution_check_op(mass.detach())
        return mass * unit
    _raise_for_distribution(mass)
    return mass


def _raise_for_distribution(mass: Tensor) -> None:
    if mass.is_meta or _is_distribution(mass):
        return
    sums = mass.detach().sum(-1)
    raise ValueError(
        f"soft labels must be non-negative and sum to 1 for every row; got a lowest value of "
        f"{float(mass.min()):g} and sums from {float(sums.min()):g} to {float(sums.max()):g}"
    )


def _is_distribution(mass: Tensor) -> Tensor:
    # 1e-2 lets distributions through that were stored in half precision.
    return (mass >= 0).all() & ((mass.sum(-1) - 1).abs() <= 1e-2).all()


# Inside compiled code a check must be an operator: it stays in the graph because its result is
# used, raises by name on the CPU, and on an accelerator queues an assertion instead of waiting.


@torch.library.custom_op(
    "echelon::check_ranks",
    mutates_args=(),
    schema="(Tensor ranks, int num_classes, bool ignoring) -> Tensor",
)
def _rank_check_op(ranks: Tensor, num_classes: int, ignoring: bool) -> Tensor:
    if ranks.device.type == "cpu":
        _raise_for_ranks(ranks, num_classes, ignoring)
    else:
        inside = ((ranks >= 0) & (ranks < num_classes)).all()
        torch._assert_async(inside, f"a rank is outside 0..{num_classes - 1}")
    return ranks.clone()


@_rank_check_op.register_fake
def _(ranks: Tensor, num_classes: int, ignoring: bool) -> Tensor:
    return torch.empty_like(ranks)


@torch.library.custom_op(
    "echelon::check_weights", mutates_args=(), schema="(Tensor weights, str name) -> Tensor"
)
def _weights_check_op(weights: Tensor, name: str) -> Tensor:
    if weights.device.type == "cpu":
        _raise_for_weights(weights, name)
    elif weights.numel():
        torch._assert_async(_are_weights(weights), f"{name} must be finite and not negative")
    return weights.new_ones(())


@_weights_check_op.register_fake
def _(weights: Tensor, name: str) -> Tensor:
    return weights.new_empty(())


@torch.library.custom_op(
    "echelon::check_distribution", mutates_args=(), schema="(Tensor mass) -> Tensor"
)
def _distribution_check_op(mass: Tensor) -> Tensor:
    if mass.device.type == "cpu":
        _raise_for_distribution(mass)
    else:
        torch._assert_async(_is_distribution(mass), "soft labels must sum to 1 for every row")
    return mass.new_ones(())


@_distribution_check_op.register_fake
def _(mass: Tensor) -> Tensor:
    return mass.new_empty(())
