"""Files predicted by workers of a local Ray: the same as here, also where a worker is killed.

There are 720,000 rows; the environment variable ECHELON_CLUSTER_ROWS says how many of them stand in
each of the twelve files: 416,667 make 5,000,000 rows.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon.data import make_friedman
from tests.slow.test_killed import ray_processes
from tests.sockets import is_loopback, listening

FILES, ROWS = 12, int(os.environ.get("ECHELON_CLUSTER_ROWS", "60000"))
PATIENCE = 300 * max(1, round(ROWS / 60_000))  # seconds that a command may take
PARTIAL = re.compile(r"\..+\.(\d+)\.partial")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc"),
    pytest.mark.timeout(3 * PATIENCE),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    data = make_friedman(FILES * ROWS, num_classes=8)
    table = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(1, 11)])
    settings = {"max_epochs": 1, "refit": False}
    model = echelon.OrdinalClassifier(backbone="mlp", settings=settings, random_state=0)
    model.fit(table[:3000], data.ranks[:3000])
    model.save(folder / "m.echelon")
    table["grade"], table["id"] = data.ranks, np.arange(len(table))
    for i in range(FILES):
        part = folder / "parts" / f"half={i % 2}" / f"p{i}.parquet"
        part.parent.mkdir(parents=True, exist_ok=True)
        table[i * ROWS : (i + 1) * ROWS].to_parquet(part, index=False)
    (folder / "here").mkdir()
    command = start(folder, "predict", "--out", "here")
    command.communicate(timeout=PATIENCE)
    assert command.returncode == 0
    return folder


def start(folder: Path, command: str, *options: str) -> subprocess.Popen:
    words = [sys.executable, "-m", "echelon.cli.main", command, "m.echelon", "parts", "--json"]
    words += ["--keep", "id,half"] if command == "predict" else []
    pipe = subprocess.PIPE
    return subprocess.Popen([*words, *options], cwd=folder, stdout=pipe, stderr=pipe, text=True)


def parts(folder: Path) -> dict[str, Path]:
    return {str(part.relative_to(folder)): part for part in folder.rglob("*.parquet")}


def assert_as_here(place: Path, out: str) -> None:
    here, there = parts(place / "here"), parts(place / out)
    assert here.keys() == there.keys()
    assert len(here) == FILES
    for name, part in here.items():
        pd.testing.assert_frame_equal(pd.read_parquet(there[name]), pd.read_parquet(part))
    rows = pd.concat([pd.read_parquet(part, columns=["id"]) for part in there.values()])["id"]
    assert sorted(rows) == list(range(FILES * ROWS))
    assert not list((place / out).rglob(".*"))


def test_a_killed_worker_is_replaced_and_nothing_is_lost_or_written_twice(place: Path) -> None:
    before = ray_processes()
    with listening() as addresses:
        command = start(place, "predict", "--cluster", "local", "--out", "killed")
        killed = kill_a_writer(place / "killed", command)
        kept = {name: part.stat() for name, part in parts(place / "killed").items()}
        said, errors = command.communicate(timeout=PATIENCE)
    assert command.returncode == 0, errors
    assert "Traceback" not in errors
    assert json.loads(said)["rows"] == FILES * ROWS
    assert not Path(f"/proc/{killed}").exists()
    assert kept
    for name, status in kept.items():
        again = (place / "killed" / name).stat()
        assert (again.st_ino, again.st_mtime_ns) == (status.st_ino, status.st_mtime_ns)
    assert_as_here(place, "killed")
    assert all(is_loopback(address) for address in addresses), addresses
    assert ray_processes() <= before


def kill_a_writer(out: Path, command: subprocess.Popen) -> int:
    """Kill a worker that is in the middle of a file, after the first files are done."""
    deadline = time.monotonic() + PATIENCE
    while command.poll() is None and time.monotonic() < deadline:
        if len(parts(out)) >= 2:
            for place in out.rglob(".*.partial"):
                if match := PARTIAL.fullmatch(place.name):
                    os.kill(int(match[1]), signal.SIGKILL)
                    return int(match[1])
        time.sleep(0.01)
    raise AssertionError(f"nobody was seen to write: {command.communicate()}")


def test_scores_of_a_cluster_are_those_of_one_process(place: Path) -> None:
    documents = []
    for options in ((), ("--cluster", "local")):
        command = start(place, "evaluate", "--target", "grade", *options)
        said, errors = command.communicate(timeout=PATIENCE)
        assert command.returncode == 0, errors
        documents.append(json.loads(said))
    alone, together = documents
    assert together["rows"] == alone["rows"] == FILES * ROWS
    assert together["metrics"] == pytest.approx(alone["metrics"], rel=1e-9)
