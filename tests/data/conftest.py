"""What tests of data share."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def frame() -> pd.DataFrame:
    """A small table with a column of every kind but text and image."""
    return pd.DataFrame(
        {
            "size": [1.0, 2.0, np.nan, 4.0],
            "count": [1, 2, 3, 4],
            "flag": [True, False, True, True],
            "colour": ["red", None, "blue", "red"],
            "grade": pd.Categorical(["b", "a", "a", "b"], categories=["b", "a", "z"]),
            "same": [5, 5, 5, 5],
        }
    )
