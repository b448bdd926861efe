"""From raw rows to what a network takes, and the network that takes it.

Everything here is decided on the training rows and rebuilt from a saved model: the encoder of the
table (a part of the network), and how the cells of every other kind are encoded.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn

from echelon.data.columns import single_column
from echelon.data.inputs import Inputs
from echelon.data.kinds.base import CELL_KINDS, TABLE, Encoding, Reading, cell_kind
from echelon.data.kinds.tabular import TableEncoder
from echelon.data.schema import RawTable, TableSchema
from echelon.methods import Method
from echelon.networks.frozen import OwnBackbone, require_own_options
from echelon.networks.image import Pixels
from echelon.networks.joined import JoinedBackbone
from echelon.networks.network import BackbonesBeside, OrdinalNetwork
from echelon.networks.spec import NetworkSpec
from echelon.networks.table import (
    FROZEN,
    PARTS,
    Origin,
    choose_backbones,
    make_backbone,
    part_of,
    row_of,
)
from echelon.networks.tabular import output_size
from echelon.networks.text import PretrainedText

CHUNK = 16_384  # rows of a table that are encoded at once


@dataclass(frozen=True)
class Readers:
    """How the cells of every kind but the table become what a network takes.

    Those of a saved model have `saved`, and fetch nothing; `config` is then what its pretrained
    text encoder is rebuilt from.
    """

    encodings: Mapping[str, Encoding] = field(default_factory=dict)
    config: Mapping[str, Any] | None = None
    saved: bool = False

    @classmethod
    def of(cls, table: RawTable, spec: NetworkSpec) -> "Readers":
        """Decide on the training rows."""
        encodings = {}
        for kind, cells in table.cells.items():
            name = spec.backbones[kind]
            row = row_of(name, kind)
            options = spec.input_options.get(kind, {})
            encodings[kind] = cell_kind(kind).learn(cells, row.encoding, row.source(name), options)
        return cls(encodings)

    def describe(self, network: nn.Module) -> dict[str, Any]:
        """What a saved model stores of them."""
        text = text_network(network)
        return {
            "encodings": {kind: each.describe() for kind, each in self.encodings.items()},
            "config": text.config_document() if isinstance(text, PretrainedText) else None,
        }

    @classmethod
    def rebuild(cls, described: Mapping[str, Any]) -> "Readers":
        """Readers from what :meth:`describe` gave; it may come from anywhere."""
        encodings = described["encodings"]
        if not isinstance(encodings, dict) or not set(encodings) <= set(CELL_KINDS):
            known = ", ".join(CELL_KINDS)
            raise ValueError(
                f"the encodings of a network must be of {known}; got {encodings!r:.50}"
            )
        rebuilt = {
            kind: cell_kind(kind).rebuild(encodings[kind])
            for kind in CELL_KINDS
            if kind in encodings
        }
        return cls(rebuilt, described["config"], saved=True)

    def inputs(self, table: RawTable, encoder: TableEncoder) -> Tensor | Inputs:
        """Features (n, d) where rows are only a table, and inputs on demand otherwise."""
        parts: dict[str, Tensor | Reading] = {}
        if table.numbers.shape[1] or table.codes.shape[1]:
            parts[TABLE] = encode(encoder, table)
        if not self.encodings:
            return cast(Tensor, parts[TABLE])
        for kind, encoding in self.encodings.items():
            parts[kind] = encoding.encode(table.cells[kind])
        return Inputs(parts)


def encode(encoder: TableEncoder, table: RawTable) -> Tensor:
    """Features (n, d) of the numbers and categories of a table."""
    features = torch.empty(len(table), encoder.num_features)
    start = 0
    for numbers, codes in table.chunks(CHUNK):
        features[start : start + len(numbers)] = encoder(numbers, codes)
        start += len(numbers)
    return features


def read_schema(table: Any, backbone: Any, columns: Mapping[str, str | None]) -> TableSchema:
    """The schema of training rows; a single column is what the backbone's name says it is.

    `columns` has the column of each kind that the user named.
    """
    asked = list(backbone) if isinstance(backbone, Mapping) else []
    if isinstance(backbone, str):
        asked = [part_of(backbone)]
    if len(asked) == 1 and asked[0] in CELL_KINDS and not any(columns.values()):
        kind = asked[0]
        names = list(getattr(single_column(table, kind), "columns", ()))
        if len(names) == 1:
            columns = {kind: str(names[0])}
    missing = [kind for kind in asked if kind in CELL_KINDS and not columns.get(kind)]
    if missing:  # said before cells are looked at, which may be of no other kind
        choose_backbones(backbone, tuple(part for part in PARTS if part not in missing))
    return TableSchema.of(table, **columns)


def make_network(
    encoder: TableEncoder, readers: Readers, spec: NetworkSpec, method: Method, given: Any = None
) -> OrdinalNetwork:
    """The network that a spec describes; `given` may be a backbone of the user's, copied."""
    made = [_one_network(encoder, readers, spec, method, given) for _ in range(spec.networks)]
    return OrdinalNetwork.side_by_side(made)


def _one_network(
    encoder: TableEncoder, readers: Readers, spec: NetworkSpec, method: Method, given: Any
) -> OrdinalNetwork:
    if isinstance(given, nn.Module):
        (part,) = spec.parts
        if part == TABLE:
            require_own_options(spec.options_of(part), known=())
            backbone = copy.deepcopy(given)
            return OrdinalNetwork(
                encoder, backbone, method, output_size(backbone, encoder.num_features)
            )
        backbone = JoinedBackbone({part: _own_backbone(given, readers, spec, part)})
    else:
        backbone = make_backbones(encoder, readers, spec)
    return OrdinalNetwork(encoder, backbone, method, cast(int, backbone.out_features))


def _own_backbone(module: nn.Module, readers: Readers, spec: NetworkSpec, part: str) -> OwnBackbone:
    """A module of the user's as the backbone of texts or images."""
    options = spec.options_of(part)
    require_own_options(options, known=(FROZEN,))
    encoding = readers.encodings[part]
    scale = Pixels(**encoding.sizes) if {*encoding.sizes} == {"mean", "std"} else None
    frozen = bool(options.get(FROZEN, False))
    return OwnBackbone(module, encoding.example(2), scale=scale, frozen=frozen)


def make_backbones(encoder: TableEncoder, readers: Readers, spec: NetworkSpec) -> nn.Module:
    """The backbone of a table, or the backbones of all parts of other rows."""
    encodings: dict[str, TableEncoder | Encoding] = {TABLE: encoder, **readers.encodings}
    origin = Origin(fetch=not readers.saved, config=readers.config)
    made = {
        part: make_backbone(name, encodings[part].sizes, spec.options_of(part), origin)
        for part, name in spec.backbones.items()
    }
    return made[TABLE] if spec.parts == (TABLE,) else JoinedBackbone(made)


def text_network(network: nn.Module) -> nn.Module | None:
    """What reads the texts inside a network; None where nothing does."""
    backbone = getattr(network, "backbone", None)
    if isinstance(backbone, BackbonesBeside):  # which are alike
        backbone = backbone[0]
    if not isinstance(backbone, JoinedBackbone) or "text" not in backbone.parts:
        return None
    return backbone.parts["text"]
