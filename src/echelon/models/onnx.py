"""One ONNX graph from raw columns to exceedance, probabilities and label.

Every column is an input of its own: numbers are a vector of doubles (NaN where missing), dates one
of days since 1970-01-01, categories one of strings (empty where missing), spelled as the model
names them (see :mod:`echelon.data.cells`), so that nothing of their preprocessing is needed
outside. A text is its token ids (rows, tokens), -1 behind the end, and an image its pixels
(rows, 3, h, w), whole numbers 0..255.

A model adds what leads to its log-probabilities (see :mod:`echelon.models.graph`); calibration,
decision and labels are added here. The graph is checked against the model before it is written.

What the graph is stands in its metadata, under names that begin with "echelon.": a description,
the classes and the columns as JSON, the decision, versions, and the hash of its model.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from echelon._version import __version__
from echelon.curve import CalibrationMap, RankCurve
from echelon.data.columns import MEASURED
from echelon.extras import require
from echelon.models.document import fingerprint
from echelon.models.graph import Graph
from echelon.models.table import MODELS
from echelon.storage.atomic import require_writable, write_bytes

_TOLERANCE = 1e-5
_CHECK_ROWS = 64
_PREFIX = "echelon."  # of names of metadata, among which other programs have theirs


class _FromLogProbabilities(nn.Module):
    """Log-probabilities of rows to exceedance, probabilities and rank."""

    def __init__(self, calibration: CalibrationMap | None, decision: str | Tensor) -> None:
        super().__init__()
        self.decision = decision
        self.is_calibrated = calibration is not None
        for name, values in (calibration._asdict() if calibration is not None else {}).items():
            self.register_buffer(f"calibration_{name}", values)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        curve = RankCurve(rows)
        if self.is_calibrated:
            fields = (self.get_buffer(f"calibration_{name}") for name in CalibrationMap._fields)
            curve = curve.calibrated(CalibrationMap(*fields))
        return curve.exceedance.float(), curve.probabilities.float(), curve.label(self.decision)


def export_onnx(model: Any, path: str | Path) -> None:
    """Write any fitted model that has a graph as ONNX (extra `onnx`)."""
    onnx, onnxruntime, _ = (
        require(name, "ONNX graphs") for name in ("onnx", "onnxruntime", "onnxscript")
    )
    require_writable(path)
    whole = _whole_graph(model)
    whole.producer_version, whole.doc_string = __version__, _description(model)
    onnx.helper.set_model_props(whole, {**_metadata(model), f"{_PREFIX}onnx": onnx.__version__})
    onnx.checker.check_model(whole)
    content = whole.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    _compare(session, model)
    write_bytes(path, content)


def _whole_graph(model: Any) -> Any:
    from onnx import TensorProto

    num_classes = model.labels_.num_classes
    graph = Graph(model.schema_, model.encodings)
    logs = graph.as_double(model.add_to_graph(graph))
    last = _FromLogProbabilities(model.calibration_, model.decision_rule())
    exceedance, probabilities, ranks = graph.module_of_rows(last, num_classes, logs, 3)
    labels, kind = graph.labels(ranks, model.classes_)
    return graph.finished(
        {
            "exceedance": (exceedance, TensorProto.FLOAT, ["rows", num_classes - 1]),
            "probabilities": (probabilities, TensorProto.FLOAT, ["rows", num_classes]),
            "label": (labels, kind, ["rows"]),
        }
    )


def _description(model: Any) -> str:
    target, data = (model.about_.get(name) for name in ("target", "data"))
    told = (f" of {target!r}" if target else "") + (f", fitted on {data}" if data else "")
    return (
        f"Ordinal regression{told}: from raw columns, an input each, to exceedance P(y > k), "
        f"probabilities P(y = k) and label. {MODELS[model.kind].summary}"
    )


def _metadata(model: Any) -> dict[str, str]:
    """What the graph is, texts by name; lists are JSON."""
    decision = model.default_decision() if model.decision is None else model.decision
    summaries = {summary["name"]: summary for summary in model.columns_}
    columns = []
    for column in model.schema_.columns:
        summary = summaries.get(column.name, {})
        said = {"name": column.name, "kind": column.kind}
        said |= {name: summary[name] for name in ("missing", "quantiles") if name in summary}
        if column.categories:
            said["categories"] = list(column.categories)
        if column.missing_codes:
            said["missing_codes"] = list(column.missing_codes)
        columns.append(said)
    told = {
        "description": _description(model),
        "kind": model.kind,
        "classes": json.dumps(model.classes_.tolist()),
        "columns": json.dumps(columns),
        "decision": decision if isinstance(decision, str) else "by a matrix of costs",
        "version": __version__,
        "torch": torch.__version__,
    }
    with suppress(ValueError):  # of what can be exported and not saved, as a network of yours
        told["hash"] = fingerprint(model)
    return {f"{_PREFIX}{name}": text for name, text in told.items()}


def _compare(session: Any, model: Any) -> None:
    """Run made-up rows, with missing and unknown values, through both."""
    frame = _made_up_rows(model)
    table = model.schema_.read(frame)
    measured = [column.name for column in model.schema_.measured]
    numbers = dict(zip(measured, table.numbers.T[: len(measured)], strict=True))
    every_row = np.arange(len(frame))
    columns = {}
    for column in model.schema_.columns:
        if column.kind in model.encodings:
            reading = model.encodings[column.kind].encode(table.cells[column.kind])
            columns[column.name] = reading.take(every_row).numpy()
        elif column.name in numbers:
            columns[column.name] = np.ascontiguousarray(numbers[column.name], dtype=np.float64)
        else:
            columns[column.name] = frame[column.name].fillna("").to_numpy(dtype=object)
    wanted = {value.name for value in session.get_inputs()}
    outputs = session.run(
        ["probabilities", "exceedance"], {k: v for k, v in columns.items() if k in wanted}
    )
    rows = frame if model.schema_.named else frame.to_numpy(dtype=object)
    allowed = _allowed_difference(model.calibration_)
    for name, output, other in (
        ("probabilities", outputs[0], model.predict_proba(rows)),
        ("exceedance", outputs[1], model.predict_exceedance(rows)),
    ):
        # what the model cannot predict, such as the logarithm of -1, the graph cannot either
        undefined = np.isnan(output) & np.isnan(other)
        worst = float(np.where(undefined, 0.0, np.abs(output - other)).max())
        if not worst <= allowed:
            raise ValueError(
                f"the exported {name} differ from the model's by {worst:g}, more than "
                f"{allowed:g}; nothing was written"
            )


def _allowed_difference(calibration: CalibrationMap | None) -> float:
    """How far float32 may lead away: where a map is steep, it multiplies what came before it."""
    if calibration is None or not calibration.rise.numel():
        return _TOLERANCE
    return _TOLERANCE * max(1.0, float((calibration.steepness * calibration.rise).max()))


def _made_up_rows(model: Any) -> pd.DataFrame:
    """Rows between the values of the training rows and beyond, with gaps and unknown categories."""
    generator = np.random.default_rng(0)
    summaries = {summary["name"]: summary for summary in model.columns_}
    frame = pd.DataFrame(index=range(_CHECK_ROWS))
    for column in model.schema_.measured:
        quantiles = summaries[column.name]["quantiles"] or [0.0]
        place = generator.uniform(-0.1, 1.1, _CHECK_ROWS) * (len(quantiles) - 1)
        values = np.interp(place, np.arange(len(quantiles)), quantiles)
        values += (quantiles[-1] - quantiles[0]) * (place - place.clip(0, len(quantiles) - 1))
        values[generator.random(_CHECK_ROWS) < 0.1] = np.nan
        frame[column.name] = MEASURED[column.kind].typed(values)
    for column in model.schema_.categorical:
        choices = [*column.categories, "never seen", None]
        picked = generator.integers(len(choices), size=_CHECK_ROWS)
        frame[column.name] = pd.Series([choices[i] for i in picked], dtype=object)
    for kind, encoding in model.encodings.items():
        (column,) = model.schema_.of_kind(kind)
        frame[column.name] = pd.Series(encoding.made_up(_CHECK_ROWS, generator), dtype=object)
    ordered: pd.DataFrame = frame[[column.name for column in model.schema_.columns]]
    return ordered
