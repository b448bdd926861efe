"""Answers: predictions as JSON, CSV or Arrow, whichever the client takes."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon.serving.arrow import ARROW, arrow_of
from echelon.serving.bodies import CSV, JSON, media_type
from echelon.serving.served import Predictions, ServedModel

_WRITTEN = (JSON, CSV, ARROW)
_DIGITS = 9  # of a probability in text, a multiple of 3: more would say nothing
_THREE_DIGITS = np.array([list(f"{i:03}".encode()) for i in range(1000)], dtype=np.uint8)


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
    if kind == CSV:
        return _csv(model, predictions)
    return arrow_of(_columns(model, predictions))


def _json(model: ServedModel, predictions: Predictions) -> bytes:
    """Labels, probabilities in the order of the classes, intervals, and what lies outside."""
    shares = probability_texts(predictions.probabilities, ",")
    labels = _each(json.dumps, predictions.labels)
    outside = _each(_names, predictions.outside)
    intervals = [""] * len(predictions)
    if predictions.ends is not None:
        ends = (_each(json.dumps, labels) for labels in predictions.ends)
        intervals = [f'"interval":[{low},{high}],' for low, high in zip(*ends, strict=True)]
    rows = ",".join(
        [
            f'{{"prediction":{label},"probabilities":[{share}],{interval}"outside":{names}}}'
            for label, share, interval, names in zip(
                labels, shares, intervals, outside, strict=True
            )
        ]
    )
    head = json.dumps({"model": model.fingerprint, "classes": model.classes}, allow_nan=False)
    return f'{head[:-1]}, "predictions": [{rows}]}}'.encode()


def _names(outside: str) -> str:
    return json.dumps(outside.split("; ") if outside else [])


def _columns(model: ServedModel, predictions: Predictions) -> dict[str, Any]:
    """The columns that ``echelon predict`` writes."""
    columns: dict[str, Any] = {"prediction": predictions.labels.tolist()}
    if predictions.ends is not None:
        columns["lower"], columns["upper"] = (ends.tolist() for ends in predictions.ends)
    for label, values in zip(model.classes, predictions.probabilities.T, strict=True):
        columns[f"probability_{label}"] = values
    columns["outside"] = predictions.outside.tolist()
    return columns


def _csv(model: ServedModel, predictions: Predictions) -> bytes:
    """The same columns as text."""
    ends = predictions.ends or ()
    cells = [
        *(_each(_csv_cell, labels) for labels in (predictions.labels, *ends)),
        probability_texts(predictions.probabilities, ","),
        _each(_csv_cell, predictions.outside),
    ]
    head = ",".join(map(_csv_cell, _columns(model, predictions)))
    lines = map(",".join, zip(*cells, strict=True))
    return "\n".join([head, *lines, ""]).encode()


def _csv_cell(cell: Any) -> str:
    stream = io.StringIO(newline="")
    # a row of one empty cell would be quoted
    csv.writer(stream, lineterminator="").writerow([cell, ""])
    return stream.getvalue()[:-1]


def _each(write: Callable[[Any], str], values: NDArray[Any]) -> list[str]:
    """Every value (n,) as text; most occur many times, and each is written once."""
    cells = values.tolist()
    written = {cell: write(cell) for cell in set(cells)}
    return [written[cell] for cell in cells]


def probability_texts(probabilities: NDArray[np.float64], separator: str) -> list[str]:
    """The probabilities of each row (n, K) with nine digits, a separator between them.

    All digits are looked up at once: Python takes ten times as long to write one number after the
    other.

    Examples
    --------
    >>> probability_texts(np.array([[0.25, 0.75], [1.0, 2e-10]]), " ")
    ['0.250000000 0.750000000', '1.000000000 0.000000000']
    """
    rows, classes = probabilities.shape
    whole = np.rint(probabilities * 10**_DIGITS).astype(np.int64)
    assert ((whole >= 0) & (whole < 10 ** (_DIGITS + 1))).all()
    between = np.frombuffer(separator.encode(), dtype=np.uint8)
    width = 2 + _DIGITS + len(between)
    signs = np.empty((rows, classes, width), dtype=np.uint8)
    signs[..., 1] = ord(".")
    signs[..., 2 + _DIGITS :] = between
    for end in range(2 + _DIGITS, 2, -3):
        whole, last = np.divmod(whole, 1000)
        signs[..., end - 3 : end] = _THREE_DIGITS[last]
    signs[..., 0] = whole + ord("0")
    text = signs.tobytes().decode("ascii")
    row = classes * width
    return [text[start : start + row - len(between)] for start in range(0, rows * row, row)]
