"""The paper's image networks with every method: a step, an evaluation, a saved model.

Their ONNX graphs are in tests/slow/test_vision_onnx.py, which `make test-vision` runs.
"""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import echelon
from echelon import OrdinalClassifier
from echelon.data.kinds.image import Images
from tests.cases import THOROUGH

# The layers of the named networks, with fewer channels: what is tested does not depend on them.
NARROW = {"timm:resnet34": {"channels": (16, 16, 16, 16)}, "timm:vgg16": {"mlp_ratio": 0.002}}
SIZE = 32


def images(n: int = 12) -> np.ndarray:
    return np.random.default_rng(0).integers(256, size=(n, 40, 36, 3), dtype=np.uint8)


def fitted(backbone: str, method: str) -> OrdinalClassifier:
    model = OrdinalClassifier(
        method,
        backbone,
        settings={"max_epochs": 1, "batch_size": 6},
        validation_fraction=0.5,
        random_state=0,
        device="cpu",
        backbone_options=NARROW[backbone],
        inputs={"image": {"size": SIZE}},
    )
    return model.fit(images(), np.arange(12) % 4)


def check_onnx(model: OrdinalClassifier, path: Path) -> None:
    model.export_onnx(path)
    session = onnxruntime.InferenceSession(path)
    pixels = Images(np.array([*images(), None], object)[:-1], model.readers_.encodings["image"])
    found = session.run(["probabilities", "label"], {"image": pixels.take(np.arange(12)).numpy()})
    np.testing.assert_allclose(found[0], model.predict_proba(images()), atol=1e-5)
    assert (found[1] == model.predict(images())).mean() > 0.9


PAIRS = [  # each method with one network; with both in `make test-slow`
    (method, backbone)
    for i, method in enumerate(echelon.METHODS)
    for j, backbone in enumerate(NARROW)
    if THOROUGH or i % 2 == j
]


@pytest.mark.parametrize(("method", "backbone"), PAIRS)
def test_every_method(backbone: str, method: str, tmp_path: Path) -> None:
    model = fitted(backbone, method)
    assert np.isfinite(model.history_[0]["loss"])
    assert np.isfinite(model.history_[0]["validation_ranked_probability_score"])
    probabilities = model.predict_proba(images())
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)
    assert np.ptp(probabilities, axis=0).max() > 0  # rows differ
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(images()), probabilities)
