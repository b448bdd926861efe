"""Which network reads which part of a row, and their features side by side.

A row may consist of a table (numbers and categories), a text and an image. The name of a backbone
says which part it reads: ``lstm`` and ``hf:...`` texts, ``resnet`` and ``timm:...`` images, all
others the table.
"""

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from echelon.networks.image import SmallResNet, TimmBackbone
from echelon.networks.tabular import BACKBONES
from echelon.networks.text import LSTM, PretrainedText

PARTS = ("table", "text", "image")
DEFAULTS: Mapping[str, str] = {"table": "mlp", "text": "lstm", "image": "resnet"}

Names = str | Mapping[str, str]


def part_of(name: str) -> str:
    """The part of a row that a backbone reads: "table", "text" or "image".

    Examples
    --------
    >>> [part_of(name) for name in ("mlp", "lstm", "hf:some/model", "timm:resnet34")]
    ['table', 'text', 'text', 'image']
    """
    if name == "lstm" or name.startswith("hf:"):
        return "text"
    if name == "resnet" or name.startswith("timm:"):
        return "image"
    if name not in BACKBONES:
        raise ValueError(
            f"backbone must be one of {', '.join(BACKBONES)}, lstm, hf:NAME, resnet, timm:NAME, or "
            f"an nn.Module; got {name!r}"
        )
    return "table"


def choose_backbones(asked: Names | None, parts: tuple[str, ...]) -> dict[str, str]:
    """A backbone for each part that the rows have: the one asked for, or its default.

    Examples
    --------
    >>> choose_backbones("hf:folder", ("table", "text"))
    {'table': 'mlp', 'text': 'hf:folder'}
    """
    by_part = {part_of(asked): asked} if isinstance(asked, str) else dict(asked or {})
    for part, name in by_part.items():
        if part not in PARTS:
            raise ValueError(f"backbone has the parts {', '.join(PARTS)}; got {part!r}")
        if part_of(name) != part:
            raise ValueError(f"backbone {name!r} reads {part_of(name)}s, not {part}s")
        if part not in parts:
            raise ValueError(
                f"backbone {name!r} needs a column of {part}s, and none was named: say "
                f"{part}='COLUMN'"
                if part != "table"
                else f"backbone {name!r} needs numbers or categories, and there is no such column"
            )
    return {part: by_part.get(part, DEFAULTS[part]) for part in parts}


def options_by_part(
    options: Mapping[str, Any], asked: Names | None, parts: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """Options of each part's backbone; those without a part belong to the one that was named."""
    if options and set(options) <= set(PARTS):
        return {part: dict(options.get(part) or {}) for part in parts}
    if options and not isinstance(asked, str):
        raise ValueError(
            f"backbone_options must say which part each belongs to, as in "
            f"{{'text': {{'hidden': 64}}}}; got {', '.join(options)}"
        )
    named = part_of(asked) if isinstance(asked, str) else ""
    return {part: dict(options) if part == named else {} for part in parts}


def make_text_backbone(
    name: str,
    num_tokens: int,
    options: Mapping[str, Any],
    config: Mapping[str, Any] | None,
    fetch: bool,
) -> nn.Module:
    """A network for texts by its name; without `fetch`, a pretrained one from `config` alone."""
    try:
        if name == "lstm":
            return LSTM(num_tokens, **options)
        if not fetch:
            return PretrainedText.rebuilt(config, **options)
        return PretrainedText.of(name.removeprefix("hf:"), **options)
    except TypeError as error:
        raise ValueError(f"backbone {name!r} does not take these options: {error}") from None


def make_image_backbone(
    name: str,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    options: Mapping[str, Any],
    fetch: bool,
) -> nn.Module:
    """A network for pictures by its name; without `fetch`, its weights are left at random."""
    try:
        if name == "resnet":
            return SmallResNet(mean=mean, std=std, **options)
        return TimmBackbone(name.removeprefix("timm:"), mean=mean, std=std, fetch=fetch, **options)
    except TypeError as error:
        raise ValueError(f"backbone {name!r} does not take these options: {error}") from None


class JoinedBackbone(nn.Module):
    """The features of all parts of a row, side by side.

    Parameters
    ----------
    parts : mapping from part to nn.Module
        Each with `out_features`.

    Examples
    --------
    >>> from echelon.networks.tabular import MLP
    >>> table = MLP(3, 3, hidden=(8,))
    >>> joined = JoinedBackbone({"table": table, "text": LSTM(50, hidden=16)})
    >>> joined({"table": torch.zeros(2, 3), "text": torch.tensor([[4, 7], [9, -1]])}).shape
    torch.Size([2, 24])
    """

    def __init__(self, parts: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(parts)
        self.out_features = sum(cast(int, one.out_features) for one in parts.values())

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """(n, out), or (n, k, out) where one part is an ensemble, of a tensor for each part."""
        features = [network(batch[part]) for part, network in self.parts.items()]
        members = [one.shape[1] for one in features if one.dim() == 3]
        if members:  # every member sees the same of the other parts
            features = [
                one if one.dim() == 3 else one.unsqueeze(1).expand(-1, members[0], -1)
                for one in features
            ]
        return torch.cat(features, -1) if len(features) > 1 else features[0]

    def learning_rates(self) -> dict[str, float]:
        """The share of the learning rate of each parameter that has one of its own, by name."""
        return {
            f"parts.{part}.{name}": share
            for part, network in self.parts.items()
            if isinstance(network, PretrainedText)
            for name, share in network.learning_rates().items()
        }
