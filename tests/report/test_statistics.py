"""The statistics of a linear model on the page."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from echelon import CumulativeLinkModel
from echelon.report import page_text, write_charts
from echelon.runs import Run, RunConfig, read_run, write_run
from tests.simulated import simulated


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory) -> Path:
    x, ranks = simulated(0, 200)
    frame = pd.DataFrame(x, columns=["<b>age</b>", "dose"])
    model = CumulativeLinkModel(tests=True).fit(frame, ranks)
    p = model.predict_proba(frame)
    folder = tmp_path_factory.mktemp("runs") / "run"
    arrays = {
        "truth": ranks, "prediction": p.argmax(1), "probabilities": p.astype(np.float32),
        "crossings": np.zeros(200),
    }  # fmt: skip
    config = RunConfig("cumulative_link", "made up", command="evaluate", classes=[0, 1, 2, 3])
    write_run(folder, Run(config, [], {"mae": 0.5}, arrays, outcome=model.outcome()))
    return folder


def test_the_run_folder_holds_the_statistics(run_folder: Path) -> None:
    assert (run_folder / "statistics.json").is_file()
    assert "statistics" not in (run_folder / "outcome.json").read_text()
    assert read_run(run_folder).outcome["statistics"]["rows"] == 200


def test_the_page_has_a_section_with_escaped_names(run_folder: Path) -> None:
    text = page_text(run_folder)
    for words in (
        "Statistics of cumulative_link", "&lt;b&gt;age", "Do columns act alike", "odds ratio",
        "What each column does", "Average effects on each probability", "no effect",
    ):  # fmt: skip
        assert words in text
    assert "<b>age" not in text


def test_the_forest_plot_is_one_of_the_charts(run_folder: Path, tmp_path: Path) -> None:
    assert "statistics" in {path.stem for path in write_charts(run_folder, tmp_path, "svg")}


def test_cells_are_labelled_for_narrow_screens_and_coefficients_stand_once(
    run_folder: Path,
) -> None:
    """A table that is too wide becomes cards, in which each cell says what it is."""
    text = page_text(run_folder)
    table = text[text.index('aria-label="Coefficients"') :].partition("</table>")[0]
    assert 'class="cards"' in table
    for label in ("coefficient", "error", "p", "odds ratio", "to"):
        assert f'data-label="{label}"' in table
    assert "Coefficients of the linear model" not in text
