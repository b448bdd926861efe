"""Many runs: methods by seeds on one table, each written to a run folder."""

from echelon.experiments.comparing import (
    Task,
    check_request,
    compare_methods,
    generated_task,
    table_task,
)

__all__ = ["Task", "check_request", "compare_methods", "generated_task", "table_task"]
