"""Explanations of a fitted model: its rows as a frame, and the function that is explained."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.curve import RankCurve
from echelon.data.frames import frame_of_rows, rows_of_frame
from echelon.data.kinds.base import CELL_KINDS, cell_kind
from echelon.data.schema import RawTable
from echelon.evaluation.explanation import Explanation, explain, planned_rows
from echelon.evaluation.reasons import RowReasons, row_reasons
from echelon.evaluation.recombining import Curves, Predict, named_cell
from echelon.training.progress import work_bar


def explain_model(
    model: Any,
    table: RawTable,
    ranks: NDArray[np.int64] | None,
    rows: Sequence[int],
    *,
    shown: bool,
    **options: Any,
) -> Explanation:
    """The explanation of a fitted model on rows that were read.

    Parameters
    ----------
    model : CurvePredictor
    table : RawTable
    ranks : array, shape (n,), or None
    rows : sequence of int
        The places of the rows that get reasons.
    shown : bool
        Whether a progress bar is drawn.
    **options
        Of :func:`echelon.evaluation.explanation.explain`.
    """
    schema = model.schema_
    frame = frame_of_rows(schema, table)
    asked = {
        name: options[name] for name in ("repeats", "background", "most_rows") if name in options
    }
    texts = [
        column.name
        for column in schema.columns
        if column.kind in CELL_KINDS and cell_kind(column.kind).has_words
    ]
    total = planned_rows(len(frame), len(frame.columns), len(rows), texts=len(texts), **asked)
    with work_bar("explaining", total, shown) as report:
        return explain(
            _predictor(model),
            frame,
            ranks,
            classes=model.classes_.tolist(),
            kinds={column.name: column.kind for column in schema.columns},
            texts=texts,
            rows=rows,
            report=report,
            **options,
        )


def reasons_of_rows(model: Any, table: RawTable, background: RawTable) -> list[RowReasons]:
    """The reasons of rows that were read, beside those of a background.

    Parameters
    ----------
    model : CurvePredictor
    table, background : RawTable
    """
    schema = model.schema_
    frame = frame_of_rows(schema, table)
    kinds = {column.name: column.kind for column in schema.columns}
    named = [
        [named_cell(name, frame[name].iloc[row], kinds[name]) for name in kinds]
        for row in range(len(frame))
    ]
    return row_reasons(
        Curves(_predictor(model)),
        frame,
        range(len(frame)),
        frame_of_rows(schema, background),
        named,
    )


def _predictor(model: Any) -> Predict:
    """From a frame of the model's rows to P(y = k), (n, K), as it is calibrated now."""
    schema, calibration = model.schema_, model.calibration_

    def predict(frame: pd.DataFrame) -> NDArray[np.float64]:
        curve = RankCurve.concatenate(list(model.curves_of_rows(rows_of_frame(schema, frame))))
        if calibration is not None:
            curve = curve.calibrated(calibration)
        return curve.probabilities.double().cpu().numpy()

    return predict
