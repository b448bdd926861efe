"""The command that aligns faces."""

import json
import sys
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from echelon.cli.align import read_size
from echelon.cli.main import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in").mkdir()
    Image.new("RGB", (200, 240)).save(tmp_path / "in" / "empty.png")
    (tmp_path / "model.dat").write_bytes(b"no model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--centre", "mouth"), "--centre must be eyes or nose"),
        (("--size", "200"), "--size must be a width and a height, as in 200,240"),
        (("--size", "0,5"), "must lie between 1 and 4,096"),
        (("--workers", "0"), "--workers must be at least 1"),
        ((), "is no shape predictor of dlib"),
    ],
)
def test_wrong_use_is_named_and_nothing_is_aligned(folder: Path, more, message: str) -> None:
    asked = ["align", "in", "--predictor", "model.dat", "--out", "out", *more]
    result = CliRunner().invoke(app, asked)
    assert message in str(result.exception)
    assert not list(folder.glob("out/*.png"))


def test_the_extra_is_named_where_it_is_missing(folder: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "dlib", None)
    result = CliRunner().invoke(app, ["align", "in", "--predictor", "model.dat", "--out", "out"])
    assert "faces need the extra `faces`: pip install" in str(result.exception)


def test_what_was_aligned_is_told(folder: Path, monkeypatch) -> None:
    from echelon.data import faces

    result = faces.Alignment(
        faces.FaceTarget(60.0, (100.0, 110.0)), ["a.png"], {"b.png": "no face"}
    )
    monkeypatch.setattr(faces, "align", lambda *_, **__: result)
    asked = ["align", "in", "--predictor", "model.dat", "--out", "out"]
    told = CliRunner().invoke(app, asked).stdout
    assert "wrote 1 aligned images to out" in told
    assert "left out 1, listed in out/left_out.csv: b.png" in told
    document = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert document["left_out"] == {"b.png": "no face"}


def test_a_size_is_a_width_and_a_height() -> None:
    assert read_size("200, 240") == (200, 240)
