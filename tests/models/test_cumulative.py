"""The exact cumulative link fit: against statsmodels, mpmath and differences, and in hard cases."""

import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from echelon.functional import clm_log_probabilities
from echelon.models.cumulative import (
    choose_ridge,
    fit_cumulative,
    robust_covariance,
    row_scores,
)
from echelon.models.links import LINKS

NOISE = {"logit": stats.logistic, "probit": stats.norm, "cloglog": stats.gumbel_l}


def made(
    n: int = 400, d: int = 3, num_classes: int = 4, *, link: str = "logit", seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Features in odd units, and ranks from a latent score with the noise of the link."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    latent = x @ rng.normal(size=d) + NOISE[link].rvs(size=n, random_state=rng)
    edges = np.quantile(latent, np.arange(1, num_classes) / num_classes)
    return x * 10.0 ** np.arange(-1, d - 1) + 5.0, np.digitize(latent, edges)


class Cloglog(stats.rv_continuous):
    """What statsmodels needs of a distribution."""

    def _cdf(self, x):
        return -np.expm1(-np.exp(x))

    def _pdf(self, x):
        return np.exp(x - np.exp(x))

    def _ppf(self, q):
        return np.log(-np.log1p(-q))


@pytest.mark.parametrize("link", LINKS)
def test_equals_statsmodels(link: str) -> None:
    ordinal_model = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    x, ranks = made(link=link)
    x = (x - x.mean(0)) / x.std(0) + 1.0
    distribution = Cloglog(name="cloglog") if link == "cloglog" else link
    model = ordinal_model.OrderedModel(ranks, x, distr=distribution)
    with warnings.catch_warnings():  # it says so where rounding keeps it from the tolerance
        warnings.simplefilter("ignore")
        theirs = model.fit(method="bfgs", gtol=1e-10, maxiter=1000, disp=False)
    ours = fit_cumulative(x, ranks, 4, link=link)
    d = x.shape[1]
    np.testing.assert_allclose(ours.coefficients, theirs.params[:d], atol=1e-5)
    cuts = model.transform_threshold_params(theirs.params)[1:-1]
    np.testing.assert_allclose(ours.cutpoints, cuts, atol=1e-5)
    assert ours.log_likelihood == pytest.approx(theirs.llf, abs=1e-8)
    assert ours.null_log_likelihood == pytest.approx(theirs.llnull, abs=1e-6)
    # their cutpoints after the first are logarithms of steps: errors by the delta method
    steps = np.exp(theirs.params[d + 1 :])
    jacobian = np.eye(len(theirs.params))
    jacobian[d:, d] = 1
    jacobian[d:, d + 1 :] = np.tril(np.ones((3, 3)), -1)[:, :-1] * steps
    expected = jacobian @ theirs.cov_params() @ jacobian.T
    errors = np.sqrt(np.diag(ours.covariance))
    np.testing.assert_allclose(errors, np.sqrt(np.diag(expected)), rtol=1e-3)


@pytest.mark.parametrize("link", LINKS)
def test_probabilities_are_those_of_the_torch_formula(link: str) -> None:
    torch = pytest.importorskip("torch")
    x, ranks = made(200, 3, 6, link=link)
    fit = fit_cumulative(x, ranks, 6, link=link)
    logs = fit.log_probabilities(x)
    np.testing.assert_allclose(np.exp(logs).sum(1), 1, atol=1e-12)
    steps = np.diff(fit.cutpoints)
    first = fit.cutpoints[:1] - (x @ fit.coefficients)[:, None]
    later = np.broadcast_to(np.log(np.expm1(steps)), (len(x), 4))
    logits = torch.from_numpy(np.concatenate([first, later], 1))
    np.testing.assert_allclose(
        logs, clm_log_probabilities(logits, link=link).numpy(), rtol=1e-9, atol=1e-9
    )


def test_two_classes_are_logistic_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    x, ranks = made(300, 3, 2)
    x = (x - x.mean(0)) / x.std(0)
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(x))
    theirs = LogisticRegression(C=0.5, tol=1e-12, solver="newton-cholesky", max_iter=1000)
    weighted = np.sqrt((weight / weight.sum()) @ (x - weight @ x / weight.sum()) ** 2)
    scaled = x / weighted  # the penalty is on columns of weighted spread 1
    theirs.fit(scaled, ranks, sample_weight=weight)
    ours = fit_cumulative(scaled, ranks, 2, ridge=2.0, weight=weight)
    np.testing.assert_allclose(ours.coefficients, theirs.coef_[0], atol=1e-7)
    np.testing.assert_allclose(ours.cutpoints, -theirs.intercept_, atol=1e-7)


def test_units_and_offsets_of_columns_change_nothing_else() -> None:
    x, ranks = made(seed=5)
    base = fit_cumulative(x, ranks, 4)
    factor, offset = np.array([1e-150, 1e6, 1e150]), np.array([0.0, 1e9, -3e150])
    moved = fit_cumulative(x * factor + offset, ranks, 4)
    assert moved.log_likelihood == pytest.approx(base.log_likelihood, abs=1e-5)
    np.testing.assert_allclose(moved.coefficients * factor, base.coefficients, rtol=1e-5)
    np.testing.assert_allclose(
        moved.log_probabilities(x * factor + offset), base.log_probabilities(x), atol=1e-5
    )


def test_weights_are_copies_and_zero_is_absence() -> None:
    x, ranks = made(150)
    times = np.random.default_rng(0).integers(0, 4, len(x))
    weighted = fit_cumulative(x, ranks, 4, weight=times)
    copied = fit_cumulative(np.repeat(x, times, 0), np.repeat(ranks, times), 4)
    np.testing.assert_allclose(weighted.coefficients, copied.coefficients, rtol=1e-9)
    np.testing.assert_allclose(weighted.covariance, copied.covariance, rtol=1e-7)
    assert weighted.num_rows == (times > 0).sum()


@pytest.mark.realdata
def test_the_table_of_lower_rank_has_errors(real_data: Path) -> None:
    table = np.genfromtxt(real_data / "tabular" / "affairs.csv", delimiter=",", skip_header=1)
    _, ranks = np.unique(table[:, 0], return_inverse=True)
    fit = fit_cumulative(table[:, 1:], ranks, int(ranks.max()) + 1)
    assert fit.converged
    assert fit.aliased
    kept = [j for j in range(17) if j not in fit.aliased]
    assert np.isfinite(np.diag(fit.covariance)[kept]).all()
    np.testing.assert_allclose(row_scores(fit, table[:, 1:], ranks).sum(0), 0, atol=1e-6)


@pytest.mark.parametrize("link", LINKS)
def test_separation_is_flagged_and_a_steep_fit_is_not(link: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    ranks = np.digitize(x[:, 0], [-0.5, 0.5])
    divided = fit_cumulative(x, ranks, 3, link=link)
    assert divided.separated
    assert np.isfinite(divided.log_probabilities(x)).all()
    noisy = np.digitize(x[:, 0] + 0.03 * NOISE[link].rvs(size=300, random_state=rng), [-0.5, 0.5])
    steep = fit_cumulative(x, noisy, 3, link=link)
    assert not steep.separated
    assert steep.converged
    assert np.abs(steep.coefficients).max() > 15
    assert not fit_cumulative(x, ranks, 3, link=link, ridge=0.1).separated


def test_a_column_that_marks_one_row_of_an_outer_class_is_separation() -> None:
    x, ranks = made(1000, 2)
    mark = np.zeros(len(x))
    mark[np.flatnonzero(ranks == 3)[0]] = 1.0
    assert fit_cumulative(np.column_stack([x, mark]), ranks, 4).separated
    mark[np.flatnonzero(ranks == 1)[:3]] = 1.0
    assert not fit_cumulative(np.column_stack([x, mark]), ranks, 4).separated


def test_nearly_collinear_columns_are_not_separation() -> None:
    x, ranks = made(500, 2)
    twin = x[:, 0] + 1e-5 * np.random.default_rng(0).normal(size=len(x))
    fit = fit_cumulative(np.column_stack([x, twin]), ranks, 4)
    assert not fit.separated
    assert fit.aliased == ()
    assert fit.converged


def test_without_columns_the_curve_is_the_shares() -> None:
    ranks = np.array([0, 0, 1, 2, 2, 2])
    fit = fit_cumulative(np.zeros((6, 0)), ranks, 3)
    np.testing.assert_allclose(
        np.exp(fit.log_probabilities(np.zeros((1, 0)))), [[1 / 3, 1 / 6, 1 / 2]], atol=1e-12
    )
    assert fit.log_likelihood == pytest.approx(fit.null_log_likelihood)


def test_a_class_without_rows_is_refused_or_smoothed() -> None:
    x, ranks = made(100, 2, 4)
    ranks = np.where(ranks == 2, 1, ranks)
    with pytest.raises(ValueError, match=r"none of rank 2.*smoothing=0.5"):
        fit_cumulative(x, ranks, 4)
    fit = fit_cumulative(x, ranks, 4, smoothing=0.5)
    p = np.exp(fit.log_probabilities(x))
    assert (p > 0).all()
    assert p[:, 2].mean() < 0.02
    assert fit.converged


def test_many_rows_and_classes() -> None:
    x, ranks = made(100_000, 10, 100)
    start = time.perf_counter()
    fit = fit_cumulative(x, ranks, 100)
    assert time.perf_counter() - start < 20
    assert fit.converged
    assert fit.log_probabilities(x[:1000]).shape == (1000, 100)
    assert np.diff(fit.cutpoints).min() > 0


def test_cluster_errors_know_copies() -> None:
    x, ranks = made(200, 2)
    fit = fit_cumulative(x, ranks, 4)
    robust = robust_covariance(fit, x, ranks)
    np.testing.assert_allclose(
        np.sqrt(np.diag(robust)), np.sqrt(np.diag(fit.covariance)), rtol=0.25
    )
    with pytest.raises(ValueError, match="clusters must have 200 values"):
        robust_covariance(fit, x, ranks, clusters=[1, 2])
    with pytest.raises(ValueError, match="at least 2 clusters"):
        robust_covariance(fit, x, ranks, clusters=np.zeros(200))


def test_the_chosen_penalty_is_strong_for_noise_and_weak_for_signal() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 15))
    folds = np.arange(300) % 5
    of_noise = choose_ridge(x, rng.integers(0, 3, 300), 3, folds)
    assert of_noise.ridge >= 300
    latent = x @ np.ones(15) + rng.logistic(size=300)
    signal = np.digitize(latent, [-3.0, 3.0])
    of_signal = choose_ridge(x, signal, 3, folds, score="rps")
    assert of_signal.ridge < 10
    assert of_signal.scores.min() == of_signal.scores[of_signal.ridges == of_signal.ridge]
    # what a path found is what a fit from nothing finds
    given = choose_ridge(x, signal, 3, folds, ridges=[3.0, 1.0])
    loss = 0.0
    for fold in range(5):
        out = folds == fold
        fit = fit_cumulative(x[~out], signal[~out], 3, ridge=1.0, smoothing=0.5)
        loss -= fit.log_probabilities(x[out])[np.arange(out.sum()), signal[out]].sum()
    assert given.scores[0] == pytest.approx(loss / 300, abs=1e-9)
    np.testing.assert_array_equal(given.ridges, [1.0, 3.0])


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(4, 30),
    d=st.integers(0, 6),
    num_classes=st.integers(2, 6),
    link=st.sampled_from(list(LINKS)),
    ridge=st.sampled_from([0.0, 1e-3, 10.0]),
)
def test_small_tables_always_give_curves(
    seed: int, n: int, d: int, num_classes: int, link: str, ridge: float
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, size=(n, d)) * 10.0 ** rng.integers(-4, 4, size=d)
    ranks = rng.integers(0, num_classes, n)
    fit = fit_cumulative(x, ranks, num_classes, link=link, ridge=ridge, smoothing=0.5)
    p = np.exp(fit.log_probabilities(x))
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-9)
    assert fit.converged


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"link": "cauchit"}, "link must be one of 'logit', 'probit', 'cloglog'; got 'cauchit'"),
        ({"ridge": -1.0}, "ridge must be a finite number, not below 0; got -1.0"),
        ({"weight": [1.0]}, "weight must have 4 values, one a row"),
        ({"weight": [0.0] * 4}, "not all 0"),
        ({"ranks": [0, 1, 2, 1]}, r"ranks must lie in 0\.\.1; got 0 to 2"),
        ({"ranks": [0.0, 1.0, 0.0, 1.0]}, "vector of integers"),
        ({"ranks": [0, 1]}, "4 rows and ranks 2"),
        ({"features": [[0.0], [np.nan], [1.0], [2.0]]}, "1 cells that are not. Fill or drop"),
        ({"features": [0.0, 1.0, 2.0, 3.0]}, r"the shape \(n, d\); got \(4,\)"),
    ],
)
def test_what_is_refused(change: dict, message: str) -> None:
    good = {"features": [[0.0], [1.0], [2.0], [3.0]], "ranks": [0, 1, 0, 1], "num_classes": 2}
    with pytest.raises(ValueError, match=message):
        fit_cumulative(**{**good, **change})
