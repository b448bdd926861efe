"""The features of all parts of a row, side by side."""

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn


class JoinedBackbone(nn.Module):
    """The features of all parts of a row, side by side.

    Parameters
    ----------
    parts : mapping from part to nn.Module
        Each with `out_features`.

    Examples
    --------
    >>> from echelon.networks.tabular import MLP
    >>> from echelon.networks.text import LSTM
    >>> table = MLP(3, 3, hidden=(8,))
    >>> joined = JoinedBackbone({"table": table, "text": LSTM(50, hidden=16)})
    >>> joined({"table": torch.zeros(2, 3), "text": torch.tensor([[4, 7], [9, -1]])}).shape
    torch.Size([2, 24])
    """

    def __init__(self, parts: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(parts)
        self.out_features = sum(cast(int, part.out_features) for part in parts.values())

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """(n, out), or (n, k, out) where one part is an ensemble, of a tensor for each part."""
        features = [network(batch[part]) for part, network in self.parts.items()]
        members = [block.shape[1] for block in features if block.dim() == 3]
        if members:  # every member sees the same of the other parts
            features = [
                block if block.dim() == 3 else block.unsqueeze(1).expand(-1, members[0], -1)
                for block in features
            ]
        return torch.cat(features, -1) if len(features) > 1 else features[0]

    def learning_rates(self) -> dict[str, float]:
        """The share of the learning rate of each parameter that has one of its own, by name."""
        return {
            f"parts.{part}.{name}": share
            for part, network in self.parts.items()
            if hasattr(network, "learning_rates")
            for name, share in cast(Any, network).learning_rates().items()
        }
