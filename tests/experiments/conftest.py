"""A small table, and jobs on it that take a moment each."""

import numpy as np
import pandas as pd
import pytest

from echelon.data import make_friedman


@pytest.fixture(scope="session")
def small_frame() -> pd.DataFrame:
    data = make_friedman(100, num_classes=3, seed=2)
    frame = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(10)])
    frame["rating"] = np.array([1, 2, 3])[data.ranks]
    return frame
