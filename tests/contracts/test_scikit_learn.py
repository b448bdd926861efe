"""Every model against scikit-learn's own checks, with the same two exceptions for all."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from echelon import (
    CumulativeLinkModel,
    MetricNeighbors,
    OrdinalBlend,
    OrdinalBoosting,
    OrdinalClassifier,
    OrdinalReduction,
    OrdinalSVM,
    PRank,
)
from echelon.models.table import MODELS

STRINGS = {
    "check_classifiers_classes": "fits strings without an order, which echelon refuses to guess"
}
WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": "repeated rows make other batches and subsets"
}
QUICK = {
    # Few rows would get an ensemble, which is in tests/slow, too.
    "network": OrdinalClassifier(
        backbone="mlp", settings={"max_epochs": 12}, random_state=0, device="cpu"
    ),
    "boosting": OrdinalBoosting(rounds=40, random_state=0),
    "cumulative_link": CumulativeLinkModel(),
    "blend": OrdinalBlend(
        [CumulativeLinkModel(ridge=1.0), OrdinalBoosting(rounds=30)], folds=2, random_state=0
    ),
    "reduction": OrdinalReduction(random_state=0),
    "neighbors": MetricNeighbors(decision="mode", anchors=40, random_state=0),
    "svm": OrdinalSVM(random_state=0),
    # The checks want the most probable class, which is not the median where classes overlap.
    "prank": PRank(passes=3, decision="mode", random_state=0),
}
EXACT = (CumulativeLinkModel,)  # a row of weight 2 is two rows


def expected_failures(model) -> dict[str, str]:
    return STRINGS if isinstance(model, EXACT) else STRINGS | WEIGHTS


@parametrize_with_checks(
    list(QUICK.values()), expected_failed_checks=expected_failures, xfail_strict=True
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check) -> None:
    if check.func.__name__ == "check_array_api_input":
        return  # would skip itself: it needs an environment of its own
    check(estimator)


def test_every_model_is_checked() -> None:
    """The model that chooses its members itself is a blend of these, and in tests/slow."""
    assert {*QUICK, "auto"} == set(MODELS)
