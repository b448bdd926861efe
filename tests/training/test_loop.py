"""The loop: checkpoints that lead to the same bits, published batches, and its errors."""

import copy
import errno
import math
import multiprocessing
import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

import echelon
from echelon import OrdinalClassifier
from echelon.data import make_friedman
from echelon.evaluation import metrics
from echelon.networks.network import OrdinalNetwork
from echelon.storage.bundle import read_bundle
from echelon.training import loop
from echelon.training.batches import EncodedRows, class_balanced_order
from echelon.training.checkpoints import CheckpointFolder
from echelon.training.loop import train
from echelon.training.recipes import make_settings, make_spec

MLP = make_spec("default", "corn", "mlp", ("table",), {})


def fit_and_save(folder: Path, out: Path) -> None:
    """A fit that keeps a checkpoint after every few steps."""
    train = loop.train

    def often(*args, **options):
        return train(*args, **{**options, "checkpoint_seconds": 0.0})

    loop.train = often  # in a process of its own
    torch.set_num_threads(1)
    data = make_friedman(1500, num_classes=5)
    model = OrdinalClassifier(
        settings={"max_epochs": 6, "batch_size": 16, "average": 0.9},
        random_state=3,
        device="cpu",
        checkpoint_dir=folder,
        backbone_options={"hidden": (16, 16), "dropout": 0.2},
    )
    model.fit(data.features, data.ranks)
    model.save(out)


@pytest.fixture(scope="module")
def processes() -> multiprocessing.context.BaseContext:
    """Processes that begin where everything is imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.training.test_loop"])
    return context


def test_a_killed_fit_goes_on_to_the_same_bits(processes, tmp_path: Path) -> None:
    def start(folder: Path, out: Path) -> multiprocessing.Process:
        process = processes.Process(target=fit_and_save, args=(folder, out), daemon=True)
        process.start()
        return process

    def finish(folder: Path, out: Path) -> None:
        process = start(folder, out)
        process.join(100)
        assert process.exitcode == 0

    whole = tmp_path / "whole.echelon"
    finish(tmp_path / "a", whole)
    killed, out = 0, tmp_path / "resumed.echelon"
    for wait in (0.05, 0.5):
        process = start(tmp_path / "b", out)
        checkpoint = tmp_path / "b" / "checkpoint.safetensors"
        deadline = time.monotonic() + 60
        while not checkpoint.exists() and process.is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(wait)
        if process.is_alive():
            process.kill()
            killed += 1
        process.join(60)
        assert not list(tmp_path.glob("*.partial"))
    assert killed >= 1
    finish(tmp_path / "b", out)
    expected = read_bundle(whole, "echelon_model").tensors
    found = read_bundle(out, "echelon_model").tensors
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        assert torch.equal(tensor, found[name]), name


def test_a_full_disk_at_a_checkpoint_does_not_end_a_fit(tmp_path: Path, monkeypatch) -> None:
    data = make_friedman(300, num_classes=3)
    options = {"random_state": 0, "device": "cpu"}
    # one stage, so that one warning is all
    options["settings"] = {"max_epochs": 4, "refit": False}
    expected = OrdinalClassifier("ce", "linear", **options).fit(data.features, data.ranks)
    train = loop.train
    monkeypatch.setattr(
        loop, "train", lambda *a, **o: train(*a, **{**o, "checkpoint_seconds": 0.0})
    )

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    model = OrdinalClassifier("ce", "linear", checkpoint_dir=tmp_path, **options)
    with pytest.warns(UserWarning, match="no space is left .* goes on without") as warned:
        model.fit(data.features, data.ranks)
    assert len(warned) == 1
    assert not list(tmp_path.rglob("*partial*"))
    for name, tensor in expected.network_.state_dict().items():
        assert torch.equal(tensor, model.network_.state_dict()[name]), name


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_what_was_validated_is_what_remains(average: float) -> None:
    data, held = make_friedman(600, num_classes=4), make_friedman(200, num_classes=4, seed=1)
    model = OrdinalClassifier(
        backbone="mlp",
        settings={"max_epochs": 5, "average": average},
        random_state=0,
        device="cpu",
    )
    model.fit(data.features, data.ranks, X_val=held.features, y_val=held.ranks)
    name = "validation_ranked_probability_score"
    found = metrics.ranked_probability_score(held.ranks, model.predict_proba(held.features))
    assert found == pytest.approx(min(row[name] for row in model.history_), rel=1e-5)


def test_the_average_equals_a_plain_loop() -> None:
    torch.manual_seed(0)
    method = echelon.method("corn", 3)
    network = OrdinalNetwork(nn.Identity(), nn.Identity(), method, 4)
    features, ranks = torch.randn(12, 4), torch.randint(3, (12,))
    mean = [p.detach().clone() for p in network.parameters()]
    copied = copy.deepcopy(network)
    options = {"max_epochs": 3, "batch_size": 12, "average": 0.5, "clip_norm": None}
    settings = make_settings("default", MLP, 12, {**options, "schedule": "constant"})
    fabric = Fabric(accelerator="cpu", devices=1)
    train(network, EncodedRows(features, ranks), None, settings, seed=0, fabric=fabric)
    optimiser = torch.optim.AdamW(
        copied.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    for step in range(3):
        optimiser.zero_grad()
        copied.loss(copied(features), ranks, None).backward()
        optimiser.step()
        kept = min(0.5, (1 + step) / (10 + step))
        for i, parameter in enumerate(copied.parameters()):
            mean[i] = kept * mean[i] + (1 - kept) * parameter.detach()
    for expected, found in zip(mean, network.parameters(), strict=True):
        torch.testing.assert_close(found, expected)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    data = make_friedman(200, num_classes=3)
    CheckpointFolder(tmp_path, "of another").save({}, {})
    model = OrdinalClassifier(
        settings={"max_epochs": 2}, random_state=0, device="cpu", checkpoint_dir=tmp_path
    )
    with pytest.raises(ValueError, match="is of another run"):
        model.fit(data.features, data.ranks)


def test_published_batches_take_turns_and_never_change() -> None:
    ranks = torch.from_numpy(np.random.default_rng(0).permutation(np.repeat(np.arange(4), 25)))
    order = class_balanced_order(ranks, 0)
    assert sorted(order.tolist()) == list(range(100))
    turns = ranks[order].reshape(25, 4)
    assert (turns == turns[0]).all()
    assert turns[0, 0] == ranks[0]
    assert torch.equal(order, class_balanced_order(ranks, 1))


def test_published_batches_fill_up_small_classes() -> None:
    ranks = torch.tensor([2, 0, 0, 2, 0])
    order = class_balanced_order(ranks, 0)
    assert ranks[order].tolist() == [2, 0] * 3
    assert order[:4].tolist() == [0, 1, 3, 2]
    assert order[4] in (0, 3)


def test_training_ends_when_patience_has_run_out() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(80, 3, generator=generator)
    ranks = torch.randint(4, (80,), generator=generator)  # nothing to learn
    rows, held = EncodedRows(features[:40], ranks[:40]), EncodedRows(features[40:], ranks[40:])
    settings = make_settings("default", MLP, 40, {"max_epochs": 60, "patience": 3})
    torch.manual_seed(0)
    network = OrdinalNetwork(nn.Identity(), nn.Linear(3, 8), echelon.method("corn", 4), 8)
    fabric = Fabric(accelerator="cpu", devices=1)
    progress = train(network, rows, held, settings, seed=0, fabric=fabric)
    scores = [row[f"validation_{settings.metric}"] for row in progress.history]
    assert progress.best_epoch == 1 + int(np.argmin(scores))
    assert len(scores) == progress.best_epoch + 3 < 60


def test_small_tables_get_more_epochs() -> None:
    few, many = (make_settings("default", MLP, n, {}) for n in (200, 30_000))
    assert few.max_epochs > many.max_epochs
    assert few.batch_size < many.batch_size


@pytest.mark.parametrize("backbone", ["tabm", "linear", "mlp"])
def test_the_papers_recipe_trains_the_backbone_that_is_named(backbone: str) -> None:
    plain, named = (make_spec("paper", "corn", name, ("table",), {}) for name in (None, backbone))
    assert plain.backbones == {"table": "paper"}
    assert plain.backbone_options == {"table": {"hidden": (300, 300)}}
    assert (named.backbones, named.backbone_options) == ({"table": backbone}, {"table": {}})
    settings = make_settings("paper", named, 100, {})
    assert (settings.metric, settings.schedule) == ("rmse", "constant")
    assert settings.learning_rate == 1e-3


@pytest.mark.parametrize(
    ("backbone", "options"),
    [
        ({"text": "lstm"}, {}),
        ({"text": "hf:x", "table": "mlp"}, {}),
        ({"text": "hf:x"}, {"backbone_options": {"text": {"frozen": True}}}),
        ({"image": "resnet"}, {}),
        ({"image": "timm:resnet34", "text": "lstm"}, {}),
    ],
)
@pytest.mark.parametrize("recipe", ["default", "paper"])
def test_recipes_of_texts_and_images(backbone, options, recipe: str) -> None:
    spec = make_spec(recipe, "corn", backbone, tuple(backbone), options)
    few, many = (make_settings(recipe, spec, n, {}) for n in (300, 30_000))
    assert spec.backbones == backbone
    assert not few.refit
    assert few.max_epochs >= many.max_epochs >= 2
    assert few.max_epochs * math.ceil(300 / few.batch_size) >= 200  # steps
    other = make_spec(recipe, "ce", backbone, tuple(backbone), options)
    changed = make_settings(recipe, other, 300, {"max_epochs": 7})
    assert changed.max_epochs == 7
    if recipe == "paper":
        assert (few.metric, few.max_epochs, changed.decision) == ("rmse", 200, "mode")
        assert few.drop_last == ("image" in backbone)


def test_the_thresholds_of_a_head_are_free_of_decay_unless_asked() -> None:
    """AdamW keeps a decayed number below 1 / decay; CORAL's biases have to go beyond it."""
    data = make_friedman(600, num_classes=16, seed=0)
    largest = {}
    for is_decayed in (False, True):
        model = OrdinalClassifier(
            "coral",
            "mlp",
            settings={
                "max_epochs": 60,
                "weight_decay": 0.5,
                "decay_thresholds": is_decayed,
                "refit": False,
            },
            random_state=0,
            device="cpu",
        ).fit(data.features, data.ranks)
        largest[is_decayed] = model.network_.head.bias.abs().max().item()
    assert largest[True] < 2.71  # where they start, the log-odds of 15 : 1
    assert largest[False] > largest[True] + 1


def test_what_is_given_stands_over_the_recipe_and_erases_nothing() -> None:
    frame = pd.DataFrame({"r": ["a text", "another"]})
    model = OrdinalClassifier(backbone="lstm", recipe="paper", text="r")
    assert model.network_spec(frame).backbone_options["text"]["hidden"] == 256
    model.set_params(backbone_options={"dropout": 0.3})
    options = model.network_spec(frame).backbone_options["text"]
    assert (options["hidden"], options["dropout"]) == (256, 0.3)
    given = {"inputs": {"image": {"size": 112}}}
    spec = make_spec("paper", "corn", {"image": "timm:resnet34"}, ("image",), given)
    assert spec.input_options == {"image": {"preprocessing": "paper", "size": 112}}


def test_a_method_that_couples_rows_is_refused_several_processes_before_the_first_step() -> None:
    network = OrdinalNetwork(nn.Identity(), nn.Identity(), echelon.method("cnnpor", 3), 4)
    rows = EncodedRows(torch.randn(12, 4), torch.randint(3, (12,)))
    spec = make_spec("default", "cnnpor", "mlp", ("table",), {})
    settings = make_settings("default", spec, 12, {})
    fabric = SimpleNamespace(world_size=2)
    with pytest.raises(
        ValueError, match="processes would be missed, and there are 2; train on one"
    ):
        train(network, rows, None, settings, seed=0, fabric=fabric)
