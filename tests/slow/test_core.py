"""The core alone, as `pip install echelon` gives it: no extra, whatever the versions are.

`make test-lowest` runs this in an environment of its own, with the lowest versions.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon.data import make_friedman
from echelon.extras import _EXTRAS
from echelon.models.table import MODELS, model_class

DATA = make_friedman(400, num_classes=4, seed=1)
FRAME = pd.DataFrame(DATA.features, columns=[f"V{i}" for i in range(10)])
FRAME["kind"] = np.where(FRAME["V3"] > 0.5, "big", "small")
FRAME.loc[::7, "V1"] = np.nan
NAMED = [name for name, row in MODELS.items() if row.is_named]
QUICK = {"network": {"settings": {"max_epochs": 3}}, "auto": {"time_limit": 6}}


@pytest.mark.parametrize("name", NAMED)
def test_a_model_is_fitted_predicts_and_is_read_back(name: str, tmp_path: Path) -> None:
    model = model_class(name)(random_state=0, **QUICK.get(name, {}))
    model.fit(FRAME[:300], DATA.ranks[:300])
    probabilities = model.predict_proba(FRAME[300:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
    constant = np.abs(DATA.ranks[300:] - 1.5).mean()
    assert np.abs(model.predict(FRAME[300:]) - DATA.ranks[300:]).mean() < constant
    model.conformalize(FRAME[300:], DATA.ranks[300:])
    assert model.predict_interval(FRAME[:5], coverage=0.9).shape == (5, 2)
    model.save(tmp_path / "model.echelon")
    again = echelon.load(tmp_path / "model.echelon")
    np.testing.assert_array_equal(again.predict_proba(FRAME[300:]), probabilities)


@pytest.mark.parametrize("method", sorted(echelon.METHODS))
def test_every_method_trains(method: str) -> None:
    model = echelon.OrdinalClassifier(
        method, "mlp", backbone_options={"hidden": (16,)}, settings={"max_epochs": 2},
        random_state=0,
    )  # fmt: skip
    model.fit(FRAME[:200], DATA.ranks[:200])
    assert np.isfinite(model.predict_proba(FRAME[:10])).all()


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "echelon", *arguments], cwd=folder, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip


def test_the_commands_of_the_first_page(tmp_path: Path) -> None:
    table = FRAME.assign(grade=np.array(["d", "c", "b", "a"])[DATA.ranks])
    table.to_csv(tmp_path / "table.csv", index=False)
    FRAME.to_csv(tmp_path / "new.csv", index=False)
    order = ("--target", "grade", "--classes", "d,c,b,a")
    for arguments in (
        ("--version",),
        ("check", "table.csv", "--target", "grade"),
        ("fit", "table.csv", *order, "--time-limit", "6", "--out", "m.echelon"),
        ("evaluate", "m.echelon", "table.csv", "--target", "grade", "--out", "run"),
        ("predict", "m.echelon", "new.csv", "--out", "predictions.csv"),
        ("explain", "m.echelon", "table.csv", "--target", "grade"),
        ("info", "m.echelon"),
        ("methods",),
    ):
        done = run(tmp_path, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)
    assert len(pd.read_csv(tmp_path / "predictions.csv")) == 400
    done = run(
        tmp_path, "compare", "table.csv", *order, "--methods", "ce,corn,boosting", "--seeds", "2",
        "--max-epochs", "2", "--out", "runs", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["runs"]) == 8


# Each command, or line of Python, that needs what an installation without extras does not have.
WITHOUT = {
    "report": ("report", "run", "--out", "page.html"),
    "excel": ("check", "table.xlsx"),
    "parquet": ("check", "table.parquet"),
    "onnx": ("export", "m.echelon", "--onnx", "m.onnx"),
    "tune": ("tune", "table.csv", "--target", "rank", "--out", "tuned"),
    "formula": ("fit", "table.csv", "--target", "rank", "--model", "cumulative_link", "--formula",
                "rank ~ V1", "--out", "f.echelon"),
    "text": ("fit", "table.csv", "--target", "rank", "--text", "kind", "--backbone", "hf:folder",
             "--out", "t.echelon"),
    "vision": ("fit", "table.csv", "--target", "rank", "--image", "kind", "--backbone",
               "timm:resnet18", "--out", "i.echelon"),
    "faces": ("align", "photographs", "--predictor", "predictor.dat", "--out", "aligned"),
    "serve": ("serve", "m.echelon", "--port", "0"),
    "ray": ("compare", "table.csv", "--target", "rank", "--methods", "corn", "--seeds", "1",
            "--max-epochs", "1", "--cluster", "local", "--out", "c"),
}  # fmt: skip


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("without")
    FRAME.assign(rank=DATA.ranks).to_csv(folder / "table.csv", index=False)
    model = echelon.CumulativeLinkModel().fit(FRAME, DATA.ranks)
    model.save(folder / "m.echelon")
    run(folder, "evaluate", "m.echelon", "table.csv", "--target", "rank", "--out", "run")
    (folder / "photographs").mkdir()
    (folder / "photographs" / "face.jpg").write_bytes(b"\xff\xd8\xff")
    (folder / "predictor.dat").write_bytes(b"points")
    for name in ("table.xlsx", "table.parquet"):
        (folder / name).write_bytes(b"PK\3\4" if name.endswith("xlsx") else b"PAR1PAR1")
    return folder


@pytest.mark.parametrize("extra", WITHOUT)
def test_what_needs_an_extra_says_which(extra: str, prepared: Path) -> None:
    """Also where it is installed, which is hidden then."""
    # A newer typer, which is of the core, needs pydantic itself.
    hidden = [
        name for name, brings in _EXTRAS.items() if brings == extra if name != "pydantic_core"
    ]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({hidden}))\n"
        f"sys.argv = ['echelon', *{[*WITHOUT[extra]]}]\n"
        f"from echelon.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=prepared, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2, done.stderr
    assert f"need the extra `{extra}`: pip install 'echelon[{extra}]'" in done.stderr
    assert "\n" not in done.stderr.strip()


def test_every_extra_that_commands_use_is_tried() -> None:
    others = {"metrics", "dev"}  # of Python alone, and of developers
    assert set(_EXTRAS.values()) - others == set(WITHOUT)
