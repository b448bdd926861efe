"""Where a fit runs."""

import subprocess
import sys

import pytest
import torch

from echelon.training.devices import check_device, make_fabric


def test_fabric_is_not_imported_before_a_fit() -> None:
    code = (
        "import sys, echelon; echelon.OrdinalClassifier(); print('lightning_fabric' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("device", ["tpu", "abacus", "", "cuda:99"])
def test_a_device_that_is_not_there_is_refused_before_anything_starts(device: str) -> None:
    with pytest.raises(ValueError, match=f"device must be auto, cpu.*got '{device}': try auto"):
        make_fabric(device, "32-true")
    for known in ("auto", "cpu"):
        check_device(known)


def test_one_process_takes_one_device(monkeypatch) -> None:
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    fabric = make_fabric("cpu", "64-true")
    assert (fabric.world_size, fabric.global_rank, fabric.device.type) == (1, 0, "cpu")
    layer = fabric.setup_module(torch.nn.Linear(2, 1))
    assert next(layer.parameters()).dtype == torch.float64
