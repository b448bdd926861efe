"""Whether two folders of runs hold the same, to the last bit."""

from pathlib import Path

import numpy as np

from echelon.runs import read_runs


def found_in(folder: Path) -> dict[str, np.ndarray]:
    return {run.config.name: run.predictions["probabilities"] for run in read_runs(folder)}


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert set(found) == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
