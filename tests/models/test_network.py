"""The model that is a network: what its file holds, and what using it brings in."""

import subprocess
import sys
from pathlib import Path

import pytest

import echelon
from echelon.data import make_friedman
from echelon.storage.bundle import read_bundle

USE = """
import sys
import numpy as np
import echelon
model = echelon.load(sys.argv[1])
model.predict_proba(np.zeros((3, 10)))
model.export_onnx(sys.argv[2])
model.save(sys.argv[3])
print(sorted(name for name in sys.modules if name.startswith(("echelon.training", "lightning"))))
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    data = make_friedman(200, num_classes=4)
    model = echelon.OrdinalClassifier(
        max_epochs=2, random_state=0, device="cpu", backbone_options={"hidden": (8,)},
        settings={"scaling": "standard"},
    )  # fmt: skip
    model.fit(data.features, data.ranks).save(path := tmp_path_factory.mktemp("network") / "m")
    return path


def test_a_saved_model_is_used_without_the_training_room(saved: Path, tmp_path: Path) -> None:
    """Loading, predicting, exporting and saving again import nothing that trains."""
    arguments = [str(saved), str(tmp_path / "m.onnx"), str(tmp_path / "again")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", USE, *arguments],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"
    assert saved.read_bytes() == (tmp_path / "again").read_bytes()


def test_the_architecture_stands_apart_from_the_training(saved: Path) -> None:
    document = read_bundle(saved, "echelon_model").document["model"]
    assert document["network"] == {
        "method": "corn",
        "backbones": {"table": "mlp"},
        "backbone_options": {"table": {"hidden": [8]}},
        "method_options": {},
        "input_options": {},
        "scaling": "standard",
    }
    assert document["training"]["max_epochs"] == 2
    assert not set(document["training"]) & set(document["network"])
    model = echelon.load(saved)
    assert model.spec_.backbone_options == {"table": {"hidden": (8,)}}
    assert model.settings_.max_epochs == 2


def test_a_setting_that_there_is_not_is_told_all_that_there_are() -> None:
    model = echelon.OrdinalClassifier(settings={"surprise": 1})
    data = make_friedman(50, num_classes=3)
    with pytest.raises(ValueError, match=r"no setting 'surprise'; there are: max_epochs.*scaling"):
        model.fit(data.features, data.ranks)
