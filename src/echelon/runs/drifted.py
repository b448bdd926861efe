"""The document that says how far the rows of a run are from those of the fit, checked."""

from collections.abc import Mapping
from typing import Any

_NUMBERS = ("distance", "noise", "missing", "missing_before", "p_value", "adjusted_p_value")


def check_drift(document: Mapping[str, Any]) -> None:
    """Raise where a document is not what a comparison with training rows gives.

    Examples
    --------
    >>> check_drift({"rows": "many"})
    Traceback (most recent call last):
    ...
    ValueError: drift.json: rows must be a number; got 'many'
    """
    for name in ("rows", "level"):
        _require(_is_number(document.get(name)), name, "a number", document.get(name))
    tests, lacking = document.get("tests"), document.get("not_compared")
    if not isinstance(tests, (list, tuple)) or not isinstance(lacking, (list, tuple)):
        raise ValueError("drift.json: tests and not_compared must be lists")
    for sentence in lacking:
        _require(isinstance(sentence, str), "not_compared", "sentences", sentence)
    for test in tests:
        if not isinstance(test, Mapping):
            raise ValueError(f"drift.json: a test must be an object; got {test!r:.80}")
        for name in ("name", "what", "sentence"):
            _require(isinstance(test.get(name), str), name, "text", test.get(name))
        _require(isinstance(test.get("alarm"), bool), "alarm", "true or false", test.get("alarm"))
        for name in _NUMBERS:
            is_needed = name.endswith("p_value")
            if is_needed or name in test:
                _require(_is_number(test.get(name)), name, "a number", test.get(name))


def _require(fulfilled: bool, name: str, what: str, came: Any) -> None:
    if not fulfilled:
        raise ValueError(f"drift.json: {name} must be {what}; got {came!r:.80}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
