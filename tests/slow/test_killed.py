"""Commands that are killed and started again, and a cluster: nothing is lost or left behind."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from echelon.experiments import Executor, RunsFailed, comparison_jobs, table_task
from echelon.runs import read_runs
from tests.experiments.same_runs import assert_same, found_in
from tests.experiments.test_execute import Deadly, jobs  # noqa: F401 (a fixture)
from tests.sockets import is_loopback, listening


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


@pytest.mark.skipif(sys.platform != "linux", reason="finds worker processes through /proc")
def test_killed_while_its_workers_start_it_leaves_none(small_frame, tmp_path) -> None:
    csv = tmp_path / "small.csv"
    small_frame.to_csv(csv, index=False)
    process = start(csv, tmp_path / "runs", "--workers", "24", "--max-epochs", "20000")
    deadline = time.monotonic() + 60
    while not (workers := children(process.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 20  # they import first, and then look
    while any(Path(f"/proc/{one}").exists() for one in workers):
        assert time.monotonic() < deadline, "an orphaned worker goes on"
        time.sleep(0.1)


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
def test_a_ray_cluster_gives_the_same_and_leaves_no_process(small_frame, tmp_path) -> None:
    task = table_task("small", small_frame.drop(columns="rating"), small_frame["rating"])
    parameters = {"settings": {"max_epochs": 2}, "device": "cpu"}
    made = comparison_jobs([task], ["ce", "corn"], 2, parameters=parameters)
    Executor(workers=1).run(made, tmp_path / "here")
    before = ray_processes()
    with listening() as addresses:
        Executor(workers=2, cluster="local").run(made, tmp_path / "ray")
    assert addresses
    assert all(is_loopback(one) for one in addresses), addresses
    assert_same(found_in(tmp_path / "ray"), found_in(tmp_path / "here"))
    assert ray_processes() <= before


def test_a_worker_that_dies_twice_is_reported_and_no_other_is_lost(
    jobs,  # noqa: F811
    tmp_path,
    monkeypatch,
) -> None:
    monkeypatch.setenv("ECHELON_TEST_MARK", str(tmp_path / "mark"))
    config = replace(jobs[2].config, details={"always": True})
    with pytest.raises(RunsFailed, match=r"its worker died twice"):
        Executor(workers=2).run([*jobs[:2], Deadly(config, jobs[2].task), *jobs[3:]], tmp_path)
    assert len(read_runs(tmp_path)) == len(jobs) - 1
