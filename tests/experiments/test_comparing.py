"""Comparisons of methods: baselines unasked, runs kept, nothing shared between train and test."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from echelon.data import make_friedman
from echelon.experiments import compare_methods, generated_task, table_task
from echelon.runs import read_runs

QUICK = {"max_epochs": 1, "device": "cpu"}


def task(**options):
    data = make_friedman(300, num_classes=3, seed=2)
    frame = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(10)])
    frame["kind"] = np.where(frame["V3"] > 0.5, "big", "small")
    labels = np.array(["low", "mid", "top"])[data.ranks]
    return table_task("made up", frame, labels, classes=["low", "mid", "top"], **options)


def test_methods_by_seeds_with_baselines(tmp_path: Path) -> None:
    runs = compare_methods(task(), ["corn", "ce"], 2, tmp_path / "runs", parameters=QUICK)
    names = sorted(place.name for place in (tmp_path / "runs").iterdir())
    assert names == [
        "ce-seed0", "ce-seed1", "clm-linear", "constant", "corn-seed0", "corn-seed1",
    ]  # fmt: skip
    assert len(runs) == len(read_runs(tmp_path / "runs")) == 6
    by_name = {run.config["method"]: run for run in runs}
    coefficients = by_name["clm linear"].config["coefficients"]
    assert {"V0", "V3", "kind = big"} <= set(coefficients)
    assert coefficients["V3"] > abs(coefficients["V9"])  # V3 raises the response, V9 is noise
    constant = by_name["constant"].predictions
    assert len(np.unique(constant["prediction"])) == 1
    assert by_name["clm linear"].metrics["mae"] < by_name["constant"].metrics["mae"]
    assert {run.config["role"] for run in runs} == {"method", "baseline"}


def test_finished_runs_are_kept_and_others_refused(tmp_path: Path) -> None:
    compare_methods(task(), ["ce"], 1, tmp_path, parameters=QUICK)
    stamp = (tmp_path / "ce-seed0" / "DONE").stat().st_mtime_ns
    compare_methods(task(), ["ce"], 2, tmp_path, parameters=QUICK)
    assert (tmp_path / "ce-seed0" / "DONE").stat().st_mtime_ns == stamp
    assert (tmp_path / "ce-seed1" / "DONE").is_file()
    with pytest.raises(ValueError, match="holds a finished run with"):
        compare_methods(task(split_seed=1), ["ce"], 1, tmp_path, parameters=QUICK)


def test_groups_stay_on_one_side() -> None:
    groups = np.arange(300) // 3
    found = task(groups=groups)
    assert len(found.ranks) + len(found.test_ranks) == 300
    assert set(found.groups) == {g for g in set(groups) if (found.groups == g).sum() == 3}


def test_generated_fireman_has_the_sizes_of_the_paper_and_a_floor() -> None:
    found = generated_task()
    assert (len(found.ranks), len(found.validation[1]), len(found.test_ranks)) == (
        30_922, 1_628, 8_138,
    )  # fmt: skip
    assert found.floor.shape == (8_138, 16)


@pytest.mark.parametrize(
    ("methods", "seeds", "message"),
    [(["magic"], 1, "got magic"), ([], 1, "got none"), (["ce"], 0, "seeds must be at least 1")],
)
def test_wrong_requests(tmp_path, methods, seeds, message) -> None:
    with pytest.raises(ValueError, match=message):
        compare_methods(task(), methods, seeds, tmp_path)
