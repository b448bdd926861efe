"""Tests of proportional odds: by hand, under the hypothesis, and where it fails."""

import numpy as np
import pytest
from scipy import stats

from echelon.models.cumulative import fit_cumulative
from echelon.models.proportionality import SlopeRows, brant_test, likelihood_ratio_test
from tests.simulated import rejections, simulated


def rows_of(x, ranks, num_classes: int = 4, link: str = "logit", weight=None) -> SlopeRows:
    terms = {f"x{j}": [j] for j in range(x.shape[1])}
    weight = np.ones(len(x)) if weight is None else weight
    return SlopeRows(x, ranks, num_classes, link, weight, terms)


def test_brants_test_is_a_hand_computation() -> None:
    """The formulas of Brant (1990) with the exceedance as he has it, in raw units."""
    x, ranks = simulated(0, 300)
    n, p, cuts = 300, 2, 3
    own = np.column_stack([np.ones(n), x])
    slopes, pi = [], []
    for k in range(cuts):
        beta = np.zeros(p + 1)
        y = (ranks > k).astype(float)
        for _ in range(50):  # logistic regression by Newton steps
            mean = 1 / (1 + np.exp(-own @ beta))
            beta += np.linalg.solve(
                (own * (mean * (1 - mean))[:, None]).T @ own, own.T @ (y - mean)
            )
        slopes.append(beta[1:])
        pi.append(1 / (1 + np.exp(-own @ beta)))

    def crossed(k: int, m: int) -> np.ndarray:
        weight = pi[max(k, m)] - pi[k] * pi[m]
        return (own * weight[:, None]).T @ own

    blocks = [
        [
            (np.linalg.inv(crossed(k, k)) @ crossed(k, m) @ np.linalg.inv(crossed(m, m)))[1:, 1:]
            for m in range(cuts)
        ]
        for k in range(cuts)
    ]
    covariance, stacked = np.block(blocks), np.concatenate(slopes)
    contrast = np.zeros((4, 6))
    for j in range(2):
        for k in range(2):
            contrast[2 * k + j, j], contrast[2 * k + j, 2 * (k + 1) + j] = 1, -1
    difference = contrast @ stacked
    expected = difference @ np.linalg.solve(contrast @ covariance @ contrast.T, difference)
    found = brant_test(rows_of(x, ranks))
    assert found.overall.statistic == pytest.approx(expected, rel=1e-6)
    assert found.overall.degrees == 4
    assert found.overall.p_value == pytest.approx(stats.chi2.sf(expected, 4), rel=1e-5)
    one = contrast[[0, 2]]
    expected = (one @ stacked) @ np.linalg.solve(one @ covariance @ one.T, one @ stacked)
    assert found.terms["x0"].statistic == pytest.approx(expected, rel=1e-6)


def test_frequency_weights_are_copies_to_both_tests() -> None:
    x, ranks = simulated(1, 200)
    times = np.random.default_rng(0).integers(1, 4, 200)
    copied = rows_of(np.repeat(x, times, 0), np.repeat(ranks, times))
    weighted = rows_of(x, ranks, weight=times.astype(float))
    for robust in (False, True):
        a, b = (brant_test(rows, robust=robust).overall for rows in (copied, weighted))
        assert a.statistic == pytest.approx(b.statistic, rel=1e-3)
    equal = fit_cumulative(x, ranks, 4, weight=times).log_likelihood
    a, b = (likelihood_ratio_test(rows, equal).overall for rows in (copied, weighted))
    assert a.statistic == pytest.approx(b.statistic, rel=1e-6)


@pytest.mark.parametrize("link", ["probit", "cloglog"])
def test_the_two_tests_agree_for_other_links_too(link: str) -> None:
    for violation in (0.0, 0.3):
        x, ranks = simulated(4, 3000, link=link, violation=violation)
        rows = rows_of(x, ranks, link=link)
        equal = fit_cumulative(x, ranks, 4, link=link).log_likelihood
        wald, ratio = brant_test(rows).overall, likelihood_ratio_test(rows, equal).overall
        assert wald.statistic == pytest.approx(ratio.statistic, rel=0.25, abs=1.5)
        robust = brant_test(rows, robust=True).overall
        assert wald.statistic == pytest.approx(robust.statistic, rel=0.25, abs=1.5)


def test_what_cannot_be_tested_is_said() -> None:
    x, ranks = simulated(0, 200)
    two = rows_of(x, (ranks > 1).astype(np.int64), 2)
    assert "two classes" in brant_test(two).note
    mark = (ranks == 3) & (np.arange(200) % 3 == 0)
    marked = rows_of(np.column_stack([x, mark]), ranks)
    assert "threshold" in brant_test(marked).note
    assert "no finite fit" in likelihood_ratio_test(marked, 0.0).note
    wide = rows_of(np.random.default_rng(0).normal(size=(200, 600)), ranks)
    assert "1,500 parameters" in brant_test(wide).note


def test_errors_of_the_first_kind_and_power_quickly() -> None:
    """The long form, with 500 tables, is among the slow tests."""
    tables = 25
    noise = 3 * np.sqrt(0.05 * 0.95 / tables)
    for share in rejections(tables, n=400).values():
        assert share < 0.05 + noise
    for share in rejections(8, n=1500, violation=0.25).values():
        assert share >= 0.6  # of 8 tables
