"""Two processes, started as a user would with torchrun, train as one does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from echelon.training.checkpoints import read_whole

DDP = """
import sys
from echelon import OrdinalClassifier
from echelon.data import make_friedman
data = make_friedman(640, num_classes=5)
model = OrdinalClassifier(
    sys.argv[2], "linear", max_epochs=1, batch_size=64, validation_fraction=0, random_state=3,
    device="cpu",
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
    one, _ = read_whole(tmp_path / "one", "echelon_model")
    two, _ = read_whole(tmp_path / "two", "echelon_model")
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-5, atol=1e-5)
