"""The precision in which a network reads rows, so that a row is the same whoever stands beside it.

In float32 the rounding of a matrix product depends on how many rows are multiplied at once, and
moves probabilities by more than 1e-6. Nearly all machines add up in one order where the number of
rows is a multiple of a small number, and then float32 is as good as float64 at half the price.
What that number is on this machine is tried out once for each network; where there is none, a copy
of the network in float64 reads the rows. It is made once, and anew when the weights have changed.
"""

import copy
from typing import Any, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from echelon.data.kinds.base import TABLE
from echelon.data.kinds.tabular import TableEncoder
from echelon.networks.network import OrdinalNetwork

_ROWS = 4096  # that are tried at once: as many as are read at once

_Module = TypeVar("_Module", bound=nn.Module)
_STEPS = (4, 8, 16, 32)  # rows
_TRIED = (1, 2, 3, 5, 7, 129)  # of each step
_UNIFORM = 1.7  # the largest of scaled numbers that are uniform with unit variance


class _Copy(NamedTuple):
    """A copy of a network, with the weights that it was made of and their versions."""

    network: nn.Module
    tensors: tuple[Tensor, ...]
    versions: tuple[int, ...]


_steps: "WeakKeyDictionary[nn.Module, tuple[Any, int | None]]" = WeakKeyDictionary()
_copies: "WeakKeyDictionary[nn.Module, _Copy]" = WeakKeyDictionary()


@torch.no_grad()
def steady_step(network: OrdinalNetwork) -> int | None:
    """The number of whose multiples rows must come for logits that do not depend on how many come.

    Rows are made up of the numbers and codes that the network's encoder knows, and go through it
    all at once and a few at a time. The answer is kept for the network, its device and the number
    of threads.

    Parameters
    ----------
    network : OrdinalNetwork
        In evaluation mode, of tables alone.

    Returns
    -------
    int or None
        None where there is no such number, and for all types but float32.
    """
    like = next(network.head.parameters())
    if like.dtype != torch.float32:
        return None
    circumstances = like.device, torch.get_num_threads()
    known = _steps.get(network)
    if known is None or known[0] != circumstances:
        known = circumstances, _find_step(network, like.device)
        _steps[network] = known
    return known[1]


def _find_step(network: OrdinalNetwork, device: torch.device) -> int | None:
    numbers, codes = (cells.to(device) for cells in _made_up(network))
    whole = network({TABLE: (numbers, codes)})

    def is_steady(rows: int, last: bool) -> bool:
        some = slice(len(numbers) - rows, None) if last else slice(0, rows)
        cells = numbers[some].clone(), codes[some].clone()
        return torch.equal(network({TABLE: cells}), whole[some])

    return next(
        (
            step
            for step in _STEPS
            if all(is_steady(times * step, last=times % 2 == 0) for times in _TRIED)
        ),
        None,
    )


def _made_up(network: OrdinalNetwork) -> tuple[Tensor, Tensor]:
    """Numbers (n, p) and codes (n, q) that nobody gave, spread as those of training rows are."""
    encoder = cast(TableEncoder, network.encoder)
    generator = torch.Generator().manual_seed(0)
    numbers = torch.zeros(_ROWS, encoder.num_numeric, dtype=torch.float64)
    spread = 2 * torch.rand(_ROWS, len(encoder.kept), generator=generator).double() - 1
    scale = _UNIFORM * encoder.scale.cpu() if encoder.scaling == "standard" else encoder.scale.cpu()
    numbers[:, encoder.kept.cpu()] = encoder.centre.cpu() + spread * scale
    codes = [
        torch.randint(0, size + 1, (_ROWS,), generator=generator) for size in encoder.num_categories
    ]
    return numbers, torch.stack(codes, 1) if codes else torch.zeros(_ROWS, 0).long()


def in_float64(network: _Module) -> _Module:
    """The network in float64, copied once and again when a weight was changed or replaced.

    A change that torch does not count, through ``.data`` of a weight, is not seen.

    Examples
    --------
    >>> layer = nn.Linear(2, 1)
    >>> in_float64(layer) is in_float64(layer)
    True
    >>> before = in_float64(layer)
    >>> _ = nn.init.zeros_(layer.weight)
    >>> in_float64(layer) is before
    False
    """
    tensors = (*network.parameters(), *network.buffers())
    if any(tensor.is_inference() for tensor in tensors):  # their changes are not counted
        return copy.deepcopy(network).double()
    versions = tuple(tensor._version for tensor in tensors)
    kept = _copies.get(network)
    if (
        kept is None
        or kept.versions != versions
        or any(a is not b for a, b in zip(kept.tensors, tensors, strict=True))
    ):
        kept = _Copy(copy.deepcopy(network).double(), tensors, versions)
        _copies[network] = kept
    return cast(_Module, kept.network)
