"""Execution: the same results wherever jobs run, and whatever is killed meanwhile."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from echelon.experiments import Executor, RunsFailed, comparison_jobs, table_task
from echelon.experiments.jobs import Job
from echelon.runs import read_run, read_runs

QUICK = {"max_epochs": 2, "device": "cpu"}
HERE = Executor(workers=1)


@pytest.fixture(scope="module")
def jobs(small_frame) -> list[Job]:
    task = table_task("small", small_frame.drop(columns="rating"), small_frame["rating"])
    return comparison_jobs([task], ["ce", "corn"], 2, parameters=QUICK)


@pytest.fixture(scope="module")
def undisturbed(jobs, tmp_path_factory) -> dict[str, np.ndarray]:
    runs = HERE.run(jobs, tmp_path_factory.mktemp("undisturbed"))
    return {run.config.name: run.predictions["probabilities"] for run in runs}


def found_in(folder: Path) -> dict[str, np.ndarray]:
    return {run.config.name: run.predictions["probabilities"] for run in read_runs(folder)}


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert set(found) == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


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
    parameters = {**jobs[-1].config.parameters, "learning_rate": -1.0}
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


def test_a_worker_that_dies_twice_is_reported_and_no_other_is_lost(
    jobs, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("ECHELON_TEST_MARK", str(tmp_path / "mark"))
    config = replace(jobs[2].config, details={"always": True})
    with pytest.raises(RunsFailed, match=r"its worker died twice"):
        Executor(workers=2).run([*jobs[:2], Deadly(config, jobs[2].task), *jobs[3:]], tmp_path)
    assert len(read_runs(tmp_path)) == len(jobs) - 1


# ---- the command, killed ------------------------------------------------------------------------


def start(csv: Path, out: Path, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "echelon.cli.main", "compare", str(csv), "--target", "rating"]
    command += ["--methods", "ce,corn", "--seeds", "3", "--max-epochs", "100", "--workers", "2"]
    command += ["--out", str(out), "--json", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children(process: int) -> list[int]:
    """Workers of a process: its children that are pool processes."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
            command = (place.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == process and b"popen_loky" in command:
            found.append(int(place.parent.name))
    return found


def stamps(out: Path) -> dict[str, int]:
    return {place.parent.name: place.stat().st_mtime_ns for place in out.glob("[!.]*/DONE")}


def wait_for_runs(out: Path, count: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while len(stamps(out)) < count and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="finds worker processes through /proc")
def test_killed_and_started_again_the_results_are_the_same(small_frame, tmp_path) -> None:
    csv = tmp_path / "small.csv"
    small_frame.to_csv(csv, index=False)
    calm = start(csv, tmp_path / "calm")
    _, errors = calm.communicate(timeout=120)
    assert calm.returncode == 0, errors
    out = tmp_path / "killed"
    for done in (1, 3):  # the parent, at two moments
        process = start(csv, out)
        wait_for_runs(out, done, process)
        before, workers = stamps(out), children(process.pid)
        process.kill()
        process.communicate()
        deadline = time.monotonic() + 20
        while any(Path(f"/proc/{one}").exists() for one in workers):
            assert time.monotonic() < deadline, "an orphaned worker goes on"
            time.sleep(0.1)
        assert before.items() <= stamps(out).items()
    process = start(csv, out)  # and now a worker
    wait_for_runs(out, min(len(before) + 1, 7), process)
    before = stamps(out)
    for one in children(process.pid)[:1]:
        os.kill(one, signal.SIGKILL)
    text, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert text.startswith('{"runs"')
    assert before.items() <= stamps(out).items()
    assert len(stamps(out)) == 8
    assert_same(found_in(out), found_in(tmp_path / "calm"))
    assert not list(out.glob(".*.partial"))


def test_an_interruption_says_how_to_go_on(small_frame, tmp_path) -> None:
    csv = tmp_path / "small.csv"
    small_frame.to_csv(csv, index=False)
    process = start(csv, tmp_path / "runs", "--max-epochs", "20000")
    wait_for_runs(tmp_path / "runs", 1, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on" in errors
    assert "Traceback" not in errors


# ---- a cluster -----------------------------------------------------------------------------------


def ray_processes() -> set[str]:
    found = set()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = place.read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        if b"raylet" in command or b"gcs_server" in command or b"ray::" in command:
            found.add(place.parent.name)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes through /proc")
def test_a_ray_cluster_gives_the_same_and_leaves_no_process(jobs, undisturbed, tmp_path) -> None:
    before = ray_processes()
    Executor(workers=2, cluster="local").run(jobs, tmp_path)
    assert_same(found_in(tmp_path), undisturbed)
    assert ray_processes() <= before


def test_a_worker_that_cannot_reach_the_folder_sends_its_run_back(jobs, tmp_path) -> None:
    from echelon.experiments.execute import _in_worker

    name, reason, run, process = _in_worker(jobs[0], tmp_path, "no-such-token", 0)
    assert (name, reason, process) == (jobs[0].name, None, os.getpid())
    assert run.config == jobs[0].config
    assert list(tmp_path.iterdir()) == []
