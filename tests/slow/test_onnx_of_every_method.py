"""Every method, and every link of the linear model, as ONNX from raw columns."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon import CumulativeLinkModel
from tests.models.test_onnx import check_export, frame, run  # noqa: F401 (a fixture)


@pytest.mark.parametrize("method", echelon.METHODS)
def test_equals_the_model(frame: pd.DataFrame, method: str, tmp_path: Path) -> None:  # noqa: F811
    check_export(frame, tmp_path, {"method": method})


def test_probit(frame: pd.DataFrame, tmp_path: Path) -> None:  # noqa: F811
    check_export(frame, tmp_path, {"method": "clm", "method_options": {"link": "probit"}})


@pytest.mark.parametrize("link", ["probit", "cloglog"])
def test_the_linear_model_with_each_link(frame: pd.DataFrame, tmp_path: Path, link: str) -> None:  # noqa: F811
    features = frame.drop(columns="target")
    model = CumulativeLinkModel(link, classes=["worst", "bad", "good", "best"])
    model.fit(features, frame["target"]).export_onnx(tmp_path / "m.onnx")
    found = run(tmp_path / "m.onnx", features)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(features), atol=1e-5)
