"""Data: what echelon generates itself, and readers of what others published."""

from echelon.data.friedman import Friedman, make_friedman
from echelon.data.pictures import Discs, load_digits, make_discs
from echelon.data.reviews import Reviews, make_reviews

__all__ = [
    "Discs", "Friedman", "Reviews", "load_digits", "make_discs", "make_friedman", "make_reviews",
]  # fmt: skip
