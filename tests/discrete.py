"""Rows with two columns of categories: few different probabilities, and so many ties."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon import OrdinalClassifier

NEW_ROWS = 5000
CALIBRATION_ROWS = 1000


def draw(n: int, seed: int) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """n rows, and ranks 0..4 that depend on both columns."""
    generator = np.random.default_rng(seed)
    one, other = generator.integers(4, size=n), generator.integers(3, size=n)
    ranks = generator.binomial(4, 0.15 + 0.12 * one + 0.1 * other)
    return pd.DataFrame(
        {"a": np.array(list("wxyz"))[one], "b": np.array(list("klm"))[other]}
    ), ranks


def discrete_model() -> tuple[OrdinalClassifier, pd.DataFrame]:
    """A model that was fitted on such rows, and many new ones."""
    model = OrdinalClassifier(
        backbone="mlp",
        backbone_options={"hidden": (32, 32)},
        settings={"max_epochs": 3},
        random_state=0,
        device="cpu",
        classes=[0, 1, 2, 3, 4],
    )
    return model.fit(*draw(1000, seed=0)), draw(NEW_ROWS, seed=1)[0]


def coverage_of_draw(
    model: OrdinalClassifier,
    table: pd.DataFrame,
    coverage: float,
    seed: int,
    score: str = "probability",
) -> float:
    """The share of new rows that are covered, after a draw of calibration rows.

    The new rows have new labels each time, and there are so many that they are predicted in several
    parts, where the calibration rows are one.
    """
    model.conformalize(*draw(CALIBRATION_ROWS, seed=1000 + seed), score=score)
    ends = model.predict_interval(table, coverage)
    one = np.searchsorted(list("wxyz"), table["a"])
    other = np.searchsorted(list("klm"), table["b"])
    truth = np.random.default_rng(5000 + seed).binomial(4, 0.15 + 0.12 * one + 0.1 * other)
    return float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())
