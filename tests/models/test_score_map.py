"""The curve of scores among cutpoints that are given, and its one number."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import expit

from echelon.curve import RankCurve
from echelon.models.score_map import ScoreCurve, fit_scale


def ranks_of(scores: np.ndarray, cutpoints: np.ndarray, noise: float, seed: int = 0) -> np.ndarray:
    spread = np.random.default_rng(seed).logistic(scale=noise, size=len(scores))
    return np.digitize(scores + spread, cutpoints)


def test_the_curve_is_that_of_the_formula_and_its_median_the_count_rule() -> None:
    scores = np.random.default_rng(0).normal(size=300) * 3
    cutpoints = np.array([-2.0, -1.5, 0.3, 4.0])
    curve = RankCurve(ScoreCurve(cutpoints, 0.7)(torch.from_numpy(scores)))
    at_most = expit(0.7 * (cutpoints - scores[:, None]))
    np.testing.assert_allclose(curve.exceedance.numpy(), 1 - at_most, atol=1e-12)
    assert (curve.median().numpy() == (scores[:, None] > cutpoints).sum(1)).all()


def test_cutpoints_that_coincide_leave_a_rank_a_little() -> None:
    curve = ScoreCurve(np.array([1.0, 1.0, 1.0]), 2.0)(torch.zeros(1, dtype=torch.float64))
    assert (curve.exp() > 1e-8).all()
    assert torch.allclose(curve.exp().sum(1), torch.ones(1, dtype=torch.float64))


def test_the_scale_is_that_of_the_largest_likelihood() -> None:
    """Computed once more with scipy, by subtracting probabilities."""
    scores, cutpoints = np.random.default_rng(1).normal(size=3000), np.array([-1.0, 0.2, 0.9])
    ranks = ranks_of(scores, cutpoints, 0.4)
    weight = np.random.default_rng(2).random(3000)

    def loss(log_scale: float) -> float:
        at_most = expit(np.exp(log_scale) * (cutpoints - scores[:, None]))
        edges = np.column_stack([np.zeros(3000), at_most, np.ones(3000)])
        return -(weight @ np.log(np.diff(edges, axis=1)[np.arange(3000), ranks]))

    expected = np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x)
    found = fit_scale(cutpoints - scores[:, None], ranks, weight)
    assert found == pytest.approx(expected, rel=0.01)  # but for the row of unknown rank
    assert found == pytest.approx(1 / 0.4, rel=0.1)


def test_no_scale_is_infinite_or_none() -> None:
    scores, cutpoints = np.linspace(-3, 3, 50), np.array([0.0])
    distances = cutpoints - scores[:, None]
    separated = fit_scale(distances, (scores > 0).astype(np.int64))
    assert 1 < separated < 1e3
    assert 0 < fit_scale(distances, (scores < 0).astype(np.int64)) < 0.1  # no higher, no lower
    assert fit_scale(distances[:0], np.zeros(0, np.int64)) == 1.0
    assert np.isfinite(fit_scale(np.zeros((4, 2)), np.array([0, 1, 2, 1])))
