"""Every method as ONNX, from raw columns."""

from pathlib import Path

import pandas as pd
import pytest

import echelon
from tests.models.test_onnx import check_export, frame  # noqa: F401 (a fixture)


@pytest.mark.parametrize("method", echelon.METHODS)
def test_equals_the_model(frame: pd.DataFrame, method: str, tmp_path: Path) -> None:  # noqa: F811
    check_export(frame, tmp_path, {"method": method})


def test_probit(frame: pd.DataFrame, tmp_path: Path) -> None:  # noqa: F811
    check_export(frame, tmp_path, {"method": "clm", "method_options": {"link": "probit"}})
