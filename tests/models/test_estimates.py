"""Scores, sandwiches and gradients: against hands and differences."""

import numpy as np
import pytest

from echelon.models.cumulative import fit_cumulative, robust_covariance, row_scores
from echelon.models.estimates import Estimates
from echelon.models.links import LINKS
from echelon.models.partial import fit_partial
from tests.models.test_partial import made


@pytest.mark.parametrize("link", LINKS)
def test_scores_are_those_of_the_proportional_fit(link: str) -> None:
    x, ranks = made()
    fit = fit_cumulative(x, ranks, 4, link=link)
    estimates = Estimates.of(fit)
    np.testing.assert_allclose(
        estimates.row_scores(x, ranks), row_scores(fit, x, ranks), rtol=1e-7, atol=1e-9
    )
    np.testing.assert_allclose(
        estimates.probabilities(x), np.exp(fit.log_probabilities(x)), atol=1e-12
    )


def test_robust_errors_are_a_hand_computation() -> None:
    """Logit, three classes: the score of a row is written down, not looked up."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 1))
    ranks = np.digitize(x[:, 0] + rng.logistic(size=150), [-1.0, 1.0])
    groups = np.arange(150) // 5
    fit = fit_cumulative(x, ranks, 3)
    b, (c, d) = fit.coefficients[0], fit.cutpoints
    rows = []
    for value, rank in zip(x[:, 0], ranks, strict=True):
        low, high = (1 / (1 + np.exp(-(cut - b * value))) for cut in (c, d))
        f_low, f_high = low * (1 - low), high * (1 - high)
        p = (low, high - low, 1 - high)[rank]
        by_c = (f_low, -f_low, 0.0)[rank] / p
        by_d = (0.0, f_high, -f_high)[rank] / p
        rows.append([-value * (by_c + by_d), by_c, by_d])
    scores = np.array(rows)
    bread = fit.covariance
    estimates = Estimates.of(fit)
    expected = bread @ (scores.T @ scores) @ bread * 150 / 149
    ours = estimates.row_scores(x, ranks)
    np.testing.assert_allclose(
        estimates.sandwich(ours, np.ones(150), True, None), expected, rtol=1e-8
    )
    by_group = np.array([scores[groups == g].sum(0) for g in range(30)])
    expected = bread @ (by_group.T @ by_group) @ bread * 30 / 29
    found = estimates.sandwich(ours, np.ones(150), True, groups)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    np.testing.assert_allclose(found, robust_covariance(fit, x, ranks, clusters=groups), rtol=1e-8)


def test_copies_are_rows_and_sampling_weights_have_no_scale() -> None:
    x, ranks = made(200)
    times = np.random.default_rng(0).integers(0, 4, 200)
    fit = fit_cumulative(x, ranks, 4, weight=times)
    copied = np.repeat(x, times, 0), np.repeat(ranks, times)
    whole = Estimates.of(fit_cumulative(*copied, 4))
    ours = Estimates.of(fit)
    np.testing.assert_allclose(
        ours.sandwich(ours.row_scores(x, ranks), times.astype(float), True, None),
        whole.sandwich(whole.row_scores(*copied), np.ones(times.sum()), True, None),
        rtol=1e-6,
    )
    found = []
    for scale in (1.0, 7.5):
        weight = scale * (times + 0.5)
        estimates = Estimates.of(fit_cumulative(x, ranks, 4, weight=weight))
        found.append(estimates.sandwich(estimates.row_scores(x, ranks), weight, False, None))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


@pytest.mark.parametrize("free", [[], [1]])
def test_gradients_of_probabilities_are_those_of_differences(free: list[int]) -> None:
    x, ranks = made(100)
    fit = fit_partial(x, ranks, 4, free)
    estimates = Estimates.of(fit)
    weight = np.linspace(0.5, 2, 100)
    found = estimates.gradient(x, weight)
    for place in range(len(estimates.theta)):
        ends = []
        for sign in (1, -1):
            theta = estimates.theta.copy()
            theta[place] += sign * 1e-5
            cuts = theta[estimates.cut_places] - theta[estimates.places] @ fit.centre
            moved = Estimates(
                fit.link, theta, estimates.places, fit.centre, cuts, estimates.covariances
            )
            ends.append(weight @ moved.probabilities(x))
        np.testing.assert_allclose(
            found[:, place], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-6
        )


def test_clustered_errors_are_those_of_a_bootstrap_of_groups() -> None:
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(100), 6)
    x = np.column_stack([rng.normal(size=100)[groups], rng.normal(size=600)])
    shared = 1.5 * rng.normal(size=100)[groups]  # what makes rows of a group alike
    ranks = np.digitize(x @ [0.7, 0.7] + shared + rng.logistic(size=600), [-1.0, 1.0])
    fit = fit_cumulative(x, ranks, 3)
    estimates = Estimates.of(fit)
    found = estimates.sandwich(estimates.row_scores(x, ranks), np.ones(600), True, groups)
    drawn = []
    for _ in range(200):
        weight = np.bincount(rng.integers(0, 100, 100), minlength=100)[groups]
        drawn.append(fit_cumulative(x, ranks, 3, weight=weight).coefficients)
    ratio = np.std(drawn, axis=0) / np.sqrt(np.diag(found))[:2]
    # a standard deviation of 200 draws is known to 5 %, one of 100 groups to some more
    np.testing.assert_allclose(ratio, 1, atol=0.2)
    # and the errors that know nothing of groups are too small for the column that they share
    assert np.sqrt(found[0, 0] / fit.covariance[0, 0]) > 1.3
