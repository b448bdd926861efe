"""Attacks through run folders: files missing, damaged, resealed, or no files at all."""

import io
import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tests.attacks.harness import Case, Place
from tests.attacks.material import ODD_VALUES, nodes, replaced, reseal_run
from tests.attacks.models import DAMAGES

FILES = (
    "config.json", "environment.json", "history.json", "metrics.json", "outcome.json",
    "predictions.npz", "DONE",
)  # fmt: skip
_RUNS = ("corn-seed0", "constant")


def run_folders(material: Path) -> list[Case]:
    """Reports about every kind of damage, and comparisons that find it in their folder."""
    cases = [_case("as it was", material, lambda folder: reseal_run(folder / _RUNS[0]), whole=True)]
    for run in _RUNS:
        for file in FILES:
            cases += _no_files(material, run, file)
            cases += _damaged(material, run, file)
        cases += _resealed(material, run)
        cases += _odd_arrays(material, run)
        cases += _odd_seals(material, run)
    cases += _odd_folders(material)
    cases += _compared(material)
    return cases


def _case(
    title: str, material: Path, change: Callable[[Path], Any], always: bool = False,
    whole: bool = False,
) -> Case:  # fmt: skip
    def prepare(place: Place) -> None:
        shutil.copytree(material / "runs", place.given / "runs")
        change(place.given / "runs")

    def command(place: Place) -> list[str]:
        page = place.out / "page.html"
        return ["report", str(place.given / "runs"), "--out", str(page), "--json"]

    return Case(
        f"run {title}", prepare, command=command, check=_is_safe_page, always=always or whole,
        whole=whole,
    )  # fmt: skip


def _is_safe_page(place: Place, output: str) -> str | None:
    text = (place.out / "page.html").read_text(encoding="utf-8")
    for bait in ("<script>alert(1)", "http://127.0.0.1:9"):
        if bait in text.replace('href="http', "").split("<body", 1)[0] or "<script>alert" in text:
            return f"the page holds {bait}"
    return None


def _no_files(material: Path, run: str, file: str) -> Iterable[Case]:
    def in_place(make: Callable[[Path], Any]) -> Callable[[Path], Any]:
        def change(folder: Path) -> None:
            (folder / run / file).unlink()
            make(folder / run / file)

        return change

    kinds: dict[str, Callable[[Path], Any]] = {
        "gone": lambda path: None,
        "empty": lambda path: path.write_bytes(b""),
        "fifo": os.mkfifo,
        "folder": lambda path: path.mkdir(),
        "loop": lambda path: path.symlink_to(path),
        "link to zeros": lambda path: path.symlink_to("/dev/zero"),
        "link to nothing": lambda path: path.symlink_to("/no/such/file"),
        "link to a text": lambda path: path.symlink_to("/etc/passwd"),
    }
    for kind, make in kinds.items():
        always = (file, kind) in (("config.json", "fifo"), ("predictions.npz", "link to zeros"))
        yield _case(f"{run} {file} {kind}", material, in_place(make), always and run == _RUNS[0])


def _damaged(material: Path, run: str, file: str) -> Iterable[Case]:
    for damage in DAMAGES[:8]:
        for sealed in (False, True):

            def change(folder: Path, damage: Any = damage, sealed: bool = sealed) -> None:
                path = folder / run / file
                chance = random.Random(f"{run} {file} {damage.__name__} {sealed}")
                path.write_bytes(damage(path.read_bytes(), chance))
                if sealed and file != "DONE":
                    reseal_run(folder / run)

            seal = " resealed" if sealed else ""
            yield _case(f"{run} {file} {damage.__name__}{seal}", material, change)


def _resealed(material: Path, run: str) -> Iterable[Case]:
    chance = random.Random(f"resealed {run}")
    for file in FILES[:5]:
        document = json.loads((material / "runs" / run / file).read_text())
        pairs = [(keys, odd) for keys in nodes(document) for odd in ODD_VALUES]
        pairs += [((), odd) for odd in ODD_VALUES if odd != "removed"]
        number = {"config.json": 110, "metrics.json": 50, "history.json": 40}.get(file, 20)
        for keys, odd in chance.sample(pairs, min(number, len(pairs))):

            def change(
                folder: Path, file: str = file, document: Any = document, keys: Any = keys,
                odd: str = odd,
            ) -> None:  # fmt: skip
                value = ODD_VALUES[odd]
                changed = replaced(document, keys, value) if keys else value
                (folder / run / file).write_text(json.dumps(changed))
                reseal_run(folder / run)

            title = ".".join(map(str, keys)) or "all"
            yield _case(f"{run} {file} {title} = {odd}", material, change)


def _saved(value: Any, pickled: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(value), allow_pickle=pickled)
    return buffer.getvalue()


class Bait:
    """Leaves no mark, but is seen where it is opened."""

    def __reduce__(self) -> Any:
        return (os.getcwd, ())


def _forged_header(shape: str, kind: str = "<f4") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text = text.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def _odd_arrays(material: Path, run: str) -> Iterable[Case]:
    with np.load(material / "runs" / run / "predictions.npz") as opened:
        arrays = {name: opened[name] for name in opened.files}
    kinds: dict[str, Callable[[Any], Any]] = {
        "missing": lambda a: None,
        "shorter": lambda a: _saved(a[:-3]),
        "no rows": lambda a: _saved(a[:0]),
        "one number": lambda a: _saved(a.ravel()[0]),
        "one more axis": lambda a: _saved(a[..., None]),
        "nan": lambda a: _saved(np.full(a.shape, np.nan)),
        "infinite": lambda a: _saved(np.full(a.shape, np.inf)),
        "negative": lambda a: _saved(-abs(a.astype(float)) - 1),
        "large": lambda a: _saved(np.full(a.shape, 10**9)),
        "halves": lambda a: _saved(np.full(a.shape, 0.5)),
        "texts": lambda a: _saved(np.full(a.shape, "<script>alert(1)</script>")),
        "bytes": lambda a: _saved(np.full(a.shape, b"x")),
        "booleans": lambda a: _saved(np.ones(a.shape, dtype=bool)),
        "complex": lambda a: _saved(a.astype(complex)),
        "dates": lambda a: _saved(np.zeros(a.shape, dtype="datetime64[s]")),
        "records": lambda a: _saved(np.zeros(a.shape, dtype=[("a", "f4"), ("b", "i4")])),
        "pickled": lambda a: _saved(np.full(a.shape, Bait(), dtype=object), pickled=True),
        "forged shape": lambda a: _forged_header("(1000000000000,)"),
        "forged negative shape": lambda a: _forged_header("(-5,)"),
        "forged kind": lambda a: _forged_header("(5,)", "|O"),
        "forged header": lambda a: _forged_header("__import__('os').getcwd()"),
        "no array": lambda a: b"zyx",
    }
    for name in arrays:
        for kind, change_array in kinds.items():

            def change(folder: Path, name: str = name, make: Any = change_array) -> None:
                with zipfile.ZipFile(
                    folder / run / "predictions.npz", "w", zipfile.ZIP_DEFLATED
                ) as archive:
                    for other, array in arrays.items():
                        made = make(array) if other == name else _saved(array)
                        if made is not None:
                            archive.writestr(f"{other}.npy", made)
                reseal_run(folder / run)

            always = kind in ("pickled", "nan") and name == "probabilities" and run == _RUNS[0]
            yield _case(f"{run} array {name} {kind}", material, change, always)

    def bomb(folder: Path) -> None:
        with zipfile.ZipFile(
            folder / run / "predictions.npz", "w", zipfile.ZIP_DEFLATED
        ) as archive:
            for other, array in arrays.items():
                if other != "probabilities":
                    archive.writestr(f"{other}.npy", _saved(array))
            with archive.open("probabilities.npy", "w", force_zip64=True) as stream:
                stream.write(_forged_header(f"({2**28}, 3)"))
                for _ in range(3 * 2**10):
                    stream.write(b"\0" * 2**20)
        reseal_run(folder / run)

    yield _case(f"{run} array probabilities bomb", material, bomb)

    def traversing(folder: Path) -> None:
        with zipfile.ZipFile(folder / run / "predictions.npz", "a") as archive:
            archive.writestr("../../../../escaped.npy", _saved(np.zeros(3)))
            archive.writestr("/escaped.npy", _saved(np.zeros(3)))
        reseal_run(folder / run)

    yield _case(f"{run} array with paths", material, traversing)


def _odd_seals(material: Path, run: str) -> Iterable[Case]:
    for odd, value in ODD_VALUES.items():
        if odd == "removed":
            continue

        def change(folder: Path, value: Any = value) -> None:
            (folder / run / "DONE").write_text(json.dumps(value))

        yield _case(f"{run} DONE = {odd}", material, change)

        def change_one(folder: Path, value: Any = value) -> None:
            path = folder / run / "DONE"
            path.write_text(json.dumps({**json.loads(path.read_text()), "config.json": value}))

        yield _case(f"{run} DONE config.json = {odd}", material, change_one)


def _odd_folders(material: Path) -> Iterable[Case]:
    def alone(folder: Path) -> None:
        shutil.rmtree(folder / "constant")

    def none(folder: Path) -> None:
        shutil.rmtree(folder)
        folder.mkdir()

    def loop(folder: Path) -> None:
        (folder / "again").symlink_to(folder)

    def a_file(folder: Path) -> None:
        shutil.rmtree(folder)
        folder.write_text("x")

    def twice(folder: Path) -> None:
        shutil.copytree(folder / "corn-seed0", folder / "corn-again")

    def other_rows(folder: Path) -> None:
        path = folder / "constant" / "predictions.npz"
        with np.load(path) as opened:
            arrays = {name: opened[name][::-1] for name in opened.files}
        np.savez(path, **arrays)
        reseal_run(folder / "constant")

    def other_classes(folder: Path) -> None:
        path = folder / "constant" / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "classes": ["a", "b"]}))
        reseal_run(folder / "constant")

    def odd_name(folder: Path) -> None:
        (folder / "constant").rename(folder / "\x1b[31m<script>alert(1)</script>"[:20])

    def many_classes(folder: Path) -> None:
        for run in _RUNS:
            path = folder / run / "config.json"
            told = json.loads(path.read_text())
            path.write_text(json.dumps({**told, "classes": list(range(1_000_000))}))
            reseal_run(folder / run)

    def fifo_inside(folder: Path) -> None:
        os.mkfifo(folder / "constant" / "more")
        os.mkfifo(folder / "more")

    changes = {
        "one alone": alone, "none": none, "link to itself": loop, "a file": a_file,
        "one twice": twice, "other rows": other_rows, "other classes": other_classes,
        "an odd name": odd_name, "many classes": many_classes, "fifos beside": fifo_inside,
    }  # fmt: skip
    for title, change in changes.items():
        yield _case(f"folder {title}", material, change, always=title == "fifos beside")


def _compared(material: Path) -> Iterable[Case]:
    """A comparison goes on in a folder whose runs are damaged, and makes them anew."""
    kinds: dict[str, Callable[[Path], Any]] = {
        "gone": lambda path: path.unlink(),
        "empty": lambda path: path.write_bytes(b""),
        "fifo": lambda path: (path.unlink(), os.mkfifo(path)),
        "folder": lambda path: (path.unlink(), path.mkdir()),
        "loop": lambda path: (path.unlink(), path.symlink_to(path)),
    }
    for file in ("config.json", "predictions.npz", "DONE"):
        for kind, make in kinds.items():

            def prepare(place: Place, file: str = file, make: Any = make) -> None:
                from echelon.cli.main import app

                app(_compare(material, place), standalone_mode=False)
                folder = next(path.parent for path in (place.out / "runs").glob("c*/DONE"))
                make(folder / file)

            yield Case(
                f"run compared {file} {kind}",
                prepare,
                command=lambda place: _compare(material, place),
                starts=True,
            )


def _compare(material: Path, place: Place) -> list[str]:
    return [
        "compare", str(material / "data.csv"), "--target", "y", "--classes", "lo,mid,hi",
        "--methods", "ce", "--seeds", "1", "--max-epochs", "1", "--workers", "1", "--device",
        "cpu", "--out", str(place.out / "runs"), "--json",
    ]  # fmt: skip
