"""Single rows of runs: which are kept, what of them, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from echelon.evaluation.exploring import EXPLORED
from echelon.runs.rows import check_cells, column_cells, row_orders


def arrays(rows: int) -> dict[str, np.ndarray]:
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=rows)
    return {"truth": np.arange(rows) % 3, "prediction": p.argmax(axis=1), "probabilities": p}


def test_only_rows_worth_a_look_are_kept_with_cells_as_people_read_them() -> None:
    made = arrays(2000)
    frame = pd.DataFrame({"id": np.arange(2000), "x": 0.1 + 0.2, "name": "a\x1b[2J" + "b" * 200})
    frame.loc[:, "gone"] = None
    frame["text"] = "long"
    cells = column_cells(frame, made, apart=("text",))
    assert len(cells["cell_rows"]) <= 3 * EXPLORED
    assert set(row_orders(made)["error"]) <= set(cells["cell_rows"])
    assert cells["cell_names"].tolist() == ["id", "x", "name", "gone"]
    first = cells["cells"][0]
    assert first[0] == str(cells["cell_rows"][0])
    assert (first[1], first[3]) == ("0.3", "")
    assert len(first[2]) == 80
    assert "\x1b" not in first[2]
    check_cells(cells, 2000)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cell_rows": np.array([0, 9])}, "must be places of rows"),
        ({"cell_rows": np.array([1, 1])}, "each of them once"),
        ({"cells": np.zeros((2, 1))}, "must be texts"),
        ({"cells": np.array([["a"]])}, "a row for each"),
        ({"cell_names": None}, "must all be there"),
    ],
)
def test_cells_that_do_not_belong_to_the_rows_are_refused(change, words) -> None:
    good = {
        "cell_rows": np.array([0, 2]),
        "cell_names": np.array(["x"]),
        "cells": np.array([["1"], ["2"]]),
    }
    check_cells(good, 5)
    wrong = {name: value for name, value in {**good, **change}.items() if value is not None}
    with pytest.raises(ValueError, match=words):
        check_cells(wrong, 5)
