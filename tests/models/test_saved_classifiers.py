"""Fitted classifiers as data: saved and loaded to the bit, or refused; no file runs anything."""

from pathlib import Path

import lightgbm
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import echelon
from echelon import OrdinalReduction
from echelon.models.saved_classifiers import describe_classifier, rebuild_classifier
from tests.contracts.test_models import CLASSES, table
from tests.forging import rewrite

BOOSTED = lightgbm.LGBMClassifier(n_estimators=8, num_leaves=6, verbose=-1)
SAVED = [
    (LogisticRegression(max_iter=500), "auto"),
    (LogisticRegression(max_iter=500), "augmented"),
    (SGDClassifier(loss="log_loss"), "conditional"),
    (LinearDiscriminantAnalysis(), "independent"),
    (BOOSTED, "auto"),
    (BOOSTED, "conditional"),
    (BOOSTED, "conditional_augmented"),
]
REFUSED = [
    (RandomForestClassifier(5), "RandomForestClassifier cannot be saved.*LogisticRegression"),
    (SGDClassifier(loss="modified_huber"), "SGDClassifier cannot be saved"),
    (
        lightgbm.LGBMClassifier(
            n_estimators=5, boosting_type="rf", subsample=0.5, subsample_freq=1, verbose=-1
        ),
        "LGBMClassifier cannot be saved",
    ),
    (make_pipeline(StandardScaler(), LogisticRegression()), "a pipeline cannot be saved"),
]


def fitted(estimator, scheme: str = "auto") -> OrdinalReduction:
    model = OrdinalReduction(estimator, scheme, classes=CLASSES, random_state=0)
    return model.fit(*table(200))


@pytest.mark.parametrize(("estimator", "scheme"), SAVED, ids=lambda one: str(one)[:24])
def test_what_is_loaded_is_what_was_saved(estimator, scheme: str, tmp_path: Path) -> None:
    model = fitted(estimator, scheme)
    frame, _ = table(100, seed=5)
    frame.loc[:10, "size"] = "never seen"
    frame.loc[5:20, "V0"] = np.nan
    if not hasattr(model.classifiers_[0], "booster_"):
        frame = frame.fillna({"V0": 0.5})
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.scheme_ == model.scheme_
    loaded.save(tmp_path / "again")
    again = echelon.load(tmp_path / "again")
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize(("estimator", "message"), REFUSED, ids=lambda one: str(one)[:24])
def test_what_would_be_pickled_is_refused(estimator, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(estimator).save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_subset_of_one_class_is_saved_as_a_number(tmp_path: Path) -> None:
    frame, truth = table(200)
    rows = truth != "top"
    model = OrdinalReduction(classes=CLASSES).fit(frame[rows], truth[rows])
    assert isinstance(model.classifiers_[-1], float)
    model.save(tmp_path / "m")
    found = echelon.load(tmp_path / "m").predict_proba(frame)
    np.testing.assert_array_equal(found, model.predict_proba(frame))


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("saved")
    for name, model in (("linear", fitted(None)), ("trees", fitted(BOOSTED))):
        model.save(folder / name)
    return {name: folder / name for name in ("linear", "trees")}


def _set(place: str, value):
    return lambda model, tensors: model.update({place: value})


def _first(**changes):
    return lambda model, tensors: model["classifiers"][0].update(changes)


def _cut_text(model, tensors) -> None:
    model["classifiers"][0]["trees"] = model["classifiers"][0]["trees"][:-200]


def _far_child(model, tensors) -> None:
    text = model["classifiers"][0]["trees"]
    model["classifiers"][0]["trees"] = text.replace("left_child=1", "left_child=7", 1)


def _other_columns(model, tensors) -> None:
    text = model["classifiers"][0]["trees"]
    model["classifiers"][0]["trees"] = text.replace("split_feature=", "split_feature=9", 1)


def _infinite(model, tensors) -> None:
    tensors["model.0"][0] = torch.inf


def _short(model, tensors) -> None:
    tensors["model.0"] = tensors["model.0"][:-1]


FORGERIES = [
    ("linear", _set("scheme", "pickled"), "its scheme must be one of"),
    ("linear", _set("scheme", "augmented"), "do not fit its scheme"),
    ("linear", _set("coding", "numeric"), "do not fit its scheme"),
    ("linear", _set("reached", [True, 1, True]), "do not fit its classes"),
    ("linear", _set("encoded", False), "an encoder that it does not use"),
    ("linear", _set("threshold_scale", -1.0), "must be a number above 0"),
    ("linear", _set("classifiers", []), "do not fit its scheme"),
    ("linear", _first(kind="pickle"), "must be of a kind in"),
    ("linear", _first(path="/etc/passwd"), "is not described so"),
    ("linear", _first(kind="constant", probability=0.5), "is not described so"),
    ("linear", _infinite, "must be finite"),
    ("linear", _short, "coefficients, and one more"),
    ("trees", _first(trees=7), "must be a text"),
    ("trees", _first(trees="tree\nend of trees\n"), "damaged"),
    ("trees", _cut_text, "damaged"),
    ("trees", _far_child, "damaged"),
    ("trees", _other_columns, "damaged"),
]


@pytest.mark.parametrize(("kind", "change", "message"), FORGERIES)
def test_forged_files_are_refused(saved, kind, change, message, tmp_path: Path) -> None:
    def forge(document, tensors) -> None:
        change(document["model"], tensors)

    rewrite(saved[kind], tmp_path / "forged", forge)
    with pytest.raises(ValueError, match=f"does not describe a model: .*{message}"):
        echelon.load(tmp_path / "forged")


@pytest.fixture(scope="module")
def described():
    generator = np.random.default_rng(0)
    features = generator.normal(size=(300, 4))
    labels = (features[:, 0] + features[:, 1] > 0).astype(int)
    classifier = lightgbm.LGBMClassifier(n_estimators=3, num_leaves=5, verbose=-1)
    return describe_classifier(classifier.fit(features, labels), 4)[0]


@given(st.data())
def test_trees_with_a_damaged_byte_are_refused_or_harmless(described, data) -> None:
    text = described["trees"]
    place = data.draw(st.integers(0, len(text) - 1))
    character = data.draw(st.sampled_from("0123456789-=. \nTeéx\0"))
    forged = {**described, "trees": text[:place] + character + text[place + 1 :]}
    try:
        classifier = rebuild_classifier(forged, None, 4)
    except ValueError:
        return
    found = classifier.predict_proba(np.random.default_rng(1).normal(size=(20, 4)))
    assert ((found >= 0) & (found <= 1)).all()
