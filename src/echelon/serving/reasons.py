"""Reasons for the rows of a request: what each column contributes, beside typical rows.

A request may bring a single row, and a model file holds no rows. So a row is compared with made-up
ones that are drawn, column by column, from the summary of the training columns; the same ones for
every request, so that two answers can be compared.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from echelon.data.kinds.base import CELL_KINDS, cell_kind
from echelon.data.typical import typical_rows
from echelon.models.explaining import reasons_of_rows
from echelon.serving.bodies import ReceivedRows
from echelon.serving.refusal import WRONG_ROWS, Refusal
from echelon.serving.served import ServedModel

_BACKGROUND = 16  # rows
_DIGITS = 6


def explain_rows(model: ServedModel, rows: ReceivedRows) -> dict[str, Any]:
    """The reasons of the rows of a body, as values of JSON."""
    fitted = model.fitted
    for column in model.schema.columns:
        if column.kind in CELL_KINDS and not cell_kind(column.kind).has_words:
            raise Refusal(
                WRONG_ROWS, f"reasons compare a row with typical ones, and there is no typical "
                f"{column.kind}; try `echelon explain` with a file of rows",
            )  # fmt: skip
    table = model.read(rows)
    background = model.schema.read(typical_rows(model.schema, fitted.columns_, _BACKGROUND))
    try:
        reasons = reasons_of_rows(fitted, table, background)
    except ValueError as error:
        raise Refusal(WRONG_ROWS, str(error)) from None
    return {
        "model": model.fingerprint,
        "classes": model.classes,
        "compared_with": f"{_BACKGROUND} typical rows, drawn from the summary of the training "
        f"columns",
        "reasons": [_document(reason, model.classes) for reason in reasons],
    }


def _document(reason: Any, classes: list[Any]) -> Mapping[str, Any]:
    k = reason.telling_threshold
    return {
        "at_least": classes[k + 1],
        "typical_probability": _rounded(reason.start[k]),
        "probability": _rounded(reason.exceedance[k]),
        "contributions": dict(
            zip(reason.columns, _rounded(reason.contributions[:, k]), strict=True)
        ),
        "rank_contributions": dict(
            zip(reason.columns, _rounded(reason.rank_contributions), strict=True)
        ),
        "sentences": reason.sentences(classes, k),
    }


def _rounded(values: Any) -> Any:
    return np.round(np.asarray(values, dtype=np.float64), _DIGITS).tolist()
