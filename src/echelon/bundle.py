"""Saved models: one safetensors file with a JSON document, opened without running any code.

Invariant: a file is written wholly or not at all, and read wholly and checked before anything is
made of it. What it says is data: names are looked up in tables, every number that leads to an
allocation is held against the tensors of the file, and a checksum over everything tells an edited
or damaged file from a whole one. Nothing is fetched, and no other file is opened.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import NoneType
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon._version import __version__
from echelon.backbones.parts import choose_backbones
from echelon.curve import CalibrationMap
from echelon.data.labels import Labels
from echelon.data.tables import KINDS, Column, TableEncoder, TableSchema
from echelon.estimators import OrdinalClassifier
from echelon.methods import method as make_method
from echelon.prediction import ConformalRows, check_decision
from echelon.storage.bundle import read_bundle, sealed
from echelon.storage.regular import NotRegularError
from echelon.training.checkpoints import write_atomically
from echelon.training.network import Calibration, OrdinalNetwork
from echelon.training.preparation import Readers, make_network
from echelon.training.randomness import RandomStream
from echelon.training.rebuilding import rebuild
from echelon.training.recipes import Settings

FORMAT_VERSION = 2
_KEY = "echelon_model"
_CALIBRATION = "calibration."
_CONFORMAL = "conformal."  # before the names of tensors that are not the network's
_MAX_CLASSES = 65_536
# What JSON has for the classes of each kind of array, and the array.
_CLASS_KINDS: Mapping[str, tuple[tuple[type, ...], type]] = {
    "b": ((bool,), bool),
    "i": ((int,), np.int64),
    "u": ((int,), np.uint64),
    "f": ((float, int), np.float64),
    "O": ((str, int, float, bool), object),
}
_PARAMETERS = (
    "method", "backbone", "text", "image", "classes", "recipe", "decision", "max_epochs",
    "batch_size", "learning_rate", "weight_decay", "patience", "metric", "validation_fraction",
    "precision", "method_options", "backbone_options", "text_options", "image_options",
    "on_broken", "settings",
)  # fmt: skip


def save(model: OrdinalClassifier, path: str | Path) -> None:
    """Write a fitted model to a file; see :meth:`OrdinalClassifier.save`."""
    if not isinstance(model.fitted_parameters_["backbone"], (str, Mapping, NoneType)):
        raise ValueError(
            "a model with a backbone of your own cannot be saved, as reading it back would have to "
            "run your code; save `model.network_.state_dict()` yourself, or use a named backbone"
        )
    tensors = {name: value.cpu() for name, value in model.network_.state_dict().items()}
    if model.conformal_ is not None:
        tensors |= {
            f"{_CONFORMAL}{name}": torch.from_numpy(values)
            for name, values in model.conformal_._asdict().items()
        }
    # JSON knows neither paths nor the numbers of numpy, which options may hold.
    document = json.loads(json.dumps(_describe(model), default=_plain))
    write_atomically(Path(path), tensors, _KEY, sealed(tensors, document))


def _describe(model: OrdinalClassifier) -> dict[str, Any]:
    encoder = model.network_.encoder
    # What was fitted, whatever was set since; but a decision is taken after the fit.
    check_decision(model.decision, model.labels_.num_classes)
    parameters = {name: model.fitted_parameters_[name] for name in _PARAMETERS}
    parameters["decision"] = model.decision
    if parameters["classes"] is not None:
        parameters["classes"] = list(model.labels_.classes.tolist())
    if parameters["decision"] is not None and not isinstance(parameters["decision"], str):
        parameters["decision"] = np.asarray(parameters["decision"], dtype=float).tolist()
    return {
        "format": FORMAT_VERSION,
        "echelon": __version__,
        "classes": model.labels_.classes.tolist(),
        "class_kind": model.labels_.classes.dtype.kind,
        "schema": {
            "named": model.schema_.named,
            "columns": [[c.name, c.kind, c.categories] for c in model.schema_.columns],
        },
        "readers": model.readers_.describe(model.network_),
        "encoder": {"scaling": encoder.scaling, "num_numeric": encoder.num_numeric},
        "settings": asdict(model.settings_),
        "parameters": parameters,
        "training": {"history": model.history_, "best_epoch": model.best_epoch_},
        "cutpoints": None if model.cutpoints_ is None else model.cutpoints_.tolist(),
        "calibration": model.calibration_summary_,
    }


def load(path: str | Path) -> OrdinalClassifier:
    """Read a saved model. Opening a stranger's file runs no code of theirs.

    Parameters
    ----------
    path : str or Path
        What :meth:`OrdinalClassifier.save` or ``echelon fit`` wrote.
    """
    try:
        found = read_bundle(path, _KEY)
    except FileNotFoundError:
        raise ValueError(f"there is no model {path}") from None
    except NotRegularError as error:
        raise ValueError(f"{error}; name a model that `save` or `echelon fit` wrote") from None
    document = found.document
    if not isinstance(document, dict) or not isinstance(document.get("format"), int):
        raise ValueError(f"{path} is damaged: it does not say what format it has")
    if document["format"] > FORMAT_VERSION:
        raise ValueError(
            f"{path} was written by echelon {document.get('echelon')} in format "
            f"{document['format']}; this is {__version__}, which reads up to {FORMAT_VERSION}: "
            f"install a newer echelon"
        )
    if document["format"] < FORMAT_VERSION:
        raise ValueError(
            f"{path} was written by echelon {document.get('echelon')} in format "
            f"{document['format']}; this is {__version__}, which reads {FORMAT_VERSION}: fit the "
            f"model anew"
        )
    found.require_whole()
    try:
        return _rebuild(found.tensors, document)
    except Exception as error:  # torch, timm and transformers raise almost anything
        reason = f"{type(error).__name__}: {error}" if isinstance(error, LookupError) else error
        raise ValueError(f"{path} does not describe a model: {reason}") from None


def _rebuild(tensors: dict[str, Tensor], document: dict[str, Any]) -> OrdinalClassifier:
    """The model that a document and tensors describe, neither of which is trusted."""
    described = {
        name: _typed(document[name], dict, name)
        for name in ("parameters", "schema", "readers", "encoder", "settings", "training")
    }
    parameters = {name: described["parameters"][name] for name in _PARAMETERS}
    if isinstance(parameters["decision"], list):
        parameters["decision"] = np.array(parameters["decision"], dtype=np.float64)
    model = OrdinalClassifier(**parameters)
    model.fitted_parameters_ = model.get_params(deep=False)
    model.schema_ = _read_schema(described["schema"])
    model.labels_ = _read_labels(document["classes"], document["class_kind"])
    num_classes = model.labels_.num_classes
    model.settings_ = _read_settings(described["settings"])
    for decision in (parameters["decision"], model.settings_.decision):
        check_decision(decision, num_classes)
    num_numeric = described["encoder"]["num_numeric"]
    if num_numeric != len(model.schema_.numeric):
        raise ValueError("its encoder does not fit its columns")
    kept, indicators = (
        _read_places(tensors[f"encoder.{name}"], num_numeric) for name in ("kept", "indicators")
    )
    readers = Readers.rebuild(described["readers"])
    _check_parts(model, readers)
    model.readers_, model.skipped_ = readers, {}
    chosen = make_method(model.method, num_classes, **model.settings_.method_options)

    def make() -> OrdinalNetwork:
        encoder = TableEncoder(
            len(model.schema_.numeric),
            tuple(len(column.categories) for column in model.schema_.categorical),
            scaling=described["encoder"]["scaling"],
            kept=kept,
            indicators=indicators,
        )
        return make_network(encoder, readers, model.settings_, chosen)

    conformal = {
        name: tensors.pop(f"{_CONFORMAL}{name}").numpy()
        for name in ConformalRows._fields
        if f"{_CONFORMAL}{name}" in tensors
    }
    model.conformal_ = _checked_conformal(conformal, num_classes) if conformal else None
    mended = {
        name.removeprefix(_CALIBRATION): tensors.pop(name)
        for name in list(tensors)
        if name.startswith(_CALIBRATION)
    }
    with RandomStream(0).drawn():  # its first weights are random, and then those of the file
        model.network_ = cast(OrdinalNetwork, rebuild(make, tensors))
    model.network_.calibration = _checked_calibration(mended, num_classes) if mended else None
    model.network_.eval()
    model.cutpoints_ = _read_cutpoints(document["cutpoints"], num_classes)
    model.calibration_summary_ = _read_summary(document["calibration"])
    model.classes_ = model.labels_.classes
    model.history_, model.best_epoch_ = _read_training(described["training"])
    model.n_features_in_ = len(model.schema_.columns)
    if model.schema_.named:
        names = [column.name for column in model.schema_.columns]
        model.feature_names_in_ = np.array(names, dtype=object)
    _try_out(model)
    return model


def _try_out(model: OrdinalClassifier) -> None:
    """Predict one empty row of texts and images, to find here what does not fit together."""
    if model.schema_.parts == ("table",):
        return
    readers, encoder = model.readers_, cast(TableEncoder, model.network_.encoder)
    row: dict[str, Tensor] = {}
    if "table" in model.schema_.parts:
        row["table"] = torch.zeros(1, encoder.num_features)
    if readers.tokenizer is not None:
        row["text"] = readers.tokenizer.encode([""]).take(np.arange(1))
    if readers.pictures is not None:
        side = readers.pictures.crop
        row["image"] = torch.zeros(1, 3, side, side, dtype=torch.uint8)
    with torch.no_grad():
        model.network_.curve(model.network_(row))


# ---- what a document says ------------------------------------------------------------------------


def _typed(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"its {name} must be of type {kind.__name__}; got {type(value).__name__}")
    return value


def _read_schema(described: Mapping[str, Any]) -> TableSchema:
    columns = tuple(
        Column(
            _typed(name, str, "name of a column"),
            _checked_kind(kind),
            tuple(_typed(one, str, "category") for one in _typed(categories, list, "categories")),
        )
        for name, kind, categories in _typed(described["columns"], list, "columns")
    )
    if not columns or len({column.name for column in columns}) != len(columns):
        raise ValueError("its columns must have names of their own")
    for column in columns:
        if len(set(column.categories)) != len(column.categories):
            raise ValueError(f"its column {column.name!r} has a category twice")
    return TableSchema(columns, _typed(described["named"], bool, "named"))


def _read_labels(classes: Any, kind: Any) -> Labels:
    plain, dtype = _CLASS_KINDS[_typed(kind, str, "kind of classes")]
    _typed(classes, list, "classes")
    if not all(type(one) in plain for one in classes):
        raise ValueError(f"its classes must all be of the kind {kind!r}")
    if not 2 <= len(set(classes)) == len(classes) <= _MAX_CLASSES:
        raise ValueError(f"it must have 2 to {_MAX_CLASSES:,} classes, each of them once")
    return Labels(np.array(classes, dtype=dtype))


def _read_settings(described: Mapping[str, Any]) -> Settings:
    settings = dict(described)
    for name in ("backbone_options", "text_options", "image_options", "method_options"):
        _typed(settings.get(name, {}), dict, name)
    settings["backbone_options"] = _with_tuples(settings["backbone_options"])
    made = Settings(**settings)
    named = made.backbone.values() if isinstance(made.backbone, Mapping) else [made.backbone]
    for name in named:
        _typed(name, str, "backbone")
    return made


def _check_parts(model: OrdinalClassifier, readers: Readers) -> None:
    """Raise where columns, networks and readers are not of the same parts of a row."""
    parts, backbone = model.schema_.parts, model.settings_.backbone
    if parts == ("table",):
        if not isinstance(backbone, str):
            raise ValueError("it has networks for texts or images, and no such column")
    elif not isinstance(backbone, Mapping) or set(backbone) != set(parts):
        raise ValueError(f"it must have a network for each of {', '.join(parts)}")
    else:
        choose_backbones(backbone, parts)
    for part, reader in (("text", readers.tokenizer), ("image", readers.pictures)):
        if (part in parts) != (reader is not None):
            raise ValueError(f"its column of {part}s and what reads it do not belong together")
        if len(model.schema_.of_kind(cast(Any, part))) > 1:
            raise ValueError(f"it has several columns of {part}s")


def _read_places(places: Tensor, count: int) -> list[int]:
    """Places of columns of numbers, each of them once."""
    if places.dtype != torch.int64 or places.dim() != 1:
        raise ValueError("its encoder does not say which columns it keeps")
    found: list[int] = places.tolist()
    if found and (min(found) < 0 or max(found) >= count or len(set(found)) != len(found)):
        raise ValueError("its encoder keeps columns that are not there")
    return found


def _read_cutpoints(cutpoints: Any, num_classes: int) -> NDArray[np.float64] | None:
    if cutpoints is None:
        return None
    found = np.array(_typed(cutpoints, list, "cutpoints"), dtype=np.float64)
    if found.shape != (num_classes - 1,) or not np.isfinite(found).all():
        raise ValueError(f"it must have {num_classes - 1} cut-points for {num_classes} classes")
    return found


def _read_summary(summary: Any) -> dict[str, dict[str, float]] | None:
    if summary is not None:
        for scores in _typed(summary, dict, "calibration").values():
            _require_scores(scores)
    return cast("dict[str, dict[str, float]] | None", summary)


def _read_training(described: Mapping[str, Any]) -> tuple[list[dict[str, float]], int | None]:
    for row in _typed(described["history"], list, "history"):
        _require_scores(row)
    best = described["best_epoch"]
    if best is not None:
        _typed(best, int, "best epoch")
    return described["history"], best


def _require_scores(scores: Any) -> None:
    if not all(type(score) in (int, float) for score in _typed(scores, dict, "scores").values()):
        raise ValueError("its scores must be numbers")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    raise ValueError(f"a model with an option of type {type(value).__name__} cannot be saved")


def _checked_kind(kind: Any) -> Any:
    if kind not in KINDS:
        raise ValueError(f"a column must be of a kind in {', '.join(KINDS)}; got {kind!r}")
    return kind


def _with_tuples(options: Any) -> Any:
    """Options as they were before JSON, which has no tuples."""
    if isinstance(options, dict):
        return {name: _with_tuples(value) for name, value in options.items()}
    return tuple(options) if isinstance(options, list) else options


def _checked_conformal(arrays: dict[str, Any], num_classes: int) -> ConformalRows:
    rows = ConformalRows(**arrays)
    if len({values.shape for values in rows}) != 1 or rows.scores.ndim != 1 or not len(rows.ranks):
        raise ValueError("its conformal scores, ranks and weights do not belong together")
    if [values.dtype for values in rows] != [np.float64, np.int64, np.float64]:
        raise ValueError("its conformal scores, ranks and weights are of other types")
    if rows.ranks.min() < 0 or rows.ranks.max() >= num_classes:
        raise ValueError(f"its conformal ranks do not lie in 0..{num_classes - 1}")
    # The score of a mode is infinite.
    if np.isnan(rows.scores).any() or not (np.isfinite(rows.weight) & (rows.weight >= 0)).all():
        raise ValueError("its conformal scores and weights are no numbers")
    return rows


def _checked_calibration(fields: Mapping[str, Tensor], num_classes: int) -> Calibration:
    if set(fields) != set(CalibrationMap._fields):
        raise ValueError("its calibration lacks a field or has one too many")
    found = CalibrationMap(**fields)
    steps = found.rise.shape[1] if found.rise.dim() == 2 else 0
    tasks = num_classes - 1
    shapes = [(), (tasks,), (tasks, steps), (tasks, steps), (tasks, steps), ()]
    if [tuple(values.shape) for values in found] != shapes:
        raise ValueError("the fields of its calibration are not of the shapes that belong together")
    if not all(
        values.is_floating_point() and bool(torch.isfinite(values).all()) for values in found
    ):
        raise ValueError("its calibration holds what is no number")
    if not (found.temperature > 0 and 0 <= found.smoothing <= 1):
        raise ValueError("its calibration has no temperature above 0")
    return Calibration(fields)
