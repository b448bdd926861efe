"""Encoders that are left as they are: what follows one, and a module of the user's as such.

A frozen encoder has `frozen`, `out_features` and `encode`, which gives the same for a row whenever
it is asked: so that its encodings can be computed once (:mod:`echelon.networks.encodings`).
"""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from echelon.networks.tabular import output_size

_DROPOUT = 0.2


class AfterFrozen(nn.Sequential):
    """Features (n, d) of a frozen encoder on one scale, some of them dropped in training."""

    def __init__(self, size: int) -> None:
        # what it normalises does not change, so that the mean over all steps is the best known
        norm = nn.BatchNorm1d(size, affine=False, momentum=None)
        super().__init__(norm, nn.Dropout(_DROPOUT))


def is_frozen(network: nn.Module) -> bool:
    """Whether a backbone is an encoder that does not change."""
    return bool(getattr(network, "frozen", False)) and hasattr(network, "encode")


class OwnBackbone(nn.Module):
    """A module of the user's that reads texts or images.

    Parameters
    ----------
    module : nn.Module
        From what the inputs become to (n, out): of images pixels (n, 3, h, w), scaled by `mean`
        and `std`; of texts ids of words (n, longest), -1 behind the end. It is copied.
    example : Tensor
        What the inputs could be, of two rows.
    scale : nn.Module, optional
        What comes before it, as the scaling of pixels.
    frozen : bool
        Train only what comes after it.
    """

    def __init__(
        self,
        module: nn.Module,
        example: Tensor,
        *,
        scale: nn.Module | None = None,
        frozen: bool = False,
    ) -> None:
        super().__init__()
        self.scale = nn.Identity() if scale is None else scale
        self.module = copy.deepcopy(module)
        with torch.no_grad():
            self.out_features = output_size(self.module, example=self.scale(example))
        self.frozen = frozen
        self.after = AfterFrozen(self.out_features) if frozen else nn.Identity()
        if frozen:
            self.module.requires_grad_(False)

    def train(self, mode: bool = True) -> "OwnBackbone":
        """As always, but a frozen module is as in evaluation."""
        super().train(mode)
        if self.frozen:
            self.module.eval()
        return self

    def encode(self, given: Tensor) -> Tensor:
        """Features (n, out), as the module gives them."""
        features: Tensor = self.module(self.scale(given))
        return features

    def forward(self, given: Tensor) -> Tensor:
        """(n, out) of inputs, or of what a frozen :meth:`encode` gave before."""
        is_encoded = self.frozen and given.dim() == 2 and given.is_floating_point()
        features: Tensor = self.after(given if is_encoded else self.encode(given))
        return features


def require_own_options(options: Mapping[str, Any], *, known: tuple[str, ...]) -> None:
    """Raise for options that a module of the user's does not take."""
    unknown = [name for name in options if name not in known]
    if unknown:
        listed = ", ".join(known) or "none here, as it is a table that it reads"
        raise ValueError(f"a backbone of your own takes the options: {listed}; got {unknown[0]!r}")
