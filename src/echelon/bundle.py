"""Saved models: one safetensors file with a JSON document, opened without running any code.

Invariant: a file is written wholly or not at all, and read wholly and checked before anything is
made of it. What it says is data: names are looked up in tables, shapes must fit, and a checksum
over everything tells an edited or damaged file from a whole one.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from echelon._version import __version__
from echelon.data.labels import Labels
from echelon.data.tables import KINDS, Column, TableEncoder, TableSchema
from echelon.estimators import OrdinalClassifier
from echelon.methods import method as make_method
from echelon.prediction import ConformalRows
from echelon.training.checkpoints import read_whole, write_atomically
from echelon.training.network import Calibration
from echelon.training.preparation import Readers, make_network
from echelon.training.randomness import RandomStream
from echelon.training.recipes import Settings

FORMAT_VERSION = 2
_KEY = "echelon_model"
_CALIBRATION = "calibration."
_CONFORMAL = "conformal."  # before the names of tensors that are not the network's
_PARAMETERS = (
    "method", "backbone", "text", "image", "classes", "recipe", "decision", "max_epochs",
    "batch_size", "learning_rate", "weight_decay", "patience", "metric", "validation_fraction",
    "precision", "method_options", "backbone_options", "text_options", "image_options",
    "on_broken", "settings",
)  # fmt: skip


def save(model: OrdinalClassifier, path: str | Path) -> None:
    """Write a fitted model to a file; see :meth:`OrdinalClassifier.save`."""
    if not isinstance(model.backbone, (str, Mapping, NoneType)):
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
    document["checksum"] = _checksum(tensors, document)
    write_atomically(Path(path), tensors, _KEY, document)


def _describe(model: OrdinalClassifier) -> dict[str, Any]:
    encoder = model.network_.encoder
    parameters = {name: getattr(model, name) for name in _PARAMETERS}
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
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no model {path}")
    tensors, document = read_whole(path, _KEY)
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
    expected = document.pop("checksum", None)
    if expected != _checksum(tensors, document):
        raise ValueError(f"{path} was damaged or edited: its checksum does not fit")
    try:
        return _rebuild(tensors, document)
    except (KeyError, TypeError, IndexError, AttributeError, RuntimeError, ValueError) as error:
        raise ValueError(f"{path} does not describe a model: {error}") from None


def _rebuild(tensors: dict[str, Tensor], document: dict[str, Any]) -> OrdinalClassifier:
    parameters = {name: document["parameters"][name] for name in _PARAMETERS}
    if isinstance(parameters["decision"], list):
        parameters["decision"] = np.array(parameters["decision"])
    model = OrdinalClassifier(**parameters)
    columns = tuple(
        Column(str(name), _checked_kind(kind), tuple(map(str, categories)))
        for name, kind, categories in document["schema"]["columns"]
    )
    model.schema_ = TableSchema(columns, bool(document["schema"]["named"]))
    kind = {"b": bool, "i": np.int64, "u": np.uint64, "f": np.float64, "O": object}[
        document["class_kind"]
    ]
    model.labels_ = Labels(np.array(document["classes"], dtype=kind))
    num_classes = model.labels_.num_classes
    settings = dict(document["settings"])
    settings["backbone_options"] = _with_tuples(settings["backbone_options"])
    model.settings_ = Settings(**settings)
    encoder = TableEncoder(
        int(document["encoder"]["num_numeric"]),
        tuple(len(column.categories) for column in model.schema_.categorical),
        scaling=document["encoder"]["scaling"],
        kept=tensors["encoder.kept"].tolist(),
        indicators=tensors["encoder.indicators"].tolist(),
    )
    model.readers_, model.skipped_ = Readers.rebuild(document["readers"]), {}
    chosen = make_method(model.method, num_classes, **model.settings_.method_options)
    with RandomStream(0).drawn():  # its first weights are random, and then those of the file
        model.network_ = make_network(encoder, model.readers_, model.settings_, chosen)
    conformal = {
        name: tensors.pop(f"{_CONFORMAL}{name}").numpy()
        for name in ConformalRows._fields
        if f"{_CONFORMAL}{name}" in tensors
    }
    model.conformal_ = _checked_conformal(conformal, num_classes) if conformal else None
    mended = {
        name.removeprefix(_CALIBRATION): value
        for name, value in tensors.items()
        if name.startswith(_CALIBRATION)
    }
    model.network_.calibration = Calibration(mended) if mended else None
    model.network_.load_state_dict(tensors)
    cutpoints = document["cutpoints"]
    model.cutpoints_ = None if cutpoints is None else np.array(cutpoints, dtype=np.float64)
    if model.cutpoints_ is not None and model.cutpoints_.shape != (num_classes - 1,):
        raise ValueError(f"there are {len(model.cutpoints_)} cut-points for {num_classes} classes")
    model.calibration_summary_ = document["calibration"]
    model.network_.eval()
    model.classes_ = model.labels_.classes
    model.history_ = document["training"]["history"]
    model.best_epoch_ = document["training"]["best_epoch"]
    model.n_features_in_ = len(columns)
    if model.schema_.named:
        model.feature_names_in_ = np.array([c.name for c in columns], dtype=object)
    return model


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
    if rows.ranks.min() < 0 or rows.ranks.max() >= num_classes:
        raise ValueError(f"its conformal ranks do not lie in 0..{num_classes - 1}")
    return rows


def _checksum(tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
