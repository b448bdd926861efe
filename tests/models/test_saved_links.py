"""Saved fits and graphs: the same predictions and the same summary, and no forged ones."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import echelon
from echelon import CumulativeLinkModel
from tests.forging import rewrite


def fitted(**parameters) -> tuple[CumulativeLinkModel, pd.DataFrame]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"dose": rng.uniform(1, 4, 300), "kind": rng.choice(list("ab"), 300)})
    score = 2 * np.log(frame["dose"]) + (frame["kind"] == "b")
    ranks = np.digitize(score + rng.logistic(size=300), [1.0, 2.5])
    return CumulativeLinkModel(**parameters).fit(frame, ranks, groups=np.arange(300) // 3), frame


@pytest.mark.parametrize(
    "parameters",
    [
        {"tests": True},
        {"formula": "~ log(dose) * C(kind)", "tests": True},
        {"nonproportional": ["dose"], "link": "probit"},
        {"ridge": 1.0},
    ],
)
def test_a_loaded_model_is_the_one_that_was_saved(tmp_path: Path, parameters: dict) -> None:
    model, frame = fitted(**parameters)
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.coefficients() == model.coefficients()
    if "ridge" in parameters:
        return
    for errors in ("observed", "robust", "clustered"):
        assert loaded.summary(errors, 0.9).document() == model.summary(errors, 0.9).document()
    pd.testing.assert_frame_equal(
        loaded.probabilities_at({"dose": [1, 2]}), model.probabilities_at({"dose": [1, 2]})
    )


def test_a_row_without_a_logarithm_cannot_be_predicted() -> None:
    model, frame = fitted(formula="~ log(dose) + C(kind)")
    odd = frame.head(3).assign(dose=[1.0, -1.0, 2.0])
    assert np.isnan(model.predict_proba(odd)).any(1).tolist() == [False, True, False]
    with pytest.raises(ValueError, match="row 1 cannot be predicted"):
        model.predict(odd)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, t: d["model"]["fit"].update(free=[7]), "names columns that it has not"),
        (lambda d, t: t.update({"model.fit.slopes": torch.zeros(2, 2)}), "vector of numbers"),
        (lambda d, t: t.pop("model.statistics.counts"), "counts"),
        (lambda d, t: t["model.statistics.counts"].fill_(torch.nan), "its counts must be numbers"),
        (lambda d, t: d["model"]["statistics"].update(weights="x"), "what weights mean"),
        (lambda d, t: d["model"]["statistics"].update(rows="x"), "rows must be of type int"),
        (
            lambda d, t: t.update({"model.statistics.x": torch.zeros(1)}),
            "tensors that have no place",
        ),
        (
            lambda d, t: d["model"]["design"]["features"][0][2].append(["expression", "", "f()"]),
            "a formula cannot hold",
        ),
        (
            lambda d, t: d["model"]["statistics"]["tests"]["brant"].update(overall={"degrees": 1}),
            "statistic",
        ),
    ],
)
def test_forged_statistics_are_refused(tmp_path: Path, change, message: str) -> None:
    model, _ = fitted(nonproportional=["dose"], tests=True)
    model.save(tmp_path / "m")
    rewrite(tmp_path / "m", tmp_path / "forged", change)
    with pytest.raises(ValueError, match=message):
        echelon.load(tmp_path / "forged")
