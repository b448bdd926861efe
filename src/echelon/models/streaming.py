"""Fitting from a source: what is read, what is held out, and who may stream.

A model that streams (a trait of its row in :data:`echelon.models.table.MODELS`) is given the rows
slice by slice. For the others the source is read into memory, which is said before it is done.
"""

import math
import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon.data.kinds.base import CELL_KINDS
from echelon.data.rows import class_weights, row_weights
from echelon.data.source import Source
from echelon.data.stream import RowStream, open_stream
from echelon.data.survey import Survey, counted_alike, joined, survey
from echelon.models.predicting import check_decision
from echelon.models.table import MODELS

_MEBIBYTE = 2**20
_READING = 300 * _MEBIBYTE  # what reading takes beside what is kept: several slices and buffers


def fit_source(model: Any, source: Source | RowStream, seed: int) -> Any:
    """Fit a model on a source.

    Parameters
    ----------
    model : CurveClassifier
        That is changed; whoever calls keeps another.
    source : Source or RowStream
        One that nobody has looked at yet, or one that was.
    seed : int
    """
    from echelon.training.progress import work_bar

    for kind in CELL_KINDS:
        if getattr(model, kind, None):
            raise ValueError(
                f"a source holds numbers, dates and categories, and the model reads {kind}s from "
                f"the column {getattr(model, kind)!r}; read the table into memory, and fit it"
            )
    stream = source if isinstance(source, RowStream) else open_stream(source, model.classes)
    check_decision(model.decision, stream.labels.num_classes)
    stream.remarks.say()
    reason = _why_not(model)
    if reason is not None:
        return _fit_in_memory(model, stream, seed, reason)
    with work_bar("survey", len(stream.slices), shown=bool(model.verbose)) as report:
        known = survey(stream, model.validation_fraction, seed, report)
    known = _with_class_weights(model, known)
    for sentence in known.absent():
        warnings.warn(
            f"{sentence}; subsets of a source are drawn by a hash of each row, whatever its class",
            stacklevel=3,
        )
    held = 0 if known.held is None else len(known.held)
    _say(
        model,
        f"{stream.name}: {known.num_rows:,} rows are streamed, {held:,} are held out, about "
        f"{_mebibytes(_READING + model.stream_bytes(known))} of memory",
    )
    return model.fit_streamed(known, seed)


def _why_not(model: Any) -> str | None:
    """Why a model reads a source into memory; None where it streams."""
    if not MODELS[model.kind].streams:
        streaming = ", ".join(name for name, row in MODELS.items() if row.streams)
        return f"{model.kind} does not stream, as {streaming} do"
    reason: str | None = model.cannot_stream()
    return reason


def _fit_in_memory(model: Any, stream: RowStream, seed: int, reason: str) -> Any:
    rows = sum(part.rows for part in stream.slices)
    schema = stream.schema
    # all rows, the training rows apart, and what a model makes of them
    needed = 3 * 8 * rows * (len(schema.numeric) + len(schema.categorical) + 2)
    _say(
        model,
        f"{stream.name}: {reason}, so {rows:,} rows are read into memory, about "
        f"{_mebibytes(needed)}",
    )
    whole = joined([each for _, each, _ in stream])
    if model.class_weight is not None:
        per_class = class_weights(model.class_weight, whole.weight, whole.ranks, stream.labels)
        whole = replace(whole, weight=row_weights(whole.weight, per_class, whole.ranks))
    return model.fit_read(whole, None, stream.labels, seed)


def _with_class_weights(model: Any, known: Survey) -> Survey:
    """The same rows with the weight that the model gives each class."""
    if model.class_weight is None:
        return known
    present = np.flatnonzero(known.class_counts)
    per_class = class_weights(
        model.class_weight, known.weights[present], present, known.stream.labels
    )
    return known if per_class is None else weighed(known, per_class)


def weighed(known: Survey, per_class: NDArray[np.float64]) -> Survey:
    """The same rows with a weight for each class, (K,)."""
    held = known.held
    if held is not None:
        weight = row_weights(held.weight, per_class, held.ranks)
        held = counted_alike(replace(held, weight=weight))
    return replace(
        known,
        stream=replace(known.stream, per_class=per_class),
        weights=known.weights * per_class,
        counting=np.where(per_class > 0, known.counting, 0),
        held=held,
    )


def _say(model: Any, line: str) -> None:
    if model.verbose:
        print(line, file=sys.stderr)


def _mebibytes(size: float) -> str:
    return f"{math.ceil(size / _MEBIBYTE):,} MiB"
