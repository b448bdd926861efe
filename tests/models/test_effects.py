"""Marginal effects and probabilities with errors: against the truth and against differences."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from echelon import CumulativeLinkModel
from tests.simulated import BETA, CUTS, simulated


def true_probabilities(x: np.ndarray) -> np.ndarray:
    at_most = stats.logistic.cdf(CUTS - (x @ BETA)[:, None])
    return np.diff(at_most, axis=1, prepend=0.0, append=1.0)


def true_effects(x: np.ndarray) -> np.ndarray:
    """By the density for the number, by a step for the column of 0 and 1, (2, K)."""
    density = stats.logistic.pdf(CUTS - (x @ BETA)[:, None])
    slope = -BETA[0] * np.diff(density, axis=1, prepend=0.0, append=0.0).mean(0)
    ends = [true_probabilities(np.column_stack([x[:, 0], np.full(len(x), v)])) for v in (0, 1)]
    return np.stack([slope, (ends[1] - ends[0]).mean(0)])


def fitted(seed: int, n: int = 500, **parameters) -> tuple[CumulativeLinkModel, pd.DataFrame]:
    x, ranks = simulated(seed, n)
    frame = pd.DataFrame(x, columns=["a", "b"])
    return CumulativeLinkModel(**parameters).fit(frame, ranks), frame


def test_effects_of_many_rows_are_the_true_ones() -> None:
    model, frame = fitted(0, 20_000)
    found = model.marginal_effects(frame)
    assert found["change"].unique().tolist() == ["per unit", "0 to 1"]
    miss = (found["effect"].to_numpy() - true_effects(frame.to_numpy()).reshape(-1)) / found[
        "error"
    ]
    assert np.abs(miss).max() < 3.5
    np.testing.assert_allclose(found.groupby("column")["effect"].sum(), 0, atol=1e-10)


def test_errors_are_those_of_a_parametric_bootstrap() -> None:
    model, frame = fitted(3)
    found = model.marginal_effects(frame)
    at = model.probabilities_at({"a": 0.5, "b": 1})
    p = model.predict_proba(frame)
    rng = np.random.default_rng(0)
    effects, places = [], []
    for _ in range(60):
        ranks = (rng.uniform(size=(len(p), 1)) > p.cumsum(1)[:, :-1]).sum(1)
        again = CumulativeLinkModel().fit(frame, ranks)
        effects.append(again.marginal_effects(frame)["effect"])
        places.append(again.predict_proba(pd.DataFrame({"a": [0.5], "b": [1]}))[0])
    np.testing.assert_allclose(np.std(effects, axis=0) / found["error"], 1, atol=0.35)
    np.testing.assert_allclose(np.std(places, axis=0) / at["error"], 1, atol=0.35)


def test_intervals_cover_quickly() -> None:
    """The long form, with 500 tables, is among the slow tests."""
    inside, ratios = [], []
    for seed in range(30):
        model, frame = fitted(seed, 300)
        found, truth = model.marginal_effects(frame), true_effects(frame.to_numpy()).reshape(-1)
        inside.append(((found["lower"] < truth) & (truth < found["upper"])).mean())
        row = model.summary().frame()
        ratios.append(((row["lower"] < BETA) & (row["upper"] > BETA)).mean())
    for share in (np.mean(inside), np.mean(ratios)):
        assert share > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 30)


def test_formulas_and_categories_have_effects_of_their_columns() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"dose": rng.uniform(1, 4, 600), "kind": rng.choice(list("abc"), 600)})
    score = 2 * np.log(frame["dose"]) + (frame["kind"] == "c")
    frame["y"] = np.digitize(score + rng.logistic(size=600), [1.0, 2.5])
    model = CumulativeLinkModel.from_formula(
        "y ~ log(dose) + C(kind, Treatment('b'))", frame, tests=True
    )
    found = model.summary().effects_frame()
    assert found["change"].unique().tolist() == ["per unit", "b to a", "b to c"]
    h = 1e-5
    ends = [model.predict_proba(frame.assign(dose=frame["dose"] + s * h)).mean(0) for s in (1, -1)]
    np.testing.assert_allclose(
        found["effect"][:3], (ends[0] - ends[1]) / (2 * h), rtol=1e-4, atol=1e-8
    )
    ends = [model.predict_proba(frame.assign(kind=k)).mean(0) for k in "cb"]
    np.testing.assert_allclose(found["effect"][6:9], ends[0] - ends[1], rtol=1e-9)


def test_places_that_make_no_sense_are_refused() -> None:
    model, _ = fitted(0)
    with pytest.raises(ValueError, match="the model has no column 'c'; it has: a, b"):
        model.probabilities_at({"c": 1})
    with pytest.raises(ValueError, match="values must name columns"):
        model.probabilities_at({})
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model.probabilities_at({"a": 1}, level=95)
