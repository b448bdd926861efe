"""What commands write: where they were told to, nothing else, and never in vain."""

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon import OrdinalClassifier
from echelon.cli.main import main
from echelon.data import make_friedman
from echelon.storage.atomic import WriteFailed

QUICK = {"settings": {"max_epochs": 1}, "random_state": 0, "device": "cpu"}
HEADER = "prediction,probability_1,probability_2,probability_3,outside"
unix = pytest.mark.skipif(os.name == "nt", reason="of POSIX")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    data = make_friedman(60, num_classes=3)
    table = pd.DataFrame(data.features[:, :3], columns=list("abc")).assign(stars=data.ranks + 1)
    table.to_csv(folder / "table.csv", index=False)
    table.iloc[:0].to_parquet(folder / "empty.parquet")
    model = OrdinalClassifier("ce", "linear", **QUICK)
    model.fit(table.drop(columns="stars"), table["stars"]).save(folder / "model")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys):
    """Run a command in this process: its exit code, and what it said on either side."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["echelon", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        shown = capsys.readouterr()
        return int(stopped.value.code or 0), shown.out, shown.err

    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


FIT = ("fit", "table.csv", "--target", "stars", "--max-epochs", "1", "--backbone", "linear",
       "--device", "cpu", "--json", "--out")  # fmt: skip
PREDICT = ("predict", "model", "table.csv", "--out")


# ---- what an output may be -----------------------------------------------------------------------


@unix
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*PREDICT, "table.csv"), "--out table.csv is the same file as the input table.csv"),
        ((*PREDICT, "model"), "is the same file as the input model"),
        ((*PREDICT, "link.csv"), "--out link.csv is the same file as the input table.csv"),
        ((*PREDICT, "hard.csv"), "--out hard.csv is the same file as the input table.csv"),
        ((*PREDICT, "costs.csv", "--decision", "costs.csv"), "as the input costs.csv"),
        ((*PREDICT, "p.xls"), "end in .csv, .parquet, .pq, .xlsx, .jsonl; got --out p.xls"),
        ((*PREDICT, "inner"), "the folder inner is not empty, and what it holds is never"),
        ((*PREDICT, "no/p.csv"), "the folder no does not exist"),
        ((*PREDICT, "-", "--json"), "--json and --out - cannot both"),
        ((*FIT, "table.csv"), "whose ending .csv is that of something else"),
        ((*FIT, "same"), "is the same file as the input table.csv"),
        ((*FIT, "m.onnx"), "whose ending .onnx is that of something else: name it m.echelon"),
        ((*FIT, "inner"), "it is a folder; name a file"),
        ((*FIT, "-"), "a model cannot go to the standard output; got --out -: name a file"),
        ((*FIT, "/dev/stdout"), "a model cannot go to the standard output"),
        (("export", "model", "--onnx", "model"), "is the same file as the input model"),
        (("export", "model", "--onnx", "m.csv"), "end in .onnx"),
        (("export", "model", "--onnx", "-"), "cannot go to the standard output"),
        (("report", "inner", "--out", "p.json"), "end in .html, .htm"),
        (("report", "inner", "--out", "DONE"), "ends in .html, .htm"),
        (
            ("evaluate", "model", "table.csv", "--target", "stars", "--out", "model"),
            "model is a file; name a folder",
        ),
        (
            ("evaluate", "model", "table.csv", "--target", "stars", "--out", "inner"),
            "the folder inner is not empty",
        ),
        (("compare", "table.csv", "--target", "stars", "--out", "table.csv"), "name a folder"),
        (("compare", "table.csv", "--target", "stars", "--out", "-"), "a folder cannot go to"),
        (("reproduce", "digits", "--out", "table.csv/runs"), "table.csv is a file"),
    ],
)
def test_wrong_outputs_are_refused_before_any_work(
    folder: Path, command, monkeypatch, arguments, message: str
) -> None:
    Path("link.csv").symlink_to("table.csv")
    Path("same").symlink_to("table.csv")
    os.link("table.csv", "hard.csv")
    Path("costs.csv").write_text("0,1,2\n1,0,1\n2,1,0\n")
    Path("inner").mkdir()
    Path("inner", "file").touch()
    monkeypatch.setattr("echelon.data.files.read_table", lambda *_, **__: pytest.fail("worked"))
    before = contents(folder)
    code, out, errors = command(*arguments)
    assert (code, out, errors.count("\n")) == (2, "", 1), errors
    assert message in errors
    assert contents(folder) == before
    assert list(Path("inner").iterdir()) == [Path("inner/file")]


def test_an_image_is_no_output(folder: Path, command) -> None:
    from PIL import Image

    for number in range(4):
        Image.new("RGB", (20, 20), (60 * number, 0, 0)).save(f"{number}.png")
    Path("3.png").rename("photo")
    names = [*(f"{number}.png" for number in range(3)), "photo", None]
    pd.DataFrame({"path": names, "stars": [1, 2, 1, 2, 1]}).to_csv("images.csv", index=False)
    before = contents(folder)
    arguments = ("--target", "stars", "--image", "path", "--max-epochs", "1", "--out", "photo")
    code, _, errors = command("fit", "images.csv", *arguments)
    assert code == 2
    assert "--out photo is the same file as the input photo" in errors
    assert contents(folder) == before


@unix
def test_links_pipes_and_devices_stay_what_they_are(folder: Path, command) -> None:
    Path("far").mkdir()
    Path("p.csv").symlink_to("far/q.csv")
    assert command(*PREDICT, "p.csv")[0] == 0
    assert Path("p.csv").is_symlink()
    assert len(pd.read_csv("far/q.csv")) == 60
    assert command(*PREDICT, os.devnull)[0] == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    os.mkfifo("pipe")
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(Path("pipe").read_text()), daemon=True)
    reader.start()
    assert command(*PREDICT, "pipe")[0] == 0
    reader.join(30)
    assert found == [Path("far/q.csv").read_text()]
    assert Path("pipe").is_fifo()


def test_a_dash_is_the_standard_output(folder: Path, command) -> None:
    code, out, errors = command(*PREDICT, "-")
    assert (code, errors) == (0, "wrote -: 60 rows\n")
    assert out.splitlines()[0] == HEADER
    assert len(out.splitlines()) == 61
    assert not Path("-").exists()


@unix
def test_the_device_of_the_standard_output_keeps_its_file(folder: Path, command) -> None:
    """The shell has opened the file: one that takes its place would not be seen by what follows."""
    kept = os.dup(1)
    with open("shell.csv", "w") as opened:
        opened.write("before\n")
        opened.flush()
        os.dup2(opened.fileno(), 1)
        try:
            code, _, errors = command(*PREDICT, "/dev/stdout")
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        opened.write("after\n")
    assert (code, errors) == (0, "wrote /dev/stdout: 60 rows\n")
    lines = Path("shell.csv").read_text().splitlines()
    assert (lines[:2], lines[-1], len(lines)) == (["before", HEADER], "after", 63)


# ---- tables --------------------------------------------------------------------------------------


def test_parquet_is_parquet(folder: Path, command) -> None:
    for name in ("p.csv", "p.parquet", "P.PQ"):
        assert command(*PREDICT, name)[0] == 0
    expected = pd.read_csv("p.csv", dtype={"outside": "str"}, keep_default_na=False)
    for name in ("p.parquet", "P.PQ"):
        found = pd.read_parquet(name)
        pd.testing.assert_frame_equal(found, expected, rtol=1e-4, atol=1e-6)
        assert found["prediction"].dtype == np.int64


def test_parquet_of_images_some_of_which_cannot_be_read(folder: Path, command) -> None:
    from PIL import Image

    for label in ("poor", "good"):
        Path("photos", label).mkdir(parents=True)
        for number in range(6):
            pixels = np.full((20, 20, 3), 40 * number, dtype=np.uint8)
            Image.fromarray(pixels).save(f"photos/{label}/{number}.png")
    asked = ("--target", "class", "--image", "image", "--classes", "poor,good", "--device", "cpu")
    assert command("fit", "photos", *asked, "--max-epochs", "1", "--out", "m")[0] == 0
    Path("photos/poor/0.png").write_bytes(b"no image")
    assert command("predict", "m", "photos", "--on-broken", "skip", "--out", "p.parquet")[0] == 0
    found = pd.read_parquet("p.parquet").set_index("image")
    assert list(found) == ["prediction", "probability_poor", "probability_good", "outside"]
    assert found.index[found["prediction"].isna()].tolist() == ["poor/0.png"]
    assert found["probability_poor"].dtype == np.float64


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_a_prediction_of_no_rows_has_a_header(folder: Path, command, name: str) -> None:
    assert command("predict", "model", "empty.parquet", "--out", name)[0] == 0
    found = pd.read_csv(name) if name.endswith("csv") else pd.read_parquet(name)
    assert (list(found), len(found)) == (HEADER.split(","), 0)


def test_a_first_chunk_without_rows_brings_no_second_header(
    folder: Path, command, monkeypatch
) -> None:
    whole = pd.read_csv("table.csv")
    chunks = [whole.iloc[:0], whole.iloc[:9], whole.iloc[9:]]
    monkeypatch.setattr("echelon.cli.reading.DataDescription.chunks", lambda *_: iter(chunks))
    assert command(*PREDICT, "p.csv")[0] == 0
    assert Path("p.csv").read_text().count("prediction") == 1
    assert len(pd.read_csv("p.csv")) == 60


# ---- permissions ---------------------------------------------------------------------------------


@unix
def test_models_follow_the_umask_and_predictions_keep_their_mode(folder: Path, command) -> None:
    before = os.umask(0o022)
    try:
        assert command(*FIT, "m")[0] == 0
        assert stat.S_IMODE(os.stat("m").st_mode) == 0o644
        assert command(*PREDICT, "p.csv")[0] == 0
        os.chmod("p.csv", 0o600)
        assert command(*PREDICT, "p.csv")[0] == 0
        assert stat.S_IMODE(os.stat("p.csv").st_mode) == 0o600
    finally:
        os.umask(before)


# ---- full and read-only disks --------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        (*FIT, "m"),
        (*PREDICT, "p.csv"),
        ("evaluate", "model", "table.csv", "--target", "stars", "--out", "run"),
        ("compare", "table.csv", "--target", "stars", "--out", "runs"),
        ("reproduce", "digits", "--out", "runs"),
        ("export", "model", "--onnx", "m.onnx"),
    ],
)
def test_a_place_that_cannot_be_written_is_found_before_the_work(
    folder: Path, command, monkeypatch, arguments
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for place in (
        "data.files.read_table",
        "models.loading.load",
        "paper.experiments.Experiment.task",
    ):
        monkeypatch.setattr(f"echelon.{place}", lambda *_, **__: pytest.fail("worked"))
    monkeypatch.setattr(os, "fsync", full)
    before = contents(folder)
    code, out, errors = command(*arguments)
    assert (code, out, errors.count("\n")) == (1, "", 1)
    assert f"could not write {arguments[-1]}: no space is left on its disk" in errors
    assert contents(folder) == before
    assert not Path("runs").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_model_that_cannot_be_written_is_written_beside(folder: Path, command) -> None:
    code, out, errors = command(*FIT, "/dev/full")
    assert (code, out, errors.count("\n")) == (1, "", 1)
    assert "could not write /dev/full: no space is left" in errors
    place = Path(errors.strip().rpartition(" it is in ")[2])
    assert place.parent == folder
    assert len(echelon.load(place).predict(pd.read_csv("table.csv"))) == 60
    assert command(*PREDICT, "/dev/full")[0] == 1


def test_a_model_goes_to_the_temporary_folder_where_nothing_is_left_here(
    folder: Path, command, monkeypatch, tmp_path_factory
) -> None:
    spare = tmp_path_factory.mktemp("spare")
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    save = OrdinalClassifier.save

    def full_here(model: OrdinalClassifier, path: Path) -> None:
        if Path(path).resolve().parent != spare:
            raise WriteFailed.of(path, OSError(errno.ENOSPC, ""))
        save(model, path)

    monkeypatch.setattr(OrdinalClassifier, "save", full_here)
    code, _, errors = command(*FIT, "wine.echelon")
    (place,) = spare.iterdir()
    assert code == 1
    assert errors.endswith(f"The model is not lost: it is in {place}\n")
    assert (place.name[:5], place.suffix) == ("wine-", ".echelon")
    echelon.load(place)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    Path("wine.echelon.checkpoints").mkdir()
    code, _, errors = command(*FIT, "wine.echelon", "--resume")
    assert (code, errors.count("\n")) == (1, 1)
    assert errors.endswith(
        "but wine.echelon.checkpoints is kept: free some space and start again\n"
    )


# ---- SIGTERM -------------------------------------------------------------------------------------

_WAITING = """
import sys, time
from echelon.cli.main import app, main
from echelon.storage.atomic import replacing

@app.command()
def wait(out: str) -> None:
    with replacing(out) as stream:
        stream.write(b"half")
        stream.flush()
        print("ready", flush=True)
        time.sleep(60)

main()
"""


@unix
def test_sigterm_leaves_nothing_half_written(folder: Path) -> None:
    Path("out").write_text("old")
    process = subprocess.Popen(
        [sys.executable, "-c", _WAITING, "wait", "out"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert list(folder.glob(".*.partial"))
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (143, "")
    assert Path("out").read_text() == "old"
    assert not list(folder.glob(".*.partial"))


@unix
def test_the_way_a_process_ends_is_left_as_it_was(folder: Path, command) -> None:
    assert command("methods")[0] == 0
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
