"""Packages that an installation may lack, or that do not fit the torch beside them."""

import os
import subprocess
import sys

import pytest

from echelon import extras

TIMM = """
import numpy as np, echelon
model = echelon.OrdinalClassifier(backbone="timm:resnet18", random_state=0,
    settings={"max_epochs": 1}, inputs={"image": {"size": 32}},
    backbone_options={"channels": (16, 16, 16, 16)})
pixels = np.random.default_rng(0).integers(256, size=(12, 32, 32, 3), dtype=np.uint8)
print(model.fit(pixels, np.arange(12) % 3).predict_proba(pixels).shape)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_timm_works_in_the_environment_that_setup_makes() -> None:
    """Also where torchvision lacks its compiled half, and nobody mended it before."""
    done = run(TIMM)
    assert done.stdout.strip() == "(12, 3)", done.stderr[-2000:]


@pytest.mark.parametrize("package", ["timm", "PIL", "transformers", "pyarrow", "altair", "onnx"])
def test_what_is_missing_is_named_with_its_extra(package: str, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not there
    extra = extras._EXTRAS[package]
    expected = rf"such things need the extra `{extra}`: pip install 'echelon\[{extra}\]'"
    with pytest.raises(ValueError, match=expected):
        extras.require(package, "such things")


def test_a_package_that_lacks_another_says_which(tmp_path, monkeypatch) -> None:
    (tmp_path / "altair.py").write_text("import a_package_that_nobody_has")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "altair", raising=False)
    with pytest.raises(ValueError, match=r"echelon\[report\].*a_package_that_nobody_has"):
        extras.require("altair", "reports")


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        (
            "operator torchvision::nms does not exist",
            "Install the torchvision that belongs to torch 2",
        ),
        ("libthing.so: undefined symbol", "Install it once more"),
    ],
)
def test_what_cannot_be_healed_says_which_package_to_install(
    reason: str, advice: str, tmp_path, monkeypatch
) -> None:
    (tmp_path / "timm.py").write_text(f"raise RuntimeError({reason!r})")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    for healing in ("_declare_operators", "_forget"):  # which would be felt by other tests
        monkeypatch.setattr(extras, healing, lambda *names: None)
    with pytest.raises(ValueError, match=rf"networks need timm, .*{reason}\. {advice}") as raised:
        extras.require("timm", "networks")
    assert "\n" not in str(raised.value)


_SESSION = """
from echelon.extras import require
onnx = require("onnx", "this test")
onnxruntime = require("onnxruntime", "this test")
value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
other = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
node = onnx.helper.make_node("Identity", ["x"], ["y"])
graph = onnx.helper.make_graph([node], "g", [value], [other])
opset = [onnx.helper.make_opsetid("", 17)]
model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)
onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
"""


def test_onnxruntime_sends_no_reports(tmp_path) -> None:
    """It sends them some seconds after its import; until then they lie in the user's cache."""
    kept = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"}
    environment = {**kept, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", _SESSION], env=environment, check=True, timeout=100)
    assert list(tmp_path.iterdir()) == []
