"""Streamed fits that are killed, at moments that nobody chose, and streamed fits of many rows."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import echelon
from echelon.data import make_friedman, scan
from echelon.storage.bundle import read_bundle
from echelon.training import loop, streams


def write(folder: Path, rows: int, files: int = 6) -> str:
    folder.mkdir()
    data = make_friedman(rows, num_classes=5, seed=2)
    frame = pd.DataFrame(data.features, columns=[f"x{i}" for i in range(10)])
    frame = frame.assign(grade=data.ranks)
    for number, part in enumerate(np.array_split(np.arange(rows), files)):
        frame.iloc[part].to_parquet(folder / f"{number}.parquet", row_group_size=500)
    return f"{folder}/*.parquet"


def fit_and_save(path: str, checkpoints: Path, out: Path) -> None:
    """A streamed fit that keeps a checkpoint after every few steps, and reads many buffers."""
    train = loop.train
    loop.train = lambda *a, **o: train(*a, **{**o, "checkpoint_seconds": 0.0})
    streams._BUFFER_ROWS = 1000
    torch.set_num_threads(1)
    model = echelon.OrdinalClassifier(
        settings={"max_epochs": 6, "batch_size": 8, "average": 0.9},
        random_state=3,
        device="cpu",
        backbone="mlp",
        backbone_options={"hidden": (16, 16), "dropout": 0.2},
        class_weight="balanced",
        checkpoint_dir=checkpoints,
    )
    model.fit(scan(path, target="grade"))
    model.save(out)


@pytest.mark.timeout(600)
def test_a_streamed_fit_killed_at_any_moment_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.slow.test_streamed"])
    path = write(tmp_path / "rows", 6000)

    def start(checkpoints: Path, out: Path) -> multiprocessing.Process:
        process = context.Process(target=fit_and_save, args=(path, checkpoints, out), daemon=True)
        process.start()
        return process

    whole = start(tmp_path / "a", tmp_path / "whole.echelon")
    begun = time.monotonic()
    whole.join(200)
    assert whole.exitcode == 0
    length = time.monotonic() - begun
    out, killed = tmp_path / "resumed.echelon", 0
    rng = np.random.default_rng()
    for _ in range(12):
        process = start(tmp_path / "b", out)
        time.sleep(float(rng.uniform(0.2, 0.5)) * length)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        process.join(60)
        if out.exists():
            break
    assert killed >= 2
    if not out.exists():
        last = start(tmp_path / "b", out)
        last.join(200)
        assert last.exitcode == 0
    expected = read_bundle(tmp_path / "whole.echelon", "echelon_model")
    resumed = read_bundle(out, "echelon_model")
    assert expected.tensors.keys() == resumed.tensors.keys()
    for name, tensor in expected.tensors.items():
        assert torch.equal(tensor, resumed.tensors[name]), name
    assert expected.document["model"]["history"] == resumed.document["model"]["history"]


@pytest.mark.timeout(1200)
def test_a_streamed_network_is_as_good_as_one_in_memory(tmp_path: Path) -> None:
    """Of 100,000 rows in twenty files, five epochs: MAE within 1 %, seeds of training apart."""
    path = write(tmp_path / "rows", 100_000, files=20)
    frame = pd.concat([pd.read_parquet(file) for file in sorted((tmp_path / "rows").iterdir())])
    test = make_friedman(100_000, num_classes=5, seed=77)
    new = pd.DataFrame(test.features, columns=[f"x{i}" for i in range(10)])
    options = {"settings": {"max_epochs": 5}, "device": "cpu", "random_state": 0}
    streamed = echelon.OrdinalClassifier(**options).fit(scan(path, target="grade"))
    memory = echelon.OrdinalClassifier(**options).fit(frame[new.columns], frame["grade"])
    errors = [np.abs(model.predict(new) - test.ranks).mean() for model in (streamed, memory)]
    assert errors[0] == pytest.approx(errors[1], rel=0.01)
