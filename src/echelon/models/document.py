"""What a file of a saved model says: the document beside its tensors, written and read back.

Everything that all models share stands here: parameters, labels, columns, cut-points, calibration,
the rows of conformal sets. What a model itself is rebuilt from is its own affair. Nothing that is
read is trusted: types, lengths and numbers are checked before anything is made of them.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon._version import __version__
from echelon.curve import CalibrationMap
from echelon.data.columns import KINDS, Column
from echelon.data.labels import Labels
from echelon.data.numerals import WRITINGS
from echelon.data.schema import TableSchema
from echelon.evaluation.conformal import ConformalRows, require_score
from echelon.storage.bundle import checksum, write_bundle

FORMAT_VERSION = 3
KEY = "echelon_model"

_MODEL, _CALIBRATION, _CONFORMAL = "model.", "calibration.", "conformal."  # before names of tensors
_TOLD = ("format", "echelon", "history", "seconds")  # entries that do not say what a model is
_PAIRS = "pairs"  # of a mapping whose keys are no strings, which JSON does not have
_MAX_CLASSES = 65_536
# What JSON has for the classes of each kind of array, and the array.
_ROUNDING = 1e-6
_CLASS_KINDS: Mapping[str, tuple[tuple[type, ...], type]] = {
    "b": ((bool,), bool),
    "i": ((int,), np.int64),
    "u": ((int,), np.uint64),
    "f": ((float, int), np.float64),
    "O": ((str, int, float, bool), object),
}


class Described(NamedTuple):
    """What a model is rebuilt from: values of JSON by name, and tensors by name."""

    document: dict[str, Any]
    tensors: dict[str, Tensor]


# ---- writing -------------------------------------------------------------------------------------


def write_model(model: Any, path: str | Path) -> None:
    """Write a fitted model to a file; see :meth:`echelon.models.base.CurveClassifier.save`."""
    described = describe(model)
    write_bundle(path, described.tensors, KEY, described.document)


def fingerprint(model: Any) -> str:
    """A hash of all that a fitted model is, in 64 digits: two models with one predict alike.

    It is that of the model and not of its file, so that a model has the same one before it is saved
    and after it was loaded, by this version or by another.
    """
    described = describe(model)
    return checksum(described.tensors, _without_telling(described.document))


def _without_telling(value: Any) -> Any:
    """A document without what is told of its file and of its fit, and is not the model."""
    if isinstance(value, list):
        return [_without_telling(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _without_telling(said) for name, said in value.items() if name not in _TOLD}


def describe(model: Any) -> Described:
    """All that a file says of a fitted model: values of JSON by name, and tensors by name."""
    described = model.describe_model()
    tensors = {f"{_MODEL}{name}": value.cpu() for name, value in described.tensors.items()}
    for prefix, group in ((_CONFORMAL, model.conformal_), (_CALIBRATION, model.calibration_)):
        if group is not None:
            fields = group._asdict().items()
            tensors |= {f"{prefix}{name}": torch.as_tensor(values) for name, values in fields}
    document = {
        "format": FORMAT_VERSION,
        "echelon": __version__,
        "kind": model.kind,
        "interval_score": model.conformal_score_,
        "parameters": describe_parameters(model),
        "classes": model.labels_.classes.tolist(),
        "class_kind": model.labels_.classes.dtype.kind,
        "schema": {
            "named": model.schema_.named,
            "columns": [_described_column(column) for column in model.schema_.columns],
        },
        "rows": model.num_rows_,
        "scores": model.scores_,
        "reference": model.reference_,
        "about": model.about_,
        "columns": model.columns_,
        "cutpoints": None if model.cutpoints_ is None else model.cutpoints_.tolist(),
        "calibration": model.calibration_summary_,
        "model": described.document,
    }
    # JSON knows neither paths nor the numbers of numpy, which options may hold.
    return Described(json.loads(json.dumps(document, default=_plain)), tensors)


def describe_parameters(model: Any) -> dict[str, Any]:
    """The parameters of a model as JSON has them.

    What was fitted, whatever was set since; but a decision is taken after the fit.
    """
    parameters = _without(model.fitted_parameters_, model.of_the_machine)
    parameters["decision"] = model.decision
    if parameters["classes"] is not None:
        parameters["classes"] = list(model.labels_.classes.tolist())
    return {name: _with_pairs(value) for name, value in parameters.items()}


def _without(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Values but for those names; a dot in a name goes into a value that is a mapping."""
    kept = {}
    for key, value in values.items():
        if key in names:
            continue
        inner = [name.removeprefix(f"{key}.") for name in names if name.startswith(f"{key}.")]
        kept[key] = _without(value, inner) if inner and isinstance(value, Mapping) else value
    return kept


def _with_pairs(value: Any) -> Any:
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        return {_PAIRS: [[key, each] for key, each in value.items()]}
    return value


# ---- reading -------------------------------------------------------------------------------------


def restore(model: Any, document: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Make an unfitted model, with the parameters of the file, the one that was saved."""
    model.fitted_parameters_ = model.get_params(deep=False)
    model.labels_ = _read_labels(document["classes"], document["class_kind"])
    num_classes = model.labels_.num_classes
    groups: dict[str, dict[str, Tensor]] = {_MODEL: {}, _CALIBRATION: {}, _CONFORMAL: {}}
    for name, tensor in tensors.items():
        prefix = f"{name.partition('.')[0]}."
        if prefix not in groups:
            raise ValueError(f"there is no place for the tensor {name!r}")
        groups[prefix][name.removeprefix(prefix)] = tensor
    conformal = {name: tensor.numpy() for name, tensor in groups[_CONFORMAL].items()}
    model.conformal_ = _checked_conformal(conformal, num_classes) if conformal else None
    model.conformal_score_ = document.get("interval_score", "probability")
    require_score(model.conformal_score_)
    mended = groups[_CALIBRATION]
    model.calibration_ = _checked_calibration(mended, num_classes) if mended else None
    model.calibration_summary_ = _read_summary(document["calibration"])
    model.cutpoints_ = _read_cutpoints(document["cutpoints"], num_classes)
    model.columns_ = typed(document["columns"], list, "summary of columns")
    rows = document.get("rows")
    model.num_rows_ = None if rows is None else typed(rows, int, "number of rows")
    model.scores_ = document.get("scores")
    if model.scores_ is not None:
        require_scores(model.scores_)
    # files of earlier versions have none
    model.reference_ = _read_reference(document.get("reference"), num_classes)
    about = typed(document.get("about", {}), dict, "origin")
    model.about_ = {str(name): typed(said, str, "origin") for name, said in about.items()}
    model.skipped_, model.history_ = {}, []
    model.take_schema(_read_schema(typed(document["schema"], dict, "schema")))
    model.check_decision()
    described = typed(document["model"], dict, "model")
    model.rebuild_model(Described(described, groups[_MODEL]))


def restore_member(model: Any, labels: Labels, schema: TableSchema, described: Described) -> None:
    """Make an unfitted model one that gives curves, as a member of another."""
    model.fitted_parameters_ = model.get_params(deep=False)
    model.labels_, model.columns_ = labels, []
    model.conformal_ = model.calibration_ = model.calibration_summary_ = model.cutpoints_ = None
    model.skipped_, model.history_ = {}, []
    model.num_rows_, model.scores_, model.about_ = None, None, {}
    model.reference_ = None
    model.take_schema(schema)
    model.rebuild_model(described)


def read_parameters(described: Any, made: Any) -> dict[str, Any]:
    """The parameters that a document names, as the class of the model takes them."""
    parameters = {
        name: _without_pairs(value) for name, value in typed(described, dict, "parameters").items()
    }
    unknown = sorted(set(parameters) - set(made().get_params(deep=False)))
    if unknown:
        raise ValueError(f"a model of the kind {made.kind!r} has no parameter {unknown[0]!r}")
    if isinstance(parameters.get("decision"), list):
        parameters["decision"] = np.array(parameters["decision"], dtype=np.float64)
    return parameters


def _without_pairs(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {_PAIRS}:
        return dict(value[_PAIRS])
    return value


def typed(value: Any, kind: type, name: str) -> Any:
    """What a document says under a name, which must be of a type."""
    # A boolean is an integer to Python, and was never meant as one.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"its {name} must be of type {kind.__name__}; got {type(value).__name__}")
    return value


def _described_column(column: Column) -> list[Any]:
    described = [column.name, column.kind, column.categories, column.writing]
    return [*described, column.missing_codes] if column.missing_codes else described


def _read_schema(described: Mapping[str, Any]) -> TableSchema:
    columns = tuple(
        Column(
            typed(name, str, "name of a column"),
            _checked_kind(kind),
            tuple(
                typed(category, str, "category")
                for category in typed(categories, list, "categories")
            ),
            _checked_writing(kind, *more[:1]),
            _checked_codes(*more[1:]),
        )
        # files of earlier versions say neither how cells are written nor what stands for no answer
        for name, kind, categories, *more in typed(described["columns"], list, "columns")
    )
    if not columns or len({column.name for column in columns}) != len(columns):
        raise ValueError("its columns must have names of their own")
    for column in columns:
        if len(set(column.categories)) != len(column.categories):
            raise ValueError(f"its column {column.name!r} has a category twice")
    return TableSchema(columns, typed(described["named"], bool, "named"))


def _read_labels(classes: Any, kind: Any) -> Labels:
    plain, dtype = _CLASS_KINDS[typed(kind, str, "kind of classes")]
    typed(classes, list, "classes")
    if not all(type(label) in plain for label in classes):
        raise ValueError(f"its classes must all be of the kind {kind!r}")
    if not 2 <= len(set(classes)) == len(classes) <= _MAX_CLASSES:
        raise ValueError(f"it must have 2 to {_MAX_CLASSES:,} classes, each of them once")
    return Labels(np.array(classes, dtype=dtype))


def _read_cutpoints(cutpoints: Any, num_classes: int) -> NDArray[np.float64] | None:
    if cutpoints is None:
        return None
    values = np.array(typed(cutpoints, list, "cutpoints"), dtype=np.float64)
    if values.shape != (num_classes - 1,) or not np.isfinite(values).all():
        raise ValueError(f"it must have {num_classes - 1} cut-points for {num_classes} classes")
    return values


def _read_summary(summary: Any) -> dict[str, dict[str, float]] | None:
    if summary is not None:
        for scores in typed(summary, dict, "calibration").values():
            require_scores(scores)
    return cast("dict[str, dict[str, float]] | None", summary)


def _read_reference(reference: Any, num_classes: int) -> dict[str, list[int]] | None:
    if reference is None:
        return None
    for name, counts in typed(reference, dict, "reference").items():
        if name not in ("classes", "predicted") or len(typed(counts, list, name)) != num_classes:
            raise ValueError(f"its reference must count {num_classes} classes; got {name!r}")
        if any(type(count) is not int or count < 0 for count in counts):
            raise ValueError("its reference must hold counts")
    return cast("dict[str, list[int]]", reference)


def require_scores(scores: Any) -> None:
    """Raise for what is not numbers by name."""
    if not all(type(score) in (int, float) for score in typed(scores, dict, "scores").values()):
        raise ValueError("its scores must be numbers")


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise ValueError(f"a model with an option of type {type(value).__name__} cannot be saved")


def _checked_kind(kind: Any) -> Any:
    if kind not in KINDS:
        raise ValueError(f"a column must be of a kind in {', '.join(KINDS)}; got {kind!r}")
    return kind


def _checked_writing(kind: str, writing: Any = "") -> str:
    known = WRITINGS.get(kind, ("",))
    if writing not in known:
        raise ValueError(f"a {kind} must be written in a way of {known}; got {writing!r}")
    return str(writing)


def _checked_codes(codes: Any = None) -> tuple[str, ...]:
    if codes is None:
        return ()
    return tuple(typed(code, str, "code") for code in typed(codes, list, "codes for no answer"))


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


def _checked_calibration(fields: Mapping[str, Tensor], num_classes: int) -> CalibrationMap:
    if set(fields) != set(CalibrationMap._fields):
        raise ValueError("its calibration lacks a field or has one too many")
    calibration = CalibrationMap(**fields)
    steps = calibration.rise.shape[1] if calibration.rise.dim() == 2 else 0
    tasks = num_classes - 1
    shapes = [(), (tasks,), (tasks, steps), (tasks, steps), (tasks, steps), ()]
    if [tuple(values.shape) for values in calibration] != shapes:
        raise ValueError("the fields of its calibration are not of the shapes that belong together")
    if not all(
        values.is_floating_point() and bool(torch.isfinite(values).all()) for values in calibration
    ):
        raise ValueError("its calibration holds what is no number")
    if not (calibration.temperature > 0 and 0 <= calibration.smoothing <= 1):
        raise ValueError("its calibration has no temperature above 0")
    top = calibration.base + calibration.rise.sum(1)
    if (calibration.base < 0).any() or (calibration.rise < 0).any() or (top > 1 + _ROUNDING).any():
        raise ValueError("its calibration maps to what is no probability")
    return CalibrationMap(*(values.double() for values in calibration))
