"""Everything computed from predictions and the truth, in numpy."""

from echelon.evaluation import metrics
from echelon.evaluation.bounds import CostBound, cost_bound

__all__ = ["CostBound", "cost_bound", "metrics"]
