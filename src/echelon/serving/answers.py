"""Answers: predictions as JSON, CSV or Arrow, whichever the client takes."""

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from echelon.serving.arrow import ARROW, arrow_of
from echelon.serving.bodies import CSV, JSON, media_type
from echelon.serving.served import Predictions, ServedModel

_WRITTEN = (JSON, CSV, ARROW)
_DIGITS = 9  # of a probability in text: more would be most of the work, and say nothing


def answer_type(accept: str, sent: str) -> str:
    """The type of an answer: the first that the client takes, and else that of its body.

    Examples
    --------
    >>> answer_type("text/html, text/csv;q=0.9", "application/json")
    'text/csv'
    >>> answer_type("*/*", "text/csv")
    'text/csv'
    """
    for part in accept.split(","):
        name = part.partition(";")[0].strip().lower()
        if name in _WRITTEN:
            return name
    return media_type(sent)


def write_answer(model: ServedModel, predictions: Predictions, kind: str) -> bytes:
    """Predictions as the body of an answer."""
    if kind == JSON:
        return _json(model, predictions)
    columns = _columns(model, predictions)
    return arrow_of(columns) if kind == ARROW else _csv(columns)


def _json(model: ServedModel, predictions: Predictions) -> bytes:
    """Labels, probabilities in the order of the classes, intervals, and what lies outside."""
    labels = predictions.labels.tolist()
    probabilities = np.round(predictions.probabilities, _DIGITS).tolist()
    rows: list[dict[str, Any]] = [
        {"prediction": label, "probabilities": row}
        for label, row in zip(labels, probabilities, strict=True)
    ]
    if predictions.ends is not None:
        lowest, highest = (ends.tolist() for ends in predictions.ends)
        for row, lower, upper in zip(rows, lowest, highest, strict=True):
            row["interval"] = [lower, upper]
    for row, names in zip(rows, predictions.outside, strict=True):
        row["outside"] = names.split("; ") if names else []
    document = {"model": model.fingerprint, "classes": model.classes, "predictions": rows}
    return json.dumps(document, allow_nan=False).encode()


def _columns(model: ServedModel, predictions: Predictions) -> dict[str, Any]:
    """The columns that ``echelon predict`` writes."""
    columns: dict[str, Any] = {"prediction": predictions.labels.tolist()}
    if predictions.ends is not None:
        columns["lower"], columns["upper"] = (ends.tolist() for ends in predictions.ends)
    for label, values in zip(model.classes, predictions.probabilities.T, strict=True):
        columns[f"probability_{label}"] = values
    columns["outside"] = predictions.outside.tolist()
    return columns


def _csv(columns: Mapping[str, Any]) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    cells = (
        np.round(values, _DIGITS).tolist() if isinstance(values, np.ndarray) else values
        for values in columns.values()
    )
    writer.writerows(zip(*cells, strict=True))
    return stream.getvalue().encode()
