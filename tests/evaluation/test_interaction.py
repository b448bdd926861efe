"""Interactions against variances that are known."""

import numpy as np
import pandas as pd
import pytest

from echelon.evaluation.interaction import interactions
from echelon.evaluation.recombining import Curves


def test_the_share_is_that_of_the_variance_of_the_product() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((4000, 3)), columns=["a", "b", "c"])

    def predict(rows: pd.DataFrame) -> np.ndarray:
        p = 0.5 + (rows["a"] - 0.5) * (rows["b"] - 0.5) + 0.25 * (rows["c"] - 0.5)
        return np.stack([1 - p, p], axis=1)

    found = interactions(Curves(predict), frame, rows=4000)
    product, rest = 1 / 144, 0.25**2 / 12  # the variances of the two terms
    assert found[0].columns == ("a", "b")
    assert abs(found[0].share - product / (product + rest)) < 4 * found[0].standard_error + 0.01
    assert [one.share for one in found[1:]] == pytest.approx([0, 0], abs=1e-12)


def test_there_is_none_of_one_column_of_one_row_or_of_a_constant() -> None:
    frame = pd.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.4]})
    constant = Curves(lambda rows: np.full((len(rows), 2), 0.5))
    assert interactions(constant, frame) == []
    assert interactions(constant, frame[["a"]]) == []
    assert interactions(constant, frame[:1]) == []
