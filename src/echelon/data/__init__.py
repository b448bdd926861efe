"""Data: what echelon generates itself, and readers of what others published."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echelon.datasets.digits import load_digits
    from echelon.datasets.discs import Discs, make_discs
    from echelon.datasets.friedman import Friedman, make_friedman
    from echelon.datasets.reviews import Reviews, make_reviews

__all__ = [
    "Discs", "Friedman", "Reviews", "load_digits", "make_discs", "make_friedman", "make_reviews",
]  # fmt: skip

_PLACES = {
    "Discs": "discs",
    "Friedman": "friedman",
    "Reviews": "reviews",
    "load_digits": "digits",
    "make_discs": "discs",
    "make_friedman": "friedman",
    "make_reviews": "reviews",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        value = getattr(import_module(f"echelon.datasets.{_PLACES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'echelon.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
