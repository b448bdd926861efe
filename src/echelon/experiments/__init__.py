"""Many runs: comparisons and grids, each run in a folder of its own."""

from echelon.experiments.comparing import compare_methods, comparison_jobs
from echelon.experiments.execute import Executor, RunsFailed
from echelon.experiments.searching import Search, estimate_seconds, search_grid
from echelon.experiments.tasks import Task, table_task

__all__ = [
    "Executor",
    "RunsFailed",
    "Search",
    "Task",
    "compare_methods",
    "comparison_jobs",
    "estimate_seconds",
    "search_grid",
    "table_task",
]
