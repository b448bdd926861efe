"""Finished runs: the folder that holds one, and what several of them say together."""

from echelon.runs.comparison import Comparison
from echelon.runs.folder import (
    OtherFormatError,
    Run,
    RunConfig,
    add_drift,
    add_explanation,
    claim_folder,
    is_done,
    mixture,
    read_run,
    read_runs,
    row_cells,
    set_aside,
    write_run,
)
from echelon.runs.rows import column_cells, row_orders

__all__ = [
    "Comparison",
    "OtherFormatError",
    "Run",
    "RunConfig",
    "add_drift",
    "add_explanation",
    "claim_folder",
    "column_cells",
    "is_done",
    "mixture",
    "read_run",
    "read_runs",
    "row_cells",
    "row_orders",
    "set_aside",
    "write_run",
]
