"""One fit by the workers of a Ray cluster: as by torchrun, and complete when one of them dies."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from echelon.data import make_friedman
from echelon.storage.bundle import read_bundle
from tests.slow.test_killed import ray_processes
from tests.sockets import is_loopback, listening

FIT = ("fit", "rows", "--target", "grade", "--stream", "--device", "cpu", "--json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = make_friedman(3000, num_classes=5, seed=2)
    frame = pd.DataFrame(data.features, columns=[f"x{i}" for i in range(10)])
    frame = frame.assign(grade=data.ranks)
    (tmp_path / "rows").mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(frame)), 6)):
        frame.iloc[part].to_parquet(tmp_path / "rows" / f"{number}.parquet", row_group_size=100)
    return tmp_path


def start(folder: Path, *arguments: str, torchrun: bool = False) -> subprocess.Popen:
    several = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [sys.executable, *(several if torchrun else []), "-m", "echelon.cli.main"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "disabled"}
    return subprocess.Popen(
        [*command, *FIT, *arguments], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def finish(process: subprocess.Popen) -> str:
    text, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors[-3000:]
    return text


def tensors(path: Path) -> dict[str, torch.Tensor]:
    return read_bundle(path, "echelon_model").tensors


def assert_near(left: Path, right: Path, tolerance: float) -> None:
    mine, theirs = tensors(left), tensors(right)
    assert mine.keys() == theirs.keys()
    for name, tensor in mine.items():
        torch.testing.assert_close(theirs[name], tensor, rtol=0, atol=tolerance)


@pytest.mark.timeout(900)
def test_two_ray_workers_train_as_two_processes_of_torchrun(folder: Path) -> None:
    """A dozen steps of the same shards."""
    steps = ("--model", "network:settings.batch_size=256", "--max-epochs", "1")
    before = ray_processes()
    with listening() as addresses:
        cluster = start(folder, *steps, "--cluster", "local", "--devices", "2", "--out", "ray")
        document = json.loads(finish(cluster))
    assert addresses
    assert all(is_loopback(address) for address in addresses), addresses
    assert document["model"] == "ray"
    assert document["rows"] == 3000
    assert_none_is_left(before)
    finish(start(folder, *steps, "--out", "torchrun", torchrun=True))
    assert_near(folder / "ray", folder / "torchrun", 1e-6)
    assert not list(folder.glob("*.checkpoints"))


def assert_none_is_left(before: set[str]) -> None:
    """Ray's processes end soon after their cluster."""
    deadline = time.monotonic() + 60
    while not ray_processes() <= before:
        assert time.monotonic() < deadline, "a process is left behind"
        time.sleep(0.5)


def train_workers() -> list[int]:
    """Processes in which Ray Train runs the command."""
    workers = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = place.read_bytes()
        except OSError:
            continue
        if b"ray::" in command and b"TrainWorker" in command:
            workers.append(int(place.parent.name))
    return workers


@pytest.mark.timeout(1500)
@pytest.mark.skipif(sys.platform != "linux", reason="finds worker processes through /proc")
def test_a_worker_that_dies_is_replaced_and_the_model_is_the_same(folder: Path) -> None:
    network = ("--model", "network:settings.batch_size=8", "--backbone", "linear")
    steps = (*network, "--max-epochs", "12")
    cluster = ("--cluster", "local", "--devices", "2")
    before = ray_processes()
    process = start(folder, *steps, *cluster, "--out", "killed")
    deadline = time.monotonic() + 200
    while len(train_workers()) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[1][-3000:]
        time.sleep(0.1)
    time.sleep(5)
    victims = train_workers()
    assert victims, "the fit was over before a worker could die"
    os.kill(victims[-1], signal.SIGKILL)
    finish(process)
    assert_none_is_left(before)
    finish(start(folder, *steps, *cluster, "--out", "calm"))
    assert_near(folder / "killed", folder / "calm", 0.0)


@pytest.mark.timeout(600)
def test_what_all_workers_refuse_is_one_line(folder: Path) -> None:
    process = start(folder, "--target", "rank", "--cluster", "local", "--devices", "2",
                    "--out", "model")  # fmt: skip
    _, errors = process.communicate(timeout=500)
    assert process.returncode == 2
    assert "has no column 'rank'" in errors.strip().rpartition("\n")[2]
