"""Everything computed from predictions and the truth, in numpy."""

from echelon.evaluation import metrics, scorers
from echelon.evaluation.bounds import CostBound, cost_bound
from echelon.evaluation.running import RunningScores

__all__ = ["CostBound", "RunningScores", "cost_bound", "metrics", "scorers"]
