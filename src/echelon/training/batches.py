"""Rows in memory that are trained on, and the batches they make.

Invariant: the batches of an epoch, and what is random in their images, are decided by the seed
and the epoch alone; how many threads prepare them changes nothing.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from echelon.data.inputs import Batch, Inputs, prefetched
from echelon.networks.spec import NetworkSpec
from echelon.training.recipes import Settings

_POOL = 50  # batches whose rows are sorted by length together


class Fed(NamedTuple):
    """What a step takes: features (n, d) or parts by kind, ranks (n,), weights (n,) or None."""

    features: Tensor | Batch
    ranks: Tensor
    weight: Tensor | None


class Feed(Protocol):
    """Gives a run the batches of its epochs, of this process's share where there are several."""

    steps_per_epoch: int

    def batches(self, epoch: int, step: int) -> Iterator[Fed]:
        """Those of an epoch, from a step on."""
        ...

    def state(self, step: int) -> dict[str, Tensor]:
        """What decides the batches that are still to come, beside the epoch and the step."""
        ...

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state."""
        ...


class TrainingRows(Protocol):
    """Rows that a network can be trained on, wherever they are."""

    @property
    def features(self) -> Tensor | Inputs:
        """All features, or, of rows that are not in memory, those of none."""
        ...

    def fingerprint(self, spec: NetworkSpec, settings: Settings, seed: int) -> str:
        """Of everything that decides how a run goes."""
        ...

    def feed(self, settings: Settings, seed: int, fabric: Any, workers: int) -> Feed:
        """What gives a run its batches."""
        ...


@dataclass(frozen=True)
class EncodedRows:
    """Rows in memory: features (n, d) or inputs on demand, ranks (n,), and weights (n,) or None."""

    features: Tensor | Inputs
    ranks: Tensor
    weight: Tensor | None = None

    def fingerprint(self, spec: NetworkSpec, settings: Settings, seed: int) -> str:
        """Of everything that decides how a run goes."""
        described = [spec.describe(), asdict(settings), seed]
        document = json.dumps(described, default=str, sort_keys=True)
        digest = hashlib.sha256(document.encode())
        if isinstance(self.features, Tensor):
            digest.update(self.features.numpy().tobytes())
        else:
            digest.update(self.features.digest())
        digest.update(self.ranks.numpy().tobytes())
        if self.weight is not None:
            digest.update(self.weight.numpy().tobytes())
        return digest.hexdigest()

    def to(self, device: torch.device) -> "EncodedRows":
        """The same rows on a device; inputs on demand go there batch by batch."""
        weight = None if self.weight is None else self.weight.to(device)
        features = self.features
        if isinstance(features, Tensor):
            features = features.to(device)
        return EncodedRows(features, self.ranks.to(device), weight)

    def feed(self, settings: Settings, seed: int, fabric: Any, workers: int) -> "MemoryFeed":
        """What gives a run its batches."""
        return MemoryFeed(self, settings, seed, fabric, workers)

    def batches(
        self, order: Sequence[Tensor], seed: tuple[int, ...], workers: int
    ) -> Iterator[tuple[Tensor, Tensor | Batch]]:
        """Row numbers and what the network takes for them, batch by batch."""
        if isinstance(self.features, Tensor):
            for rows in order:
                yield rows, self.features[rows]
            return
        inputs, device = self.features, self.ranks.device
        made = prefetched(lambda rows: inputs.take(rows.cpu().numpy(), seed), order, workers)
        for rows, batch in zip(order, made, strict=True):
            yield rows, {part: tensor.to(device) for part, tensor in batch.items()}


@dataclass(frozen=True)
class Draws:
    """The rows that an epoch draws, (m,), and what a draw of each row weighs, (n,) or None.

    Weights have a mean of 1 over the draws.
    """

    rows: Tensor
    weight: Tensor | None

    @classmethod
    def of(cls, weight: Tensor | None, num_rows: int, *, once: bool = False) -> "Draws":
        """Turn weights of rows into draws of them, so that no draw weighs much more than others.

        A loss that is multiplied by a large weight does not count for as much as it should: the
        gradient of its batch is clipped, and Adam divides by the size of the gradients it has seen.
        So a row that weighs more than the average one is drawn several times in every epoch, and
        its weight is shared among the draws; a row of weight 0 is not drawn. There are at most
        twice as many draws as rows.

        Parameters
        ----------
        weight : Tensor, shape (n,), optional
        num_rows : int
            n.
        once : bool
            Draw every row once, whatever it weighs.

        Examples
        --------
        >>> draws = Draws.of(torch.tensor([1.0, 1.0, 6.0, 0.0]), 4)
        >>> draws.rows
        tensor([0, 1, 2, 2, 2])
        >>> (draws.weight[draws.rows] / draws.weight[0])
        tensor([1., 1., 2., 2., 2.])
        """
        every = torch.arange(num_rows)
        if weight is None or bool((weight == weight[0]).all()):
            return cls(every, None)
        relative = weight.cpu().double() / weight.cpu().double().sum() * (weight > 0).sum().cpu()
        copies = torch.ones_like(every) if once else torch.ceil(relative).long()
        rows = every.repeat_interleave(copies)
        each = relative / copies.clamp(min=1)
        each = each / each[rows].mean()
        if bool((each[rows] == each[rows[0]]).all()):
            return cls(rows.to(weight.device), None)
        return cls(rows.to(weight.device), each.float().to(weight.device))


def count_batches(n: int, batch_size: int, drop_last: bool, least: int = 1) -> int:
    """How many batches :func:`shuffled_batches` makes of n rows.

    Examples
    --------
    >>> count_batches(129, 32, False), count_batches(129, 32, False, least=2)
    (5, 4)
    """
    whole, rest = divmod(n, batch_size)
    if whole and (drop_last or rest < least):
        return whole
    return whole + (rest > 0)


def shuffled_batches(
    rows: EncodedRows,
    draws: Tensor,
    batch_size: int,
    drop_last: bool,
    generator: torch.Generator,
    least: int = 1,
) -> list[Tensor]:
    """Row numbers of each batch of an epoch, in random order; `draws` are all that it draws.

    Where rows differ in length, a batch holds rows of about the same: the rows are shuffled, sorted
    within pools of fifty batches, and the batches are shuffled again. A last batch of fewer
    than `least` rows joins the one before.
    """
    device = rows.ranks.device
    order = draws.cpu()[torch.randperm(len(draws), generator=generator)]
    lengths = rows.features.lengths if isinstance(rows.features, Inputs) else None
    if lengths is None:
        batches = list(torch.split(order.to(device), batch_size))
    else:
        pools = torch.split(order, batch_size * _POOL)
        length = torch.from_numpy(lengths)
        batches = [
            batch.to(device)
            for pool in pools
            for batch in torch.split(pool[torch.argsort(length[pool], stable=True)], batch_size)
        ]
    if drop_last and len(batches) > 1:
        batches = [batch for batch in batches if len(batch) == batch_size]
    if len(batches) > 1 and len(batches[-1]) < least:
        batches[-2:] = [torch.cat(batches[-2:])]
    if lengths is None:
        return batches
    return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]


class MemoryFeed:
    """Batches of rows in memory, drawn anew in every epoch, or in a fixed order.

    Parameters
    ----------
    rows : EncodedRows
    settings : Settings
    seed : int
    fabric : lightning_fabric.Fabric
    workers : int
        Threads that prepare batches of texts and images.
    """

    def __init__(
        self, rows: EncodedRows, settings: Settings, seed: int, fabric: Any, workers: int = 0
    ) -> None:
        self.rows = rows.to(fabric.device)
        self.settings, self.seed, self.workers = settings, seed, workers
        self.rank, self.world = fabric.global_rank, fabric.world_size
        self.order = torch.Generator().manual_seed(seed)
        self.order_at_start = self.order.get_state()
        self.fixed_order = None
        if settings.batches == "published":
            self.fixed_order = class_balanced_order(self.rows.ranks, seed)
        has_order = self.fixed_order is not None
        self.draws = Draws.of(self.rows.weight, len(rows.ranks), once=has_order)
        n = len(self.draws.rows if self.fixed_order is None else self.fixed_order)
        # Tables may have a last batch of any size. Networks of texts and images take no empty
        # share of one, and normalise badly over a few rows.
        is_table = isinstance(rows.features, Tensor)
        self.least = 1 if is_table else max(fabric.world_size, settings.batch_size // 4)
        self.steps_per_epoch = count_batches(n, settings.batch_size, settings.drop_last, self.least)

    def batches(self, epoch: int, step: int) -> Iterator[Fed]:
        """Those of an epoch, from a step on."""
        self.order_at_start = self.order.get_state()
        remaining = self._row_numbers()[step:]
        for batch, features in self.rows.batches(remaining, (self.seed, epoch), self.workers):
            weight = None if self.draws.weight is None else self.draws.weight[batch]
            yield Fed(features, self.rows.ranks[batch], weight)

    def _row_numbers(self) -> list[Tensor]:
        """Row numbers of each batch: of this process's share, where there are several."""
        settings = self.settings
        if self.fixed_order is not None:
            batches = list(torch.split(self.fixed_order, settings.batch_size))
        else:
            batches = shuffled_batches(
                self.rows,
                self.draws.rows,
                settings.batch_size,
                settings.drop_last,
                self.order,
                self.least,
            )
        batches = batches[: self.steps_per_epoch]
        if self.world == 1:
            return batches
        # Every process takes its share of the same global batch.
        return [batch[self.rank :: self.world] for batch in batches]

    def state(self, step: int) -> dict[str, Tensor]:
        """The generator of the order, as it was before the epoch that goes on."""
        # Within an epoch the order is drawn again, so the generator is kept as it was before.
        return {"order": self.order_at_start if step else self.order.get_state()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state."""
        self.order.set_state(state["order"])


def class_balanced_order(ranks: Tensor, seed: int) -> Tensor:
    """One fixed order in which the classes take turns: the first of each, the second of each, ..

    Classes come in the order in which they first occur, and a smaller class is filled up with
    rows of it drawn at random, as the CORN paper's code does.
    """
    values = ranks.cpu().numpy()
    present, first, counts = np.unique(values, return_index=True, return_counts=True)
    generator = np.random.default_rng(seed)
    columns = []
    for value in present[np.argsort(first)]:
        members = np.flatnonzero(values == value)
        more = generator.choice(members, counts.max() - len(members))
        columns.append(np.concatenate([members, more]))
    return torch.from_numpy(np.stack(columns, 1).reshape(-1)).to(ranks.device)
