"""The cache of encodings among processes: filled by two at once, and by one that is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FILL = """
import sys, time
import numpy as np
import torch
from torch import nn
from pathlib import Path
from echelon.data.inputs import Inputs
from echelon.data.kinds.image import Images, ImageSettings
from echelon.networks.encodings import encodings_in
from echelon.networks.frozen import OwnBackbone
from echelon.networks.prediction import encode_once

count, wait = Path(sys.argv[2]), float(sys.argv[3])

class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 16)
    def forward(self, pixels):
        if len(pixels) > 2:  # not when it is tried out
            time.sleep(wait)
            with count.open("a") as stream:
                stream.write(f"{len(pixels)}\\n")
        return self.layer(pixels.float().mean((2, 3)))

cells = np.empty(600, dtype=object)
cells[:] = [np.full((8, 8, 3), i % 256, np.uint8) + np.uint8(i // 256) for i in range(600)]
encoder = OwnBackbone(Slow(), torch.zeros(2, 3, 8, 8), frozen=True)
with encodings_in(Path(sys.argv[1])):
    encoded = encode_once(encoder, "image", Inputs({"image": Images(cells, ImageSettings(8, 8))}))
print(encoded.double().sum().item())
"""


def started(code: str, shared: Path, notes: Path, wait: float) -> "subprocess.Popen[str]":
    """A process that runs the code in a shared folder and notes how many rows it encodes."""
    script = notes.parent / "script.py"  # a file, so that the code of its module is part of the key
    script.write_text(code)
    environment = {key: value for key, value in os.environ.items() if key != "ECHELON_CACHE"}
    return subprocess.Popen(
        [sys.executable, str(script), str(shared), str(notes), str(wait)],
        stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


@pytest.fixture
def fill(tmp_path: Path):
    """Start a process that fills a cache."""
    return lambda name, wait=0.0: started(FILL, tmp_path / "cache", tmp_path / name, wait)


def counted(path: Path) -> int:
    return sum(map(int, path.read_text().split())) if path.exists() else 0


ROWS = len({(i % 256 + i // 256) % 256 for i in range(600)})  # equal images are encoded once


def test_two_processes_encode_each_row_once_between_them(fill, tmp_path: Path) -> None:
    both = [fill(name, 0.2) for name in ("a", "b")]
    sums = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sums[0] == sums[1] != ""
    assert counted(tmp_path / "a") + counted(tmp_path / "b") == ROWS


def test_a_killed_process_loses_no_more_than_the_batch_it_was_at(fill, tmp_path: Path) -> None:
    first = fill("a", 0.5)
    end = time.monotonic() + 60
    while not list((tmp_path / "cache").rglob("*.safetensors")) and time.monotonic() < end:
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    time.sleep(0.1)
    kept = 128 * len(list((tmp_path / "cache").rglob("*.safetensors")))
    assert 0 < kept < ROWS
    again = fill("b")
    text, _ = again.communicate(timeout=60)
    assert again.returncode == 0
    assert counted(tmp_path / "b") == ROWS - kept
    whole = fill("c")
    assert whole.communicate(timeout=60)[0] == text
    assert counted(tmp_path / "c") == 0


COMPARE = """
import sys, time
from pathlib import Path
import numpy as np
import pandas as pd
from safetensors.torch import save_file
from echelon.experiments.comparing import compare_methods
from echelon.experiments.execute import Executor
from echelon.experiments.tasks import table_task
from echelon.extras import require
from echelon.networks.image import TimmBackbone

folder, count, wait = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
weights = folder / "weights.safetensors"
if not weights.exists():
    made = require("timm", "this test").create_model("resnet10t", num_classes=0)
    save_file(made.state_dict(), weights)
encode = TimmBackbone.encode

def counted(self, pixels):
    time.sleep(wait)
    with count.open("a") as stream:
        stream.write(f"{len(pixels)}\\n")
    return encode(self, pixels)

TimmBackbone.encode = counted
generator = np.random.default_rng(0)
ranks = np.arange(300) % 3
cells = [generator.integers(80 * rank, 80 * rank + 90, (32, 32, 3), np.uint8) for rank in ranks]
frame = pd.DataFrame({"photo": cells})
task = table_task("photos", frame, ranks, columns_by_kind={"image": "photo"})
given = {
    "backbone": "timm:resnet10t", "image": "photo", "inputs": {"image": {"size": 32}},
    "backbone_options": {"frozen": True, "weights": str(weights)},
    "settings": {"max_epochs": 2}, "device": "cpu",
}
runs = compare_methods(task, ["ce", "corn"], 2, folder / "runs", parameters=given,
                       executor=Executor(workers=1))
print(len(runs))
"""


def test_a_killed_comparison_encodes_again_only_what_it_had_not_kept(tmp_path: Path) -> None:
    def start(name: str, wait: float = 0.0) -> "subprocess.Popen[str]":
        return started(COMPARE, tmp_path, tmp_path / name, wait)

    first = start("a", 0.3)
    end = time.monotonic() + 120
    while not list((tmp_path / "runs").rglob("*/*.safetensors")) and time.monotonic() < end:
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert 0 < counted(tmp_path / "a") < 300
    again = start("b")
    assert again.communicate(timeout=300)[0].strip() == "6"
    encoded = counted(tmp_path / "a") + counted(tmp_path / "b")
    assert 300 <= encoded <= 300 + 128  # the batch that it was at when it was killed
    assert counted(tmp_path / "b") < 300
    third = start("c")
    assert third.communicate(timeout=300)[0].strip() == "6"
    assert counted(tmp_path / "c") == 0
