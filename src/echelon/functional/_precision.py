"""Where half precision ends: losses, curves and scores are computed in full precision."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

_FULL_PRECISION = frozenset({torch.float32, torch.float64})


def as_float(logits: Tensor) -> Tensor:
    """Logits in at least float32; raises for what cannot be logits.

    Parameters
    ----------
    logits : Tensor, shape (..., J)
        Floating-point numbers of any precision.

    Returns
    -------
    Tensor, shape (..., J)

    Examples
    --------
    >>> as_float(torch.zeros(2, 4, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    if isinstance(logits, Tensor) and logits.dtype in _FULL_PRECISION and logits.dim():
        return logits
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(f"logits must be a floating-point tensor; got {kind}")
    if logits.dim() == 0:
        raise ValueError("logits must have a last dimension for the tasks or classes; got a scalar")
    return logits.float()


def wide(x: Tensor) -> Tensor:
    """In float64, where the device has it."""
    return x if x.device.type == "mps" else x.double()


def without_autocast(device: torch.device) -> AbstractContextManager[None]:
    """A context in which products are not rounded to half precision.

    Parameters
    ----------
    device : torch.device
        Where the products are computed.

    Examples
    --------
    >>> eye = torch.eye(2)
    >>> with torch.autocast("cpu"), without_autocast(eye.device):
    ...     (eye @ eye).dtype
    torch.float32
    """
    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    context: AbstractContextManager[None] = torch.autocast(device.type, enabled=False)
    return context
