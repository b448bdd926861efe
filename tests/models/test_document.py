"""The document of a saved model: what was fitted, and nothing that a forger may write."""

import copy
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import echelon
from echelon import CumulativeLinkModel, OrdinalBlend, OrdinalBoosting, OrdinalClassifier
from echelon.data import make_friedman
from echelon.models.document import fingerprint, typed
from tests.forging import network_of, rewrite

QUICK = {"settings": {"max_epochs": 2}, "random_state": 0, "device": "cpu"}


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
    made = OrdinalClassifier(backbone="mlp", classes=["lo", "mid", "hi"], **QUICK)
    return made.fit(frame.drop(columns="target"), frame["target"])


@pytest.fixture(scope="module")
def saved(model: OrdinalClassifier, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model.echelon"
    model.save(path)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, t: d.update(format=99, echelon="9.9"), "echelon 9.9 in format 99.*newer"),
        (
            lambda d, t: network_of(d).update(backbones={"table": "os.system"}),
            "backbone must be one of",
        ),
        (lambda d, t: d["parameters"].update(method="__import__"), "method must be one of"),
        (
            lambda d, t: d["parameters"].update(max_epochs=3),
            "a model of the kind 'network' has no parameter 'max_epochs'",
        ),
        (lambda d, t: d.pop("schema"), "does not describe a model"),
        (lambda d, t: d.update(classes=["lo"]), "does not describe a model"),
        (lambda d, t: network_of(d).update(surprise=1), "does not describe a model"),
        (lambda d, t: t.pop("model.head.weight"), "does not describe a model"),
        (
            lambda d, t: t.update({"model.head.weight": torch.zeros(9, 9)}),
            "does not describe a model",
        ),
    ],
)
def test_hostile_documents(saved: Path, tmp_path: Path, change, message: str) -> None:
    rewrite(saved, tmp_path / "m", change)
    with pytest.raises(ValueError, match=message):
        echelon.load(tmp_path / "m")


def test_own_networks_are_not_saved(tmp_path: Path) -> None:
    data = make_friedman(100, num_classes=3)
    own = OrdinalClassifier(backbone=torch.nn.Identity(), **QUICK).fit(data.features, data.ranks)
    with pytest.raises(ValueError, match="backbone of your own cannot be saved"):
        own.save(tmp_path / "m")


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
        {"settings": {"max_epochs": object()}},
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, t: t["model.head.weight"].fill_(math.nan), "'head.weight' holds what is no"),
        (lambda d, t: t["model.backbone.0.bias"].fill_(math.inf), "holds what is no number"),
        (lambda d, t: t["model.encoder.centre"].fill_(math.nan), "holds what is no number"),
        (lambda d, t: t["model.encoder.reach"].fill_(math.nan), "holds what is no number"),
        (lambda d, t: t["model.encoder.kept"].fill_(99), "keeps columns that are not there"),
        (lambda d, t: t.update({"model.encoder.kept": torch.zeros(4)}), "which columns it keeps"),
        (lambda d, t: t.update({"model.head.bias": torch.zeros(2).long()}), "must be torch.float"),
        (lambda d, t: t.update(more=torch.zeros(1)), "no place for the tensor 'more'"),
        (lambda d, t: d.update(classes=["lo", "lo", "hi"]), "each of them once"),
        (lambda d, t: d.update(classes=["lo", ["mid"], "hi"]), "must all be of the kind"),
        (lambda d, t: d.update(cutpoints=[1.0]), "must have 2 cut-points"),
        (lambda d, t: d["schema"]["columns"].append(d["schema"]["columns"][0]), "of their own"),
        (lambda d, t: d["model"]["training"].update(decision="guess"), "decision must be one of"),
        (lambda d, t: network_of(d).update(backbones={"text": "lstm"}), "and no such column"),
        (lambda d, t: d["model"].update(history=[3]), "must be of type dict"),
        (lambda d, t: d.update(calibration={"before": {"x": "y"}}), "scores must be numbers"),
        (lambda d, t: d["model"].update(network=[]), "network must be of type dict"),
    ],
)  # fmt: skip
def test_forged_content_is_refused(saved: Path, tmp_path: Path, change, message: str) -> None:
    rewrite(saved, tmp_path / "m", change)
    with pytest.raises(ValueError, match=message):
        echelon.load(tmp_path / "m")


@pytest.mark.parametrize("kind", ["temperature", "isotonic"])
def test_a_calibration_maps_to_probabilities(model, frame, tmp_path: Path, kind: str) -> None:
    rows = frame.drop(columns="target")
    copied = copy.deepcopy(model).calibrate(rows, frame["target"], kind=kind)
    copied.save(tmp_path / "whole")
    np.testing.assert_array_equal(
        echelon.load(tmp_path / "whole").predict_proba(rows), copied.predict_proba(rows)
    )
    for field, change in (("base", 1.5), ("base", -0.5), ("rise", -2.0)):
        if kind == "temperature" and field == "rise":
            continue  # which has no steps

        def moved(document, tensors, field=field, change=change) -> None:
            tensors[f"calibration.{field}"] += change

        rewrite(tmp_path / "whole", tmp_path / "forged", moved)
        with pytest.raises(ValueError, match="maps to what is no probability"):
            echelon.load(tmp_path / "forged")


def test_a_boolean_is_no_whole_number() -> None:
    assert typed(3, int, "rounds") == 3
    with pytest.raises(ValueError, match="its rounds must be of type int; got bool"):
        typed(True, int, "rounds")


def test_a_fingerprint_is_that_of_the_model_before_and_after_its_file(tmp_path) -> None:
    data = make_friedman(120, num_classes=3)
    models = [
        OrdinalBoosting(rounds=3, random_state=0),
        OrdinalBlend([OrdinalBoosting(rounds=3), CumulativeLinkModel()], random_state=0),
    ]
    seen = set()
    for model in models:
        model.fit(data.features, data.ranks).save(tmp_path / "m")
        loaded = echelon.load(tmp_path / "m")
        assert fingerprint(loaded) == fingerprint(model)
        seen.add(fingerprint(model))
        loaded.calibrate(data.features, data.ranks)
        seen.add(fingerprint(loaded))
    assert len(seen) == 4
