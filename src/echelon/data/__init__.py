"""Data: sources in files, and what echelon generates itself."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echelon.data.source import Source, scan
    from echelon.datasets.digits import load_digits
    from echelon.datasets.discs import Discs, make_discs
    from echelon.datasets.friedman import Friedman, make_friedman
    from echelon.datasets.reviews import Reviews, make_reviews

__all__ = [
    "Discs", "Friedman", "Reviews", "Source", "load_digits", "make_discs", "make_friedman",
    "make_reviews", "scan",
]  # fmt: skip

_PLACES = {
    "Discs": "datasets.discs",
    "Friedman": "datasets.friedman",
    "Reviews": "datasets.reviews",
    "Source": "data.source",
    "load_digits": "datasets.digits",
    "make_discs": "datasets.discs",
    "make_friedman": "datasets.friedman",
    "make_reviews": "datasets.reviews",
    "scan": "data.source",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        value = getattr(import_module(f"echelon.{_PLACES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'echelon.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
