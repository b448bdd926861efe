"""An encoder, a backbone and a head: everything from raw cells to logits, loss and curve."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from echelon.curve import RankCurve
from echelon.functional import LossParts
from echelon.methods import Method

# Of each part of a row: raw numbers (n, p) and codes (n, q) of a table, or one tensor: encoded
# features (n, d), token ids (n, longest), pixels (n, 3, h, w).
Cells = Mapping[str, Tensor | tuple[Tensor, Tensor]]


class OrdinalModule(nn.Module):
    """A module that ends in a method's head, whose loss and curve are the method's.

    Where a class says that it `has_members`, logits (n, k, J) are those of an ensemble of k members
    that are trained side by side, and the curve is the mean of theirs.
    """

    has_members: ClassVar[bool] = False
    method: Method

    def loss(
        self, logits: Tensor, ranks: Tensor, sample_weight: Tensor | None = None, **options: Any
    ) -> Tensor:
        """The method's loss of logits (..., J) for ranks (...); see :meth:`Method.loss`."""
        ranks, weight = self._of_members(logits, ranks, sample_weight)
        return self.method.loss(logits, ranks, sample_weight=weight, **options)

    def loss_parts(
        self, logits: Tensor, ranks: Tensor, sample_weight: Tensor | None = None, **options: Any
    ) -> LossParts:
        """Sum and count of the loss; see :meth:`Method.loss_parts`."""
        ranks, weight = self._of_members(logits, ranks, sample_weight)
        return self.method.loss_parts(logits, ranks, sample_weight=weight, **options)

    def curve(self, logits: Tensor) -> RankCurve:
        """The distribution over ranks that logits (..., J) stand for."""
        curve = self.method.curve(logits)
        return curve.mixture() if self._is_ensemble(logits) else curve

    def _is_ensemble(self, logits: Tensor) -> bool:
        return self.has_members and logits.dim() == 3

    def _of_members(
        self, logits: Tensor, ranks: Tensor, weight: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Ranks and weights of every member."""
        if not self._is_ensemble(logits):
            return ranks, weight
        shape = logits.shape[:-1]
        ranks = ranks.unsqueeze(-1).expand(shape)
        return ranks, None if weight is None else weight.unsqueeze(-1).expand(shape)


class OrdinalNetwork(OrdinalModule):
    """From raw cells to logits, and from logits to loss and curve.

    Logits are (n, J), or (n, k, J) where the backbone is an ensemble of k members.

    Parameters
    ----------
    encoder : nn.Module
        From numbers (n, p) and codes (n, q) to features (n, d).
    backbone : nn.Module
        From features (n, d), or from a tensor for each part of a row, to (n, out) or (n, k, out).
    method : Method
        The method whose head the network ends in.
    out_features : int
        Of the backbone.
    head : nn.Module, optional
        From what the backbone gives to logits; without it, the method's.
    """

    has_members = True

    def __init__(
        self,
        encoder: nn.Module,
        backbone: nn.Module,
        method: Method,
        out_features: int,
        head: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.backbone = backbone
        self.out_features = out_features
        self.head = method.head(out_features) if head is None else head
        self.method = method

    @classmethod
    def side_by_side(cls, networks: "Sequence[OrdinalNetwork]") -> "OrdinalNetwork":
        """One network of several that were built alike: its curve is the mean of theirs."""
        if len(networks) == 1:
            return networks[0]
        first = networks[0]
        backbone = BackbonesBeside(network.backbone for network in networks)
        head = HeadsBeside(network.head for network in networks)
        return cls(first.encoder, backbone, first.method, first.out_features, head)

    def forward(self, cells: Tensor | Cells) -> Tensor:
        """Logits (n, J) or (n, k, J) of raw cells by the part of a row that they are.

        A table is its numbers (n, p) and codes (n, q), a text its token ids, an image its pixels.
        What is encoded already passes: features of a table beside the other parts, or alone.
        """
        logits: Tensor = self.head(self.backbone(self.encoded(cells)))
        return logits

    def encoded(self, cells: Tensor | Cells) -> Tensor | dict[str, Tensor]:
        """What the backbone takes of raw cells; a tensor passes, as the features of a table."""
        if isinstance(cells, Tensor):
            return cells
        features = {part: self._encoded_part(given) for part, given in cells.items()}
        return features["table"] if features.keys() == {"table"} else features

    def _encoded_part(self, given: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        if isinstance(given, Tensor):
            return given
        features: Tensor = self.encoder(*given)
        return features.to(next(self.head.parameters()).dtype)  # of a network in float64

    def learning_rates(self) -> dict[str, float]:
        """The share of the learning rate of each parameter that has one of its own, by name."""
        rates = getattr(self.backbone, "learning_rates", None)
        if rates is None:
            return {}
        return {f"backbone.{name}": share for name, share in rates().items()}


class BackbonesBeside(nn.ModuleList):
    """The backbones of several networks: what they give, (n, members of all, out)."""

    def forward(self, features: Any) -> Tensor:
        """What each gives of the same features, the members of the first before the others."""
        given = [backbone(features) for backbone in self]
        return torch.cat([part if part.dim() == 3 else part.unsqueeze(1) for part in given], 1)


class HeadsBeside(nn.ModuleList):
    """The heads of several networks, each for the members of its own."""

    def forward(self, features: Tensor) -> Tensor:
        """Logits (n, members of all, J) of features (n, members of all, out)."""
        parts = features.chunk(len(self), 1)
        return torch.cat([head(part) for head, part in zip(self, parts, strict=True)], 1)
