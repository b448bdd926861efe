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


@pytest.fixture
def fill(tmp_path: Path):
    """Start a process that fills a cache and notes how many rows it encodes."""
    script = tmp_path / "fill.py"  # a file, so that the code of its module is part of the key
    script.write_text(FILL)

    def start(name: str, wait: float = 0.0) -> "subprocess.Popen[str]":
        places = [str(tmp_path / "cache"), str(tmp_path / name), str(wait)]
        environment = {key: value for key, value in os.environ.items() if key != "ECHELON_CACHE"}
        return subprocess.Popen(
            [sys.executable, str(script), *places], stdout=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip

    return start


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
