"""Data: what echelon generates itself."""

from echelon.data.friedman import Friedman, make_friedman

__all__ = ["Friedman", "make_friedman"]
