"""Networks for images: pixels (n, 3, h, w) of whole numbers 0..255 in, features (n, out) out."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from echelon.extras import require
from echelon.networks.frozen import AfterFrozen
from echelon.networks.table import Origin

# What may be said of a network of timm, in a fit and in a saved model. None of it names a file, an
# address or code, as `checkpoint_path`, `pretrained_cfg` and others of timm's do.
TIMM_OPTIONS = (
    "attn_drop_rate", "base_width", "cardinality", "channels", "class_token", "depth",
    "depths", "dims", "drop_block_rate", "drop_path_rate", "drop_rate", "embed_dim", "embed_dims",
    "global_pool", "img_size", "init_values", "layers", "mlp_ratio", "mlp_ratios", "num_heads",
    "output_stride", "patch_drop_rate", "patch_size", "pos_drop_rate", "proj_drop_rate", "qkv_bias",
    "stem_width", "window_size", "zero_init_last",
)  # fmt: skip
_POOLINGS = ("avg", "max", "avgmax", "catavgmax", "token")
_LARGEST_OPTION = 65_536
_LONGEST_OPTION = 64  # numbers in a list
_NARROW = 16  # channels of a layer, twice as many as torch's defect has been seen with


class Pixels(nn.Module):
    """From whole numbers 0..255 to what a network expects, so that no one has to do it outside."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).reshape(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std).reshape(1, -1, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        """Scaled pixels, (n, 3, h, w)."""
        return (pixels.to(self.mean.dtype) / 255 - self.mean) / self.std


class _Block(nn.Module):
    """Two convolutions beside a way around them."""

    def __init__(self, size: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(size, width, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(width)
        nn.init.zeros_(self.second_norm.weight)  # at first a block changes nothing
        self.stride = stride
        self.around: nn.Module = nn.Identity()
        if stride != 1 or size != width:
            self.around = nn.Sequential(
                nn.Conv2d(size, width, 1, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, x: Tensor) -> Tensor:
        # In place, as the gradient needs only what comes out: memory is most of the price here.
        y = F.relu(self.first_norm(self.first(x)), inplace=True)
        y = self.second_norm(self.second(y))
        # Every second pixel, and then a convolution, is a convolution with a stride; the gradient
        # of that one, for few channels, ends the process (see `_may_lie_channels_last`).
        return F.relu(y + self.around(x[:, :, :: self.stride, :: self.stride]), inplace=True)


class SmallResNet(nn.Module):
    """A ResNet for small images, up to some 64 pixels a side: no early pooling.

    Parameters
    ----------
    mean, std : sequence of 3 floats
        The mean and the spread of the pixels, as shares of 255.
    widths : sequence of int
        Channels of each stage; every stage after the first halves the sides.
    blocks : int
        The number of blocks of each stage.
    dropout : float
        The share of what comes out that is left out in training.

    Examples
    --------
    >>> network = SmallResNet(mean=(0.5,) * 3, std=(0.25,) * 3)
    >>> network(torch.zeros(2, 3, 16, 16, dtype=torch.uint8)).shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        *,
        mean: Sequence[float],
        std: Sequence[float],
        widths: Sequence[int] = (16, 32, 64),
        blocks: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.pixels = Pixels(mean, std)
        self.stem = nn.Conv2d(3, widths[0], 3, 1, 1, bias=False)
        self.stem_norm = nn.BatchNorm2d(widths[0])
        layers: list[nn.Module] = []
        size = widths[0]
        for stage, width in enumerate(widths):
            for block in range(blocks):
                layers.append(_Block(size, width, 2 if stage and not block else 1))
                size = width
        self.layers = nn.Sequential(*layers)
        self.dropout = nn.Dropout(dropout)
        self.out_features = size

    def forward(self, pixels: Tensor) -> Tensor:
        """(n, out) of pixels (n, 3, h, w)."""
        x = self.stem_norm(self.stem(_channels_last(self.pixels(pixels))))
        x = F.relu(x, inplace=True)
        features: Tensor = self.dropout(self.layers(x).mean((2, 3)))
        return features


class TimmBackbone(nn.Module):
    """A network of timm (extra `vision`) without its classifier.

    Parameters
    ----------
    name : str
        As in timm. A name with a tag, such as ``resnet34.a1_in1k``, names weights, which are
        fetched; without one the network starts from random weights.
    mean, std : sequence of 3 floats
        The mean and the spread of the pixels, as shares of 255.
    weights : path, optional
        A local file of weights instead, safetensors or a plain state dict.
    frozen : bool
        Train only what comes after it: each image is then encoded once, its middle.
    fetch : bool
        Whether named weights are fetched; a saved model brings its own.
    options
        Some of what ``timm.create_model`` takes: those of `TIMM_OPTIONS`.
    """

    def __init__(
        self,
        name: str,
        *,
        mean: Sequence[float],
        std: Sequence[float],
        weights: str | Path | None = None,
        frozen: bool = False,
        fetch: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        timm = require("timm", "networks of timm")
        _require_known(timm, name, options)
        named = "." in name and weights is None and fetch
        self.pixels = Pixels(mean, std)
        try:
            network: Any = timm.create_model(name, pretrained=named, num_classes=0, **options)
        except RuntimeError as error:
            raise ValueError(f"timm cannot make {name!r}: {str(error).splitlines()[0]}") from None
        if weights is not None and fetch:
            network.load_state_dict(_read_weights(Path(weights), network))
        self.network: nn.Module = network
        self.channels_last = _may_lie_channels_last(network)
        # Some networks have another width before the classifier than they say.
        self.out_features = int(getattr(network, "head_hidden_size", 0) or network.num_features)
        self.frozen = frozen
        self.after = AfterFrozen(self.out_features) if frozen else nn.Identity()
        if frozen:
            network.requires_grad_(False)

    def train(self, mode: bool = True) -> "TimmBackbone":
        """As always, but a frozen network keeps its statistics and has no dropout."""
        super().train(mode)
        if self.frozen:
            self.network.eval()
        return self

    def encode(self, pixels: Tensor) -> Tensor:
        """Features (n, out) of pixels (n, 3, h, w), as the network gives them."""
        scaled = self.pixels(pixels)
        features: Tensor = self.network(_channels_last(scaled) if self.channels_last else scaled)
        return features

    def forward(self, pixels: Tensor) -> Tensor:
        """(n, out) of pixels (n, 3, h, w), or of what a frozen :meth:`encode` gave before."""
        encoded = pixels if self.frozen and pixels.dim() == 2 else self.encode(pixels)
        features: Tensor = self.after(encoded)
        return features


def build_timm(
    mean: Sequence[float], std: Sequence[float], origin: Origin, **options: Any
) -> TimmBackbone:
    """A network of timm by its name; that of a saved model starts from random weights."""
    return TimmBackbone(origin.name, mean=mean, std=std, fetch=origin.fetch, **options)


def _require_known(timm: Any, name: str, options: Mapping[str, Any]) -> None:
    """Raise for a name or an option by which timm would look beyond itself."""
    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture) or not re.fullmatch(r"\w*", tag, re.ASCII):
        start = re.sub(r"\W.*", "", architecture)[:5]
        close = timm.list_models(f"*{start}*")[:5] if start else []
        raise ValueError(
            f"timm cannot make {name!r}: it has no network of that name"
            + (f"; near it are {', '.join(close)}" if close else "")
        )
    for option, value in options.items():
        if option not in TIMM_OPTIONS:
            raise ValueError(
                f"a network of timm does not take the option {option!r}; those that it may take "
                f"are: {', '.join(TIMM_OPTIONS)}"
            )
        if not _is_plain(option, value):
            raise ValueError(
                f"{option} must be a number of at most {_LARGEST_OPTION:,}, or a short list of "
                f"them (global_pool: one of {', '.join(_POOLINGS)}); got {value!r}"
            )


def _is_plain(option: str, value: Any) -> bool:
    if option == "global_pool":
        return isinstance(value, str) and value in _POOLINGS
    if isinstance(value, (list, tuple)):
        return len(value) <= _LONGEST_OPTION and all(_is_plain(option, part) for part in value)
    return isinstance(value, (int, float, np.number)) and bool(abs(value) <= _LARGEST_OPTION)


def _may_lie_channels_last(network: nn.Module) -> bool:
    """Whether the gradient of every layer stays within its memory for pixels channels last.

    On processors with AVX2, torch 2.13 (oneDNN 3.12) writes beyond it in the gradient of a
    convolution of size 1 with a stride and fewer than 8 channels, and the process ends there or
    later, anywhere. For pixels in the other order it does not.
    """
    return not any(
        isinstance(layer, nn.Conv2d)
        and set(layer.kernel_size) == {1}
        and max(layer.stride) > 1
        and layer.in_channels // layer.groups < _NARROW
        for layer in network.modules()
    )


def _channels_last(x: Tensor) -> Tensor:
    # as convolutions on a processor want it; an exported graph has an order of its own
    if torch.compiler.is_exporting():
        return x
    return x.contiguous(memory_format=torch.channels_last)


def _read_weights(path: Path, network: nn.Module) -> Mapping[str, Tensor]:
    """Weights for all but the classifier, or an error that says what does not fit."""
    if not path.is_file():
        raise ValueError(f"there is no file of weights {path}")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            weights: Any = load_file(path)
        else:
            weights = torch.load(path, map_location="cpu", weights_only=True)
            weights = weights.get("state_dict", weights)
    except Exception as error:  # a damaged file, or one that holds more than tensors
        reason = str(error).strip().split("\n")[0]
        raise ValueError(f"the weights {path} cannot be read: {reason}") from None
    wanted = network.state_dict()
    fitting = {k: v for k, v in weights.items() if k in wanted and v.shape == wanted[k].shape}
    missing = [name for name in wanted if name not in fitting]
    if missing:
        raise ValueError(
            f"{path} lacks weights of this network: {', '.join(missing[:3])}"
            + (f" and {len(missing) - 3} others" if len(missing) > 3 else "")
        )
    return fitting
