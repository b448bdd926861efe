"""What runs say together: who is best, by how much, and whether it is more than noise."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from echelon.evaluation import metrics
from echelon.runs import Comparison, read_runs
from echelon.runs.comparison import _beside_the_floor
from tests.made_runs import write_made_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_made_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def found(folder) -> Comparison:
    return Comparison.of(read_runs(folder))


def test_floor_and_baselines_first_then_the_best(found) -> None:
    assert list(found.runs)[:2] == ["best possible", "constant"]
    errors = [found.mean(name, "mae") for name in found.methods]
    assert set(found.methods) == {"corn", "ornn", "ce"}
    assert errors == sorted(errors)
    assert found.best == found.methods[0]


def test_every_two_methods_are_compared_and_the_best_with_the_baseline(found) -> None:
    pairs = {frozenset((one.first, one.second)) for one in found.differences}
    assert len(found.differences) == len(pairs) == 4
    assert frozenset((found.best, "constant")) in pairs
    assert not any("best possible" in pair for pair in pairs)


def test_the_answer_comes_in_words(found) -> None:
    text = " ".join(found.answer())
    assert f"Of 3 methods, {found.best} does best on 400 test rows: it is right in" in text
    assert re.search(r"\d% less than always guessing the same class \(\d\.\d{3}\)", text)
    assert "simple model" not in text  # there is none among these runs
    assert "The best possible predictor misses by" in text


def test_an_error_below_the_best_possible_is_called_luck() -> None:
    assert _beside_the_floor("corn", 0.55, 0.5).endswith("corn is 10.0% above that.")
    assert "is luck" in _beside_the_floor("corn", 0.519, 0.537)
    assert "-" not in _beside_the_floor("corn", 0.519, 0.537)
    assert _beside_the_floor("corn", 0.1, 0.0).endswith("corn is above that.")


def test_the_table_says_what_its_plus_and_minus_are(found) -> None:
    assert found.text().endswith("± their standard deviation)")
    assert "±" not in " ".join(found.sentences())
    assert "(standard error " in found.sentences()[0]


def test_the_document_has_the_key_mae_in_runs_alone(found) -> None:
    document = found.document()
    json.dumps(document, allow_nan=False)
    assert all("mae" in run and run["split"] == "test" for run in document["runs"])
    assert len(document["runs"]) == 11
    rest = {name: value for name, value in document.items() if name != "runs"}

    def keys(value) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {k for one in value.values() for k in keys(one)}
        if isinstance(value, list):
            return {k for one in value for k in keys(one)}
        return set()

    assert "mae" not in keys(rest)


def test_several_divisions_are_compared_by_division(tmp_path) -> None:
    folders = [
        write_made_runs(tmp_path / str(split), rows=60 + split, seeds=2, extra={"split": split})
        for split in range(3)
    ]
    runs = [run for folder in folders for run in read_runs(folder)]
    found = Comparison.of(runs)
    assert found.splits == [0, 1, 2]
    assert "60 test rows in each of 3 divisions" in found.answer()[0]
    one = found.differences[0]
    by_hand = np.array(
        [
            np.mean([r.metrics["mae"] for r in found.runs[one.first] if r.config.split == s])
            - np.mean([r.metrics["mae"] for r in found.runs[one.second] if r.config.split == s])
            for s in range(3)
        ]
    )
    assert one.mean == pytest.approx(by_hand.mean())
    share = 60 / 1060
    assert one.se == pytest.approx(np.sqrt(by_hand.var(ddof=1) * (1 / 3 + share / (1 - share))))
    left = [r for r in runs if not (r.config.method == "ce" and r.config.split == 2)]
    with pytest.raises(ValueError, match="has not finished on every division"):
        _ = Comparison.of(left).differences


def test_a_mixture_of_settings_is_refused_with_the_difference(tmp_path) -> None:
    first = write_made_runs(tmp_path / "a", rows=60, seeds=1, extra={"parameters": {"recipe": "x"}})
    other = write_made_runs(tmp_path / "b", rows=60, seeds=2, extra={"parameters": {"recipe": "y"}})
    runs = [one for one in read_runs(other) if one.config.seed == 1]
    with pytest.raises(ValueError, match=r"parameters\.recipe = 'x' and 'y'; report them apart"):
        Comparison.of([*read_runs(first), *runs])
    with pytest.raises(ValueError, match="is there twice"):
        Comparison.of([*read_runs(first), *read_runs(first)])


def test_runs_without_an_error_or_rows_are_refused(found) -> None:
    run = found.main_run
    with pytest.raises(ValueError, match="no mae among its metrics"):
        Comparison.of([replace(run, metrics={"mae": None})])
    empty = {name: array[:0] for name, array in run.predictions.items()}
    with pytest.raises(ValueError, match="tested on no rows"):
        Comparison.of([replace(run, predictions=empty)])


def test_titles_and_metrics_are_those_of_the_table_of_metrics(found) -> None:
    titles = found.text().splitlines()[0].split()
    assert titles == ["MAE", "RMSE", "accuracy", "QWK", "RPS"]
    assert titles == [row.title for row in metrics.shown_metrics(wide=False)]
    asked = [row["metric"] for row in found.document()["summary"]]
    assert list(dict.fromkeys(asked)) == list(metrics.METRICS)
