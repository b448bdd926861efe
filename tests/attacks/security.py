"""A proof of every sentence of SECURITY.md, tried in the process that is watched.

A proof is a function that asserts; whatever it does beyond that, such as asking a network, the
watch sees. `refusal` is the error of what must be refused.
"""

import json
import os
import resource
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.attacks import images, models, run_folders
from tests.attacks.harness import Case, Place, is_refusal, run_command
from tests.attacks.material import (
    CHECKPOINT_KEY,
    FIT,
    MODEL_KEY,
    not_probabilities,
    predict_with,
    read_model,
    reseal_run,
    write_forged,
)

Proof = Callable[[Path, Place], Any]
_HOSTILE = "</script><script>window.ran = 1</script><img src=x onerror='window.ran = 1'>"


def refusal(act: Callable[[], Any]) -> str:
    """The sentence with which something is refused; a result is a failure."""
    try:
        act()
    except Exception as error:
        if not is_refusal(error):
            raise
        return str(error)
    raise AssertionError("it was not refused")


def run(*arguments: Any) -> tuple[int, str, str]:
    """The exit code of a command, what it printed, and what it complained about."""
    return run_command([str(one) for one in arguments])


def _load(path: Path) -> Any:
    import echelon

    return echelon.load(path)


def _copy(material: Path, place: Place, name: str = "table") -> Path:
    return Path(shutil.copy(material / f"{name}.echelon", place.given / "m.echelon"))


def _forge(material: Path, place: Place, name: str, title: str) -> Path:
    """One of the hostile models of the attacks, with its bait beside it."""
    tensors, document = read_model(material / f"{name}.echelon")
    models.leave_bait(place)
    models.HOSTILE[name][title](tensors, document, place)
    path = place.given / "m.echelon"
    write_forged(path, tensors, document, MODEL_KEY)
    return path


def _each(*titles: tuple[str, str]) -> Proof:
    def proof(material: Path, place: Place) -> None:
        for name, title in titles:
            shutil.rmtree(place.given)
            place.given.mkdir()
            path = _forge(material, place, name, title)
            assert refusal(lambda path=path: _load(path))
        assert not (place.out / "code-ran").exists()

    return proof


@contextmanager
def _opened_files() -> Iterator[list[str]]:
    seen: list[str] = []
    listening = [True]

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if listening and event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
            seen.append(os.path.realpath(os.fsdecode(arguments[0])))

    sys.addaudithook(hear)
    try:
        yield seen
    finally:
        listening.clear()


def _opens_one_file(material: Path, place: Place) -> None:
    installed = {
        os.path.realpath(one) for one in (*sysconfig.get_paths().values(), *sys.path, sys.prefix)
        if one
    }  # fmt: skip
    for name in ("table", "encoder", "timm"):
        path = _copy(material, place, name)
        with _opened_files() as seen:
            _load(path)
        others = [
            one for one in seen
            if one != str(path.resolve())
            and not one.startswith(("/proc/", "/sys/", "/dev/", *installed))
        ]  # fmt: skip
        assert not others, others


def _refuses_changes(material: Path, place: Place) -> None:
    path = _copy(material, place)
    content = path.read_bytes()
    for i in range(9, len(content), 97):
        path.write_bytes(content[:i] + bytes([content[i] ^ 4]) + content[i + 1 :])
        assert refusal(lambda: _load(path))


def _does_not_trust(material: Path, place: Place) -> None:
    import torch

    tensors, document = read_model(material / "table.echelon")
    path = place.given / "m.echelon"
    named = json.loads(json.dumps(document))
    named["model"]["network"]["backbones"] = {"table": "os.system"}
    write_forged(path, tensors, named, MODEL_KEY)
    assert refusal(lambda: _load(path))
    for odd in (torch.zeros(9, 9), torch.full_like(tensors["model.head.weight"], float("nan"))):
        write_forged(path, {**tensors, "model.head.weight": odd}, document, MODEL_KEY)
        assert refusal(lambda: _load(path))


def _depends_on_no_file(material: Path, place: Place) -> None:
    path = Path(shutil.copy(material / "calibrated.echelon", place.out / "m.echelon"))
    import pandas as pd

    rows = pd.read_csv(material / "calibrated.csv")
    model = _load(path)
    before = model.predict_proba(rows), model.predict_interval(rows)
    size = path.stat().st_size
    for content in (b"\xff" * size, b""):
        with open(path, "rb+") as stream:  # in place, as nothing that is mapped survives
            stream.truncate(0)
            stream.write(content)
        after = model.predict_proba(rows), model.predict_interval(rows)
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one, other)


def _predicts_anything(material: Path, place: Place) -> None:
    tensors, document = read_model(material / "table.echelon")
    tensors["model.head.weight"] = -tensors["model.head.weight"] + 0.5
    path = place.given / "m.echelon"
    write_forged(path, tensors, document, MODEL_KEY)
    found = predict_with(path, material / "table.csv")
    assert not_probabilities(found) is None
    assert not np.allclose(found, np.load(material / "table.npy"))


def _goes_on(material: Path, place: Place, content: bytes | None = None, *more: str) -> Any:
    folder = place.out / "m.echelon.checkpoints"
    folder.mkdir()
    if content is not None:
        (folder / "checkpoint.safetensors").write_bytes(content)
    out = place.out / "m.echelon"
    return run("fit", material / "fit.csv", *FIT, *more, "--resume", "--out", out)


def _sets_damage_aside(material: Path, place: Place) -> None:
    content = bytearray((material / "checkpoint.safetensors").read_bytes())
    content[-1000] ^= 1
    code, _, said = _goes_on(material, place, bytes(content))
    assert code == 0
    assert "warning" in said
    whole = (material / "finished.echelon").read_bytes()
    assert (place.out / "m.echelon").read_bytes() == whole


def _refuses_other_runs(material: Path, place: Place) -> None:
    content = (material / "checkpoint.safetensors").read_bytes()
    code, _, said = _goes_on(material, place, content, "--seed", "7")
    assert code == 2
    assert "another run" in said


def _opens_no_pickle(material: Path, place: Place) -> None:
    models.leave_bait(place)
    for name in ("bait.pkl", "bait.pth"):
        _goes_on(material, place, (place.given / name).read_bytes())
        assert not (place.out / "code-ran").exists()
        shutil.rmtree(place.out)
        place.out.mkdir()
    tensors, document = read_model(material / "checkpoint.safetensors")
    document["pickle"] = "cos\nsystem\n(S'true'\ntR."
    write_forged(place.given / "c", tensors, document, CHECKPOINT_KEY)
    _goes_on(material, place, (place.given / "c").read_bytes())


def _runs(material: Path, place: Place) -> Path:
    return Path(shutil.copytree(material / "runs", place.given / "runs"))


def _report(place: Place) -> tuple[int, str, str]:
    return run("report", place.given / "runs", "--out", place.out / "page.html")


def _refuses_changed_runs(material: Path, place: Place) -> None:
    for file in run_folders.FILES[:-1]:
        folder = _runs(material, place)
        with open(folder / "corn-seed0" / file, "ab") as stream:
            stream.write(b" ")
        assert _report(place)[0] == 2
        shutil.rmtree(folder)


def _refuses_pickled_arrays(material: Path, place: Place) -> None:
    folder = _runs(material, place) / "corn-seed0"
    with np.load(folder / "predictions.npz") as opened:
        arrays = dict(opened)
    arrays["truth"] = np.array([run_folders.Bait()] * len(arrays["truth"]), dtype=object)
    np.savez(folder / "predictions.npz", **arrays)
    reseal_run(folder)
    assert _report(place)[0] == 2


def _refuses_pipes(material: Path, place: Place) -> None:
    for file in ("DONE", "config.json", "predictions.npz"):
        for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
            folder = _runs(material, place)
            (folder / "corn-seed0" / file).unlink()
            make(folder / "corn-seed0" / file)
            code = _report(place)[0]
            # A run that does not say it is finished may also be left out.
            assert code == 2 or (code == 0 and file == "DONE"), (file, code)
            shutil.rmtree(folder)


def _writes_one_page(material: Path, place: Place) -> None:
    assert _report(place)[0] == 0
    assert [path.name for path in place.out.iterdir()] == ["page.html"]


def _page(material: Path, place: Place, **extra: Any) -> str:
    from echelon.report import write_page
    from tests.made_runs import write_made_runs

    runs = write_made_runs(place.out / "runs", rows=50, num_classes=3, seeds=1, **extra)
    return write_page(runs, place.out / "page.html").read_text(encoding="utf-8")


def _asks_no_network(material: Path, place: Place) -> None:
    import re

    text = _page(material, place)
    own = re.sub(r'"\$schema": "https:[^"]*"|http://www\.w3\.org/[\w/]*', "", text)
    assert not re.search(r"(?:src|href|action)\s*=\s*['\"]?\s*(?:https?:)?//|@import|url\(", own)
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|sendBeacon|importScripts", own)


def _shows_and_never_runs(material: Path, place: Place) -> None:
    extra = {"classes": [_HOSTILE, "<b>", "'\"&"], "extra": {"details": {"note": _HOSTILE}}}
    text = _page(material, place, **extra)
    assert "<script>window.ran" not in text
    assert "<img src=x" not in text


def _reads_few_formats(material: Path, place: Place) -> None:
    contents = images.contents()
    path = place.given / "x.png"
    (place.given / "rows.csv").write_text("image\nx.png\n")
    for name in ("eps", "eps-binary", "svg", "pdf", "xpm", "wmf", "psd", "fits", "hdf5"):
        path.write_bytes(contents[name])
        code, _, said = run(
            "predict", material / "image.echelon", place.given / "rows.csv",
            "--out", place.out / "p.csv",
        )  # fmt: skip
        assert code == 2, said
    path.unlink()
    path.write_bytes(contents["jpeg"](path))
    code, _, said = run(
        "predict", material / "image.echelon", place.given / "rows.csv", "--out", place.out / "p"
        ".csv",
    )  # fmt: skip
    assert code == 0, said


def _refuses_bombs(material: Path, place: Place) -> None:
    contents = images.contents()
    path = place.given / "x.png"
    (place.given / "rows.csv").write_text("image\nx.png\n")
    for name in ("bomb-long", "bomb-wide", "bomb-larger", "bomb-header-only"):
        made = contents[name]
        path.write_bytes(made if isinstance(made, bytes) else made(path))
        out = place.out / "p.csv"
        code, _, said = run(
            "predict", material / "image.echelon", place.given / "rows.csv", "--out", out
        )
        assert code == 2, said


def _reads_tables_as_text(material: Path, place: Place) -> None:
    lines = (material / "data.csv").read_text().splitlines()
    cell = "\"__import__('os').system('true')\""
    rows = [line.replace("big", cell).replace("small", "=cmd|x!A0") for line in lines]
    (place.given / "t.csv").write_text("\n".join(rows) + "\n")
    code, _, said = run("fit", place.given / "t.csv", *FIT, "--out", place.out / "m.echelon")
    assert code == 0, said


def _give_files(material: Path, place: Place) -> None:
    """What the proofs need that say that nothing of it changes."""
    _copy(material, place)
    _runs(material, place)
    shutil.copy(material / "data.csv", place.given / "t.csv")
    os.symlink(place.given / "t.csv", place.given / "link.csv")


def _writes_only_outputs(material: Path, place: Place) -> None:
    model = place.out / "m.echelon"
    assert run("fit", place.given / "t.csv", *FIT, "--out", model)[0] == 0
    assert run("predict", model, place.given / "t.csv", "--out", place.out / "p.csv")[0] == 0
    assert run("evaluate", model, place.given / "t.csv", "--target", "y")[0] == 0
    assert sorted(path.name for path in place.out.iterdir()) == ["m.echelon", "p.csv"]


def _refuses_inputs_as_outputs(material: Path, place: Place) -> None:
    model, data = place.given / "m.echelon", place.given / "t.csv"
    for arguments in (
        ("fit", data, *FIT, "--out", data),
        ("fit", data, *FIT, "--out", place.given / "link.csv"),
        ("predict", model, data, "--out", model),
        ("predict", model, data, "--out", data),
        ("predict", model, data, "--out", place.given / "link.csv"),
        ("export", model, "--onnx", model),
    ):
        assert run(*arguments)[0] == 2, arguments


@contextmanager
def _full_disk(size: int) -> Iterator[None]:
    """No file can grow beyond some bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _keeps_the_old_file(material: Path, place: Place) -> None:
    model = _load(_copy(material, place))
    old = {name: place.out / name for name in ("m.echelon", "p.csv", "page.html")}
    for path in old.values():
        path.write_text("old")
    with _full_disk(100):
        assert refusal(lambda: model.save(old["m.echelon"]))
        code = run(
            "predict", place.given / "m.echelon", material / "data.csv", "--out", old["p.csv"]
        )[0]
        assert code in (1, 2)
        assert run("report", material / "runs", "--out", old["page.html"])[0] in (1, 2)
    assert {path.read_text() for path in old.values()} == {"old"}
    assert len(list(place.out.iterdir())) == len(old)


def _prints_no_control_characters(material: Path, place: Place) -> None:
    escape = "\x1b]0;x\x07\x1b[31m"
    text = (material / "data.csv").read_text()
    (place.given / "t.csv").write_text(
        text.replace("weight", f"we{escape}ight").replace("lo\n", f"lo{escape}\n")
    )
    (place.given / f"{escape}.csv").write_text(text)
    out = place.out / "p.csv"
    fit = ("fit", place.given / "t.csv", "--max-epochs", "1", "--device", "cpu", "--json")
    for arguments in (
        (*fit, "--target", "none", "--out", place.out / "m"),
        (*fit, "--target", "y", "--classes", "a,b", "--out", place.out / "m"),
        ("predict", material / "table.echelon", place.given / "t.csv", "--out", out),
        ("predict", place.given / f"{escape}.csv", place.given / "t.csv", "--out", out),
        ("fit", place.given / "t.csv", "--target", "y", "--max-epochs", "1", "--device", "cpu",
         "--out", place.out / "m.echelon"),
    ):  # fmt: skip
        _, printed, said = run(*arguments)
        assert "\x1b" not in printed + said
        assert "\x07" not in printed + said


_CODE = (
    ("timm", "checkpoint"), ("timm", "local folder"), ("timm", "pretrained from a file"),
    ("encoder", "no configuration, folder with code"), ("encoder", "local code of another type"),
    ("table", "import as method"),
)  # fmt: skip
_NETWORK = (
    ("timm", "name of the hub"), ("timm", "pretrained from an address"),
    ("encoder", "no configuration"), ("encoder", "timm inside"), ("text", "hub instead"),
)  # fmt: skip
_LARGE = (
    ("table", "wide"), ("text", "wide embedding"), ("image", "wide"), ("timm", "giant"),
    ("encoder", "many words"), ("tabm", "many members"),
)  # fmt: skip

# The sentences of SECURITY.md, in their order.
PROOFS: dict[str, Proof] = {
    "Opening a model runs no code from it, and none that it names.": _each(*_CODE),
    "Opening a model asks nothing of any network.": _each(*_NETWORK),
    "Opening a model opens no file but the one that is named, apart from those of installed "
    "packages.": _opens_one_file,
    "A model whose bytes have changed is refused.": _refuses_changes,
    "A checksum that fits is not trusted: a name that is not in a list, a shape that does not fit "
    "and a weight that is no number are refused.": _does_not_trust,
    "Opening a model, or refusing it, takes no more memory than its own weights and 1 GiB.":
        _each(*_LARGE),
    "A model that is open no longer depends on its file.": _depends_on_no_file,
    "A model may predict anything: its checksum tells damage, not who made it.": _predicts_anything,
    "A damaged checkpoint is set aside with a warning, and the fit begins anew.":
        _sets_damage_aside,
    "A checkpoint of other data or other settings is refused.": _refuses_other_runs,
    "A checkpoint is never opened as a pickle.": _opens_no_pickle,
    "A run whose files are not those that it was finished with is refused.": _refuses_changed_runs,
    "Arrays that hold pickled objects are refused.": _refuses_pickled_arrays,
    "Pipes and devices in a run folder are refused, not waited for.": _refuses_pipes,
    "A report writes the page that is named, and changes nothing in the folder of runs.":
        _writes_one_page,
    "A page asks nothing of any network.": _asks_no_network,
    "Names, labels and texts on a page are shown, and never run.": _shows_and_never_runs,
    "An image is read only as one of the formats that the documentation names, whatever its name "
    "ends in, and no other program is started for it.": _reads_few_formats,
    "An image that would take more memory than 1 GiB is refused.": _refuses_bombs,
    "A table is read as text and numbers, and never run.": _reads_tables_as_text,
    "A command writes to what is named as output, and to nothing else.": _writes_only_outputs,
    "An output that is also an input is refused.": _refuses_inputs_as_outputs,
    "A write that fails leaves the old file as it was.": _keeps_the_old_file,
    "Control characters of a file do not reach the terminal.": _prints_no_control_characters,
}  # fmt: skip

_CHANGE_NOTHING = (_writes_one_page, _writes_only_outputs, _refuses_inputs_as_outputs)


def proofs(material: Path) -> list[Case]:
    """A case for each sentence."""
    return [_case(material, sentence, proof) for sentence, proof in PROOFS.items()]


def _case(material: Path, sentence: str, proof: Proof) -> Case:
    def prepare(place: Place) -> None:
        if proof in _CHANGE_NOTHING:
            _give_files(material, place)

    makes = proof not in _CHANGE_NOTHING
    return Case(
        sentence, prepare, call=lambda place: proof(material, place), always=True, makes=makes
    )
