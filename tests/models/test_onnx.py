"""ONNX from raw columns: the same probabilities and labels, whatever the columns hold."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest

import echelon
from echelon import OrdinalBlend, OrdinalBoosting, OrdinalClassifier
from echelon.data import make_friedman
from echelon.models.document import fingerprint

QUICK = {"settings": {"max_epochs": 3}, "random_state": 0, "device": "cpu"}


def run(path: Path, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(path)
    feed = {}
    for value in session.get_inputs():
        column = frame[value.name]
        if value.type == "tensor(string)":
            feed[value.name] = column.fillna("").to_numpy(dtype=object)
        else:
            feed[value.name] = column.to_numpy(dtype=np.float64)
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    data = make_friedman(400, num_classes=4)
    table = pd.DataFrame(data.features[:, :6].astype(float), columns=list("abcdef"))
    table["a"] = 1.6e9 + 1000 * table["a"]
    table["b"] = table["b"].mask(table["c"] > 0.8)
    table["kind"] = np.where(table["c"] > 0.5, "big", "small")
    table.loc[::5, "kind"] = None
    table["flag"] = table["d"] > 0.3
    table["target"] = np.array(["worst", "bad", "good", "best"])[data.ranks]
    return table


@pytest.mark.parametrize(
    "options",
    [
        # every method is in tests/slow, and every curve in tests/contracts
        {
            "method": "coral",
            "backbone": "linear",
            "settings": {"max_epochs": 3, "scaling": "standard"},
        },
        {"method": "ce", "backbone": "tabm", "decision": "mode"},
        {
            "method": "corn",
            "backbone": "mlp",
            "decision": np.abs(np.subtract.outer(range(4), range(4))) ** 2.0,
        },
        {"method": "corn", "recipe": "paper"},
    ],
    ids=lambda options: "-".join(str(v) for v in options.values() if isinstance(v, str)),
)
def test_equals_the_model(frame: pd.DataFrame, tmp_path: Path, options) -> None:
    check_export(frame, tmp_path, options)


def check_export(frame: pd.DataFrame, tmp_path: Path, options) -> None:
    features = frame.drop(columns="target")
    model = OrdinalClassifier(classes=["worst", "bad", "good", "best"], **{**QUICK, **options})
    model.fit(features, frame["target"])
    model.save(tmp_path / "m")
    echelon.load(tmp_path / "m").export_onnx(tmp_path / "m.onnx")
    odd = features.head(50).copy()
    odd.loc[:20, "kind"] = "never seen"
    odd.loc[10:30, ["a", "e"]] = np.nan
    for rows in (features, odd, odd.head(1)):
        found = run(tmp_path / "m.onnx", rows)
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), atol=1e-5)
        np.testing.assert_allclose(found["exceedance"], model.predict_exceedance(rows), atol=1e-5)
        assert (found["label"] == model.predict(rows)).mean() > 0.99
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "m.onnx"]


@pytest.mark.parametrize("scale", [1, 0.5])
def test_labels_that_are_numbers(tmp_path: Path, scale: float) -> None:
    data = make_friedman(200, num_classes=3)
    labels = (data.ranks * 2 + 1) * scale
    model = OrdinalBoosting(rounds=3, random_state=0).fit(data.features, labels)
    model.export_onnx(tmp_path / "m.onnx")
    names = [f"x{i}" for i in range(10)]
    found = run(tmp_path / "m.onnx", pd.DataFrame(data.features, columns=names))
    assert set(found["label"].tolist()) <= set(labels.tolist())


def test_labels_keep_their_digits(tmp_path: Path) -> None:
    """They were rounded to 24 bits, so that classes coincided; larger ones than 2**63 wrapped."""
    data = make_friedman(200, num_classes=3)
    names = [f"x{i}" for i in range(10)]
    for classes in ([0.1234567891, 0.1234567892, 3.5], [1, 2**63 + 1, 2**64 - 1]):
        labels = np.array(classes)
        model = OrdinalBoosting(rounds=3, random_state=0).fit(data.features, labels[data.ranks])
        model.export_onnx(tmp_path / "m.onnx")
        found = run(tmp_path / "m.onnx", pd.DataFrame(data.features, columns=names))
        assert (found["label"] == model.predict(data.features)).mean() > 0.99


def test_dates_are_days_in_the_graph(tmp_path: Path) -> None:
    data = make_friedman(200, num_classes=3)
    days = np.round(data.features[:, 0] * 1000)
    frame = pd.DataFrame({"day": pd.to_datetime(days, unit="D"), "x": data.features[:, 1]})
    model = OrdinalBoosting(rounds=3, random_state=0).fit(frame, data.ranks)
    model.export_onnx(tmp_path / "m.onnx")
    found = run(tmp_path / "m.onnx", frame.assign(day=days))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(frame), atol=1e-5)


def test_nothing_is_left_of_a_failed_export(tmp_path: Path, monkeypatch) -> None:
    data = make_friedman(100, num_classes=3)
    model = OrdinalBoosting(rounds=3, random_state=0).fit(data.features, data.ranks)
    monkeypatch.setattr("echelon.models.onnx._TOLERANCE", -1.0)
    with pytest.raises(ValueError, match="differ from the model's"):
        model.export_onnx(tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_calibration_and_costs_are_part_of_the_graph(frame: pd.DataFrame, tmp_path: Path) -> None:
    features, classes = frame.drop(columns="target"), ["worst", "bad", "good", "best"]
    costs = np.abs(np.subtract.outer(range(4), range(4))) ** 2.0
    model = OrdinalBoosting(rounds=20, classes=classes, decision=costs, random_state=0)
    model.fit(features[:200], frame["target"][:200])
    model.calibrate(features[200:], frame["target"][200:], "isotonic")
    model.export_onnx(tmp_path / "m.onnx")
    found = run(tmp_path / "m.onnx", features)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(features), atol=1e-5)
    assert (found["label"] == model.predict(features)).mean() > 0.99


def test_networks_on_texts_with_words_of_their_own_cannot_be_blended_in_a_graph(
    tmp_path: Path,
) -> None:
    texts = pd.DataFrame({"text": [f"word{i} and word{i % 7}" for i in range(60)]})
    networks = [
        OrdinalClassifier(
            text="text",
            inputs={"text": {"max_tokens": most}},
            **QUICK | {"settings": {"max_epochs": 1}},
        ).fit(texts, np.arange(60) % 3)
        for most in (3, 5)
    ]
    blend = OrdinalBlend(networks, prefitted=True).fit(texts, np.arange(60) % 3)
    assert len(blend.members_) == 2
    with pytest.raises(ValueError, match=r"read texts in ways of their own.*export a single"):
        blend.export_onnx(tmp_path / "m.onnx")


def test_the_graph_says_what_it_is(frame: pd.DataFrame, tmp_path: Path) -> None:
    features, classes = frame.drop(columns="target"), ["worst", "bad", "good", "best"]
    model = OrdinalBoosting(rounds=3, classes=classes, random_state=0)
    model.fit(features, frame["target"])
    model.about_ = {"target": "target", "data": "made.csv"}
    model.save(tmp_path / "m")
    echelon.load(tmp_path / "m").export_onnx(tmp_path / "m.onnx")
    graph = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(graph, full_check=True)
    told = {entry.key.removeprefix("echelon."): entry.value for entry in graph.metadata_props}
    assert all(entry.key.startswith("echelon.") for entry in graph.metadata_props)
    assert json.loads(told["classes"]) == classes
    columns = {column["name"]: column for column in json.loads(told["columns"])}
    assert list(columns) == list(features)
    assert columns["kind"]["categories"] == ["big", "small"]
    assert columns["a"]["quantiles"][0] == pytest.approx(features["a"].min(), rel=1e-5)
    assert told["hash"] == fingerprint(model)
    assert told["version"] == graph.producer_version == echelon.__version__
    assert (told["onnx"], told["kind"]) == (onnx.__version__, "boosting")
    assert "'target', fitted on made.csv" in graph.doc_string == told["description"]
    # a runtime tells it too
    meta = onnxruntime.InferenceSession(tmp_path / "m.onnx").get_modelmeta()
    assert meta.custom_metadata_map["echelon.hash"] == told["hash"]
