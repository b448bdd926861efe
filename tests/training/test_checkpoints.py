"""Checkpoints: a whole one leads to the same bits, a damaged one is never gone on from."""

import os
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from echelon import OrdinalClassifier
from echelon.data import make_friedman
from echelon.storage.bundle import read_bundle, write_bundle
from echelon.training import loop
from echelon.training.checkpoints import _KEY, CheckpointFolder

OPTIONS = {
    "random_state": 0, "device": "cpu", "backbone_options": {"hidden": (8,)},
    "settings": {"max_epochs": 3, "batch_size": 32, "refit": False, "average": 0.9},
}  # fmt: skip


def state_of(model: OrdinalClassifier) -> bytes:
    return b"".join(value.numpy().tobytes() for value in model.network_.state_dict().values())


def fit(folder: Path | None) -> OrdinalClassifier:
    data = make_friedman(120, num_classes=3)
    return OrdinalClassifier(checkpoint_dir=folder, **OPTIONS).fit(data.features, data.ranks)


@pytest.fixture(scope="module")
def whole() -> bytes:
    return state_of(fit(None))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> bytes:
    """What a fit leaves that is interrupted after its second epoch."""
    folder = tmp_path_factory.mktemp("checkpoint")
    train = loop.train

    def interrupted(*args, **named):
        def stop(row: dict[str, float]) -> None:
            if row["epoch"] == 2:
                raise KeyboardInterrupt

        return train(*args, **{**named, "checkpoint_seconds": 0.0, "on_epoch": stop})

    loop.train = interrupted
    try:
        with pytest.raises(KeyboardInterrupt):
            fit(folder)
    finally:
        loop.train = train
    return (folder / "checkpoint.safetensors").read_bytes()


def test_a_whole_one_is_gone_on_from(tmp_path: Path, whole: bytes, checkpoint: bytes) -> None:
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(checkpoint)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert state_of(fit(tmp_path)) == whole
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_flipped_bits_never_lead_to_another_model(
    tmp_path: Path, whole: bytes, checkpoint: bytes
) -> None:
    """Set aside, said in one sentence, and the fit ends as if there had been no checkpoint."""
    generator = random.Random(0)
    for case in range(6):
        content = bytearray(checkpoint)
        content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        folder = tmp_path / str(case)
        folder.mkdir()
        (folder / "checkpoint.safetensors").write_bytes(bytes(content))
        with pytest.warns(UserWarning, match=r"damaged.*kept as checkpoint.safetensors.damaged"):
            assert state_of(fit(folder)) == whole
        assert (folder / "checkpoint.safetensors.damaged").read_bytes() == content


@pytest.mark.parametrize(
    "content", [b"", b"rubbish", b"\xff" * 100, b"\2\0\0\0\0\0\0\0{}"], ids=range(4)
)
def test_what_is_no_checkpoint_is_set_aside(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "checkpoint.safetensors").write_bytes(content)
    with pytest.warns(UserWarning, match="the fit begins anew") as caught:
        assert CheckpointFolder(tmp_path, "x").load() is None
    assert len(caught) == 1
    assert (tmp_path / "checkpoint.safetensors.damaged").read_bytes() == content
    assert CheckpointFolder(tmp_path, "x").load() is None


@pytest.mark.parametrize(
    "change",
    [
        lambda t, s: t.pop("network.head.weight"),
        lambda t, s: t.update({"network.head.weight": torch.zeros(3)}),
        lambda t, s: t.update({"network.more": torch.zeros(3)}),
        lambda t, s: t.pop("random.order"),
        lambda t, s: t.update({"random.torch": torch.zeros_like(t["random.torch"]) + 7}),
        lambda t, s: t.pop("optimiser.0.exp_avg"),
        lambda t, s: t.update({"optimiser.0.step": torch.zeros(2)}),
        lambda t, s: t.update({"average.0": torch.zeros(2)}),
        lambda t, s: s.update(epoch="two"),
        lambda t, s: s.update(epoch=-1),
        lambda t, s: s.update(best_epoch=99),
        lambda t, s: s.update(history=[]),
        lambda t, s: s.update(history=[[1], {"loss": "low"}]),
        lambda t, s: s.update(surprise=1),
        lambda t, s: s.clear(),
    ],
    ids=range(15),
)
def test_sealed_but_of_other_content(
    tmp_path: Path, whole: bytes, checkpoint: bytes, change
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(checkpoint)
    found = read_bundle(path, _KEY)
    change(found.tensors, found.document["state"])
    write_bundle(path, found.tensors, _KEY, found.document)
    with pytest.warns(UserWarning, match="does not fit its own run.*the fit begins anew"):
        assert state_of(fit(tmp_path)) == whole


def test_one_of_another_run_is_refused_and_kept(tmp_path: Path) -> None:
    CheckpointFolder(tmp_path, "of another").save({"x": torch.ones(2)}, {})
    with pytest.raises(ValueError, match="is of another run"):
        fit(tmp_path)
    assert CheckpointFolder(tmp_path, "of another").load() is not None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "checkpoint.safetensors")
    with pytest.raises(ValueError, match="is a pipe, not a file"):
        CheckpointFolder(tmp_path, "x").load()


def test_tensors_of_any_kind_come_back(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, "x")
    tensors = {
        "scalar": torch.tensor(3.5, dtype=torch.float64),
        "empty": torch.zeros(0, 4),
        "bytes": torch.arange(7, dtype=torch.uint8),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "turned": torch.arange(6.0).reshape(2, 3).T,
        "flags": torch.tensor([True, False]),
    }
    folder.save(tensors, {"epoch": 1})
    loaded = folder.load()
    assert loaded is not None
    found, state = loaded
    assert state == {"epoch": 1}
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
    assert np.isfinite(found["scalar"].item())
