"""Two processes, started as a user would with torchrun, train as one does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch

import echelon
from echelon.data import make_friedman
from echelon.runs import read_runs
from echelon.storage.bundle import read_bundle
from tests.sockets import is_loopback, listening

DDP = """
import sys
from echelon import OrdinalClassifier
from echelon.data import make_friedman
data = make_friedman(640, num_classes=5)
model = OrdinalClassifier(
    sys.argv[2], "linear", settings={"max_epochs": 1, "batch_size": 64}, validation_fraction=0,
    random_state=3, device="cpu",
)
model.fit(data.features, data.ranks)
import os, torch.distributed as dist
if os.environ.get("RANK", "0") == "0":
    model.save(sys.argv[1])
if dist.is_initialized():
    dist.barrier()
    dist.destroy_process_group()
"""


@pytest.mark.parametrize("method", ["corn", "regression"])
def test_two_processes_train_as_one(tmp_path: Path, method: str) -> None:
    """Ten steps of the same global batches, with a normaliser that is global."""
    script = tmp_path / "fit.py"
    script.write_text(DDP)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    several = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    for command, out in (([sys.executable], "one"), (several, "two")):
        done = subprocess.run(
            [*command, str(script), str(tmp_path / out), method],
            env=environment,
            timeout=120,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
    one = read_bundle(tmp_path / "one", "echelon_model").tensors
    two = read_bundle(tmp_path / "two", "echelon_model").tensors
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-5, atol=1e-5)


def test_commands_share_each_run_between_two_devices(tmp_path: Path) -> None:
    """`--devices 2` starts the command again; one process speaks and writes, and none is open."""
    data = make_friedman(120, num_classes=3, seed=1)
    table = pd.DataFrame(data.features).assign(rating=data.ranks)
    table.to_csv(tmp_path / "table.csv", index=False)

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "echelon.cli.main", *arguments, "--devices", "2", "--json"]
        with listening() as addresses:
            done = subprocess.run(
                [*command, "--device", "cpu", "--max-epochs", "2"],
                cwd=tmp_path, timeout=300, capture_output=True, text=True,
            )  # fmt: skip
        assert all(is_loopback(one) for one in addresses), addresses
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    document = json.loads(run("fit", "table.csv", "--target", "rating", "--out", "m.echelon"))
    assert document["model"] == "m.echelon"
    assert echelon.load(tmp_path / "m.echelon").predict(data.features).shape == (120,)
    compare = ("compare", "table.csv", "--target", "rating", "--methods", "corn", "--seeds", "2")
    document = json.loads(run(*compare, "--out", "runs"))
    runs = read_runs(tmp_path / "runs")
    assert len(document["runs"]) == len(runs) == 4  # corn twice, the linear model, a constant
    assert {one.environment["processes"] for one in runs} == {2}
    assert json.loads(run(*compare, "--out", "runs")) == document  # kept, and found by both


def test_wrong_input_is_one_line_also_from_two_processes(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\n1,2\n3,4\n")
    command = [sys.executable, "-m", "echelon.cli.main", "fit", "table.csv", "--target", "c"]
    done = subprocess.run(
        [*command, "--out", "m", "--devices", "2"],
        cwd=tmp_path, timeout=120, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "has no column 'c'" in done.stderr
