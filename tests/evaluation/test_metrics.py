"""Metrics against scikit-learn, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from echelon.evaluation.metrics import mae, rmse

ranks = st.lists(st.integers(0, 6), min_size=1, max_size=30)


@given(st.data(), ranks)
def test_equal_scikit_learn(data: st.DataObject, truth: list[int]) -> None:
    size = {"min_size": len(truth), "max_size": len(truth)}
    prediction = data.draw(st.lists(st.integers(0, 6), **size))
    weight = data.draw(st.none() | st.lists(st.floats(0.1, 10), **size))
    for ours, theirs in ((mae, mean_absolute_error), (rmse, root_mean_squared_error)):
        found = ours(truth, prediction, num_classes=7, sample_weight=weight)
        assert found == pytest.approx(theirs(truth, prediction, sample_weight=weight))


@pytest.mark.parametrize("metric", [mae, rmse])
@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([], []), {}, "truth must be a non-empty vector"),
        (([0, 1], [0]), {}, "prediction must have 2 values, as truth has; got 1"),
        (([0, 5], [0, 1]), {"num_classes": 5}, r"truth must lie in 0\.\.4; got 0 to 5"),
        (([0, 1], [0, -1]), {"num_classes": 5}, r"prediction must lie in 0\.\.4; got -1 to 0"),
        (([0, np.nan], [0, 1]), {}, "truth must be finite"),
        ((["a", "b"], [0, 1]), {}, "truth must be numbers"),
        (([0, 1], [0, 1]), {"sample_weight": [0, 0]}, "non-negative and not all zero"),
        (([0, 1], [0, 1]), {"sample_weight": [1]}, "sample_weight must have 2 values"),
    ],
)
def test_wrong_arguments(metric, arguments, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        metric(*arguments, **options)
