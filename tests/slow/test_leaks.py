"""Two hundred fits in one process leave nothing behind: no memory, no open file, no thread."""

import gc
import os
import sys
import threading
from pathlib import Path

import pytest

import echelon
from echelon.data import make_friedman

FITS = 200
ALLOWED = 20 * 2**20  # bytes, between the first and the last third


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_two_hundred_fits_leave_nothing_behind(tmp_path: Path) -> None:
    data = make_friedman(120, num_classes=4, seed=1)
    held, files, threads = [], [], []
    for number in range(FITS):
        model = echelon.OrdinalClassifier(
            settings={"max_epochs": 2},
            random_state=number,
            device="cpu",
            checkpoint_dir=tmp_path / "c",
        )
        model.fit(data.features, data.ranks)
        model.calibrate(data.features, data.ranks)
        model.conformalize(data.features, data.ranks)
        model.save(tmp_path / "m.echelon")
        loaded = echelon.load(tmp_path / "m.echelon")
        loaded.predict_interval(data.features)
        del model, loaded
        if number % 10 == 0:
            gc.collect()
        held.append(resident())
        files.append(len(os.listdir("/proc/self/fd")))
        threads.append(threading.active_count())
    third = FITS // 3
    first, last = held[third // 2 : third], held[-third // 2 :]
    assert min(last) - min(first) < ALLOWED, f"grew by {(min(last) - min(first)) / 2**20:.0f} MiB"
    assert files[-1] <= files[third]
    assert threads[-1] <= threads[third]
    assert {path.name for path in tmp_path.iterdir()} <= {"c", "m.echelon"}
