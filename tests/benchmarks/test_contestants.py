"""The contestants: grids of the same size, and columns that a library could stumble over."""

import numpy as np
import pandas as pd
import pytest

import contestants
from sets import Rows
from tuning import Fit, Task


def test_no_grid_has_more_than_twelve_points() -> None:
    grids = [value for name, value in vars(contestants).items() if name.endswith("_GRID")]
    assert len(grids) == 6
    assert all(1 < len(grid) <= 12 for grid in grids)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.parametrize("fit", [contestants.lightgbm_classes, contestants.lightgbm_linked])
def test_lightgbm_reads_strings_gaps_and_a_class_without_rows(fit: Fit) -> None:
    generator = np.random.default_rng(0)
    ranks = np.repeat([0, 1, 3], 40)
    frame = pd.DataFrame(
        {"x": ranks + generator.normal(size=120), "s": np.array(list("abcd"))[ranks]}
    )
    frame.loc[::7, "x"] = np.nan
    frame.loc[::11, "s"] = None
    rows = Rows(frame, ranks)
    new = frame.head(5).assign(s="new")
    task, point = Task(4, 0, 1), {"num_leaves": 3, "rounds": 5}
    for held in (None, rows):
        found = fit(task, point, rows, held).probabilities(new)
        assert found.shape == (5, 4)
        assert np.allclose(found.sum(axis=1), 1)
