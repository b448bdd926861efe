"""Saved models: the same predictions, and a clear error for anything that is not whole."""

import json
import pickle
import struct
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import echelon
from echelon import OrdinalClassifier
from echelon.data import make_friedman
from echelon.storage.bundle import read_bundle, sealed
from echelon.training.checkpoints import write_atomically

QUICK = {"max_epochs": 2, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    data = make_friedman(200, num_classes=3)
    table = pd.DataFrame(data.features[:, :4], columns=list("abcd"))
    table["a"] = table["a"].mask(table["b"] > 0.8)
    table["kind"] = np.where(table["c"] > 0.5, "big", "small")
    table["target"] = np.array(["lo", "mid", "hi"])[data.ranks]
    return table


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> OrdinalClassifier:
    made = OrdinalClassifier(classes=["lo", "mid", "hi"], **QUICK)
    return made.fit(frame.drop(columns="target"), frame["target"])


@pytest.fixture(scope="module")
def saved(model: OrdinalClassifier, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model.echelon"
    model.save(path)
    return path


def test_round_trip(model: OrdinalClassifier, saved: Path, frame: pd.DataFrame) -> None:
    loaded = echelon.load(saved)
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    assert loaded.classes_.tolist() == ["lo", "mid", "hi"]
    assert loaded.history_ == model.history_
    assert loaded.get_params()["classes"] == ["lo", "mid", "hi"]


@pytest.mark.parametrize("method", echelon.METHODS)
@pytest.mark.parametrize("backbone", ["linear", "mlp"])
def test_every_method(tmp_path: Path, method: str, backbone: str) -> None:
    data = make_friedman(100, num_classes=4)
    model = OrdinalClassifier(method, backbone, **QUICK).fit(data.features, data.ranks)
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    np.testing.assert_array_equal(
        loaded.predict_proba(data.features), model.predict_proba(data.features)
    )


@pytest.mark.parametrize(
    "options",
    [
        {"backbone": "tabm", "backbone_options": {"members": 4, "hidden": (16, 16)}},
        {"recipe": "paper"},
        {"method": "clm", "method_options": {"link": "probit"}},
        {"decision": np.ones((4, 4)) - np.eye(4)},
        {"settings": {"scaling": "standard"}},
    ],
)
def test_options(tmp_path: Path, options) -> None:
    data = make_friedman(100, num_classes=4)
    model = OrdinalClassifier(**{**QUICK, **options}).fit(data.features, data.ranks)
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(data.features), model.predict(data.features))


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damage_is_noticed(saved: Path, tmp_path: Path, data: st.DataObject) -> None:
    """Cut, changed or grown anywhere: a ValueError, or the same model."""
    content = bytearray(saved.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["cut", "flip", "grow"]))
    if kind == "cut":
        content = content[:place]
    elif kind == "flip":
        content[place] ^= data.draw(st.integers(1, 255))
    else:
        content = content[:place] + b"\0" + content[place:]
    path = tmp_path / "damaged"
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"damaged|edited|describe|not one of"):
        echelon.load(path)


def rewrite(saved: Path, path: Path, change) -> None:
    """An edited document with a checksum that fits, as a hostile author would write it."""
    found = read_bundle(saved, "echelon_model")
    change(found.document, found.tensors)
    write_atomically(path, found.tensors, "echelon_model", sealed(found.tensors, found.document))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, t: d.update(format=99, echelon="9.9"), "echelon 9.9 in format 99.*newer"),
        (lambda d, t: d["settings"].update(backbone="os.system"), "backbone must be one of"),
        (lambda d, t: d["parameters"].update(method="__import__"), "method must be one of"),
        (lambda d, t: d.pop("schema"), "does not describe a model"),
        (lambda d, t: d.update(classes=["lo"]), "does not describe a model"),
        (lambda d, t: d["settings"].update(surprise=1), "does not describe a model"),
        (lambda d, t: t.pop("head.weight"), "does not describe a model"),
        (lambda d, t: t.update({"head.weight": torch.zeros(9, 9)}), "does not describe a model"),
    ],
)
def test_hostile_documents(saved: Path, tmp_path: Path, change, message: str) -> None:
    rewrite(saved, tmp_path / "m", change)
    with pytest.raises(ValueError, match=message):
        echelon.load(tmp_path / "m")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no model"):
        echelon.load(tmp_path / "missing")

    class Evil:
        def __reduce__(self):
            return (print, ("code ran",))

    (tmp_path / "pickle").write_bytes(pickle.dumps(Evil()))
    torch.save({"x": torch.zeros(1)}, tmp_path / "torch")
    header = json.dumps({"__metadata__": {"other": "1"}}).encode()
    (tmp_path / "foreign").write_bytes(struct.pack("<Q", len(header)) + header)
    (tmp_path / "empty").write_bytes(b"")
    for name in ("pickle", "torch", "foreign", "empty"):
        with pytest.raises(ValueError, match=r"damaged or not a file|not one of echelon"):
            echelon.load(tmp_path / name)


def test_a_model_that_cannot_be_written_leaves_the_old_one(
    model: OrdinalClassifier, tmp_path: Path
) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(ValueError, match="could not write"):
        model.save(target)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_own_networks_are_not_saved(tmp_path: Path) -> None:
    data = make_friedman(100, num_classes=3)
    own = OrdinalClassifier(backbone=torch.nn.Identity(), **QUICK).fit(data.features, data.ranks)
    with pytest.raises(ValueError, match="backbone of your own cannot be saved"):
        own.save(tmp_path / "m")


# ---- what was fitted is what is saved ------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"method": "ce"},
        {"method": "clm", "method_options": {"link": "probit"}},
        {"method": "no such method"},
        {"backbone": "tabm"},
        {"backbone": torch.nn.Identity()},
        {"classes": [1, 2, 3]},
        {"recipe": "no such recipe"},
        {"text": "kind"},
        {"settings": {"scaling": "nonsense"}},
        {"max_epochs": object()},
    ],
)
def test_parameters_set_after_the_fit_do_not_change_what_is_saved(
    frame: pd.DataFrame, model: OrdinalClassifier, saved: Path, tmp_path: Path, change
) -> None:
    before = model.get_params(deep=False)
    try:
        model.set_params(**change)
        model.save(tmp_path / "m")
        probabilities = model.predict_proba(frame)
    finally:
        model.set_params(**before)
    assert (tmp_path / "m").read_bytes() == saved.read_bytes()
    loaded = echelon.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(frame), probabilities)
    loaded.set_params(**change).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_options_changed_in_place_after_the_fit_do_not_change_what_is_saved(tmp_path: Path) -> None:
    data = make_friedman(100, num_classes=4)
    options = {"link": "probit"}
    model = OrdinalClassifier("clm", method_options=options, **QUICK)
    expected = model.fit(data.features, data.ranks).predict_proba(data.features)
    options["link"] = "cloglog"
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(data.features), expected)
    assert loaded.method_options == {"link": "probit"}


def test_the_decision_can_be_changed_after_the_fit(
    frame: pd.DataFrame, model: OrdinalClassifier, tmp_path: Path
) -> None:
    costs = np.array([[0.0, 9, 9], [0, 0, 9], [0, 0, 0]])  # never too high
    try:
        model.set_params(decision=costs).save(tmp_path / "m")
        assert set(echelon.load(tmp_path / "m").predict(frame)) == {"lo"}
        for wrong in ("banana", np.ones((2, 2))):
            with pytest.raises(ValueError, match=r"decision|cost|shape"):
                model.set_params(decision=wrong).save(tmp_path / "wrong")
            assert not (tmp_path / "wrong").exists()
    finally:
        model.set_params(decision=None)


def test_threads_may_save_to_one_path(
    model: OrdinalClassifier, saved: Path, tmp_path: Path
) -> None:
    failed = []

    def save() -> None:
        try:
            for _ in range(5):
                model.save(tmp_path / "m")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert not failed
    assert (tmp_path / "m").read_bytes() == saved.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
