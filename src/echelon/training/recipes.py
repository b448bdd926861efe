"""Recipes: named sets of training choices, resolved for a method and a number of rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any, Literal

RECIPES = ("default", "paper")
_MAPPINGS = ("backbone_options", "method_options", "text_options", "image_options")


@dataclass(frozen=True)
class Settings:
    """Every choice of a fit beyond the method and the data.

    `backbone` is a name, or a name for each part of rows that hold texts or images too; then
    `backbone_options` has options for each part. `text_options` say how texts become token ids,
    `image_options` how images become pixels, `method_options` go to the method. `metric` chooses
    the best epoch on the validation part. `batches` is ``"shuffled"``, or ``"published"`` for the
    fixed class-balanced order of the CORN paper's code. With `refit`, the held-out rows only choose
    the number of epochs, and the network is then trained anew on all rows for that many. `average`
    is the share that a running mean of the weights keeps at every step; it is what is validated
    and what remains. 0 is the weights themselves. `warm_up` is the share of the steps in which
    a cosine schedule rises. `decay_thresholds` says whether weight decay reaches the thresholds of
    a head: AdamW keeps a decayed number below 1 / `weight_decay`, which CORAL's biases must pass.
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
    scaling: Literal["quantile", "standard", "none"]
    decision: str
    backbone: str | Mapping[str, str]
    backbone_options: Mapping[str, Any] = field(default_factory=dict)
    text_options: Mapping[str, Any] = field(default_factory=dict)
    image_options: Mapping[str, Any] = field(default_factory=dict)
    method_options: Mapping[str, Any] = field(default_factory=dict)
    precision: str = "32-true"
    refit: bool = False
    average: float = 0.0
    warm_up: float = 0.05
    decay_thresholds: bool = False


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

# The published runs on text and images: learning rate and batch size.
_PAPER_MEDIA: Mapping[str, Mapping[str, tuple[float, int]]] = {
    "text": {"ce": (1e-4, 64), "ornn": (5e-3, 32), "coral": (5e-3, 32), "corn": (1e-3, 16)},
    "image": {"ce": (5e-4, 256), "ornn": (5e-4, 256), "coral": (5e-4, 256), "corn": (5e-4, 16)},
}
_PAPER_LSTM: Mapping[str, Any] = {
    "embedding": 128, "hidden": 256, "pooling": "last", "dropout": 0.0, "word_dropout": 0.0,
}  # fmt: skip


@dataclass(frozen=True)
class _Pace:
    """How a network that reads texts or images is trained."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    min_steps: int = 600  # few rows need more passes


_PACES: Mapping[str, _Pace] = {  # see docs/log.md
    "lstm": _Pace(8, 32, 2e-3, 0.01),
    "hf": _Pace(2, 32, 1e-3, 0.01, min_steps=200),  # in more it forgets what it knew
    "frozen": _Pace(20, 64, 2e-3, 0.01),
    "resnet": _Pace(20, 64, 4e-3, 0.05),
    "timm": _Pace(20, 32, 1e-3, 0.05),
}

# Rows below which those held out are missed, so that the network is refitted; see docs/log.md.
_REFIT_BELOW = 10_000
_BOLD_WARM_UP = 20  # steps
_MOST_EPOCHS = 1_000_000
_MIN_STEPS = 2000  # small tables need more passes to see as many batches


def make_settings(
    recipe: str,
    method: str,
    backbone: str | Mapping[str, str] | None,
    num_rows: int,
    overrides: Mapping[str, Any],
) -> Settings:
    """The settings of a recipe for a method and a number of training rows.

    Parameters
    ----------
    recipe : {"default", "paper"}
    method : str
    backbone : str, or mapping from part to str, optional
        Without one, the recipe's own for tables.
    num_rows : int
        Rows that are trained on.
    overrides : mapping
        Fields of :class:`Settings`; those that are None are left to the recipe.
    """
    if recipe not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(map(repr, RECIPES))}; got {recipe!r}")
    given = {name: value for name, value in overrides.items() if value is not None}
    unknown = set(given) - {one.name for one in fields(Settings)}
    if unknown:
        known = ", ".join(one.name for one in fields(Settings))
        raise ValueError(f"there is no setting {min(unknown)!r}; there are: {known}")
    if "batch_size" in given:  # which the recipes count with
        _require_whole("batch_size", given["batch_size"])
    if isinstance(backbone, Mapping):
        settings = media_settings(recipe, method, backbone, num_rows, given)
    elif recipe == "default":
        settings = _default(backbone or "mlp", num_rows, given.get("batch_size"))
    else:
        settings = _paper(method, backbone or "paper")
    for name in _MAPPINGS:  # what is not given stays the recipe's
        if name in given:
            if not isinstance(given[name], Mapping):
                raise ValueError(
                    f"{name} must be a mapping from name to value; got {given[name]!r}"
                )
            given[name] = _merged(getattr(settings, name), given[name])
    return _checked(replace(settings, **given))


def _merged(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The one with the other over it, also inside those of its values that are mappings."""
    merged = {**base, **given}
    for name, value in given.items():
        if isinstance(value, Mapping) and isinstance(base.get(name), Mapping):
            merged[name] = _merged(base[name], value)
    return merged


def _default(backbone: str, num_rows: int, batch_size: int | None) -> Settings:
    if batch_size is None:
        batch_size = min(256, max(16, 2 ** round(math.log2(max(num_rows, 1) / 20))))
    steps_per_epoch = max(1, math.ceil(num_rows / batch_size))
    # With many rows, large steps whose weights are averaged get to the same place far sooner.
    is_bold = backbone == "mlp" and num_rows >= _REFIT_BELOW
    rates = {"linear": 2e-2, "mlp": 1.2e-2 if is_bold else 4e-3}
    # An ensemble averages its own noise away and needs less decay.
    decay = {"linear": 0.0, "tabm": 0.1}.get(backbone, 0.3)
    max_epochs = min(200, max(16, math.ceil(_MIN_STEPS / steps_per_epoch)))
    return Settings(
        max_epochs=max_epochs,
        batch_size=batch_size,
        learning_rate=rates.get(backbone, 4e-3),
        weight_decay=decay,
        metric="ranked_probability_score",
        patience=None,
        clip_norm=1.0,
        schedule="cosine",
        batches="shuffled",
        drop_last=False,
        scaling="quantile",
        decision="median",
        backbone=backbone,
        refit=num_rows < _REFIT_BELOW,
        average=0.98 if is_bold else 0.0,
        warm_up=_BOLD_WARM_UP / (max_epochs * steps_per_epoch) if is_bold else 0.05,
    )


def _paper(method: str, backbone: str) -> Settings:
    like = "corn" if method == "corn_without_subsets" else method
    learning_rate, batch_size, hidden = _PAPER_BEST.get(like, _PAPER_BEST["ce"])
    normaliser = _PAPER_NORMALISER.get(method)
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
        scaling="none",  # the published code feeds the features as they are
        decay_thresholds=True,
        # The published code decodes softmax methods by argmax and the binary ones by the count.
        decision="median" if normaliser else "mode",
        backbone=backbone,
        backbone_options={"hidden": hidden} if backbone == "paper" else {},
        method_options={"normaliser": normaliser} if normaliser else {},
    )


def media_settings(
    recipe: str,
    method: str,
    backbone: Mapping[str, str],
    num_rows: int,
    given: Mapping[str, Any],
) -> Settings:
    """The settings of a recipe for rows that hold texts or images."""
    kind = _leading(backbone, given.get("backbone_options") or {})
    pace = _PACES[kind]
    base = _default("mlp", num_rows, given.get("batch_size", pace.batch_size))
    steps = max(1, math.ceil(num_rows / base.batch_size))
    epochs = min(100, max(pace.epochs, math.ceil(pace.min_steps / steps)))
    settings = replace(
        base,
        max_epochs=epochs,
        learning_rate=pace.learning_rate,
        weight_decay=pace.weight_decay,
        backbone=dict(backbone),
        refit=False,  # twice the time is too much for what it brings here
        average=0.0,
        warm_up=0.1,
    )
    if recipe == "default":
        return settings
    rate, batch_size = _PAPER_MEDIA["image" if kind in ("resnet", "timm") else "text"][
        method if method in _PAPER_BEST else "corn"
    ]
    return replace(
        settings,
        max_epochs=200,
        batch_size=batch_size,
        learning_rate=rate,
        weight_decay=0.0,
        metric="rmse",
        clip_norm=None,
        schedule="constant",
        drop_last=kind in ("resnet", "timm"),  # as the published loaders of images
        decision="median" if method in _PAPER_NORMALISER else "mode",
        backbone_options={"text": _PAPER_LSTM} if kind == "lstm" else {},
        image_options={"preprocessing": "paper"} if kind == "timm" else {},
    )


def _leading(backbone: Mapping[str, str], options: Mapping[str, Any]) -> str:
    """The part that decides how to train: what is hardest to fit."""
    image, text = backbone.get("image", ""), backbone.get("text", "")
    if image:
        return "timm" if image.startswith("timm:") else "resnet"
    if text == "lstm":
        return "lstm"
    return "frozen" if (options.get("text") or {}).get("frozen") else "hf"


def _require_whole(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}")


def _checked(settings: Settings) -> Settings:
    for name, most in (("max_epochs", _MOST_EPOCHS), ("batch_size", None)):
        value = getattr(settings, name)
        _require_whole(name, value)
        if most is not None and value > most:
            raise ValueError(f"{name} must be at most {most:,}; got {value}")
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
        ("scaling", ("quantile", "standard", "none")),
    ):
        if getattr(settings, name) not in known:
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, known))}; got "
                f"{getattr(settings, name)!r}"
            )
    return settings
