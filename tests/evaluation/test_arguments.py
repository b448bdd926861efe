"""What metrics read: labels in their order, and everything wrong named at once."""

import numpy as np
import pytest

from echelon.evaluation import metrics
from tests.evaluation.test_metrics import OF_DISTRIBUTIONS, OF_LABELS


def test_strings_have_the_order_that_is_given_not_that_of_letters() -> None:
    classes = ["low", "mid", "high"]  # by letters: high, low, mid
    assert metrics.mae(["low", "high"], ["high", "low"], classes=classes) == 2.0
    found = metrics.confusion_matrix(["low", "high"], ["low", "mid"], classes=classes)
    assert found.tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]


def test_probabilities_are_not_cut_to_whole_numbers() -> None:
    probabilities = [[0.6, 0.4], [0.3, 0.7]]
    assert metrics.ranked_probability_score([0, 1], probabilities) == pytest.approx(
        (0.16 + 0.09) / 2
    )


@pytest.mark.parametrize("name", [*OF_LABELS, "confusion_matrix"])
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
        ((["a"], ["c"]), {"classes": ["a", "b"]}, "prediction has the label 'c', which is not"),
        ((["a"], ["b"]), {"classes": ["a", "b"], "num_classes": 3}, "there are 2 classes"),
    ],
)
def test_wrong_arguments(name, arguments, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(metrics, name)(*arguments, **options)


@pytest.mark.parametrize("name", OF_DISTRIBUTIONS)
@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0], [0.5, 0.5]), {}, r"must have the shape \(n, K\)"),
        (([0], [[0.5, 0.5]]), {"num_classes": 3}, r"must have the shape \(n, 3\)"),
        (([0], [[0.5, 0.6]]), {}, "sum to 1"),
        (([0], [[-0.5, 1.5]]), {}, "non-negative"),
        (([0], [[np.nan, 1.0]]), {}, "non-negative"),
        (([2], [[0.5, 0.5]]), {}, r"truth must lie in 0\.\.1"),
        (([0.5], [[0.5, 0.5]]), {}, "whole numbers"),
        ((["c"], [[0.5, 0.5]]), {"classes": ["a", "b"]}, "truth has the label 'c'"),
    ],
)
def test_wrong_distributions(name, arguments, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(metrics, name)(*arguments, **options)
