"""Training curves: the step that was kept, the same colours as elsewhere, and words without any."""

from dataclasses import replace

import pytest

from echelon.report.charts import altair
from echelon.report.palette import colours
from echelon.report.training import training_chart
from echelon.runs import Comparison, read_runs
from tests.made_runs import write_made_runs


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Comparison:
    folder = write_made_runs(tmp_path_factory.mktemp("runs"), rows=60, seeds=1)
    return Comparison.of(read_runs(folder))


def test_the_kept_epoch_is_marked_and_colours_are_those_of_the_methods(found) -> None:
    chart, words = training_chart(found, altair())
    assert f"{found.best} kept epoch 4 of 4." in words
    document = chart.to_dict()
    assert [layer["mark"]["type"] for layer in document["vconcat"][0]["layer"]] == ["line", "point"]
    titles = [one["layer"][0]["encoding"]["y"]["title"] for one in document["vconcat"]]
    assert titles == ["training loss", "validation RPS"]
    scale = document["vconcat"][0]["layer"][0]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == colours(found.methods)


def test_rounds_of_trees_have_a_chart_of_their_own(found) -> None:
    run = found.main_run
    rounds = [{"round": n, "ranked_probability_score": 1 / n} for n in (1, 2, 3)]
    config = replace(run.config, method="boosting")
    trees = replace(run, config=config, history=rounds, outcome={"trees": 2})
    chart, words = training_chart(Comparison.of([run, trees]), altair())
    assert len(chart.vconcat) == 3
    assert "boosting kept round 2 of 3." in words


def test_without_steps_there_is_a_sentence_and_no_chart(found) -> None:
    chart, words = training_chart(Comparison.of([replace(found.main_run, history=[])]), altair())
    assert chart is None
    assert "there is no curve to show" in words
