"""What the server says of its model: the document of ``/info``, and an OpenAPI schema.

The schema names the columns, kinds, ranges and classes of the very model that is served. What was
seen in training is described and not demanded: a row may lie outside of it, and is then told so.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from echelon._version import __version__
from echelon.data.kinds.base import CELL_KINDS, cell_kind
from echelon.data.kinds.dates import DATES
from echelon.data.kinds.numbers import NUMBERS
from echelon.models.table import MODELS
from echelon.serving.arrow import ARROW
from echelon.serving.bodies import CSV, JSON
from echelon.serving.refusal import Limits
from echelon.serving.served import ServedModel

_EXAMPLES = 5


def info_of(model: ServedModel, limits: Limits) -> dict[str, Any]:
    """What a client may want to know of the model, as values of JSON."""
    fitted = model.fitted
    return {
        "model": model.fingerprint,
        "kind": fitted.kind,
        "summary": MODELS[fitted.kind].summary,
        "classes": model.classes,
        "columns": fitted.columns_,
        "rows": fitted.num_rows_,
        "scores": fitted.scores_,
        "coverage": model.coverage if fitted.conformal_ is not None else None,
        "echelon": __version__,
        "limits": {
            "body_bytes": limits.body, "rows": limits.rows, "explained_rows": limits.explained,
            "seconds": limits.seconds, "waiting_requests": limits.waiting,
        },
    }  # fmt: skip


def openapi_of(model: ServedModel, limits: Limits, *, has_token: bool) -> dict[str, Any]:
    """The OpenAPI 3.1 document of the server, with the columns of its model."""
    row = {"$ref": "#/components/schemas/Row"}
    rows = {"oneOf": [row, {"type": "array", "items": row, "minItems": 1, "maxItems": limits.rows}]}
    table = {"schema": {"type": "string"}}
    body = {
        "required": True,
        "content": {JSON: {"schema": rows}, CSV: table, ARROW: {"schema": {"type": "string"}}},
    }
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": f"echelon: {MODELS[model.fitted.kind].summary}",
            "version": model.fingerprint[:12],
            "description": "Predictions of an ordinal model: a class of each row, its "
            "probabilities, and an interval where the model has them.",
        },
        "paths": {
            "/predict": {"post": _operation(
                "Predict one row or many.", body, "Predictions",
                {CSV: table, ARROW: {"schema": {"type": "string"}}},
            )},
            "/explain": {"post": _operation("Say why rows get what they get.", body, "Reasons")},
            "/info": {"get": _operation("Say what the model is.", None, None)},
            "/health": {"get": _operation("Say that the process lives.", None, None)},
            "/ready": {"get": _operation("Say that requests are taken.", None, None)},
            "/metrics": {"get": _operation("Give counters for Prometheus.", None, None)},
        },
        "components": {
            "schemas": {
                "Row": _row(model),
                "Predictions": _predictions(model),
                "Reasons": {"type": "object"},
                "Error": {
                    "type": "object", "required": ["error"],
                    "properties": {"error": {"type": "string"}},
                },
            }
        },
    }  # fmt: skip
    if has_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _operation(
    summary: str,
    body: Mapping[str, Any] | None,
    answer: str | None,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    operation: dict[str, Any] = {"summary": summary, "responses": {"200": {"description": "Done."}}}
    if body is None:
        return operation
    operation["requestBody"] = body
    content = {JSON: {"schema": {"$ref": f"#/components/schemas/{answer}"}}, **(more or {})}
    operation["responses"]["200"]["content"] = content
    wrong = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for status, what in {
        "400": "The body cannot be read.", "401": "The token is missing or wrong.",
        "408": "The body came too slowly.", "413": "The body has too many bytes or rows.",
        "415": "The body is of a type that is not read.",
        "422": "A row is not one of the model's.", "503": "Too many requests wait.",
    }.items():  # fmt: skip
        operation["responses"][status] = {"description": what, "content": wrong}
    return operation


def _row(model: ServedModel) -> dict[str, Any]:
    summaries = {str(summary["name"]): summary for summary in model.fitted.columns_}
    return {
        "type": "object",
        "required": [column.name for column in model.schema.columns],
        "additionalProperties": False,
        "properties": {
            column.name: _column(column, summaries.get(column.name, {}))
            for column in model.schema.columns
        },
    }


def _column(column: Any, summary: Mapping[str, Any]) -> dict[str, Any]:
    """A column: what JSON may hold in it, and what it held in training."""
    quantiles = summary.get("quantiles") or []
    said: dict[str, Any] = {"x-echelon-kind": column.kind}
    words = f"A {column.kind}"
    if quantiles:
        ends = [_shown(column.kind, quantiles[i]) for i in (0, len(quantiles) // 2, -1)]
        words += f", in training from {ends[0]} to {ends[2]}, median {ends[1]}"
        said["x-echelon-range"] = [ends[0], ends[2]]
    if summary.get("missing"):
        words += f"; {100 * float(summary['missing']):.3g} % were missing"
    if column.categories:
        said["x-echelon-categories"] = list(column.categories)
        said["examples"] = list(summary.get("frequent", {}))[:_EXAMPLES]
        words += "; one that training had not is answered, and told"
    if column.kind == NUMBERS.name:
        said["type"] = ["number", "string", "boolean", "null"]
        said["examples"] = quantiles[len(quantiles) // 2 : len(quantiles) // 2 + 1]
    elif column.kind == DATES.name:
        said["type"] = ["string", "null"]
    elif column.kind in CELL_KINDS:
        is_text = cell_kind(column.kind).has_words
        said["type"] = ["string", "null"] if is_text else "string"
        if not is_text:
            said["contentEncoding"] = "base64"
    else:
        said["type"] = ["string", "number", "boolean", "null"]
    return {"description": f"{words}.", **said}


def _shown(kind: str, value: float) -> Any:
    if kind != DATES.name:
        return value
    return str(dt.date(1970, 1, 1) + dt.timedelta(days=value))


def _predictions(model: ServedModel) -> dict[str, Any]:
    label = {"enum": model.classes}
    count = len(model.classes)
    properties: dict[str, Any] = {
        "prediction": label,
        "probabilities": {
            "description": "In the order of the classes.",
            "type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1},
            "minItems": count, "maxItems": count,
        },
        "outside": {
            "description": "The columns in which the row lies outside the training rows.",
            "type": "array", "items": {"type": "string"},
        },
    }  # fmt: skip
    if model.fitted.conformal_ is not None:
        properties["interval"] = {
            "description": f"From the lowest to the highest class; it holds the true one in "
            f"{100 * model.coverage:g} of 100 rows.",
            "type": "array", "items": label, "minItems": 2, "maxItems": 2,
        }  # fmt: skip
    return {
        "type": "object",
        "required": ["model", "classes", "predictions"],
        "properties": {
            "model": {"type": "string", "description": "The hash of the model."},
            "classes": {"const": model.classes},
            "predictions": {
                "type": "array",
                "items": {
                    "type": "object", "required": list(properties), "properties": properties,
                },
            },
        },
    }  # fmt: skip
