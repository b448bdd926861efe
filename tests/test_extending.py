"""The pages on extending are true: their code, put where they say, is taken up by everything."""

import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import echelon
from echelon.evaluation import RunningScores
from echelon.evaluation.metrics import METRICS, all_scores
from echelon.evaluation.scorers import OrdinalScorer
from echelon.networks.table import BACKBONES
from tests.documents import ROOT, name, run_python

PAGES = sorted((ROOT / "docs" / "extend").glob("*.md"))


def names_of(page: str) -> dict[str, Any]:
    """What the code of a page makes."""
    return run_python(ROOT / "docs" / "extend" / f"{page}.md")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(r"`((?:src|tests|docs)/[\w/.]+)`", page.read_text(encoding="utf-8"))
    assert named, "a page on extending says which files are touched"
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_page_is_in_the_overview() -> None:
    overview = (ROOT / "docs" / "extend" / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\((\w+\.md)\)", overview))
    assert linked - {"tree.md"} == {page.name for page in PAGES} - {"index.md"}


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    data = echelon.data.make_friedman(200, num_classes=4)
    return data.features, data.ranks


def quick(method: str = "corn", backbone: str = "linear", **options: Any) -> Any:
    return echelon.OrdinalClassifier(
        method, backbone, settings={"max_epochs": 2}, random_state=0, **options
    )


def saved_and_opened(model: Any, folder: Path) -> Any:
    model.save(folder / "model.echelon")
    return echelon.load(folder / "model.echelon")


def test_a_method(monkeypatch, rows, tmp_path) -> None:
    row = names_of("method")["row"]
    monkeypatch.setitem(echelon.METHODS, row.name, row)
    logits, ranks = torch.randn(6, 4), torch.arange(6) % 4
    without_focus = echelon.method("focal", num_classes=4, gamma=0.0)
    torch.testing.assert_close(
        without_focus.loss(logits, ranks), echelon.functional.ce_loss(logits, ranks)
    )
    soft = torch.eye(4)[ranks]
    focal = echelon.method("focal", num_classes=4)
    torch.testing.assert_close(focal.loss(logits, soft), focal.loss(logits, ranks))
    model = quick("focal", method_options={"gamma": 1.0}).fit(*rows)
    opened = saved_and_opened(model, tmp_path)
    np.testing.assert_array_equal(opened.predict_proba(rows[0]), model.predict_proba(rows[0]))


def test_a_head(monkeypatch, rows, tmp_path) -> None:
    row = names_of("head")["row"]
    monkeypatch.setitem(echelon.METHODS, row.name, row)
    model = quick("corn_cosine", "mlp", backbone_options={"hidden": (16,)}).fit(*rows)
    assert type(model.network_.head).__name__ == "CosineHead"
    opened = saved_and_opened(model, tmp_path)
    np.testing.assert_array_equal(opened.predict(rows[0]), model.predict(rows[0]))


def test_a_backbone(monkeypatch, rows, tmp_path) -> None:
    made = names_of("backbone")
    row, (module, _, attribute) = made["row"], made["row"].builder.partition(":")
    monkeypatch.setattr(f"{module}.{attribute}", made[attribute], raising=False)
    monkeypatch.setitem(BACKBONES, row.name, row)
    model = quick(backbone="gated", backbone_options={"hidden": 8}).fit(*rows)
    assert model.network_.backbone.out_features == 8
    assert model.settings_.learning_rate == row.pace.learning_rate
    opened = saved_and_opened(model, tmp_path)
    np.testing.assert_array_equal(opened.predict(rows[0]), model.predict(rows[0]))


def test_a_model(monkeypatch, rows, tmp_path) -> None:
    made = names_of("model")
    row = made["row"]
    module, _, attribute = row.place.partition(":")
    monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(**{attribute: made[attribute]}))
    monkeypatch.setitem(echelon.MODELS, row.name, row)
    x, ranks = rows
    labels = np.array(["a", "b", "c", "d"])[ranks]
    model = made["ClassShares"](classes=["a", "b", "c", "d"]).fit(x, labels)
    np.testing.assert_allclose(model.predict_proba(x[:1])[0].sum(), 1)
    model.conformalize(x, labels)
    assert set(model.predict(x)) < {"a", "b", "c", "d"}
    opened = saved_and_opened(model, tmp_path)
    np.testing.assert_array_equal(opened.predict_interval(x, 0.9), model.predict_interval(x, 0.9))
    with pytest.raises(ValueError, match="ClassShares has no ONNX graph"):
        model.export_onnx(tmp_path / "model.onnx")


def test_a_metric(monkeypatch, rows) -> None:
    row = names_of("metric")["row"]
    monkeypatch.setitem(METRICS, row.name, row)
    truth, predicted, shares = [0, 1, 2, 3], [0, 0, 0, 3], np.eye(4)
    assert row.function(truth, predicted) == 0.5
    assert all_scores(truth, predicted, shares)["too_low"] == 0.5
    running = RunningScores(num_classes=4)
    for true_rank, rank in zip(truth, predicted, strict=True):
        running.update([true_rank], prediction=[rank])
    assert running.compute()["too_low"] == 0.5
    model = echelon.CumulativeLinkModel().fit(*rows)
    assert OrdinalScorer("too_low")(model, *rows) <= 0
    assert OrdinalScorer("too_low").name == "neg_too_low"
    assert quick().set_params(settings={"max_epochs": 1, "metric": "too_low"}).fit(*rows).history_


def test_a_command(rows, tmp_path) -> None:
    from echelon.cli.main import app

    model = echelon.CumulativeLinkModel().fit(*rows)
    model.save(tmp_path / "model.echelon")
    before = list(app.registered_commands)
    try:
        app.command()(names_of("command")["classes"])
        runner = CliRunner()
        printed = runner.invoke(app, ["classes", str(tmp_path / "model.echelon"), "--json"])
        helped = runner.invoke(app, ["classes", "--help"])
    finally:
        app.registered_commands[:] = before
    assert printed.stdout == '["0", "1", "2", "3"]\n'
    assert "Example: echelon classes wine.echelon" in helped.stdout


# The table of kinds is read when the package is, so the row must be there before: as it is where
# somebody has written it into the file.
_WITH_THE_KIND = """
import sys, types
from pathlib import Path
from tests.documents import ROOT, run_python

import echelon.data.kinds.base as base

made = run_python(ROOT / "docs" / "extend" / "kind.md", until="WAVES = ")
row = made["row"]
sys.modules["echelon.data.kinds.waves"] = types.SimpleNamespace(WAVES=made["WAVES"])
base.KINDS[row.name] = row
base.CELL_KINDS = tuple(kind.name for kind in base.KINDS.values() if kind.place is not None)

made = run_python(ROOT / "docs" / "extend" / "kind.md")
from echelon.networks import table, tabular
table.BACKBONES["wave_mlp"] = made["backbone"]
tabular.WaveMLP = made["WaveMLP"]

import numpy as np, pandas as pd
import echelon
from echelon.models import network

class WithWaves(network.OrdinalClassifier):
    def __init__(self, waves=None, text=None, image=None, method="corn", backbone=None,
                 classes=None, recipe="default", decision=None, validation_fraction=0.1,
                 class_weight=None, checkpoint_dir=None, random_state=None, device="auto",
                 method_options=None, backbone_options=None, inputs=None, settings=None,
                 time_limit=None, verbose=0):
        super().__init__(method, backbone, text=text, image=image, classes=classes, recipe=recipe,
            decision=decision, validation_fraction=validation_fraction, class_weight=class_weight,
            checkpoint_dir=checkpoint_dir, random_state=random_state, device=device,
            method_options=method_options, backbone_options=backbone_options, inputs=inputs,
            settings=settings, time_limit=time_limit, verbose=verbose)
        self.waves = waves

network.OrdinalClassifier = WithWaves
rng = np.random.default_rng(0)
ranks = rng.integers(3, size=240)
time = np.linspace(0, 6, 24)
waves = [(1 + rank) * np.sin(time + rng.uniform(0, 6)) for rank in ranks]
frame = pd.DataFrame({"age": rng.normal(size=240), "beat": waves})
model = WithWaves(waves="beat", settings={"max_epochs": 15}, random_state=0)
model.fit(frame[:200], ranks[:200])
assert (model.predict(frame[200:]) == ranks[200:]).mean() > 0.6
model.save("model.echelon")
opened = echelon.load("model.echelon")
assert (opened.predict(frame[200:]) == model.predict(frame[200:])).all()
print("read", opened.columns_by_kind)
"""


def test_a_kind(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _WITH_THE_KIND],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "OMP_NUM_THREADS": "1", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "read {'waves': 'beat'}\n"
