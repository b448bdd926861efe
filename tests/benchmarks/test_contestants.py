"""How a peer chooses its settings: on the validation rows, and then for all rows."""

import numpy as np
import pandas as pd
import pytest

import contestants
from contestants import Fitted, Task
from sets import Division, Rows


def division() -> Division:
    ranks = np.arange(40) % 4
    everything = Rows(pd.DataFrame({"x": ranks + 0.1, "row": np.arange(40.0)}), ranks)
    test = Rows(pd.DataFrame({"x": ranks + 0.1, "row": 100.0}), 3 - ranks)
    return Division("made", 3, everything, np.arange(40) < 8, test, 4, 1.0)


def test_settings_are_chosen_on_validation_rows_and_fitted_to_all() -> None:
    seen: list[tuple[int, int | None]] = []

    def fit(task: Task, point: dict, rows: Rows, held: Rows | None) -> Fitted:
        assert task == Task(num_classes=4, seed=3, threads=1)
        seen.append((len(rows.ranks), None if held is None else len(held.ranks)))
        if point["shift"] == 2:
            raise ValueError("this point cannot be fitted")
        if held is None:
            assert point["rounds"] == 7

        def probabilities(frame: pd.DataFrame) -> np.ndarray:
            return contestants.sure((frame["x"].astype(int) + point["shift"]) % 4, 4)

        return Fitted(probabilities, rounds=7)

    grid = contestants.grid_of(shift=(2, 3, 0, 1))
    outcome = contestants.tuned(fit, grid, division(), 1)
    assert outcome.chosen == {"shift": 0, "rounds": 7}  # though the test rows want another
    assert seen == [(32, 8)] * 4 + [(40, None)]
    assert outcome.ranks.tolist() == (np.arange(40) % 4).tolist()


def test_peer_that_fits_no_point_says_why() -> None:
    def fit(*_: object) -> Fitted:
        raise ValueError("too few rows")

    with pytest.raises(RuntimeError, match="too few rows"):
        contestants.tuned(fit, contestants.grid_of(shift=(0, 1)), division(), 1)


def test_no_grid_has_more_than_twelve_points() -> None:
    grids = [value for name, value in vars(contestants).items() if name.endswith("_GRID")]
    assert len(grids) == 6
    assert all(1 < len(grid) <= 12 for grid in grids)


def test_class_that_a_library_did_not_see_has_probability_0() -> None:
    found = contestants.spread(np.array([[2.0, 6.0]]), [0, 2], 4)
    assert found.tolist() == [[0.25, 0.0, 0.75, 0.0]]
    with pytest.raises(ValueError, match="not finite"):
        contestants.spread(np.array([[np.nan, 1.0]]), [0, 2], 4)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.parametrize("fit", [contestants.lightgbm_classes, contestants.lightgbm_linked])
def test_lightgbm_reads_strings_gaps_and_a_class_without_rows(fit: contestants.Fit) -> None:
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
