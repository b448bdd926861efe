"""The statistics of a fit: equal to those of statsmodels, and honest where there are none."""

import warnings

import numpy as np
import pandas as pd
import pytest

from echelon import CumulativeLinkModel
from echelon.models.links import LINKS
from tests.models.test_cumulative import Cloglog
from tests.simulated import simulated


def compare_with_statsmodels(frame: pd.DataFrame, ranks: np.ndarray, link: str) -> None:
    """Estimates to 1e-5, and errors to a thousandth, of columns in their own units."""
    ordinal_model = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    ours = CumulativeLinkModel(link).fit(frame, ranks).summary()
    # they need standardised columns to get there
    x, spread, mean = frame.to_numpy(float), frame.std(ddof=0).to_numpy(), frame.mean().to_numpy()
    distribution = Cloglog(name="cloglog") if link == "cloglog" else link
    model = ordinal_model.OrderedModel(ranks, (x - mean) / spread, distr=distribution)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = model.fit(method="bfgs", gtol=1e-10, maxiter=1000, disp=False)
    d = x.shape[1]
    found = ours.frame()
    np.testing.assert_allclose(found["estimate"] * spread, theirs.params[:d], atol=1e-5)
    np.testing.assert_allclose(found["error"] * spread, theirs.bse[:d], rtol=1e-3)
    np.testing.assert_allclose(found["p_value"], theirs.pvalues[:d], rtol=0.02, atol=1e-6)
    cuts = model.transform_threshold_params(theirs.params)[1:-1]
    shift = (mean / spread) @ theirs.params[:d]
    np.testing.assert_allclose(
        ours.cutpoints_frame()["estimate"],
        cuts + shift,
        rtol=1e-5,
        atol=1e-5 * np.abs(mean / spread).max(),
    )
    # their cut-points after the first are logarithms of steps: errors by the delta method
    steps, k = np.exp(theirs.params[d + 1 :]), len(cuts)
    jacobian = np.zeros((k, d + k))
    jacobian[:, :d] = mean / spread
    jacobian[:, d] = 1
    jacobian[:, d + 1 :] = np.tril(np.ones((k, k)), -1)[:, :-1] * steps
    expected = np.sqrt(np.diag(jacobian @ theirs.cov_params() @ jacobian.T))
    np.testing.assert_allclose(ours.cutpoints_frame()["error"], expected, rtol=1e-3)
    assert ours.fit["log_likelihood"] == pytest.approx(theirs.llf, abs=1e-6)
    assert ours.fit["null_log_likelihood"] == pytest.approx(theirs.llnull, abs=1e-3)
    assert ours.fit["aic"] == pytest.approx(theirs.aic, abs=1e-5)
    assert ours.fit["bic"] == pytest.approx(theirs.bic, abs=1e-5)
    assert ours.fit["mcfadden"] == pytest.approx(theirs.prsquared, abs=1e-6)
    assert ours.likelihood_ratio["p_value"] == pytest.approx(theirs.llr_pvalue, abs=1e-6)


@pytest.mark.parametrize("link", LINKS)
def test_equals_statsmodels_on_anes96(link: str) -> None:
    anes = pytest.importorskip("statsmodels.api").datasets.anes96.load_pandas().data
    frame = anes[["logpopul", "selfLR", "age", "educ", "income"]]
    compare_with_statsmodels(frame, anes["PID"].astype(int).to_numpy(), link)


def test_errors_are_chosen_by_groups_and_weights() -> None:
    x, ranks = simulated(0, 300)
    plain = CumulativeLinkModel().fit(x, ranks).summary()
    assert (plain.errors, plain.weights, plain.observations) == ("observed", "none", 300)
    grouped = CumulativeLinkModel(tests=True).fit(x, ranks, groups=np.arange(300) // 4).summary()
    assert (grouped.errors, grouped.groups) == ("clustered", 75)
    assert grouped.likelihood_ratio is None
    assert grouped.wald["degrees"] == 2
    assert grouped.proportional_odds["likelihood_ratio"]["overall"] is None
    assert grouped.proportional_odds["brant"]["overall"]["p_value"] > 0
    times = np.random.default_rng(0).integers(1, 3, 300)
    counted = CumulativeLinkModel().fit(x, ranks, sample_weight=times).summary()
    copied = CumulativeLinkModel().fit(np.repeat(x, times, 0), np.repeat(ranks, times)).summary()
    assert counted.weights == "frequency"
    assert counted.observations == times.sum()
    pd.testing.assert_frame_equal(counted.frame(), copied.frame(), rtol=1e-6)
    assert counted.fit["bic"] == pytest.approx(copied.fit["bic"])
    sampled = CumulativeLinkModel().fit(x, ranks, sample_weight=times / 3).summary()
    assert (sampled.weights, sampled.errors, sampled.observations) == ("sampling", "robust", 300)
    assert sampled.fit["aic"] is None
    balanced = CumulativeLinkModel(class_weight="balanced").fit(x, ranks).summary()
    assert balanced.weights == "sampling"
    told = CumulativeLinkModel(weight_kind="sampling").fit(x, ranks, sample_weight=times).summary()
    np.testing.assert_allclose(told.frame()["error"], sampled.frame()["error"], rtol=1e-6)
    with pytest.raises(ValueError, match="errors must be one of observed, robust; clustered ones"):
        CumulativeLinkModel().fit(x, ranks).summary(errors="clustered")


def test_separation_is_said_and_has_no_p_values() -> None:
    x, ranks = simulated(0, 300)
    mark = (ranks == 3) & (np.arange(300) % 2 == 0)
    model = CumulativeLinkModel(tests=True).fit(np.column_stack([x, mark]), ranks)
    summary = model.summary()
    assert summary.fit["separated"]
    assert summary.frame()[["error", "z", "p_value", "lower", "ratio_upper"]].isna().all(axis=None)
    assert summary.effects_frame()["p_value"].isna().all()
    assert any("divides classes without error" in note for note in summary.notes)
    assert "divides classes" in summary.text()


def test_aliased_columns_are_dropped_and_named() -> None:
    x, ranks = simulated(0, 300)
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(twice=2 * x[:, 0], sum=x.sum(1), one=1.0)
    summary = CumulativeLinkModel(tests=True).fit(frame, ranks).summary()
    assert summary.aliased == ["twice", "sum"]
    assert summary.frame().index.tolist() == ["a", "b"]
    plain = CumulativeLinkModel().fit(frame[["a", "b"]], ranks).summary()
    pd.testing.assert_frame_equal(summary.frame(), plain.frame(), rtol=1e-6)
    assert set(summary.effects_frame()["column"]) == {"a", "b"}


def test_what_has_no_statistics_says_why() -> None:
    x, ranks = simulated(0, 300)
    with pytest.raises(ValueError, match="a penalised fit has no standard errors"):
        CumulativeLinkModel(ridge=1.0).fit(x, ranks).summary()
    with pytest.raises(ValueError, match="a class has no rows"):
        CumulativeLinkModel(classes=range(5)).fit(x, ranks).summary()
    with pytest.raises(ValueError, match="level must lie"):
        CumulativeLinkModel().fit(x, ranks).summary(level=95)


def test_hazard_ratios_are_those_of_minus_beta_and_probit_has_none() -> None:
    x, ranks = simulated(0, 300)
    row = CumulativeLinkModel("cloglog").fit(x, ranks).summary().frame().iloc[0]
    assert row["ratio"] == pytest.approx(np.exp(-row["estimate"]))
    assert row["ratio_lower"] == pytest.approx(np.exp(-row["upper"]))
    assert "ratio" not in CumulativeLinkModel("probit").fit(x, ranks).summary().frame()
