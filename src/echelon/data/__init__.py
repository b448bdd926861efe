"""Data: what echelon generates itself, and readers of what others published."""

from echelon.datasets.digits import load_digits
from echelon.datasets.discs import Discs, make_discs
from echelon.datasets.friedman import Friedman, make_friedman
from echelon.datasets.reviews import Reviews, make_reviews

__all__ = [
    "Discs", "Friedman", "Reviews", "load_digits", "make_discs", "make_friedman", "make_reviews",
]  # fmt: skip
