"""Heads for dense outputs: from features (N, channels, height, width) to logits (N, J, ...).

Invariant: a dense head is another head at every place, so that what that head builds into its
parameters holds of every pixel too.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d


class Window(NamedTuple):
    """What a convolution sees at one place: how large, how far apart, and where."""

    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def is_one_place(self) -> bool:
        """Whether every place is seen alone, and each of them once."""
        ones = {*self.kernel_size, *self.stride}
        return ones == {1} and set(self.padding) == {0}


class DenseHead(nn.Module):
    """A head at every place of a dense output, in the stead of a last convolution.

    Parameters
    ----------
    head : nn.Module
        From features (..., channels times the places of the window) to logits (..., J).
    window : Window, optional
        What is seen at a place; by default the place alone, as by a convolution of size 1. A larger
        one is for images alone, (N, channels, height, width).

    Examples
    --------
    >>> import torch
    >>> from echelon.heads import SharedWeightHead
    >>> head = DenseHead(SharedWeightHead(8, num_classes=5))
    >>> head(torch.zeros(2, 8, 16, 16)).shape
    torch.Size([2, 4, 16, 16])
    """

    def __init__(self, head: nn.Module, window: Window | None = None) -> None:
        super().__init__()
        self.head = head
        self.window = window or Window((1,), (1,), (0,), (1,))

    @classmethod
    def like(
        cls, layer: "Convolution | DenseHead", head: Callable[[int], nn.Module], name: str = ""
    ) -> "DenseHead":
        """One that sees what another layer sees, with a head made for that many features."""
        if isinstance(layer, DenseHead):
            return cls(head(layer.in_features), layer.window)
        window = Window(
            tuple(layer.kernel_size), tuple(layer.stride), _padding(layer), tuple(layer.dilation)
        )
        called = f"the convolution {name!r}" if name else "the convolution"
        if layer.groups != 1 or layer.padding_mode != "zeros":
            raise ValueError(
                f"{called} has groups={layer.groups} and padding_mode={layer.padding_mode!r}; a "
                f"head can take the place of one with groups=1 and padding_mode='zeros'"
            )
        if not (window.is_one_place or isinstance(layer, nn.Conv2d)):
            raise ValueError(
                f"{called} sees windows of {window.kernel_size}; a head can take the place of an "
                f"nn.Conv2d, or of any convolution with a kernel_size and a stride of 1"
            )
        places = 1
        for size in window.kernel_size:
            places *= size
        return cls(head(layer.in_channels * places), window)

    @property
    def in_features(self) -> int:
        """How many features the head takes at a place."""
        size: int = self.head.in_features  # type: ignore[assignment]
        return size

    def forward(self, features: Tensor) -> Tensor:
        """Logits (N, J, ...) of features (N, channels, ...)."""
        if self.window.is_one_place:
            logits: Tensor = self.head(features.movedim(1, -1))
            return logits.movedim(-1, 1)
        kernel_size, stride, padding, dilation = self.window
        seen = nn.functional.unfold(features, kernel_size, dilation, padding, stride)
        logits = self.head(seen.transpose(1, 2)).transpose(1, 2)  # (N, J, places)
        height, width = (
            (size + 2 * pad - apart * (kernel - 1) - 1) // step + 1
            for size, kernel, step, pad, apart in zip(
                features.shape[-2:], kernel_size, stride, padding, dilation, strict=True
            )
        )
        return logits.reshape(*logits.shape[:2], height, width)

    def extra_repr(self) -> str:
        """The window, unless it is one place."""
        return "" if self.window.is_one_place else str(self.window)


def _padding(layer: Convolution) -> tuple[int, ...]:
    if isinstance(layer.padding, str):
        if layer.padding == "valid":
            return (0,) * len(layer.kernel_size)
        around = [
            apart * (size - 1)
            for size, apart in zip(layer.kernel_size, layer.dilation, strict=True)
        ]
        if any(padding % 2 for padding in around):
            raise ValueError(
                f"a convolution with padding='same' and an even kernel_size {layer.kernel_size} "
                f"pads one side more than the other, which no head does; give numbers"
            )
        return tuple(padding // 2 for padding in around)
    return tuple(layer.padding)
