"""Attacks through checkpoints: a fit goes on from a damaged or forged one."""

import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.attacks.harness import Case, Place
from tests.attacks.material import (
    CHECKPOINT_KEY,
    FIT,
    ODD_VALUES,
    nodes,
    read_model,
    replaced,
    write_forged,
)
from tests.attacks.models import DAMAGES

_NAME = "checkpoint.safetensors"


def checkpoints(material: Path) -> list[Case]:
    """A damaged checkpoint leads to the same model or to a refusal; a forged one may change it."""
    cases = [_damaged(material, damage, number) for damage in DAMAGES for number in range(25)]
    cases.append(_case("as it was", material, _resealed(material), same=True, whole=True))
    cases += _forged(material)
    cases += _no_files(material)
    return cases


def _case(
    title: str, material: Path, make: Callable[[Path], Any], same: bool, always: bool = False,
    whole: bool = False,
) -> Case:  # fmt: skip
    def prepare(place: Place) -> None:
        folder = place.out / "m.echelon.checkpoints"
        folder.mkdir()
        make(folder / _NAME)

    def command(place: Place) -> list[str]:
        out = str(place.out / "m.echelon")
        return ["fit", str(material / "fit.csv"), *FIT, "--resume", "--out", out]

    def check(place: Place, output: str) -> str | None:
        if (place.out / "m.echelon").read_bytes() == (material / "finished.echelon").read_bytes():
            return None
        return "another model than that of the whole checkpoint"

    return Case(
        f"checkpoint {title}", prepare, command=command, check=check if same else None,
        always=always or whole, whole=whole,
    )  # fmt: skip


def _resealed(material: Path) -> Callable[[Path], Any]:
    def make(path: Path) -> None:
        write_forged(path, *read_model(material / _NAME), CHECKPOINT_KEY)

    return make


def _damaged(material: Path, damage: Any, number: int) -> Case:
    def make(path: Path) -> None:
        chance = random.Random(f"checkpoint {damage.__name__} {number}")
        path.write_bytes(damage((material / _NAME).read_bytes(), chance))

    return _case(f"{damage.__name__} {number}", material, make, same=True)


def _forged(material: Path) -> Iterable[Case]:
    import torch

    tensors, document = read_model(material / _NAME)
    chance = random.Random("forged checkpoints")
    pairs = [(keys, odd) for keys in nodes(document) for odd in ODD_VALUES]
    for keys, odd in chance.sample(pairs, min(150, len(pairs))):

        def make(path: Path, keys: Any = keys, odd: str = odd) -> None:
            tensors, document = read_model(material / _NAME)
            write_forged(path, tensors, replaced(document, keys, ODD_VALUES[odd]), CHECKPOINT_KEY)

        yield _case(f"{'.'.join(map(str, keys))} = {odd}", material, make, same=False)
    changes: dict[str, Any] = {
        "missing": None,
        "longer": lambda v: torch.cat([v.reshape(-1), v.reshape(-1)]),
        "none": lambda v: v.reshape(-1)[:0],
        "other type": lambda v: v.to(torch.int16),
        "nan": lambda v: torch.full_like(v.float(), float("nan")),
    }
    groups: dict[str, list[str]] = {}
    for name in sorted(tensors):
        groups.setdefault(name.split(".")[0], []).append(name)
    for group, names in groups.items():
        for name in chance.sample(names, min(2, len(names))):
            for odd, change in changes.items():

                def make_tensor(path: Path, name: str = name, change: Any = change) -> None:
                    tensors, document = read_model(material / _NAME)
                    old = tensors.pop(name)
                    if change is not None:
                        tensors[name] = change(old)
                    write_forged(path, tensors, document, CHECKPOINT_KEY)

                always = odd == "none" and group in ("random", "optimiser")
                yield _case(f"tensor {name} {odd}", material, make_tensor, False, always)


def _no_files(material: Path) -> Iterable[Case]:
    kinds: dict[str, Callable[[Path], Any]] = {
        "fifo": os.mkfifo,
        "folder": lambda path: path.mkdir(),
        "loop": lambda path: path.symlink_to(path),
        "link to zeros": lambda path: path.symlink_to("/dev/zero"),
        "link to nothing": lambda path: path.symlink_to("/no/such/file"),
        "a model": lambda path: path.write_bytes((material / "table.echelon").read_bytes()),
        "empty": lambda path: path.write_bytes(b""),
        "a pickle": lambda path: path.write_bytes(b"cos\nsystem\n(S'true'\ntR."),
    }
    for kind, make in kinds.items():
        yield _case(kind, material, make, same=False, always=kind in ("fifo", "a pickle"))
