"""Many runs: comparisons, grids and the paper's experiments, each run in a folder of its own."""

from echelon.experiments.comparing import compare_methods, comparison_jobs
from echelon.experiments.execute import Executor, RunsFailed
from echelon.experiments.reproducing import Experiment
from echelon.experiments.searching import Search, estimate_seconds, search_grid
from echelon.experiments.tasks import Task, fireman_task, generated_task, table_task

__all__ = [
    "Executor",
    "Experiment",
    "RunsFailed",
    "Search",
    "Task",
    "compare_methods",
    "comparison_jobs",
    "estimate_seconds",
    "fireman_task",
    "generated_task",
    "search_grid",
    "table_task",
]
