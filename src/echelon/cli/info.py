"""The command ``info``: what a saved model is."""

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from echelon.cli.options import AsJson, Model
from echelon.cli.reading import plain
from echelon.models.table import MODELS


def info(model: Model, as_json: AsJson = False) -> None:
    """Show what a saved model is: its kind, its classes, and what its columns held in training.

    Example: echelon info wine.echelon
    """
    from echelon.models.document import KEY, fingerprint
    from echelon.models.loading import load
    from echelon.storage.bundle import read_bundle

    fitted = load(model)
    kept = fitted.conformal_
    document = {
        "model": str(model),
        "kind": fitted.kind,
        "method": getattr(fitted, "method", None),
        "classes": fitted.classes_.tolist(),
        "rows": fitted.num_rows_,
        "decision": _decision(fitted),
        "columns": fitted.columns_,
        "is_calibrated": fitted.calibration_ is not None,
        "calibration": fitted.calibration_summary_,
        "interval_rows": 0 if kept is None else len(kept.ranks),
        "interval_score": None if kept is None else fitted.conformal_score_,
        "echelon": read_bundle(model, KEY).document["echelon"],
        "data": fitted.about_.get("data"),
        "target": fitted.about_.get("target"),
        "scores": fitted.scores_,
        "written": _written(model),
        "bytes": model.stat().st_size,
        "hash": fingerprint(fitted),
    }
    if as_json:
        print(json.dumps(document))
        return
    try:
        columns = {str(column["name"]): _in_words(column) for column in fitted.columns_}
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"{model} is damaged: its columns are not described ({error})") from None
    for name, text in {**_lines(document), "columns": f"{len(columns):,}"}.items():
        print(f"{name:<14}{text}")
    for name, text in columns.items():
        print(f"  {name:<20} {text}")


def _lines(document: Mapping[str, Any]) -> dict[str, str]:
    summary = MODELS[document["kind"]].summary
    rows, kept = document["rows"], document["interval_rows"]
    return {
        "model": document["model"],
        "kind": f"{document['kind']}: {summary}",
        **({} if document["method"] is None else {"method": document["method"]}),
        "classes": plain(document["classes"]),
        **{name: document[name] for name in ("data", "target") if document[name] is not None},
        **({} if rows is None else {"rows": f"{rows:,} in training"}),
        **({} if not document["scores"] else {"scores": _scores(document["scores"])}),
        "decision": document["decision"],
        "calibration": _calibration(document),
        "intervals": f"{kept:,} rows kept for them" if kept else "none",
        "echelon": f"written by {document['echelon']} on {document['written']}",
        "size": f"{document['bytes'] / 1e6:.2f} MB",
        "hash": document["hash"],
    }


def _written(model: Path) -> str:
    return str(dt.datetime.fromtimestamp(model.stat().st_mtime).date())


def _scores(scores: Mapping[str, float]) -> str:
    """Scores of unseen rows in words.

    Examples
    --------
    >>> _scores({"rows": 100.0, "accuracy": 0.5, "mae": 0.61234, "rps": 0.3})
    'accuracy 0.5000, mae 0.6123, rps 0.3000 on 100 rows that the fit had not seen'
    """
    shown = ", ".join(f"{name} {value:.4f}" for name, value in scores.items() if name != "rows")
    return f"{shown} on {scores.get('rows', 0):,.0f} rows that the fit had not seen"


def _calibration(document: Mapping[str, Any]) -> str:
    if not document["is_calibrated"]:
        return "none"
    scores = document["calibration"] or {}
    before, after = scores.get("before", {}), scores.get("after", {})
    changes = [f"{name} {before[name]:.4f} to {after[name]:.4f}" for name in before]
    return ", ".join(changes) or "done"


def _decision(fitted: Any) -> str:
    decision = fitted.default_decision() if fitted.decision is None else fitted.decision
    return decision if isinstance(decision, str) else "by a matrix of costs"


def _in_words(column: Mapping[str, Any]) -> str:
    """What a column held in training.

    Examples
    --------
    >>> _in_words({"name": "a", "kind": "number", "missing": 0.25, "quantiles": [1.0, 2.0, 5.0]})
    'number, 25 % missing, 1 to 5, median 2'
    >>> _in_words({"name": "a", "kind": "number", "missing": 0.25, "missing_codes": ["99", "98"]})
    'number, 25 % missing, with 99 and 98'
    >>> _in_words({"name": "b", "kind": "category", "missing": 0.0, "frequent": {"red": 0.5}})
    'category, red 50 %'
    >>> _in_words({"name": "c", "kind": "date", "missing": 0.0, "quantiles": [0.0, 31.0, 365.0]})
    'date, 1970-01-01 to 1971-01-01, median 1970-02-01'
    """
    said = [str(column["kind"])]
    if column.get("missing"):
        codes = (
            f", with {' and '.join(column['missing_codes'])}" if "missing_codes" in column else ""
        )
        said.append(f"{_share(column['missing'])} missing{codes}")
    if quantiles := column.get("quantiles"):
        shown = _day if column["kind"] == "date" else "{:g}".format
        lowest, median, highest = (shown(quantiles[i]) for i in (0, len(quantiles) // 2, -1))
        said.append(f"{lowest} to {highest}, median {median}")
    said += [f"{name} {_share(share)}" for name, share in column.get("frequent", {}).items()]
    return ", ".join(said)


def _day(days: float) -> str:
    return f"{dt.date(1970, 1, 1) + dt.timedelta(days=days)}"


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"
