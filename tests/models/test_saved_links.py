"""Saved fits and graphs: the same predictions and the same summary, and no forged ones."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon import CumulativeLinkModel


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
