"""The statistics of a fit as values of JSON and tensors, and back without trusting them."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from echelon.models.cumulative import CumulativeFit
from echelon.models.document import Described, typed
from echelon.models.effects import Change, Effects
from echelon.models.estimates import Estimates
from echelon.models.links import Array
from echelon.models.partial import PartialFit
from echelon.models.statistics import ERRORS, WEIGHTS, Statistics


def describe_statistics(statistics: Statistics) -> Described:
    """As values of JSON and tensors."""
    document = {
        name: getattr(statistics, name)
        for name in (
            "rows", "dropped", "groups", "weights", "log_likelihood", "null_log_likelihood",
            "iterations", "crossed", "converged", "separated", "aliased", "tests",
        )
    }  # fmt: skip
    tensors = {"counts": torch.from_numpy(statistics.counts)}
    for name, covariance in statistics.estimates.covariances.items():
        if name != "observed":  # which the fit has
            tensors[f"covariance.{name}"] = torch.from_numpy(covariance)
    if statistics.effects is not None:
        document["changes"] = [list(change) for change in statistics.effects.changes]
        tensors["effects"] = torch.from_numpy(statistics.effects.estimates)
        tensors["gradients"] = torch.from_numpy(statistics.effects.gradients)
    return Described(document, tensors)


def rebuild_statistics(described: Described, fit: CumulativeFit | PartialFit) -> Statistics:
    """What a file describes, which is not trusted."""
    document, tensors = dict(described.document), dict(described.tensors)
    num_features, num_classes = len(fit.centre), fit.num_classes
    estimates = Estimates.of(fit)
    size = len(estimates.theta)
    covariances = dict(estimates.covariances)
    for kind in ERRORS[1:]:
        if f"covariance.{kind}" in tensors:
            tensor = tensors.pop(f"covariance.{kind}")
            covariances[kind] = _array(tensor, (size, size), kind, gaps=True)
    if document["weights"] not in WEIGHTS:
        raise ValueError("its statistics do not say what weights mean")
    effects = None
    if "effects" in tensors:
        changes = tuple(
            Change(typed(column, str, "column"), typed(words, str, "change"))
            for column, words in typed(document.pop("changes"), list, "changes")
        )
        shape = len(changes), num_classes
        effects = Effects(
            changes,
            _array(tensors.pop("effects"), shape, "effects"),
            _array(tensors.pop("gradients"), (*shape, size), "gradients"),
        )
    counts = _array(tensors.pop("counts"), (num_classes,), "counts")
    if tensors:
        raise ValueError("its statistics have tensors that have no place")
    groups = document["groups"]
    return Statistics(
        replace(estimates, covariances=covariances),
        counts,
        **{
            name: typed(document[name], kind, name)
            for name, kind in (
                ("rows", int), ("dropped", int), ("weights", str), ("log_likelihood", float),
                ("null_log_likelihood", float), ("iterations", int), ("crossed", int),
                ("converged", bool), ("separated", bool),
            )
        },
        groups=None if groups is None else typed(groups, int, "groups"),
        aliased=_places(document["aliased"], num_features),
        free=getattr(fit, "free", ()),
        tests=_checked_tests(document["tests"]),
        effects=effects,
    )  # fmt: skip


def _places(listed: Any, size: int) -> tuple[int, ...]:
    places = tuple(typed(place, int, "feature") for place in typed(list(listed), list, "features"))
    if any(not 0 <= place < size for place in places):
        raise ValueError("its statistics are of features that it has not")
    return places


def _array(tensor: Tensor, shape: tuple[int, ...], name: str, gaps: bool = False) -> Array:
    sound = gaps or bool(tensor.isfinite().all())
    if tensor.dtype != torch.float64 or tuple(tensor.shape) != shape or not sound:
        raise ValueError(f"its {name} must be numbers of the shape {shape}")
    array: Array = tensor.numpy()
    return array


def _checked_tests(document: Any) -> dict[str, Any] | None:
    if document is None:
        return None
    for test in typed(document, dict, "tests").values():
        terms = typed(typed(test, dict, "test")["terms"], dict, "terms")
        typed(test["note"], str, "note")
        for row in (*terms.values(), *([] if test["overall"] is None else [test["overall"]])):
            values = {key: typed(row, dict, "test")[key] for key in ("statistic", "p_value")}
            typed(row["degrees"], int, "degrees")
            if any(not (value is None or type(value) is float) for value in values.values()):
                raise ValueError("its tests must be numbers")
    checked: dict[str, Any] = document
    return checked
