"""From raw rows to what a network takes, and the network that takes it.

Everything here is decided on the training rows and rebuilt from a saved model: the encoder of the
table (a part of the network), the tokenizer of the texts, and how pictures become pixels.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from echelon.data.columns import single_column
from echelon.data.images import (
    Pictures,
    PictureSettings,
    paper_pictures,
    rebuild_pictures,
    small_pictures,
    timm_pictures,
)
from echelon.data.inputs import Inputs
from echelon.data.tables import RawTable, TableEncoder, TableSchema
from echelon.data.texts import PretrainedTokenizer, Tokenizer, WordTokenizer, rebuild_tokenizer
from echelon.methods import Method
from echelon.networks.joined import JoinedBackbone
from echelon.networks.network import OrdinalNetwork
from echelon.networks.spec import NetworkSpec
from echelon.networks.table import Origin, make_backbone, part_of
from echelon.networks.tabular import output_size
from echelon.networks.text import PretrainedText

CHUNK = 16_384  # rows of a table that are encoded at once

_PREPROCESSING = ("own", "paper", "timm")


@dataclass(frozen=True)
class Readers:
    """How texts become token ids and pictures become pixels; None where rows have none.

    Those of a saved model have `saved`, and fetch nothing; `config` is then what its pretrained
    text encoder is rebuilt from.
    """

    tokenizer: Tokenizer | None = None
    pictures: PictureSettings | None = None
    config: Mapping[str, Any] | None = None
    saved: bool = False

    @classmethod
    def of(cls, table: RawTable, spec: NetworkSpec) -> "Readers":
        """Decide on the training rows."""
        tokenizer = pictures = None
        if table.texts is not None:
            options = spec.input_options.get("text", {})
            tokenizer = _make_tokenizer(table, spec.backbones["text"], options)
        if table.images is not None:
            options = spec.input_options.get("image", {})
            pictures = _make_pictures(table, spec.backbones["image"], options)
        return cls(tokenizer, pictures)

    def describe(self, network: nn.Module) -> dict[str, Any]:
        """What a saved model stores of them."""
        text = text_network(network)
        return {
            "tokenizer": None if self.tokenizer is None else self.tokenizer.describe(),
            "pictures": None if self.pictures is None else self.pictures.describe(),
            "config": text.config_document() if isinstance(text, PretrainedText) else None,
        }

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> "Readers":
        """Readers from what :meth:`describe` gave."""
        tokenizer, pictures = described["tokenizer"], described["pictures"]
        return cls(
            None if tokenizer is None else rebuild_tokenizer(tokenizer),
            None if pictures is None else rebuild_pictures(pictures),
            described["config"],
            saved=True,
        )

    def inputs(self, table: RawTable, encoder: TableEncoder) -> Tensor | Inputs:
        """Features (n, d) where rows are only a table, and inputs on demand otherwise."""
        features = None
        if table.numbers.shape[1] or table.codes.shape[1]:
            features = encode(encoder, table)
        if self.tokenizer is None and self.pictures is None:
            assert features is not None
            return features
        return Inputs(
            features,
            None if self.tokenizer is None else self.tokenizer.encode(table.texts),  # type: ignore[arg-type]
            None if self.pictures is None else Pictures(table.images, self.pictures),  # type: ignore[arg-type]
        )


def _make_tokenizer(table: RawTable, backbone: str, options: Mapping[str, Any]) -> Tokenizer:
    assert table.texts is not None
    try:
        if backbone == "lstm":
            return WordTokenizer.of(table.texts, **options)
        return PretrainedTokenizer.of(backbone.removeprefix("hf:"), **options)
    except TypeError as error:
        raise ValueError(f"texts of {backbone!r} do not take these options: {error}") from None


def _make_pictures(table: RawTable, backbone: str, options: Mapping[str, Any]) -> PictureSettings:
    assert table.images is not None
    options = dict(options)
    small = backbone == "resnet"
    way = options.pop("preprocessing", "own" if small else "timm")
    if way == "own":
        return small_pictures(table.images, **options)
    if way == "paper":
        return paper_pictures(**options)
    if way == "timm":
        return timm_pictures(backbone.removeprefix("timm:"), **options)
    raise ValueError(f"preprocessing must be one of {', '.join(_PREPROCESSING)}; got {way!r}")


def encode(encoder: TableEncoder, table: RawTable) -> Tensor:
    """Features (n, d) of the numbers and categories of a table."""
    features = torch.empty(len(table), encoder.num_features)
    start = 0
    for numbers, codes in table.chunks(CHUNK):
        features[start : start + len(numbers)] = encoder(numbers, codes)
        start += len(numbers)
    return features


def read_schema(table: Any, backbone: Any, text: str | None, image: str | None) -> TableSchema:
    """The schema of training rows; a single column is what the backbone's name says it is."""
    named = backbone if isinstance(backbone, Mapping) else {}
    asked = set(named) if named else {part_of(backbone)} if isinstance(backbone, str) else {"table"}
    if len(asked) == 1 and text is None and image is None:
        part = next(iter(asked))
        if part in ("text", "image"):
            columns = list(getattr(single_column(table, part), "columns", ()))
            if len(columns) == 1:
                name = str(columns[0])
                text, image = (name, None) if part == "text" else (None, name)
    return TableSchema.of(table, text=text, image=image)


def make_network(
    encoder: TableEncoder, readers: Readers, spec: NetworkSpec, method: Method, own: Any = None
) -> OrdinalNetwork:
    """The network that a spec describes; `own` may be a backbone of the user's, copied."""
    if isinstance(own, nn.Module):
        backbone = copy.deepcopy(own)
        return OrdinalNetwork(
            encoder, backbone, method, output_size(backbone, encoder.num_features)
        )
    backbone = make_backbones(encoder, readers, spec)
    return OrdinalNetwork(encoder, backbone, method, cast(int, backbone.out_features))


def make_backbones(encoder: TableEncoder, readers: Readers, spec: NetworkSpec) -> nn.Module:
    """The backbone of a table, or the backbones of all parts of other rows."""
    encodings = {"table": encoder, "text": readers.tokenizer, "image": readers.pictures}
    origin = Origin(fetch=not readers.saved, config=readers.config)
    made = {
        part: make_backbone(name, cast(Any, encodings[part]).sizes, spec.options_of(part), origin)
        for part, name in spec.backbones.items()
    }
    return made["table"] if spec.parts == ("table",) else JoinedBackbone(made)


def text_network(network: nn.Module) -> nn.Module | None:
    """What reads the texts inside a network; None where nothing does."""
    backbone = getattr(network, "backbone", None)
    if not isinstance(backbone, JoinedBackbone) or "text" not in backbone.parts:
        return None
    return backbone.parts["text"]
