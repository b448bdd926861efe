"""The model that chooses its members, and the network of few rows, by scikit-learn's checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from echelon import AutoOrdinal, OrdinalClassifier
from tests.contracts.test_scikit_learn import expected_failures


@parametrize_with_checks(
    [
        AutoOrdinal(None, folds=2, random_state=0, device="cpu"),
        OrdinalClassifier(settings={"max_epochs": 30}, random_state=0, device="cpu"),
    ],
    expected_failed_checks=expected_failures,
    xfail_strict=True,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check) -> None:
    if check.func.__name__ == "check_array_api_input":
        return  # would skip itself: it needs an environment of its own
    check(estimator)
