"""Who competes: a METHOD, a METHOD/BACKBONE or a MODEL, with options after colons.

The names of methods and models are disjoint, so that one word says which it is. What a run writes
down of a contestant are its parameters; those of a model other than the network name it under
``"model"``.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from echelon.methods import METHODS
from echelon.models.table import MODELS, model_class

MOST_SEEDS = 10_000
NETWORK = "network"
_MODEL = "model"
# Parameters that whoever makes several fits sets for each, or that belong to one fit alone.
_OF_A_FIT = ("classes", "random_state", "checkpoint_dir", "verbose")


def contestant_parameters(spec: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a contestant, with those that all share.

    Examples
    --------
    >>> contestant_parameters("corn_without_subsets:mask=published", {})
    {'method': 'corn_without_subsets', 'method_options': {'mask': 'published'}}
    >>> contestant_parameters("corn/tabm", {"recipe": "default"})
    {'recipe': 'default', 'method': 'corn', 'backbone': 'tabm'}
    >>> contestant_parameters("cumulative_link:link=probit", {"recipe": "default"})
    {'model': 'cumulative_link', 'link': 'probit'}
    >>> contestant_parameters("network:settings.patience=4", {})
    {'model': 'network', 'settings': {'patience': 4}}
    """
    name, *given = spec.split(":")
    name, slash, backbone = name.partition("/")
    if name in METHODS:
        chosen = {**parameters, "method": name}
        if slash:
            chosen["backbone"] = backbone
        options = dict(parameters.get("method_options") or {})
        options |= _options(name, given, METHODS[name].options)
        return {**chosen, "method_options": options} if options else chosen
    made = model_class(name)
    known = made().get_params(deep=False)
    # Mappings that all share are those of the network, such as its `settings`.
    others = () if MODELS[name].has_method else made.nested
    shared = {k: value for k, value in parameters.items() if k in known and k not in others}
    return with_values({_MODEL: name, **shared}, _options(name, given, known, made.nested))


def model_parameters(model: Any) -> dict[str, Any]:
    """The parameters of a model by its name or as an object, as contestants of comparisons have it.

    Examples
    --------
    >>> model_parameters("boosting:leaves=31")
    {'model': 'boosting', 'leaves': 31}
    """
    if isinstance(model, str):
        name = model.partition(":")[0]
        if name in MODELS and not MODELS[name].is_named:
            named = ", ".join(row.name for row in MODELS.values() if row.is_named)
            raise ValueError(
                f"model must be one that a name is enough for; got {name!r}: take one of {named}"
            )
        return contestant_parameters(model, {})
    if getattr(model, "kind", None) not in MODELS or isinstance(model, type):
        raise ValueError(
            f"model must be a name such as 'boosting', or an unfitted model of echelon such as "
            f"OrdinalBoosting(); got {model!r:.80}"
        )
    default = type(model)().get_params(deep=False)
    given = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in _OF_A_FIT and value is not default[name]
    }
    changed: dict[str, Any] = {_MODEL: model.kind}
    for name, value in given.items():
        try:
            changed[name] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            raise ValueError(
                f"the parameter {name} must be made of texts, numbers, lists and mappings, so that "
                f"a trial can be written down; got {value!r:.80}: leave it out, or search with the "
                f"tools of scikit-learn"
            ) from None
    return changed


def contestant_spec(parameters: Mapping[str, Any]) -> str:
    """Parameters of a contestant as the command line names it, in one word.

    Examples
    --------
    >>> contestant_spec({"model": "boosting", "leaves": 31, "settings": {"l2": 0.5}})
    'boosting:leaves=31:settings.l2=0.5'
    >>> contestant_parameters(_, {})
    {'model': 'boosting', 'leaves': 31, 'settings': {'l2': 0.5}}
    """
    words = [model_of(parameters)]

    def add(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                add(f"{name}.{key}", inner)
        elif isinstance(value, (list, tuple)):
            words.append(f"{name}={json.dumps(value, separators=(',', ':'))}")
        elif value is not None:
            words.append(f"{name}={value}")

    for name, value in parameters.items():
        if name != _MODEL:
            add(name, value)
    return ":".join(words)


def with_values(parameters: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with chosen values over them; a dot goes into one that is a mapping.

    Examples
    --------
    >>> with_values({"settings": {"patience": 3}}, {"settings.max_epochs": 9, "device": "cpu"})
    {'settings': {'patience': 3, 'max_epochs': 9}, 'device': 'cpu'}
    """
    result = dict(parameters)
    for name, value in chosen.items():
        first, _, rest = name.partition(".")
        if rest:
            inner = result.get(first) or {}
            if not isinstance(inner, Mapping):
                raise ValueError(
                    f"{name} goes into {first}, which must be a mapping; got {inner!r}"
                )
            value = with_values(inner, {rest: value})
        result[first] = value
    return result


def make_model(parameters: Mapping[str, Any], **more: Any) -> Any:
    """The unfitted model that parameters of a contestant describe.

    Examples
    --------
    >>> type(make_model({"model": "cumulative_link"})).__name__
    'CumulativeLinkModel'
    """
    options = {key: value for key, value in parameters.items() if key != _MODEL}
    return model_class(parameters.get(_MODEL, NETWORK))(**options, **more)


def model_of(parameters: Mapping[str, Any]) -> str:
    """The name of the model that parameters of a contestant describe."""
    return str(parameters.get(_MODEL, NETWORK))


def check_contestants(specs: Sequence[str], seeds: int) -> None:
    """Raise for contestants that are not there, or no seeds, before anything is run."""
    models = [name for name, row in MODELS.items() if row.is_named and not row.has_method]
    unknown = [
        spec
        for spec in specs
        if spec.partition(":")[0].partition("/")[0] not in METHODS
        and spec.partition(":")[0] not in models
    ]
    if unknown or not specs:
        raise ValueError(
            f"methods must be of {', '.join((*METHODS, *models))}, a method also with its backbone "
            f"as in corn/tabm; got {', '.join(unknown) if unknown else 'none'}"
        )
    for spec in specs:
        contestant_parameters(spec, {})
    if not 1 <= seeds <= MOST_SEEDS:
        raise ValueError(f"seeds must be at least 1 and at most {MOST_SEEDS:,}; got {seeds}")


def _options(
    name: str, given: Sequence[str], known: Mapping[str, Any], nested: Sequence[str] = ()
) -> dict[str, Any]:
    options = {}
    for each in given:
        option, equals, value = each.partition("=")
        first, dot, _ = option.partition(".")
        if not equals or first not in known or bool(dot) != (first in nested):
            listed = (
                ", ".join(f"{choice}.NAME" if choice in nested else choice for choice in known)
                or "none"
            )
            raise ValueError(f"{name} has no option {each!r}; its options are: {listed}")
        options[option] = _typed(value)
    return options


def _typed(value: str) -> Any:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    if value.startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return {"true": True, "false": False}.get(value.lower(), value)
