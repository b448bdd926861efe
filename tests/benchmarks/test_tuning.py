"""How a peer chooses its settings: on the validation rows, and then for all rows."""

import numpy as np
import pandas as pd
import pytest

import tuning
from sets import Division, Rows
from tuning import Fitted, Task


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
            return tuning.sure((frame["x"].astype(int) + point["shift"]) % 4, 4)

        return Fitted(probabilities, rounds=7)

    grid = tuning.grid_of(shift=(2, 3, 0, 1))
    outcome = tuning.tuned(fit, grid, division(), 1)
    assert outcome.chosen == {"shift": 0, "rounds": 7}  # though the test rows want another
    assert seen == [(32, 8)] * 4 + [(40, None)]
    assert outcome.ranks.tolist() == (np.arange(40) % 4).tolist()


def test_peer_that_fits_no_point_says_why() -> None:
    def fit(*_: object) -> Fitted:
        raise ValueError("too few rows")

    with pytest.raises(RuntimeError, match="too few rows"):
        tuning.tuned(fit, tuning.grid_of(shift=(0, 1)), division(), 1)


def test_class_that_a_library_did_not_see_has_probability_0() -> None:
    found = tuning.spread(np.array([[2.0, 6.0]]), [0, 2], 4)
    assert found.tolist() == [[0.25, 0.0, 0.75, 0.0]]
    with pytest.raises(ValueError, match="not finite"):
        tuning.spread(np.array([[np.nan, 1.0]]), [0, 2], 4)
