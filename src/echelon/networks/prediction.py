"""The curves of encoded rows, a part of them at a time."""

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from echelon.curve import RankCurve
from echelon.data.inputs import Batch, Inputs, prefetched
from echelon.data.kinds.base import TABLE
from echelon.data.schema import RawTable
from echelon.networks.encodings import Encodings, cache_folder, encoder_digest, row_key
from echelon.networks.frozen import is_frozen
from echelon.networks.joined import JoinedBackbone
from echelon.networks.network import OrdinalNetwork
from echelon.networks.steadiness import in_float64, steady_step

_MAX_WORKERS = 4
# Of a table at once, by whether the network is an ensemble: fewer rows are mostly overhead, and
# what the layers give of more leaves the cache.
_RAW_ROWS = {False: 4096, True: 1024}
_PREDICT_ROWS = 16_384  # of encoded rows of a table at once
_MEDIA_ROWS = 128  # texts or images that are read at once
# Images that a thread of a processor takes through a network at once, and their pixels: what the
# layers give of more does not stay in its cache, and takes up to twice the time.
_IMAGES_A_THREAD, _FEWEST_IMAGES, _PIXELS_A_THREAD = 16, 4, 2**18


def worker_count(features: Tensor | Inputs, asked: int | None) -> int:
    """Threads that are worth their while: images take time to read, tables and texts do not."""
    if isinstance(features, Tensor) or not features.is_slow:
        return 0
    if asked is None:
        return min(_MAX_WORKERS, os.cpu_count() or 1)
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 0:
        raise ValueError(f"workers must be a whole number of threads, at least 0; got {asked!r}")
    return asked


def in_order(
    inputs: Inputs, workers: int, chosen: Sequence[int] | None = None
) -> Iterator[tuple[NDArray[np.int64], Batch]]:
    """All rows once, those of like length together: row numbers and what the network takes.

    `chosen` are the rows to take, where it is not all of them.
    """
    lengths = inputs.lengths
    order = np.arange(len(inputs)) if chosen is None else np.array(chosen, dtype=np.int64)
    if lengths is not None:
        order = order[np.argsort(lengths[order], kind="stable")]
    parts = [order[i : i + _MEDIA_ROWS] for i in range(0, len(order), _MEDIA_ROWS)]
    yield from zip(parts, prefetched(inputs.take, parts, workers), strict=True)


@torch.no_grad()
def table_curves(network: OrdinalNetwork, table: RawTable) -> Iterator[RankCurve]:
    """The curves of raw rows of a table in float64, the same however many rows come at once.

    The network reads them in float32 where that is so on this machine, and in float64 otherwise;
    see :mod:`echelon.networks.steadiness`. Rows that are too large for float32, as unscaled numbers
    may be, are read in float64, whatever stands beside them.

    Parameters
    ----------
    network : OrdinalNetwork
        In evaluation mode.
    table : RawTable
        Of numbers and codes alone.
    """
    step = steady_step(network)
    reader = in_float64(network) if step is None else network
    device = next(network.head.parameters()).device
    start, is_ensemble = 0, True  # until the first logits are there
    while start < max(len(table), 1):
        numbers, codes = table.part(start, _RAW_ROWS[is_ensemble])
        start, count = start + _RAW_ROWS[is_ensemble], len(numbers)
        cells = _filled_up(numbers, step or 1).to(device), _filled_up(codes, step or 1).to(device)
        logits = reader({TABLE: cells})[:count]
        is_ensemble = logits.dim() == 3
        is_finite = math.isfinite(logits.sum())  # one sum is quicker than a look at each
        logits = logits.double()
        if step is not None and not is_finite:
            rows = (~torch.isfinite(logits).flatten(1).all(1)).nonzero().squeeze(1)
            too_large = cells[0][rows], cells[1][rows]
            logits[rows] = in_float64(network)({TABLE: too_large})
        yield network.curve(logits)


def _filled_up(cells: Tensor, step: int) -> Tensor:
    """Rows (n, ..) with the last one repeated until their number is a multiple of the step."""
    lacking = -len(cells) % step
    return torch.cat([cells, cells[-1:].expand(lacking, -1)]) if lacking else cells


@torch.no_grad()
def predict_curve(
    network: OrdinalNetwork, features: Tensor | Inputs, workers: int = 0
) -> RankCurve:
    """The curve of encoded features (n, d), or of inputs, in evaluation mode, a part at a time."""
    training = network.training
    network.eval()
    if isinstance(features, Inputs):
        curve = _curve_of_inputs(network, features, workers)
    else:
        chunks = torch.split(features, _PREDICT_ROWS)
        curve = RankCurve.concatenate([network.curve(network(chunk)) for chunk in chunks])
    network.train(training)
    return curve


def _curve_of_inputs(network: OrdinalNetwork, inputs: Inputs, workers: int) -> RankCurve:
    like = next(network.head.parameters())
    order, curves = [], []
    for rows, batch in in_order(inputs, workers):
        for piece in _pieces(batch, like.device):
            moved = {part: tensor.to(like.device) for part, tensor in piece.items()}
            curves.append(network.curve(network(moved)))
        order.append(torch.from_numpy(rows))
    back = torch.argsort(torch.cat(order)).to(like.device)
    return RankCurve.concatenate(curves).rows(back)


def precomputed(network: nn.Module, features: Any, workers: int = 0) -> Any:
    """Inputs whose texts and images are already encoded, where an encoder is frozen.

    What was encoded before is taken from the cache; see :mod:`echelon.networks.encodings`.
    """
    backbone = getattr(network, "backbone", None)
    if not isinstance(features, Inputs) or not isinstance(backbone, JoinedBackbone):
        return features
    for part, encoder in backbone.parts.items():
        if is_frozen(encoder) and not isinstance(features.parts[part], Tensor):
            encoded = encode_once(encoder, part, features, workers)
            features = features.replaced(part, encoded)
    return features


@torch.no_grad()
def encode_once(encoder: Any, part: str, features: Inputs, workers: int = 0) -> Tensor:
    """The encodings (n, out) of one part of all rows by a frozen encoder.

    Equal rows are encoded once, and those that the cache has not at all. A batch is in the cache
    as soon as it is encoded, so that little is lost where a process is killed.
    """
    only, device = Inputs({part: features.parts[part]}), _device(encoder)
    encoded = torch.empty(len(only), encoder.out_features)
    folder = cache_folder()
    training = encoder.training
    encoder.eval()
    if folder is None:
        for rows, batch in in_order(only, workers):
            encoded[torch.from_numpy(rows)] = _encoded(encoder, part, batch, device)
        encoder.train(training)
        return encoded
    cache = Encodings(folder, encoder_digest(encoder), encoder.out_features)
    keys: dict[int, bytes] = {}
    for rows, batch in in_order(only, workers):
        keys.update(zip(rows.tolist(), map(row_key, _unpadded(batch[part])), strict=True))
    with cache.turn():
        known = cache.get([*keys.values()])
        first = {key: row for row, key in keys.items() if key not in known}
        missing = sorted(first.values())
        for rows, batch in in_order(only, workers, missing):
            made = _encoded(encoder, part, batch, device)
            cache.add([keys[row] for row in rows.tolist()], made)
            known.update(zip((keys[row] for row in rows.tolist()), made, strict=True))
    for row, key in keys.items():
        encoded[row] = known[key]
    encoder.train(training)
    return encoded


def _encoded(encoder: Any, part: str, batch: Batch, device: torch.device) -> Tensor:
    pieces = _pieces(batch, device)
    return torch.cat([encoder.encode(piece[part].to(device)).float().cpu() for piece in pieces])


def _pieces(batch: Batch, device: torch.device) -> Iterator[Batch]:
    """A batch in as many pieces as are quickest for a network on a device."""
    count = len(next(iter(batch.values())))
    pixels = max((part.shape[-2] * part.shape[-1] for part in batch.values() if part.dim() == 4),
                 default=0)  # fmt: skip
    size = max(1, count)
    if pixels and device.type == "cpu":
        fitting = min(_IMAGES_A_THREAD, max(_FEWEST_IMAGES, _PIXELS_A_THREAD // pixels))
        size = fitting * torch.get_num_threads()
    for start in range(0, count, size):
        yield {part: tensor[start : start + size] for part, tensor in batch.items()}


def _device(module: nn.Module) -> torch.device:
    tensors = (*module.parameters(), *module.buffers())
    return tensors[0].device if tensors else torch.device("cpu")


def _unpadded(batch: Tensor) -> Iterator[Tensor]:
    """Each row of what an encoder takes, without what stands behind the end of a text."""
    for row in batch:
        yield row[row >= 0] if row.dim() == 1 and not row.is_floating_point() else row
