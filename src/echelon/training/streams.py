"""Rows of a source that are trained on: read, encoded and shuffled while the network learns.

An epoch takes the row groups of all files in random order, several of them side by side, and
shuffles the rows of a buffer that they fill. How many rows each slice gives is known from the
survey, so an epoch and a step say where in the stream a run is: it goes on from there and reads no
buffer before the one that it was in.
"""

import copy
import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon.data.inputs import prefetched
from echelon.data.kinds.tabular import TableEncoder
from echelon.data.slices import Slice
from echelon.data.survey import Survey
from echelon.networks.assembly import encode
from echelon.networks.spec import NetworkSpec
from echelon.training.batches import Fed, count_batches
from echelon.training.recipes import Settings

_LANES = 8  # row groups that are read side by side
_BUFFER_ROWS = 262_144
_BUFFER_BYTES = 2**26  # of the features in a buffer
_LEAST_BATCHES = 8  # in a buffer, however wide the rows are
_AHEAD = 1  # buffers that are prepared while one is trained on


def buffer_rows(num_features: int) -> int:
    """The rows that are shuffled together, where there are as many.

    Examples
    --------
    >>> buffer_rows(10), buffer_rows(1000)
    (262144, 16777)
    """
    return min(_BUFFER_ROWS, max(1, _BUFFER_BYTES // (4 * num_features)))


class StreamDraws(NamedTuple):
    """How often an epoch draws a row by its weight; see :class:`echelon.training.batches.Draws`.

    A row of weight w is drawn ``ceil(w * scale)`` times, and each draw weighs its share of ``w *
    scale`` over `mean`, so that draws have a mean weight of 1.
    """

    scale: float
    mean: float

    def copies(self, weight: NDArray[np.float64]) -> NDArray[np.int64]:
        """How often each row is drawn, (n,)."""
        return np.asarray(np.ceil(weight * self.scale), dtype=np.int64)

    def shares(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """What one draw of each row weighs, (n,)."""
        return np.asarray(weight * self.scale / np.maximum(self.copies(weight), 1) / self.mean)


@dataclass(frozen=True)
class EncodedStream:
    """Training rows of a surveyed source, encoded as a network takes them.

    Attributes
    ----------
    survey : Survey
    encoder : TableEncoder
    drawn : array of int64, shape (slices,)
        How many draws an epoch takes from each slice.
    draws : StreamDraws or None
        None where every row is drawn once and counts alike.
    """

    survey: Survey
    encoder: TableEncoder
    drawn: NDArray[np.int64]
    draws: StreamDraws | None

    @classmethod
    def of(cls, survey: Survey, encoder: TableEncoder) -> "EncodedStream":
        """Count the draws; rows with weights of their own take a pass for it."""
        encoder = copy.deepcopy(encoder).cpu()
        stream, counts = survey.stream, survey.counts
        if stream.source.weight is None and stream.per_class is None:
            return cls(survey, encoder, counts.sum(axis=1), None)
        if not survey.weights.sum():
            raise ValueError("all training rows have a weight of 0: there is nothing to learn from")
        counting = int(survey.counting.sum())
        scale = counting / float(survey.weights.sum())
        whole = StreamDraws(scale, 1.0)
        if stream.source.weight is None:
            assert stream.per_class is not None
            drawn = counts @ whole.copies(stream.per_class)
        else:
            drawn = np.zeros(len(counts), dtype=np.int64)
            for place, (_, rows, hashes) in enumerate(stream):
                training = survey.is_training(hashes)
                assert rows.weight is not None
                drawn[place] = whole.copies(rows.weight[training]).sum()
        return cls(survey, encoder, drawn, StreamDraws(scale, counting / int(drawn.sum())))

    @property
    def features(self) -> Tensor:
        """Those of none of the rows, which are not in memory."""
        return torch.empty(0, self.encoder.num_features)

    def feed(self, settings: Settings, seed: int, fabric: Any, workers: int) -> "StreamFeed":
        """What gives a run its batches."""
        if settings.batches == "published":
            raise ValueError(
                "batches='published' takes all rows of a table in turns, and these are streamed; "
                "read them into memory, or leave out batches"
            )
        place = fabric.global_rank, fabric.world_size
        return StreamFeed(self, settings, seed, fabric.device, *place)

    def fingerprint(self, spec: NetworkSpec, settings: Settings, seed: int) -> str:
        """Of everything that decides how a run goes."""
        survey = self.survey
        described = [
            spec.describe(), asdict(settings), seed, survey.digest, survey.seed, survey.fraction,
            [part[1:] for part in survey.stream.slices], self.draws,
        ]  # fmt: skip
        digest = hashlib.sha256(json.dumps(described, default=str, sort_keys=True).encode())
        digest.update(survey.counts.tobytes())
        for tensor in self.encoder.state_dict().values():
            digest.update(tensor.numpy().tobytes())
        return digest.hexdigest()


class StreamFeed:
    """Batches of rows that are read from files.

    Every row of an epoch is drawn once, or as often as its weight says. Of several processes, each
    reads slices of its own. The batches of an epoch have as nearly the same size as they can.

    Parameters
    ----------
    rows : EncodedStream
    settings : Settings
    seed : int
    device : torch.device
    rank, world : int
        Which of how many processes this is.
    """

    def __init__(
        self,
        rows: EncodedStream,
        settings: Settings,
        seed: int,
        device: torch.device,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.rows, self.seed, self.device = rows, seed, device
        self.rank, self.world = rank, world
        self.buffer_rows = max(
            buffer_rows(rows.encoder.num_features), _LEAST_BATCHES * settings.batch_size
        )
        total = int(rows.drawn.sum())
        self.steps_per_epoch = count_batches(total, settings.batch_size, settings.drop_last)

    def state(self, step: int) -> dict[str, Tensor]:
        """Nothing: the epoch and the step say all."""
        return {}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Nothing to go on from but the epoch and the step."""

    def batches(self, epoch: int, step: int) -> Iterator[Fed]:
        """Those of an epoch, from a step on."""
        buffers, sizes = self._buffers(epoch)
        ends = np.cumsum(sizes)
        total, steps = int(ends[-1]) if len(ends) else 0, self.steps_per_epoch
        place = total * step // steps
        first = min(bisect_right(ends.tolist(), place), len(buffers))
        reader = self.rows.survey.stream.reader()

        def make(number: int) -> Fed:
            return self._read(reader, buffers[number], (self.seed, epoch, self.rank, number))

        waiting = prefetched(make, range(first, len(buffers)), workers=1, ahead=_AHEAD)
        start = int(ends[first - 1]) if first else 0  # of what is held
        held = self._nothing()
        for number in range(step, steps):
            place, end = total * number // steps, total * (number + 1) // steps
            while start + len(held.ranks) < end:
                passed = min(place - start, len(held.ranks))
                held, start = _joined(_cut(held, passed, None), next(waiting)), start + passed
            batch = _cut(held, place - start, end - start)
            yield _each(batch, lambda tensor: tensor.to(self.device))

    def _buffers(self, epoch: int) -> tuple[list[list[int]], list[int]]:
        """The slices that fill each buffer of this process, by number, and its rows."""
        slices = self.rows.survey.stream.slices
        generator = np.random.default_rng([self.seed, epoch])
        mine = interleaved(slices, generator)[self.rank :: self.world]
        buffers: list[list[int]] = []
        sizes: list[int] = []
        for number in mine:
            drawn = int(self.rows.drawn[number])
            if not drawn:
                continue
            if not buffers or sizes[-1] >= self.buffer_rows:
                buffers.append([])
                sizes.append(0)
            buffers[-1].append(number)
            sizes[-1] += drawn
        return buffers, sizes

    def _read(self, reader: Any, numbers: list[int], seed: tuple[int, ...]) -> Fed:
        """The rows of a buffer, shuffled."""
        survey, draws = self.rows.survey, self.rows.draws
        parts = []
        for number in numbers:
            rows, hashes = reader.read(survey.stream.slices[number])
            training = survey.is_training(hashes)
            if not training.all():
                rows = rows.select(training)
            with torch.no_grad():
                features = encode(self.rows.encoder, rows.table)
            ranks, weight = torch.from_numpy(rows.ranks), None
            if draws is not None:
                copies = torch.from_numpy(draws.copies(rows.weight))
                shares = torch.from_numpy(draws.shares(rows.weight)).float()
                features, ranks, weight = (
                    each.repeat_interleave(copies, 0) for each in (features, ranks, shares)
                )
            parts.append(Fed(features, ranks, weight))
        whole = _joined(*parts)
        order = torch.from_numpy(np.random.default_rng(seed).permutation(len(whole.ranks)))
        return _each(whole, lambda tensor: tensor[order])

    def _nothing(self) -> Fed:
        weight = None if self.rows.draws is None else torch.empty(0)
        features = torch.empty(0, self.rows.encoder.num_features)
        return Fed(features, torch.empty(0, dtype=torch.long), weight)


def interleaved(slices: list[Slice], generator: np.random.Generator) -> list[int]:
    """Slices by number: pieces in random order, several of them in turns, each from its start.

    Examples
    --------
    >>> slices = [Slice(0, 0, 5), Slice(0, 5, 5), Slice(1, 0, 5), Slice(1, 5, 5)]
    >>> interleaved(slices, np.random.default_rng(0))
    [0, 2, 1, 3]
    """
    by_piece: dict[int, list[int]] = {}
    for number, part in enumerate(slices):
        by_piece.setdefault(part.piece, []).append(number)
    pieces = generator.permutation(len(by_piece)).tolist()
    members = list(by_piece.values())
    lanes = [
        [number for piece in pieces[lane::_LANES] for number in members[piece]]
        for lane in range(min(_LANES, len(pieces)))
    ]
    return [
        lane[turn] for turn in range(max(map(len, lanes))) for lane in lanes if turn < len(lane)
    ]


def _each(rows: Fed, change: Callable[[Tensor], Tensor]) -> Fed:
    weight = None if rows.weight is None else change(rows.weight)
    return Fed(change(cast(Tensor, rows.features)), change(rows.ranks), weight)


def _cut(rows: Fed, start: int, end: int | None) -> Fed:
    return _each(rows, lambda tensor: tensor[start:end])


def _joined(*parts: Fed) -> Fed:
    parts = tuple(part for part in parts if len(part.ranks)) or parts[:1]
    if len(parts) == 1:
        return parts[0]
    features, ranks, weights = (list(column) for column in zip(*parts, strict=True))
    weight = None if weights[0] is None else torch.cat(cast(list[Tensor], weights))
    return Fed(torch.cat(cast(list[Tensor], features)), torch.cat(ranks), weight)
