"""The cache of encodings: each row once, whatever happens to its files.

That processes may fill it at once, and be killed, is tested in tests/slow.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from echelon import OrdinalClassifier
from echelon.experiments import Executor, compare_methods, table_task
from echelon.extras import require
from echelon.networks.encodings import Encodings, encoder_digest, row_key
from echelon.networks.image import TimmBackbone


class Counting(nn.Module):
    """Filters that count the rows they are given."""

    rows = 0

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(3, 16, generator=generator))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        if len(pixels) > 2:  # not when it is tried out
            Counting.rows += len(pixels)
        return pixels.mean((2, 3)) @ self.weight


@pytest.fixture
def photos(monkeypatch: pytest.MonkeyPatch) -> tuple[pd.DataFrame, np.ndarray]:
    monkeypatch.delenv("ECHELON_CACHE", raising=False)
    monkeypatch.setattr(Counting, "rows", 0)
    generator = np.random.default_rng(0)
    ranks = generator.integers(4, size=100)
    shades = 50 * ranks[:, None, None] + generator.integers(0, 40, size=(100, 8, 8))
    return pd.DataFrame({"photo": list(shades.astype(np.uint8))}), ranks


def test_a_comparison_encodes_each_image_once(photos, tmp_path: Path, monkeypatch) -> None:
    frame, ranks = photos
    weights = tmp_path / "weights.safetensors"
    made = require("timm", "these tests").create_model("resnet10t", num_classes=0)
    save_file(made.state_dict(), weights)
    counts = []
    encode = TimmBackbone.encode
    monkeypatch.setattr(
        TimmBackbone, "encode", lambda self, x: (counts.append(len(x)), encode(self, x))[1]
    )
    task = table_task("photos", frame, ranks, columns_by_kind={"image": "photo"})
    given = {
        "backbone": "timm:resnet10t", "image": "photo", "inputs": {"image": {"size": 32}},
        "backbone_options": {"frozen": True, "weights": str(weights)},
        "settings": {"max_epochs": 2}, "device": "cpu",
    }  # fmt: skip

    def compare(seeds: int) -> int:
        runs = compare_methods(
            task, ["ce", "corn"], seeds, tmp_path / "runs", parameters=given,
            executor=Executor(workers=1),
        )  # fmt: skip
        return len(runs)

    assert compare(2) == 6  # two methods twice, a constant, a linear model on the encodings
    assert sum(counts) == 100  # for four fits, their validation, and their predictions
    assert compare(3) == 8
    assert sum(counts) == 100


def test_the_variable_names_a_folder_for_all(photos, tmp_path: Path, monkeypatch) -> None:
    frame, ranks = photos
    monkeypatch.setenv("ECHELON_CACHE", str(tmp_path / "all"))
    model = OrdinalClassifier(
        "corn", Counting(), image="photo", backbone_options={"frozen": True}, random_state=0,
        settings={"max_epochs": 2}, device="cpu",
    )  # fmt: skip
    first = model.fit(frame, ranks).predict_proba(frame)
    assert Counting.rows == 100
    np.testing.assert_array_equal(model.fit(frame, ranks).predict_proba(frame), first)
    assert Counting.rows == 100
    for damage in ("cut", "deleted", "foreign"):
        files = sorted((tmp_path / "all").rglob("*.safetensors"))
        assert files
        for path in files:
            content = path.read_bytes()
            if damage == "deleted":
                path.unlink()
            else:
                path.write_bytes(content[: len(content) // 2] if damage == "cut" else b"x" * 40)
        Counting.rows = 0
        np.testing.assert_array_equal(model.predict_proba(frame), first)
        assert Counting.rows == 100, damage


def test_a_folder_that_cannot_be_written_keeps_nothing_and_stops_nothing(
    photos, tmp_path: Path, monkeypatch
) -> None:
    frame, ranks = photos
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ECHELON_CACHE", str(tmp_path / "file"))
    model = OrdinalClassifier(
        "corn", Counting(), image="photo", backbone_options={"frozen": True}, random_state=0,
        settings={"max_epochs": 1}, device="cpu",
    ).fit(frame, ranks)  # fmt: skip
    assert len(model.predict(frame)) == 100
    assert (tmp_path / "file").read_text() == "in the way"


def test_other_weights_other_layers_and_other_rows_are_other_keys() -> None:
    torch.manual_seed(0)
    one, two = nn.Linear(3, 3), nn.Linear(3, 3)
    assert encoder_digest(one) == encoder_digest(one)
    assert encoder_digest(one) != encoder_digest(two)
    assert encoder_digest(nn.Sequential(one)) != encoder_digest(nn.Sequential(one, nn.ReLU()))
    row = torch.arange(6, dtype=torch.uint8)
    assert row_key(row) == row_key(row.clone())
    assert row_key(row) != row_key(row.reshape(2, 3))
    assert row_key(row) != row_key(row.to(torch.int8))


def test_encodings_of_another_size_are_not_taken(tmp_path: Path) -> None:
    key = row_key(torch.ones(3))
    Encodings(tmp_path, "a" * 64, 4).add([key], torch.ones(1, 4))
    assert Encodings(tmp_path, "a" * 64, 4).get([key])[key].tolist() == [1.0] * 4
    assert Encodings(tmp_path, "a" * 64, 5).get([key]) == {}
    assert Encodings(tmp_path, "b" * 64, 4).get([key]) == {}
    Encodings(tmp_path, "c" * 64, 4).add([key], torch.full((1, 4), torch.nan))
    assert Encodings(tmp_path, "c" * 64, 4).get([key]) == {}
