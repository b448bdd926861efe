"""Comparisons of methods: baselines unasked, runs kept, nothing shared between train and test."""

import json
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Barrier, Thread

import numpy as np
import pytest

from echelon.experiments import Executor, compare_methods, comparison_jobs
from echelon.runs import read_runs
from tests.experiments.made_up import HERE, QUICK, task
from tests.made_runs import write_made_runs


class Nobody(Executor):
    """Takes jobs and does none of them."""

    def run(self, jobs, folder, *, on_run=None):
        return []


def test_methods_by_seeds_with_baselines(tmp_path: Path) -> None:
    runs = compare_methods(
        task(), ["corn", "ce"], 2, tmp_path / "runs", parameters=QUICK, executor=HERE
    )
    places = [place for place in (tmp_path / "runs").iterdir() if place.is_dir()]
    names = sorted(place.name.rpartition("-")[0] for place in places)
    assert names == [
        "ce-seed0", "ce-seed1", "constant", "corn-seed0", "corn-seed1", "cumulative-link",
    ]  # fmt: skip
    assert len(runs) == len(read_runs(tmp_path / "runs")) == 6
    by_name = {run.config.method: run for run in runs}
    coefficients = by_name["cumulative link"].outcome["coefficients"]
    assert {"V0", "V3", "kind = big"} <= set(coefficients)
    assert coefficients["V3"] > abs(coefficients["V9"])  # V3 raises the response, V9 is noise
    constant = by_name["constant"].predictions
    assert len(np.unique(constant["prediction"])) == 1
    assert by_name["cumulative link"].metrics["mae"] < by_name["constant"].metrics["mae"]
    assert {run.config.role for run in runs} == {"method", "baseline"}


def test_finished_runs_are_kept_and_others_refused(tmp_path: Path) -> None:
    (first,) = (
        run
        for run in compare_methods(task(), ["ce"], 1, tmp_path, parameters=QUICK, executor=HERE)
        if run.config.method == "ce"
    )
    done = tmp_path / first.config.name / "DONE"
    stamp = done.stat().st_mtime_ns
    seen = []
    compare_methods(
        task(), ["ce"], 2, tmp_path, parameters=QUICK, executor=HERE,
        on_run=lambda name, is_new: seen.append((name, is_new)),
    )  # fmt: skip
    assert done.stat().st_mtime_ns == stamp
    assert [is_new for _, is_new in seen] == [False] * 3 + [True]  # the second seed
    with pytest.raises(ValueError, match="holds runs on other rows"):
        compare_methods(task(test_share=0.5), ["ce"], 1, tmp_path, parameters=QUICK, executor=HERE)
    other = {**QUICK, "settings": {"max_epochs": 2}}
    with pytest.raises(ValueError, match="finished run of ce with parameters"):
        compare_methods(task(), ["ce"], 1, tmp_path, parameters=other, executor=HERE)


def test_finished_runs_of_an_older_echelon_stay_where_they_are(tmp_path: Path) -> None:
    folder = write_made_runs(tmp_path / "runs", rows=20, seeds=1) / "corn-seed0"
    config = json.loads((folder / "config.json").read_text())
    del config["format"]
    (folder / "config.json").write_text(json.dumps(config))
    sums = json.loads((folder / "DONE").read_text())
    sums["config.json"] = sha256((folder / "config.json").read_bytes()).hexdigest()
    (folder / "DONE").write_text(json.dumps(sums))
    before = sorted(path.name for path in folder.parent.iterdir())
    with pytest.raises(ValueError, match=r"corn-seed0 was written by an older echelon, in format"):
        compare_methods(task(), ["ce"], 1, folder.parent, parameters=QUICK, executor=HERE)
    jobs = comparison_jobs([task()], ["ce"], 1, parameters=QUICK)
    folder.rename(folder.with_name(jobs[0].name))
    with pytest.raises(ValueError, match="was written by an older echelon"):
        HERE.run(jobs[:1], folder.parent)
    folder.with_name(jobs[0].name).rename(folder)
    assert sorted(path.name for path in folder.parent.iterdir()) == before


def test_a_folder_belongs_to_one_comparison(tmp_path: Path) -> None:
    """Also where nothing has finished yet that could be looked at."""
    asked = partial(compare_methods, parameters=QUICK, executor=Nobody())
    asked(task(), ["ce"], 1, tmp_path)
    asked(task(), ["corn", "sord:temperature=2"], 2, tmp_path)  # methods and seeds may be added
    asked([task(split_seed=n) for n in range(2)], ["ce"], 1, tmp_path)  # and divisions
    other = {**QUICK, "settings": {"max_epochs": 2}}
    with pytest.raises(
        ValueError, match=r"parameters\.settings\.max_epochs = 1 instead of 2; choose another"
    ):
        compare_methods(task(), ["rps"], 1, tmp_path, parameters=other, executor=Nobody())
    with pytest.raises(ValueError, match=r"divisions\.0 = .* instead of"):
        asked(task(test_share=0.5), ["rps"], 1, tmp_path)
    with pytest.raises(ValueError, match="threads = 1 instead of 2"):
        asked(task(), ["rps"], 1, tmp_path, threads=2)
    (tmp_path / "comparison.json").write_text("{")
    with pytest.raises(ValueError, match="does not say what the runs of the folder share"):
        asked(task(), ["ce"], 1, tmp_path)


def test_of_two_comparisons_that_start_at_once_one_is_refused(tmp_path: Path) -> None:
    found = task()
    start = Barrier(8)
    outcomes: list[str] = []
    refused: list[str] = []

    def begin(epochs: int) -> None:
        start.wait()
        try:
            compare_methods(
                found, ["ce"], 1, tmp_path, executor=Nobody(),
                parameters={**QUICK, "settings": {"max_epochs": epochs}},
            )  # fmt: skip
            outcomes.append(str(epochs))
        except ValueError as error:
            refused.append(str(error))

    threads = [Thread(target=begin, args=(1 + i % 4,)) for i in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(outcomes) == 2
    assert all("max_epochs" in message for message in refused)
    assert len(set(outcomes)) == 1


def test_counts_that_nobody_can_run_are_refused(tmp_path: Path) -> None:
    for seeds in (10**20, 10_001):
        with pytest.raises(ValueError, match="seeds must be at least 1 and at most 10,000"):
            compare_methods(task(), ["ce"], seeds, tmp_path)
    with pytest.raises(ValueError, match="threads must be at least 1 and at most 1,024"):
        compare_methods(task(), ["ce"], 1, tmp_path, threads=10**9)
    with pytest.raises(ValueError, match="max_epochs must be at most"):
        compare_methods(
            task(), ["ce"], 1, tmp_path, parameters={"settings": {"max_epochs": 10**20}}
        )


def test_all_methods_of_a_comparison_have_one_backbone() -> None:
    """A method that compares rows cannot have the ensemble that others would take by themselves."""
    jobs = comparison_jobs([task()], ["corn", "cnnpor", "corn/tabm"], 1, parameters=QUICK)
    asked = {"corn": "mlp", "cnnpor": "mlp", "corn/tabm": "tabm"}
    configs = [job.config for job in jobs if job.config.method in asked]
    assert {config.method: config.parameters["backbone"] for config in configs} == asked
