"""The document that explains a run: what its fields must be before anything is shown of it."""

from collections.abc import Mapping
from typing import Any


def check_explanation(document: Mapping[str, Any]) -> None:
    """Raise where a document is not what an explanation is.

    Examples
    --------
    >>> check_explanation({"importance": 3})
    Traceback (most recent call last):
    ...
    ValueError: explanation.json: classes must be a list; got None
    """
    classes = len(_list(document, "classes"))
    thresholds = _list(document, "thresholds")
    if not thresholds or not all(_is_rank(k, classes - 1) for k in thresholds):
        raise ValueError("explanation.json: thresholds must be those between the classes")
    if not _list(document, "importance"):
        raise ValueError("explanation.json: importance must be of at least one column")
    for row in _objects(document, "importance"):
        _texts(row, "columns")
        _texts(row, "direction", single=True)
        _numbers(row, "mean", single=True)
        _numbers(row, "standard_error", single=True, may_lack=True)
        if not row["columns"]:
            raise ValueError("explanation.json: importance must name its columns")
    for row in _objects(document, "effects"):
        _texts(row, "column", single=True)
        _texts(row, "kind", single=True)
        cells = _list(row, "cells")
        if not all(cell is None or isinstance(cell, str) or _is_number(cell) for cell in cells):
            raise ValueError("explanation.json: cells must be numbers or texts")
        if all(cell is None for cell in cells):
            raise ValueError("explanation.json: cells must be more than gaps")
        for name in ("rows", "expected_rank", "spread"):
            _numbers(row, name, length=len(cells))
        curves = _list(row, "exceedance")
        if len(curves) != len(cells):
            raise ValueError("explanation.json: exceedance must have a list for each cell")
        for curve in curves:
            _numbers({"exceedance": curve}, "exceedance", length=len(thresholds))
    pair = document.get("interaction")
    if pair is not None:
        (pair,) = _objects({"interaction": [pair]}, "interaction")
        _texts(pair, "columns")
        _numbers(pair, "share", single=True)
        if len(pair["columns"]) != 2:
            raise ValueError("explanation.json: an interaction is one of two columns")
    for row in _objects(document, "reasons"):
        if not _is_rank(row.get("row"), 2**53) or not _is_rank(row.get("threshold"), classes - 1):
            raise ValueError("explanation.json: reasons must name their row and threshold")
        _texts(row, "sentences")
        for name in ("start", "end", "rank_start", "rank_end"):
            _numbers(row, name, single=True)
        columns = _texts(row, "columns")
        for name in ("contributions", "rank_contributions"):
            _numbers(row, name, length=len(columns))
        for word in _objects(row, "words"):
            _texts(word, "words", single=True)
            _numbers(word, "rank_change", single=True)


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    value = document.get(name)
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"explanation.json: {name} must be a list; got {value!r:.80}")
    return list(value)


def _objects(document: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    rows = _list(document, name)
    if not all(isinstance(row, Mapping) for row in rows):
        raise ValueError(f"explanation.json: {name} must be a list of objects; got {rows!r:.80}")
    return rows


def _texts(document: Mapping[str, Any], name: str, *, single: bool = False) -> list[str]:
    texts = [document.get(name)] if single else _list(document, name)
    if not all(isinstance(value, str) for value in texts):
        raise ValueError(f"explanation.json: {name} must be text; got {texts!r:.80}")
    return [str(value) for value in texts]


def _numbers(
    document: Mapping[str, Any],
    name: str,
    *,
    single: bool = False,
    length: int | None = None,
    may_lack: bool = False,
) -> None:
    numbers = [document.get(name)] if single else _list(document, name)
    if not all(_is_number(value) or (may_lack and value is None) for value in numbers):
        raise ValueError(f"explanation.json: {name} must be numbers; got {numbers!r:.80}")
    if length is not None and len(numbers) != length:
        raise ValueError(f"explanation.json: {name} must have {length} numbers; got {len(numbers)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _is_rank(value: Any, below: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below
