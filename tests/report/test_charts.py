"""Charts: what they hold, and the words that go with them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from echelon.report.charts import all_charts, coverage_table
from echelon.runs import Comparison, read_runs, write_run
from tests.made_runs import write_made_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_made_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def found(folder) -> Comparison:
    return Comparison.of(read_runs(folder))


def test_charts_are_altair_objects_with_words(found) -> None:
    import altair

    for one in all_charts(found).values():
        assert isinstance(one.chart, (altair.TopLevelMixin,))
        assert len(one.description) > 40


def test_coverage_uses_the_rows_that_were_kept(folder, found, tmp_path) -> None:
    table, source = coverage_table(found)
    assert "one half of the test rows" in source
    assert (np.diff(table["width"]) >= 0).all()
    run = found.main_run
    arrays = {**run.predictions, "conformal_scores": np.linspace(0.01, 0.5, 500)}
    write_run(tmp_path / "run", replace(run, predictions=arrays))
    table, source = coverage_table(Comparison.of(read_runs(tmp_path / "run")))
    assert "that the fit kept" in source
