"""Every method with the paper's image networks as ONNX, from pixels."""

from pathlib import Path

import pytest

import echelon
from tests.contracts.test_vision import NARROW, check_onnx, fitted


@pytest.mark.parametrize("method", echelon.METHODS)
@pytest.mark.parametrize("backbone", NARROW)
def test_every_method(backbone: str, method: str, tmp_path: Path) -> None:
    check_onnx(fitted(backbone, method), tmp_path / "m.onnx")
