"""The claims about texts and images: errors that are reached, two processes that train as one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from echelon import OrdinalClassifier
from echelon.data import load_digits, make_discs, make_reviews
from echelon.evaluation import metrics
from echelon.paper.data import read_coursera
from echelon.storage.bundle import read_bundle


def floor_mae(data) -> float:
    return metrics.mae(data.ranks, (data.bayes_probabilities.cumsum(1) < 0.5).sum(1))


@pytest.mark.realdata
def test_coursera_with_the_lstm(real_data: Path) -> None:
    """Published 0.95, a bag of words 0.60; the choice of everything was made on other rows."""
    part = read_coursera(real_data / "text" / "coursera_balanced.csv")
    model = OrdinalClassifier(backbone="lstm", **part.columns_by_kind, random_state=0, device="cpu")
    start = time.monotonic()
    model.fit(
        part.features["train"], part.labels("train"),
        X_val=part.features["valid"], y_val=part.labels("valid"),
    )  # fmt: skip
    assert time.monotonic() - start < 300
    found = model.predict(part.features["test"])
    assert metrics.mae(part.ranks["test"], found - 1) <= 0.64


def test_digits_with_the_small_resnet() -> None:
    images, ranks = load_digits()
    test = np.random.default_rng(0).random(len(ranks)) < 0.25
    model = OrdinalClassifier(backbone="resnet", random_state=0, device="cpu")
    model.fit(images[~test], ranks[~test])
    assert metrics.mae(ranks[test], model.predict(images[test])) < 0.10


def test_discs_are_near_their_floor() -> None:
    train, test = make_discs(4000, seed=0), make_discs(3000, seed=1)
    model = OrdinalClassifier(
        backbone="resnet", settings={"max_epochs": 12}, random_state=0, device="cpu"
    )
    found = metrics.mae(test.ranks, model.fit(train.images, train.ranks).predict(test.images))
    assert found <= 1.05 * floor_mae(test)


def test_reviews_are_near_their_floor() -> None:
    train, test = make_reviews(6000, seed=0), make_reviews(3000, seed=1)
    model = OrdinalClassifier(
        backbone="lstm", settings={"max_epochs": 15}, random_state=0, device="cpu"
    )
    found = metrics.mae(test.ranks, model.fit(train.texts, train.ranks).predict(test.texts))
    assert found <= 1.15 * floor_mae(test)


DDP = """
import os, sys
import numpy as np
import torch.distributed as dist
from echelon import OrdinalClassifier
from echelon.data import make_discs, make_reviews
import pandas as pd
texts, discs = make_reviews(129, num_classes=3), make_discs(129, num_classes=3)
frame = pd.DataFrame({"text": texts.texts, "photo": list(discs.images), "x": texts.scores})
model = OrdinalClassifier(
    text="text", image="photo", backbone={"image": "timm:vit_tiny_patch16_224"},
    settings={"max_epochs": 1, "batch_size": 32}, validation_fraction=0, random_state=3,
    device="cpu", inputs={"image": {"size": 32}},
    backbone_options={"text": {"dropout": 0.0, "word_dropout": 0.0, "hidden": 8},
                      "image": {"img_size": 32, "embed_dim": 12, "depth": 1, "num_heads": 2}},
)
model.fit(frame, texts.ranks)
if os.environ.get("RANK", "0") == "0":
    model.save(sys.argv[1])
if dist.is_initialized():
    dist.barrier()
    dist.destroy_process_group()
"""


def test_two_processes_train_as_one_on_texts_and_images(tmp_path: Path) -> None:
    """Without batch normalisation, whose statistics are those of each process's share."""
    script = tmp_path / "fit.py"
    script.write_text(DDP)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    several = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    for command, out in (([sys.executable], "one"), (several, "two")):
        done = subprocess.run(
            [*command, str(script), str(tmp_path / out)],
            env=environment, timeout=300, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
    one = read_bundle(tmp_path / "one", "echelon_model").tensors
    two = read_bundle(tmp_path / "two", "echelon_model").tensors
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-4, atol=1e-5)
