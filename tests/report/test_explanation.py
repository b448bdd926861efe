"""The section on what matters, from its document."""

import json
from pathlib import Path

import pytest

from echelon.report import write_page
from echelon.report.explanation import effect_chart, explained_section, importance_chart
from echelon.runs import Comparison, add_explanation, read_runs
from tests.made_explanations import made_explanation
from tests.made_runs import write_made_runs


@pytest.fixture(scope="module")
def document() -> dict:
    return made_explanation(6, [0, 1])


def test_a_run_without_an_explanation_has_no_section(tmp_path: Path) -> None:
    comparison = Comparison.of(read_runs(write_made_runs(tmp_path, rows=60, seeds=2)))
    section = explained_section(comparison)
    assert (section.contents(str), section.charts, section.reasons) == ([], {}, {})


def test_the_section_says_what_matters_which_way_and_why(tmp_path: Path, document) -> None:
    folder = write_made_runs(tmp_path / "runs", rows=60, seeds=2)
    best = Comparison.of(read_runs(folder)).best
    add_explanation(folder / f"{best}-seed0", document)
    section = explained_section(Comparison.of(read_runs(folder)))
    assert list(section.charts) == ["importance", "effect_1", "effect_2", "effect_3"]
    assert set(section.reasons) == {"0", "1"}
    assert section.reasons["1"]["sentences"][-1].startswith("words, by what they add")
    (text,) = section.contents(lambda *names: "".join(f"[{name}]" for name in names))
    for said in ("more of it raises the class", "[importance]", "[effect_2]", "work together"):
        assert said in text
    assert "as there were no labels" in text
    page = write_page(folder, tmp_path / "page.html").read_text()
    assert 'id="explanation"' in page


def test_charts_of_every_kind_of_column(document) -> None:
    above = [str(k + 1) for k in document["thresholds"]]
    kinds = {effect["kind"]: effect_chart(effect, above) for effect in document["effects"]}
    assert set(kinds) == {"number", "date", "category"}
    for titled in kinds.values():
        assert titled.chart.to_dict()["vconcat"]
    assert "Where it is missing" in kinds["number"].description
    assert "matters most" in importance_chart(document).description


def test_an_axis_of_answers_has_no_fractions() -> None:
    answers = {
        "column": "q", "kind": "number", "cells": [1.0, 2.0, 5.0, None],
        "expected_rank": [-0.5, 0.0, 0.5, 0.1], "spread": [0.0, 0.1, 0.1, 0.0],
        "rows": [5, 9, 4, 2], "exceedance": [[-0.1], [0.0], [0.1], [0.0]],
    }  # fmt: skip
    shown = json.dumps(effect_chart(answers, ["high"]).chart.to_dict())
    assert '"values": [1.0, 2.0, 5.0]' in shown
    answers["cells"] = [1.0, 2.5, 5.0, None]
    assert '"values": [1.0' not in json.dumps(effect_chart(answers, ["high"]).chart.to_dict())
