"""The backbones that there are: a row says all that the rest of the program must know of one.

A backbone reads one kind of input: a table (numbers, dates and categories), a text or an image.
Nothing here imports torch: names and defaults can be read before anything heavy is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from echelon.data.kinds.base import KINDS, TABLE
from echelon.spaces import Between, OneOf, Space

if TYPE_CHECKING:
    from torch import nn

OWN = "module"  # the name of a backbone that is a module of the user's
FROZEN = "frozen"  # the option of backbones that are left as they are

Names = str | Mapping[str, str]


@dataclass(frozen=True)
class Pace:
    """How a backbone is trained unless someone says otherwise; see docs/log.md.

    Without `epochs` and `batch_size` the number of rows decides. Few rows need more passes, until
    there are about `min_steps` steps. With a `bold_rate`, many rows are trained in such large steps
    and the weights are averaged, which gets to the same place far sooner.
    """

    learning_rate: float = 4e-3
    weight_decay: float = 0.3
    epochs: int | None = None
    batch_size: int | None = None
    min_steps: int = 2000
    bold_rate: float | None = None


@dataclass(frozen=True)
class BackboneRow:
    """A backbone, or a family of them.

    Parameters
    ----------
    name : str
        As the user says it. One that ends in a colon begins the names of a family, such as
        ``timm:resnet34``.
    kind : str
        What it reads: "table", "text" or "image".
    builder : str
        The module and the function or class, "module:name", imported when it is needed. It takes
        the sizes that the inputs have, the options, and, of a family, the `origin`.
    summary : str
        What it is, in a few words.
    encoding : str
        In which of its ways the kind encodes cells for it; a table has only one.
    pace : Pace
    frozen_pace : Pace, optional
        Where the option `frozen` is given.
    is_ensemble : bool
        Whether it has members, each of which gives features of its own.
    extra : str, optional
        The extra of echelon that it needs.
    space : mapping
        What of its options is worth searching, by name.
    """

    name: str
    kind: str
    builder: str
    summary: str
    encoding: str = ""
    pace: Pace = Pace()
    frozen_pace: Pace | None = None
    is_ensemble: bool = False
    extra: str | None = None
    space: Space = field(default_factory=dict)

    @property
    def is_family(self) -> bool:
        """Whether its name is only the beginning of one."""
        return self.name.endswith(":")

    @property
    def shown(self) -> str:
        """Its name in a list."""
        return f"{self.name}NAME" if self.is_family else self.name

    def source(self, name: str) -> str:
        """What a name of the family says beyond its beginning."""
        return name.removeprefix(self.name) if self.is_family else ""

    def pace_with(self, options: Mapping[str, Any]) -> Pace:
        """How it is trained with these options."""
        if self.frozen_pace is not None and options.get(FROZEN):
            return self.frozen_pace
        return self.pace


# Of networks on tables: how much they forget while they learn, and how large they are.
_OF_TABLES: Space = {
    "dropout": Between(0.0, 0.4),
    "hidden": OneOf(([96, 96], [192, 192], [192, 192, 192], [320, 320, 320])),
}
# What is computed once costs next to nothing in a step, so that many can be made.
_FROZEN_IMAGES = Pace(2e-3, 0.01, epochs=20, batch_size=64, min_steps=1500)

BACKBONES: Mapping[str, BackboneRow] = {
    row.name: row
    for row in (
        BackboneRow(
            "linear",
            "table",
            "echelon.networks.tabular:LinearBackbone",
            "No hidden layer.",
            pace=Pace(learning_rate=2e-2, weight_decay=0.0),
        ),
        BackboneRow(
            "mlp",
            "table",
            "echelon.networks.tabular:MLP",
            "Three hidden layers.",
            pace=Pace(bold_rate=1.2e-2),
            space=_OF_TABLES,
        ),
        BackboneRow(
            "tabm",
            "table",
            "echelon.networks.tabular:TabM",
            "An ensemble of MLPs that share most of their weights: slower and better.",
            pace=Pace(weight_decay=0.1),  # it averages its own noise away
            is_ensemble=True,
            space=_OF_TABLES,
        ),
        BackboneRow(
            "paper", "table", "echelon.networks.tabular:PaperMLP", "The MLP of the CORN paper."
        ),
        BackboneRow(
            "lstm",
            "text",
            "echelon.networks.text:LSTM",
            "An LSTM on words.",
            "words",
            Pace(2e-3, 0.01, epochs=8, batch_size=32, min_steps=600),
            space={"dropout": Between(0.1, 0.7), "hidden": OneOf((64, 128, 256))},
        ),
        BackboneRow(
            "hf:",
            "text",
            "echelon.networks.text:build_pretrained",
            "A pretrained encoder of transformers, by its name or folder.",
            "pretrained",
            Pace(1e-3, 0.01, epochs=2, batch_size=32, min_steps=200),  # in more it forgets
            frozen_pace=Pace(2e-3, 0.01, epochs=20, batch_size=64, min_steps=600),
            extra="text",
        ),
        BackboneRow(
            "resnet",
            "image",
            "echelon.networks.image:SmallResNet",
            "A small ResNet, for small images.",
            "own",
            Pace(4e-3, 0.05, epochs=20, batch_size=64, min_steps=600),
            space={"dropout": Between(0.0, 0.5)},
        ),
        BackboneRow(
            "timm:",
            "image",
            "echelon.networks.image:build_timm",
            "A network of timm.",
            "timm",
            Pace(1e-3, 0.05, epochs=20, batch_size=32, min_steps=600),
            frozen_pace=_FROZEN_IMAGES,
            extra="vision",
        ),
    )
}

# A module of the user's, by what it reads.
_OWN_ROWS: Mapping[str, BackboneRow] = {
    TABLE: BackboneRow(OWN, TABLE, "", "A module of the user's."),
    "text": replace(BACKBONES["hf:"], name=OWN, builder="", encoding="words", extra=None),
    "image": replace(BACKBONES["timm:"], name=OWN, builder="", encoding="own", extra=None),
}

PARTS: tuple[str, ...] = tuple(KINDS)  # what a row may hold
DEFAULTS: Mapping[str, str] = {row.name: row.backbone for row in KINDS.values()}
FEW_ROWS = 5000  # of a table, which an ensemble of networks learns better, and whose time they bear


@dataclass(frozen=True)
class Origin:
    """Where a backbone of a family comes from.

    Parameters
    ----------
    name : str
        What follows the beginning of its name.
    fetch : bool
        Whether named weights are fetched; a saved model brings its own.
    config : mapping, optional
        What a saved text encoder is rebuilt from.
    """

    name: str = ""
    fetch: bool = True
    config: Mapping[str, Any] | None = None


def backbone_row(name: str) -> BackboneRow:
    """The row of a backbone's name.

    Examples
    --------
    >>> backbone_row("timm:resnet34").kind
    'image'
    >>> backbone_row("gru")
    Traceback (most recent call last):
    ...
    ValueError: backbone must be one of linear, mlp, tabm, paper, lstm, hf:NAME, resnet, timm:NAME,
    or an nn.Module; got 'gru'
    """
    for row in BACKBONES.values():
        if name.startswith(row.name) if row.is_family else name == row.name:
            return row
    listed = ", ".join(row.shown for row in BACKBONES.values())
    raise ValueError(f"backbone must be one of {listed}, or an nn.Module; got {name!r}")


def row_of(name: str, part: str) -> BackboneRow:
    """The row of the backbone that reads a part, also where that is a module of the user's.

    Examples
    --------
    >>> row_of("module", "image").encoding
    'own'
    """
    return _OWN_ROWS[part] if name == OWN else backbone_row(name)


def part_of(name: str) -> str:
    """The part of a row that a backbone reads: "table", "text" or "image".

    Examples
    --------
    >>> [part_of(name) for name in ("mlp", "lstm", "hf:some/model", "timm:resnet34")]
    ['table', 'text', 'text', 'image']
    """
    return backbone_row(name).kind


def pace_of(name: str, part: str, options: Mapping[str, Any]) -> Pace:
    """How the backbone of a part is trained with these options, also one of the user's own."""
    return row_of(name, part).pace_with(options)


def option_space(name: str) -> Space:
    """What of a backbone's options is worth searching; nothing of one of the user's own.

    Examples
    --------
    >>> sorted(option_space("lstm"))
    ['dropout', 'hidden']
    """
    return {} if name == OWN else backbone_row(name).space


def choose_backbones(asked: Names | None, parts: tuple[str, ...]) -> dict[str, str]:
    """A backbone for each part that the rows have: the one asked for, or its default.

    Examples
    --------
    >>> choose_backbones("hf:folder", ("table", "text"))
    {'table': 'mlp', 'text': 'hf:folder'}
    >>> choose_backbones(None, ("image",))
    {'image': 'resnet'}
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
    """Options of each part's backbone; those without a part belong to the one that was named.

    Where rows have one part only, nothing else can be meant.

    Examples
    --------
    >>> options_by_part({"hidden": 64}, "lstm", ("table", "text"))
    {'table': {}, 'text': {'hidden': 64}}
    >>> options_by_part({"hidden": (64,)}, None, ("table",))
    {'table': {'hidden': (64,)}}
    """
    if options and set(options) <= set(PARTS):
        return {part: dict(options.get(part) or {}) for part in parts}
    if len(parts) == 1:
        return {parts[0]: dict(options)}
    if options and not isinstance(asked, str):
        raise ValueError(
            f"backbone_options must say which part each belongs to, as in "
            f"{{'text': {{'hidden': 64}}}}; got {', '.join(options)}"
        )
    named = part_of(asked) if isinstance(asked, str) else ""
    return {part: dict(options) if part == named else {} for part in parts}


def make_backbone(
    name: str,
    sizes: Mapping[str, Any],
    options: Mapping[str, Any],
    origin: Origin | None = None,
) -> "nn.Module":
    """A backbone by its name.

    Parameters
    ----------
    name : str
    sizes : mapping
        What the inputs say of themselves: of a table `num_features` and `num_scaled`, of texts
        `num_tokens`, of images `mean` and `std`.
    options : mapping
    origin : Origin, optional
        Of a family; its name is taken from `name`.

    Examples
    --------
    >>> import torch
    >>> network = make_backbone("mlp", {"num_features": 10, "num_scaled": 10}, {"hidden": (64,)})
    >>> network(torch.zeros(2, 10)).shape
    torch.Size([2, 64])
    """
    row = backbone_row(name)
    module, _, attribute = row.builder.partition(":")
    build = getattr(import_module(module), attribute)
    given = dict(sizes)
    if row.is_family:
        given["origin"] = replace(origin or Origin(), name=row.source(name))
    try:
        made: nn.Module = build(**given, **options)
    except TypeError as error:
        raise ValueError(f"backbone {name!r} does not take these options: {error}") from None
    return made
