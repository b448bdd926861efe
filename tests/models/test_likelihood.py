"""The linear model: the exact fit of the encoded columns, with its labels and names around it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import echelon
from echelon import CumulativeLinkModel
from echelon.models.cumulative import fit_cumulative
from echelon.models.links import LINKS
from tests.forging import rewrite

NAMES = ["low", "mid", "top"]


def rows(n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "up": 1e4 + 100 * rng.normal(size=n),
            "down": rng.normal(size=n),
            "kind": rng.choice(["a", "b"], n),
        }
    )
    score = (frame["up"] - 1e4) / 100 - 2 * frame["down"] + (frame["kind"] == "b")
    frame.loc[::9, "down"] = np.nan
    return frame, np.array(NAMES)[np.digitize(score + rng.logistic(size=n), [-1, 1])]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("ridge", [0.0, 5.0])
def test_equals_the_fit_of_the_encoded_columns(link: str, ridge: float) -> None:
    frame, labels = rows()
    model = CumulativeLinkModel(link, ridge, classes=NAMES).fit(frame, labels)
    # written down by hand: the median fills a gap, and a penalty has no reference category
    levels = "ab" if ridge else "b"
    matrix = np.column_stack(
        [
            frame["up"],
            frame["down"].fillna(frame["down"].median()),
            frame["down"].isna(),
            *(frame["kind"] == level for level in levels),
        ]
    ).astype(float)
    ranks = np.array([NAMES.index(label) for label in labels])
    expected = fit_cumulative(matrix, ranks, 3, link=link, ridge=ridge)
    np.testing.assert_allclose(
        model.predict_proba(frame), np.exp(expected.log_probabilities(matrix)), atol=1e-11
    )


def test_coefficients_have_the_names_and_the_directions_of_the_columns() -> None:
    model = CumulativeLinkModel(classes=NAMES).fit(*rows())
    found = model.coefficients()
    assert set(found) == {"up", "down", "down is missing", "kind = a", "kind = b"}
    assert found["up"] > 0.5
    assert found["down"] < -0.5
    assert found["kind = b"] - found["kind = a"] == pytest.approx(1, abs=0.7)
    strong = CumulativeLinkModel(ridge=1e6, classes=NAMES).fit(*rows()).coefficients()
    assert max(map(abs, strong.values())) < 0.01


def test_a_class_without_rows_keeps_a_probability() -> None:
    frame, labels = rows()
    model = CumulativeLinkModel(classes=[*NAMES, "best"]).fit(frame, labels)
    shares = model.predict_proba(frame).mean(axis=0)
    assert 0 < shares[3] < 0.02


def test_rows_that_are_held_out_tune_the_cutpoints_and_nothing_else() -> None:
    frame, labels = rows()
    plain = CumulativeLinkModel(classes=NAMES).fit(frame, labels)
    tuned = CumulativeLinkModel(
        classes=NAMES, decision="kappa", validation_fraction=0.3, random_state=0
    ).fit(frame, labels)
    assert tuned.cutpoints_.shape == (2,)
    np.testing.assert_array_equal(tuned.predict_proba(frame), plain.predict_proba(frame))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, t: t["model.fit.centred_cutpoints"].neg_(), "cut-points do not fit"),
        (lambda d, t: t["model.fit.coefficients"].fill_(torch.nan), "must be a vector of numbers"),
        (lambda d, t: d["model"]["fit"].update(link="log"), "link must be one of"),
        (lambda d, t: t.update({"model.more": torch.zeros(1)}), "tensors that have no place"),
        (
            lambda d, t: t.update({"model.fit.coefficients": torch.zeros(9).double()}),
            r"coefficients must be of the shape \(4,\)",
        ),
    ],
)
def test_forged_files_are_refused(tmp_path: Path, change, message: str) -> None:
    CumulativeLinkModel(classes=NAMES).fit(*rows()).save(tmp_path / "m")
    rewrite(tmp_path / "m", tmp_path / "forged", change)
    with pytest.raises(ValueError, match=message):
        echelon.load(tmp_path / "forged")
