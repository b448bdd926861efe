"""A network from a description and the tensors of a file, neither of which is trusted.

Invariant: no more is allocated than the tensors take. The network is built without memory first
(on torch's device `meta`), and only if its parameters and buffers have the names, shapes and types
of the tensors is it built once more, for good. In both turns a description that asks for more
layers than there are tensors for is stopped while it builds.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

# Networks of libraries register more than they keep: classifiers and poolers that are taken off.
_SPARE_NAMES = 500
_SPARE_NUMBERS = 2**24  # 64 MiB of float32


def rebuild(make: Callable[[], nn.Module], tensors: Mapping[str, Tensor]) -> nn.Module:
    """The network that `make` builds, with the tensors as its parameters and buffers.

    Parameters
    ----------
    make : callable
        Builds the network, wherever torch's default device says; called twice.
    tensors : mapping from name to Tensor
        A state dict. Numbers must be finite, but for what a module lists in `unbounded`.

    Examples
    --------
    >>> layer = rebuild(lambda: nn.Linear(2, 1, bias=False), {"weight": torch.ones(1, 2)})
    >>> layer(torch.tensor([3.0, 4.0])).tolist()
    [7.0]
    >>> rebuild(lambda: nn.Linear(10**6, 10**6, bias=False), {"weight": torch.ones(1, 2)})
    Traceback (most recent call last):
    ...
    ValueError: the network would be far larger than its weights
    """
    with _limited(tensors):
        with torch.device("meta"):
            planned = make()
        _require_same(planned.state_dict(), tensors)
        _require_finite(planned, tensors)
        network = make()
    network.load_state_dict(tensors)
    return network


@contextmanager
def _limited(tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Stop, in this thread, whoever registers far more than there are tensors for."""
    names = 2 * len(tensors) + _SPARE_NAMES
    numbers = 2 * sum(tensor.numel() for tensor in tensors.values()) + _SPARE_NUMBERS
    thread, seen = threading.get_ident(), [0, 0]

    def count(module: nn.Module, name: str, tensor: Any) -> None:
        if tensor is None or threading.get_ident() != thread:
            return
        turns = 1 if tensor.is_meta else 2  # the first turn counts no less than the second
        seen[0] += 1
        seen[1] += tensor.numel()
        if seen[0] > turns * names or seen[1] > turns * numbers:
            raise ValueError("the network would be far larger than its weights")

    hooks = [
        register_module_parameter_registration_hook(count),
        register_module_buffer_registration_hook(count),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _require_same(planned: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> None:
    for name in sorted(planned.keys() | tensors.keys()):
        if name not in tensors:
            raise ValueError(f"the tensor {name!r} is missing")
        if name not in planned:
            raise ValueError(f"there is no place for the tensor {name!r}")
        if planned[name].shape != tensors[name].shape:
            raise ValueError(
                f"the tensor {name!r} must be {tuple(planned[name].shape)}; it is "
                f"{tuple(tensors[name].shape)}"
            )
        wanted, given = planned[name].dtype, tensors[name].dtype
        # A fit in another precision saves other floats, which become those of the network.
        if wanted != given and not (wanted.is_floating_point and given.is_floating_point):
            raise ValueError(f"the tensor {name!r} must be {wanted}; it is {given}")


def _require_finite(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    unbounded = {
        f"{prefix}.{name}".lstrip(".")
        for prefix, module in network.named_modules()
        for name in getattr(module, "unbounded", ())
    }
    for name, planned in network.state_dict().items():
        tensor = tensors[name].to(planned.dtype)
        if not tensor.is_floating_point():
            continue
        is_sound = ~torch.isnan(tensor) if name in unbounded else torch.isfinite(tensor)
        if not bool(is_sound.all()):
            raise ValueError(f"the tensor {name!r} holds what is no number")
