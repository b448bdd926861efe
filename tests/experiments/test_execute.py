"""Execution: the same results wherever jobs run, and whatever is killed meanwhile."""

import os
import signal
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from echelon.experiments import Executor, RunsFailed, comparison_jobs, table_task
from echelon.experiments.jobs import LINEAR, Job
from echelon.runs import read_run, read_runs
from tests.experiments.same_runs import assert_same, found_in

QUICK = {"settings": {"max_epochs": 2}, "device": "cpu"}
HERE = Executor(workers=1)


@pytest.fixture(scope="module")
def jobs(small_frame) -> list[Job]:
    task = table_task("small", small_frame.drop(columns="rating"), small_frame["rating"])
    made = comparison_jobs([task], ["ce", "corn"], 2, parameters=QUICK)
    return [one for one in made if one.config.method != LINEAR]  # which takes longer than the rest


@pytest.fixture(scope="module")
def undisturbed(jobs, tmp_path_factory) -> dict[str, np.ndarray]:
    runs = HERE.run(jobs, tmp_path_factory.mktemp("undisturbed"))
    return {run.config.name: run.predictions["probabilities"] for run in runs}


def test_a_result_does_not_depend_on_what_ran_beside_it(jobs, undisturbed, tmp_path) -> None:
    seen = []
    Executor(workers=2).run(jobs, tmp_path, on_run=lambda name, new: seen.append((name, new)))
    assert_same(found_in(tmp_path), undisturbed)
    assert sorted(seen) == sorted((one.name, True) for one in jobs)
    assert all(run.environment["threads"] == 1 for run in read_runs(tmp_path))


def test_the_order_of_jobs_does_not_matter(jobs, undisturbed, tmp_path) -> None:
    runs = HERE.run(jobs[::-1], tmp_path)
    assert [run.config.name for run in runs] == [one.name for one in jobs[::-1]]
    assert_same(found_in(tmp_path), undisturbed)


def test_a_damaged_folder_is_set_aside_and_run_again(jobs, undisturbed, tmp_path, capsys) -> None:
    HERE.run(jobs, tmp_path)
    broken, whole = (tmp_path / one.name for one in jobs[-2:])
    (broken / "predictions.npz").write_bytes(b"rubbish")
    stamp = (whole / "DONE").stat().st_mtime_ns
    HERE.run(jobs, tmp_path)
    assert_same(found_in(tmp_path), undisturbed)
    assert (tmp_path / f".damaged-1-{broken.name}" / "DONE").is_file()
    assert "is damaged" in capsys.readouterr().err
    assert (whole / "DONE").stat().st_mtime_ns == stamp


def test_a_folder_without_done_is_run_again(jobs, tmp_path) -> None:
    (tmp_path / jobs[0].name).mkdir()
    (tmp_path / jobs[0].name / "config.json").write_text("{")
    HERE.run(jobs[:1], tmp_path)
    assert read_run(tmp_path / jobs[0].name).config.method == "constant"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_fails_is_named_and_the_others_are_kept(jobs, tmp_path, workers) -> None:
    parameters = {**jobs[-1].config.parameters, "settings": {"learning_rate": -1.0}}
    bad = Job(replace(jobs[-1].config, parameters=parameters), jobs[-1].task)
    with pytest.raises(RunsFailed, match="1 of 3 runs failed: corn-seed1") as caught:
        Executor(workers=workers).run([bad, *jobs[:2]], tmp_path)
    assert "learning_rate must be greater than 0" in str(caught.value)
    assert len(read_runs(tmp_path)) == 2


class Deadly(Job):
    """Takes its worker down: the first time, or always."""

    def run(self):
        mark = Path(os.environ["ECHELON_TEST_MARK"])
        if self.config.details.get("always") or not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run()


def test_a_worker_that_dies_once_is_retried(jobs, undisturbed, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("ECHELON_TEST_MARK", str(tmp_path / "mark"))
    deadly = [*jobs[:2], Deadly(jobs[2].config, jobs[2].task), *jobs[3:]]
    Executor(workers=2).run(deadly, tmp_path / "runs")
    assert (tmp_path / "mark").exists()
    assert_same(found_in(tmp_path / "runs"), undisturbed)


def test_a_worker_that_cannot_reach_the_folder_sends_its_run_back(jobs, tmp_path) -> None:
    from echelon.experiments.execute import _in_worker

    name, reason, run, process = _in_worker(jobs[0], tmp_path, "no-such-token")
    assert (name, reason, process) == (jobs[0].name, None, os.getpid())
    assert run.config == jobs[0].config
    assert list(tmp_path.iterdir()) == []


def test_no_more_workers_than_jobs(jobs, tmp_path, monkeypatch) -> None:
    started = []

    @contextmanager
    def pool(workers):
        started.append(workers)
        yield object()

    monkeypatch.setattr("echelon.experiments.execute._loky", pool)
    monkeypatch.setattr("echelon.experiments.execute._side_by_side", lambda *_: {"x": "nobody ran"})
    with pytest.raises(RunsFailed):
        Executor(workers=24).run(jobs[:4], tmp_path)
    assert started == [4]
