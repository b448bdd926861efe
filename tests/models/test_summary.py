"""The summary as text, LaTeX and JSON."""

import json

import numpy as np
import pandas as pd
import pytest

from echelon import CumulativeLinkModel
from echelon.models.summary import Summary
from tests.simulated import simulated


@pytest.fixture(scope="module")
def summary() -> Summary:
    x, ranks = simulated(0, 300)
    frame = pd.DataFrame(x, columns=["age_in_%", "b & c"])
    frame["kind"] = np.random.default_rng(0).choice(["x", "y"], 300)
    labels = np.array(["none", "mild", "bad", "worst"])[ranks]
    names = ["none", "mild", "bad", "worst"]
    return CumulativeLinkModel(classes=names, tests=True).fit(frame, labels).summary()


def test_the_text_has_every_part(summary: Summary) -> None:
    text = str(summary)
    for words in (
        "proportional odds (logit)", "classes           none", "likelihood ratio  chi-square",
        "AIC", "McFadden", "odds ratio", "kind = y", "none | mild", "Brant", "per unit", "0 to 1",
        "x to y", "categories are compared with kind = x",
    ):  # fmt: skip
        assert words in text
    assert max(map(len, text.splitlines())) < 140


def test_latex_escapes_names_and_has_equal_rows(summary: Summary) -> None:
    text = summary.latex()
    assert r"age\_in\_\%" in text
    assert r"b \& c" in text
    rows = [line for line in text.splitlines() if line.endswith("\\\\")]
    assert len({line.replace(r"\&", "").count("&") for line in rows}) == 1
    assert len(rows) == 1 + 3 + 3


def test_json_comes_back_as_the_same_summary(summary: Summary) -> None:
    again = Summary.of(json.loads(summary.json()))
    assert again.text() == summary.text()
    pd.testing.assert_frame_equal(again.effects_frame(), summary.effects_frame())
    document = summary.document()
    document["coefficients"][0]["estimate"] = "<script>"
    with pytest.raises(ValueError, match="estimate in the coefficients of a summary is of a wrong"):
        Summary.of(document)
    with pytest.raises(ValueError, match="a summary has no"):
        Summary.of({**summary.document(), "more": 1})


def test_frames_have_a_row_for_each(summary: Summary) -> None:
    assert summary.frame().index.tolist() == ["age_in_%", "b & c", "kind = y"]
    assert summary.cutpoints_frame().index.tolist() == ["none | mild", "mild | bad", "bad | worst"]
    assert len(summary.tests_frame()) == 8
    assert len(summary.effects_frame()) == 3 * 4
