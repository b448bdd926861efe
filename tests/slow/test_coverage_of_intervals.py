"""Prediction intervals keep their promise for every method, and are no wider than they must be."""

import numpy as np
import pytest

from echelon import METHODS, OrdinalClassifier
from echelon.data import make_friedman
from echelon.evaluation import conformal
from tests.discrete import coverage_of_draw, discrete_model

COVERAGES = (0.8, 0.9, 0.95)
DRAWS = 60
CALIBRATION_ROWS = 500
TEST_ROWS = 2000


def covered_and_width(p, truth, limit) -> tuple[float, float]:
    ends = conformal.intervals(p, limit)
    inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return float(inside.mean()), float((ends[:, 1] - ends[:, 0] + 1).mean())


@pytest.fixture(scope="module", params=sorted(METHODS))
def fitted(request) -> OrdinalClassifier:
    data = make_friedman(3000, num_classes=8, seed=100)
    model = OrdinalClassifier(
        request.param, random_state=0, settings={"max_epochs": 6, "refit": False}, device="cpu"
    )
    return model.fit(data.features, data.ranks)


@pytest.mark.parametrize("coverage", COVERAGES)
def test_coverage_holds_over_many_draws(fitted, coverage) -> None:
    """Each draw has calibration and test rows of its own; the mean must reach the promise."""
    shares = []
    for draw in range(DRAWS):
        data = make_friedman(CALIBRATION_ROWS + TEST_ROWS, num_classes=8, seed=1000 + draw)
        p = fitted.predict_proba(data.features)
        part = slice(0, CALIBRATION_ROWS)
        scores = conformal.calibration_scores(data.ranks[part], p[part])
        limit = conformal.threshold(scores, coverage)
        rest = slice(CALIBRATION_ROWS, None)
        shares.append(covered_and_width(p[rest], data.ranks[rest], limit)[0])
    # the spread of one draw: that of its threshold and that of its test rows
    variance = coverage * (1 - coverage) * (1 / CALIBRATION_ROWS + 1 / TEST_ROWS)
    error = np.sqrt(variance / DRAWS)
    assert np.mean(shares) > coverage - 3 * error
    # and not far more, which would be wasteful: ties at the mode aside, the excess is 1/(n+1)
    assert np.std(shares) < 2 * np.sqrt(variance)


@pytest.fixture(scope="module")
def large() -> dict[str, np.ndarray]:
    """CORN on 30,000 rows, with 10,000 for calibration and 50,000 to test."""
    train = make_friedman(30_000, seed=200)
    model = OrdinalClassifier(random_state=0, device="cpu").fit(train.features, train.ranks)
    found = {}
    for name, rows, seed in (("calibration", 10_000, 201), ("test", 50_000, 202)):
        data = make_friedman(rows, seed=seed)
        found[name] = data.ranks
        found[f"{name} model"] = model.predict_proba(data.features)
        found[f"{name} true"] = data.bayes_probabilities
    return found


def order_blind(found, coverage) -> float:
    """The mean size of the sets {k: P(y = k) >= t}, which know no order."""
    truth, p = found["calibration"], found["calibration model"]
    scores = p[np.arange(len(truth)), truth]
    limit = conformal.threshold(scores, coverage)
    return float((found["test model"] >= limit).sum(axis=1).mean())


@pytest.mark.parametrize("coverage", COVERAGES)
def test_intervals_are_nearly_as_narrow_as_can_be(large, coverage) -> None:
    widths = {}
    for name in ("model", "true"):
        scores = conformal.calibration_scores(large["calibration"], large[f"calibration {name}"])
        limit = conformal.threshold(scores, coverage)
        share, widths[name] = covered_and_width(large[f"test {name}"], large["test"], limit)
        assert share > coverage - 4 * np.sqrt(coverage * (1 - coverage) * (1e-4 + 2e-5))
    blind = order_blind(large, coverage)
    print(coverage, {**widths, "order-blind": blind})
    assert widths["model"] <= 1.02 * blind
    assert widths["model"] <= 1.05 * widths["true"]


@pytest.mark.parametrize("score", conformal.SCORES)
@pytest.mark.parametrize("coverage", COVERAGES)
def test_coverage_holds_where_inputs_are_discrete(coverage, score) -> None:
    model, table = discrete_model()
    shares = [coverage_of_draw(model, table, coverage, seed, score) for seed in range(500)]
    error = np.std(shares, ddof=1) / len(shares) ** 0.5
    print(f"{score} {coverage}: {np.mean(shares):.4f}, standard error {error:.4f}")
    assert np.mean(shares) > coverage - 2 * error
