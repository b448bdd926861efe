"""The random numbers of a fit: a stream of its own, whatever else draws some.

torch has one generator for a whole process, and dropout, the start of a layer and much of other
people's code draw from it. A fit puts its own state there for as long as it draws, and then puts
back what it found. So a seed decides a fit, fits in several threads do not disturb each other, and
nobody else's numbers change because a model was fitted.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

_lock = threading.Lock()  # who holds it has the generator to itself


class RandomStream:
    """A sequence of random numbers in torch's own generator.

    Parameters
    ----------
    seed : int
    device : torch.device, optional
        Whose generator is meant too, beside that of the processor.

    Attributes
    ----------
    state : Tensor
        Where the sequence is; a checkpoint keeps it.
    device_state : Tensor or None
        The same of an accelerator.

    Examples
    --------
    >>> one, other = RandomStream(3), RandomStream(3)
    >>> with one.drawn():
    ...     first = torch.rand(1)
    >>> with other.drawn():
    ...     assert torch.rand(1) == first
    """

    def __init__(self, seed: int, device: torch.device | None = None) -> None:
        self.state = torch.Generator().manual_seed(seed).get_state()
        self._device = device if device is not None and device.type == "cuda" else None
        self.device_state: Tensor | None = None
        if self._device is not None:
            generator = torch.Generator(self._device).manual_seed(seed)
            self.device_state = generator.get_state()

    @contextmanager
    def drawn(self) -> Iterator[None]:
        """While inside, torch draws from this stream, and only this thread is inside."""
        with _lock:
            outside = torch.get_rng_state()
            torch.set_rng_state(self.state)
            device = self._device
            if device is not None and self.device_state is not None:
                outside_device = torch.cuda.get_rng_state(device)
                torch.cuda.set_rng_state(self.device_state, device)
            try:
                yield
            finally:
                self.state = torch.get_rng_state()
                torch.set_rng_state(outside)
                if device is not None and self.device_state is not None:
                    self.device_state = torch.cuda.get_rng_state(device)
                    torch.cuda.set_rng_state(outside_device, device)
