"""Recipes: named sets of training choices, resolved for a method and a number of rows."""

import difflib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, Literal

import numpy as np
from torch import nn

from echelon.evaluation import metrics
from echelon.methods import METHODS
from echelon.networks.spec import NetworkSpec
from echelon.networks.table import (
    DEFAULTS,
    FEW_ROWS,
    OWN,
    PARTS,
    Names,
    Pace,
    backbone_row,
    choose_backbones,
    options_by_part,
    pace_of,
    part_of,
)

RECIPES = ("default", "paper")
_OF_TABLES: Mapping[str, str] = {"default": DEFAULTS["table"], "paper": "paper"}
_OF_FEW_ROWS = "tabm"
# Of such ensembles, several smaller ones: what each makes of the few rows that choose its epoch is
# luck, and a mean has less of it; see docs/log.md.
_FEW_ROWS_HIDDEN = (192, 192)
_FEW_ROWS_NETWORKS = 3


@dataclass(frozen=True)
class Settings:
    """Every choice of training; what is trained is said by a :class:`NetworkSpec`.

    These are the keys of ``OrdinalClassifier(settings={...})``, but for `decision`, which is a
    parameter of its own, and with two of the network beside them: `scaling`, which says how the
    numbers of a table are scaled (``"quantile"``, ``"standard"`` or ``"none"``), and `networks`,
    how many of them are trained, each with first weights, batches and an epoch of its own, to
    average their curves. The recipe chooses what is not given, and what is None.

    Parameters
    ----------
    max_epochs : int
        Passes over the training rows; the best of them on the validation rows remains.
    batch_size : int
        Rows in a step.
    learning_rate : float
        The largest one of the schedule.
    weight_decay : float
        The weight decay of AdamW; see `decay_thresholds`.
    metric : str
        One of ``echelon.evaluation.metrics.METRICS``, which chooses the best epoch.
    patience : int, optional
        Epochs without a better one after which the training ends; None for no such end.
    clip_norm : float, optional
        The largest norm of the gradient; None for any.
    schedule : {"cosine", "constant"}
        What becomes of the learning rate.
    batches : {"shuffled", "published"}
        Whether the rows are drawn anew in every epoch, or come in the fixed class-balanced order
        of the CORN paper's code.
    drop_last : bool
        Whether an epoch leaves out the rows that fill no batch.
    decision : str
        The decision of the recipe, for a model that has none of its own.
    precision : str
        As in lightning-fabric, such as ``"bf16-mixed"``.
    refit : bool
        Whether the held-out rows only choose the number of epochs, and the network is then trained
        anew on all rows for that many.
    average : float
        The share that a running mean of the weights keeps at every step; the mean is what is
        validated and what remains. 0 is the weights themselves.
    warm_up : float
        The share of the steps in which a cosine schedule rises.
    decay_thresholds : bool
        Whether weight decay reaches the thresholds of a head: AdamW keeps a decayed number below
        1 / `weight_decay`, which CORAL's biases must pass.
    even_start : bool
        Whether the head starts where all ranks are equally likely, whatever the method; without it
        the biases of a linear head start around 0. Where steps are few and ranks many, as with
        images, CORN's biases do not get from there to where they must be.
    """

    max_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    metric: str
    patience: int | None
    clip_norm: float | None
    schedule: Literal["cosine", "constant"]
    batches: Literal["shuffled", "published"]
    drop_last: bool
    decision: str
    precision: str = "32-true"
    refit: bool = False
    average: float = 0.0
    warm_up: float = 0.05
    decay_thresholds: bool = False
    even_start: bool = False


# What `settings=` may name: every choice of training that is no parameter of the model itself, how
# numbers are scaled, and how many networks there are.
SETTING_NAMES: tuple[str, ...] = (
    *(field.name for field in fields(Settings) if field.name != "decision"),
    "scaling",
    "networks",
)

# Table 2 of the CORN paper: learning rate, batch size and hidden layers for Fireman.
_PAPER_BEST: Mapping[str, tuple[float, int, tuple[int, int]]] = {
    "ce": (5e-4, 64, (300, 200)),
    "ornn": (5e-4, 128, (300, 300)),
    "coral": (5e-4, 64, (300, 200)),
    "corn": (1e-3, 128, (300, 300)),
}
_PAPER_NORMALISER = {
    "ornn": "rows",
    "coral": "rows",
    "corn": "per_task",
    "corn_without_subsets": "per_task",
}

# The published runs on texts and images, by the backbone that they are of: learning rate and batch
# size of each method, and whether the last batch was dropped. Others of its kind are trained alike.
_PAPER_RUNS: Mapping[str, tuple[Mapping[str, tuple[float, int]], bool]] = {
    "lstm": (
        {"ce": (1e-4, 64), "ornn": (5e-3, 32), "coral": (5e-3, 32), "corn": (1e-3, 16)},
        False,
    ),
    "timm:": (
        {"ce": (5e-4, 256), "ornn": (5e-4, 256), "coral": (5e-4, 256), "corn": (5e-4, 16)},
        True,
    ),
}
# What the published networks are, by the beginning of the backbone's name: torchvision's ResNet,
# whose last norms do not start at 0, and its VGG, which drops half of its last two layers.
_PAPER_NETWORKS: Mapping[str, Mapping[str, Any]] = {
    "lstm": {
        "embedding": 128, "hidden": 256, "pooling": "last", "dropout": 0.0, "word_dropout": 0.0,
    },
    "timm:resnet": {"zero_init_last": False},
    "timm:vgg": {"drop_rate": 0.5},
}  # fmt: skip
# The published image and text code divides by all active pairs for CORN, and by rows for the rest.
_PAPER_MEDIA_NORMALISER = {"ornn": "rows", "coral": "rows"}


# Rows below which those held out are missed, so that the network is refitted; see docs/log.md.
_REFIT_BELOW = 10_000
_BOLD_WARM_UP = 20  # steps
_PATIENCE = 16  # epochs: a small table would train a hundred more and keep none of them
_MOST_EPOCHS = 1_000_000


def require_recipe(recipe: str) -> None:
    """Raise where there is no such recipe."""
    if recipe not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(map(repr, RECIPES))}; got {recipe!r}")


def require_settings(
    given: Mapping[str, Any] | None, parameters: Collection[str] = ()
) -> dict[str, Any]:
    """What `settings=` says, as a dict; raise where it names what is no setting.

    `parameters` are those of the model, which one may look for here.

    Examples
    --------
    >>> require_settings({"max_epochs": 10})
    {'max_epochs': 10}
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(
            f"settings must be a mapping from name to value, such as {{'max_epochs': 10}}; got "
            f"{given!r}"
        )
    for name in given:
        if name in parameters:
            raise ValueError(
                f"settings must be of {', '.join(SETTING_NAMES)}; got {name!r}, which is a "
                f"parameter of its own: write {name}=..., not settings={{{name!r}: ...}}"
            )
    _require_names(given, SETTING_NAMES)
    return dict(given)


def _require_names(given: Collection[str], known: Collection[str]) -> None:
    unknown = sorted(map(str, set(given) - set(known)))
    if unknown:
        close = difflib.get_close_matches(unknown[0], known, n=2)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "leave it out"
        raise ValueError(
            f"there is no setting {unknown[0]!r}; there are: {', '.join(known)}: {hint}"
        )


# ---- what is trained -----------------------------------------------------------------------------


def make_spec(
    recipe: str,
    method: str,
    backbone: Names | nn.Module | None,
    parts: tuple[str, ...],
    overrides: Mapping[str, Any],
    num_rows: int | None = None,
) -> NetworkSpec:
    """The network of a recipe for a method and the parts that rows have.

    Parameters
    ----------
    recipe : {"default", "paper"}
        The name of the recipe.
    method : str
    backbone : str, mapping from part to str, or nn.Module, optional
        A module reads rows of one part, whatever that is. Without one, the recipe's own for tables
        (of the default recipe up to 5,000 rows three of ``"tabm"`` with two hidden layers, and
        ``"mlp"`` above, with options of backbones, and for methods that compare the rows of a
        batch), and the default of every other part.
    parts : tuple of str
        Some of "table", "text" and "image".
    overrides : mapping
        Any of `backbone_options`, `method_options`, `inputs` (options by kind), `scaling` and
        `networks`; those that are None are left to the recipe.
    num_rows : int, optional
        Of the training rows, where they are known.

    Examples
    --------
    >>> make_spec("default", "corn", None, ("table",), {}, num_rows=1000).backbones
    {'table': 'tabm'}
    >>> make_spec("paper", "corn", None, ("table",), {}).backbone_options
    {'table': {'hidden': (300, 300)}}
    """
    require_recipe(recipe)
    asked: Names | None
    is_small = False
    if isinstance(backbone, nn.Module):
        if len(parts) != 1:
            raise ValueError(
                f"a backbone of your own reads one kind of input, and these rows have "
                f"{' and '.join(parts)}: leave out the other columns, or name the backbones"
            )
        asked, backbones = None, {parts[0]: OWN}
    else:
        asked = backbone
        if asked is None and parts == ("table",):
            asked = _OF_TABLES[recipe]
            if (
                recipe == "default"
                and num_rows is not None
                and num_rows <= FEW_ROWS
                and not overrides.get("backbone_options")
                and not couples_rows(method)
            ):
                asked, is_small = _OF_FEW_ROWS, True
        backbones = choose_backbones(asked, parts)
        _refuse_coupled_members(method, backbones)
    spec = NetworkSpec(method, backbones)
    if is_small:
        hidden = {"table": {"hidden": _FEW_ROWS_HIDDEN}}
        spec = replace(spec, backbone_options=hidden, networks=_FEW_ROWS_NETWORKS)
    if recipe == "paper":
        spec = _paper_spec(spec)
    given = {name: value for name, value in overrides.items() if value is not None}
    for name in given:
        if name.endswith("_options") and not isinstance(given[name], Mapping):
            raise ValueError(f"{name} must be a mapping from name to value; got {given[name]!r}")
    # What is not given stays the recipe's.
    by_part = options_by_part(given.get("backbone_options", {}), asked, parts)
    return replace(
        spec,
        backbone_options=_merged(spec.backbone_options, by_part),
        method_options=_merged(spec.method_options, given.get("method_options", {})),
        input_options=_merged(spec.input_options, given.get("inputs", {})),
        scaling=given.get("scaling", spec.scaling),
        networks=given.get("networks", spec.networks),
    )


def couples_rows(method: str) -> bool:
    """Whether a method compares the rows of a batch, so that it takes no ensembles.

    Examples
    --------
    >>> couples_rows("cnnpor"), couples_rows("corn")
    (True, False)
    """
    return method in METHODS and METHODS[method].couples_rows


def _refuse_coupled_members(method: str, backbones: Mapping[str, str]) -> None:
    """Raise where a method compares the rows of a batch and a backbone gives several of each."""
    if not couples_rows(method):
        return
    for name in backbones.values():
        if backbone_row(name).is_ensemble:
            raise ValueError(
                f"{method} couples the rows of a batch, so it needs a network that gives each row "
                f"one result; got the ensemble {name!r}: choose another backbone or another method"
            )


def _paper_spec(spec: NetworkSpec) -> NetworkSpec:
    part, name = _leading(spec)
    if part == "table":
        normaliser = _PAPER_NORMALISER.get(spec.method)
        return replace(
            spec,
            scaling="none",  # the published code feeds the features as they are
            backbone_options={part: {"hidden": _paper_best(spec.method)[2]}}
            if name == "paper"
            else {},
            method_options={"normaliser": normaliser} if normaliser else {},
        )
    network = next((o for start, o in _PAPER_NETWORKS.items() if name.startswith(start)), None)
    normaliser = _PAPER_MEDIA_NORMALISER.get(spec.method)
    return replace(
        spec,
        backbone_options={} if network is None else {part: network},
        method_options={"normaliser": normaliser} if normaliser else {},
        input_options={part: {"preprocessing": "paper"}} if name.startswith("timm:") else {},
    )


def _leading(spec: NetworkSpec) -> tuple[str, str]:
    """The part that decides how to train, which is what is hardest to fit, and its backbone."""
    part = max(spec.backbones, key=PARTS.index)
    return part, spec.backbones[part]


def _merged(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The one with the other over it, also inside those of its values that are mappings."""
    merged = {**base, **given}
    for name, value in given.items():
        if isinstance(value, Mapping) and isinstance(base.get(name), Mapping):
            merged[name] = _merged(base[name], value)
    return merged


# ---- how it is trained ---------------------------------------------------------------------------


def make_settings(
    recipe: str, spec: NetworkSpec, num_rows: int, overrides: Mapping[str, Any]
) -> Settings:
    """The settings of a recipe for a network and a number of training rows.

    Parameters
    ----------
    recipe : {"default", "paper"}
        The name of the recipe.
    spec : NetworkSpec
        The network that is trained.
    num_rows : int
        The number of rows that are trained on.
    overrides : mapping
        Fields of :class:`Settings`; those that are None are left to the recipe.
    """
    require_recipe(recipe)
    given = {name: _plain(value) for name, value in overrides.items() if value is not None}
    _require_names(given, [field.name for field in fields(Settings)])
    if "batch_size" in given:  # which the recipes count with
        _require_whole("batch_size", given["batch_size"])
    part, name = _leading(spec)
    pace = pace_of(name, part, spec.options_of(part))
    settings = _default(pace, num_rows, given.get("batch_size"))
    if recipe == "paper":
        settings = _paper(spec.method) if part == "table" else _paper_media(settings, spec, part)
    return _checked(replace(settings, **given))


def _default(pace: Pace, num_rows: int, batch_size: int | None) -> Settings:
    batch_size = batch_size or pace.batch_size
    if batch_size is None:
        batch_size = min(256, max(16, 2 ** round(math.log2(max(num_rows, 1) / 20))))
    steps_per_epoch = max(1, math.ceil(num_rows / batch_size))
    needed = math.ceil(pace.min_steps / steps_per_epoch)
    # With many rows, large steps whose weights are averaged get to the same place far sooner.
    is_bold = pace.bold_rate is not None and num_rows >= _REFIT_BELOW
    if pace.epochs is None:
        max_epochs = min(200, max(16, needed))
        warm_up = _BOLD_WARM_UP / (max_epochs * steps_per_epoch) if is_bold else 0.05
    else:
        max_epochs, warm_up = min(100, max(pace.epochs, needed)), 0.1
    return Settings(
        max_epochs=max_epochs,
        batch_size=batch_size,
        learning_rate=pace.bold_rate if is_bold and pace.bold_rate else pace.learning_rate,
        weight_decay=pace.weight_decay,
        metric="ranked_probability_score",
        patience=_PATIENCE,
        clip_norm=1.0,
        schedule="cosine",
        batches="shuffled",
        drop_last=False,
        decision="median",
        # For texts and images, twice the time is too much for what it brings.
        refit=pace.epochs is None and num_rows < _REFIT_BELOW,
        average=0.98 if is_bold else 0.0,
        warm_up=warm_up,
        # Networks on tables take thousands of steps, in which biases get where they must be.
        even_start=pace.epochs is not None,
    )


def _paper_best(method: str) -> tuple[float, int, tuple[int, int]]:
    like = "corn" if method == "corn_without_subsets" else method
    return _PAPER_BEST.get(like, _PAPER_BEST["ce"])


def _paper_decision(method: str) -> str:
    """The published code decodes softmax methods by argmax and the binary ones by the count."""
    return "median" if method in _PAPER_NORMALISER else "mode"


def _paper(method: str) -> Settings:
    learning_rate, batch_size, _ = _paper_best(method)
    return Settings(
        max_epochs=200,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=0.2,
        metric="rmse",
        patience=None,
        clip_norm=None,
        schedule="constant",
        batches="shuffled",
        drop_last=True,
        decision=_paper_decision(method),
        decay_thresholds=True,
    )


def _paper_media(settings: Settings, spec: NetworkSpec, part: str) -> Settings:
    """The published choices for texts or images over the default ones."""
    known = spec.method if spec.method in _PAPER_BEST else "corn"
    runs, drop_last = next(run for name, run in _PAPER_RUNS.items() if part_of(name) == part)
    rate, batch_size = runs[known]
    return replace(
        settings,
        max_epochs=200,
        batch_size=batch_size,
        learning_rate=rate,
        weight_decay=0.0,
        metric="rmse",
        patience=None,
        clip_norm=None,
        schedule="constant",
        drop_last=drop_last,
        decision=_paper_decision(spec.method),
        even_start=False,
    )


def _plain(value: Any) -> Any:
    """A number of numpy's, as grids of settings are made of, as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _require_whole(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}")


def _checked(settings: Settings) -> Settings:
    for name, most in (("max_epochs", _MOST_EPOCHS), ("batch_size", None)):
        value = getattr(settings, name)
        _require_whole(name, value)
        if most is not None and value > most:
            raise ValueError(f"{name} must be at most {most:,}; got {value}")
    metrics.metric(str(settings.metric))  # which refuses an unknown one
    for name in ("learning_rate", "weight_decay", "average", "warm_up", "patience", "clip_norm"):
        value = getattr(settings, name)
        is_left_out = value is None and name in ("patience", "clip_norm")
        if not is_left_out and (isinstance(value, bool) or not isinstance(value, Real)):
            raise ValueError(f"{name} must be a number; got {value!r}")
    for name in ("drop_last", "refit", "decay_thresholds"):
        if not isinstance(getattr(settings, name), bool):
            raise ValueError(f"{name} must be true or false; got {getattr(settings, name)!r}")
    if not 0 < settings.learning_rate < math.inf:
        raise ValueError(f"learning_rate must be greater than 0; got {settings.learning_rate}")
    if not 0 <= settings.weight_decay < math.inf:
        raise ValueError(f"weight_decay must be at least 0; got {settings.weight_decay}")
    if settings.patience is not None and not settings.patience >= 1:
        raise ValueError(f"patience must be at least 1 epoch; got {settings.patience}")
    if settings.clip_norm is not None and not settings.clip_norm > 0:
        raise ValueError(f"clip_norm must be greater than 0; got {settings.clip_norm}")
    for name in ("average", "warm_up"):
        if not 0 <= getattr(settings, name) < 1:
            raise ValueError(
                f"{name} must be at least 0 and below 1; got {getattr(settings, name)}"
            )
    for name, known in (
        ("schedule", ("cosine", "constant")),
        ("batches", ("shuffled", "published")),
    ):
        if getattr(settings, name) not in known:
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, known))}; got "
                f"{getattr(settings, name)!r}"
            )
    return settings
