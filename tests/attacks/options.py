"""Attacks through options: every option of every command with values that it does not expect.

The options are those that the program has, so that a new one is attacked from its first day.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import typer

from tests.attacks.harness import Case, Place

_NUMBERS = ("-1", "0", "1.5", "", "zyx", "99999999999999999999", "nan", "1e3", "٣")
_SHARES = ("nan", "inf", "-inf", "-1", "0", "1", "2", "1e308", "1e-308", "", "zyx")
_WORDS = (
    "", " ", "zyx", ",", "size,size", "../../x", "/dev/null", "-", "\x1b[31mred", "x" * 5000,
    "$(touch ran)", "; touch ran", "hf:someone/network", "timm:hf-hub:someone/network",
    "http://127.0.0.1:9/x", "\u202e", "size=1:2", "%s%n", "y",
)  # fmt: skip
_PATHS: tuple[str, ...] = (
    "", " ", "zyx/zyx/zyx", "/dev/full", "x" * 300, "given:folder", "given:link",
    "given:loop", "given:input", "given:model", "given:read-only/x", "a\x1b[31mb",
    "/dev/null", "p.parquet", "p.xlsx",
)  # fmt: skip
# What takes long or starts processes, tried with few values.
_FEW = {
    "devices": ("0", "-1", "zyx"),
    "workers": ("0", "-1", "zyx", "99999999999999999999"),
    "cluster": ("", "zyx:1:2"),
}


_NEVER_WHOLE = ("align", "serve")  # one needs a file of others, and one goes on until it is ended


@dataclass(frozen=True)
class _Option:
    """An option or an argument of a command, as its function declares it."""

    name: str
    flag: str | None  # None for an argument
    kind: type

    @classmethod
    def of(cls, name: str, hint: Any) -> "_Option":
        declared, told = get_args(hint)
        kind = next((one for one in get_args(declared) if one is not NoneType), declared)
        if isinstance(told, typer.models.ArgumentInfo):
            return cls(name, None, kind)
        said = (told.default, *(told.param_decls or ()))
        flags = [one for one in said if isinstance(one, str) and one.startswith("--")]
        return cls(name, flags[0] if flags else f"--{name.replace('_', '-')}", kind)


def _commands() -> dict[str, list[_Option]]:
    from echelon.cli.main import app

    found = {}
    for command in app.registered_commands:
        assert command.callback is not None
        hints = get_type_hints(command.callback, include_extras=True)
        hints.pop("return")
        name = command.name or command.callback.__name__
        found[name] = [_Option.of(one, hint) for one, hint in hints.items()]
    return dict(sorted(found.items()))


def options(material: Path) -> list[Case]:
    """All values of all options and arguments; none of them, and one that there is not."""
    cases: list[Case] = []
    for name, known in _commands().items():
        for option in known:
            cases += [_case(material, name, option, known, value) for value in _values(option)]
        as_json = next(one for one in known if one.name == "as_json")
        if name not in _NEVER_WHOLE:
            cases.append(_case(material, name, as_json, known, "", whole=True))
        for title, more in (("alone", ()), ("unknown", ("--no-such-option", "1"))):
            line = [name, *more]
            cases.append(Case(f"option {name} {title}", command=lambda place, line=line: line))
    return cases


def _values(option: _Option) -> tuple[str, ...]:
    if option.name in _FEW:
        return _FEW[option.name]
    # A pipe waits for its reader, as all programs do; one to be read from must be refused.
    paths = _PATHS if option.name in _OUTPUTS else (*_PATHS, "given:fifo", "/proc/self/mem")
    by_kind = {bool: ("",), int: _NUMBERS, float: _SHARES, Path: paths}
    return by_kind.get(option.kind, _WORDS)


def _case(
    material: Path, name: str, option: _Option, known: list[_Option], value: str,
    whole: bool = False,
) -> Case:  # fmt: skip
    def command(place: Place) -> list[str]:
        return _command_line(place, name, option, known, _placed(place, name, value))

    def named(place: Place) -> Path | None:
        """An output is named by its option, unless it is also an input."""
        if option.name in _OUTPUTS and not value:
            return place.out  # no name is that of the working folder
        if option.name not in _OUTPUTS or value == "given:input":
            return place.given / "runs" if option.name == "charts" else None  # beside the runs
        if value == "given:model" and name in ("predict", "evaluate", "explain", "export"):
            return None
        path = Path(_placed(place, name, value))
        return path if value == "given:loop" else path.resolve()

    return Case(
        f"option {name} {'as it is' if whole else f'{option.name} = {value[:40]!r}'}",
        lambda place: _prepare(material, place),
        command=command,
        starts=option.name in ("devices", "workers", "cluster"),
        always=(whole and name != "export") or (option.name, value) in _ALWAYS,
        named=named,
        whole=whole,
    )


_OUTPUTS = ("out", "onnx", "charts")
_ALWAYS = {("seeds", "99999999999999999999"), ("out", "given:link"), ("out", "given:input")}


def _prepare(material: Path, place: Place) -> None:
    for name in ("data.csv", "table.csv", "table.echelon", "image.csv"):
        shutil.copy(material / name, place.given / name)
    (place.given / "folder").mkdir()
    (place.given / "folder" / "kept.txt").write_text("kept")
    (place.given / "target.txt").write_text("kept")
    (place.given / "link").symlink_to(place.given / "target.txt")
    (place.given / "loop").symlink_to(place.given / "loop")
    os.mkfifo(place.given / "fifo")
    read_only = place.given / "read-only"
    read_only.mkdir()
    read_only.chmod(0o500)
    grid = (
        f'data = "{place.given / "data.csv"}"', 'methods = ["ce"]', 'target = "y"',
        'classes = ["lo", "mid", "hi"]', "test_seeds = 0", "[grid]", "settings.max_epochs = [1]",
    )  # fmt: skip
    (place.given / "grid.toml").write_text("\n".join(grid) + "\n")
    shutil.copytree(material / "runs", place.given / "runs")


def _placed(place: Place, command: str, value: str) -> str:
    inputs = {"predict": "table.csv", "report": "runs", "grid": "grid.toml"}
    names = {"input": inputs.get(command, "data.csv"), "model": "table.echelon"}
    if value.startswith("given:"):
        name = value.removeprefix("given:")
        return str(place.given / names.get(name, name))
    return value


def _command_line(
    place: Place, name: str, option: _Option, known: list[_Option], value: str
) -> list[str]:
    """A command that would work, but for one value."""
    given, out = place.given, place.out
    positional, named = {
        "fit": (
            {"data": given / "data.csv"},
            {"target": "y", "out": out / "m.echelon", "max_epochs": 1, "device": "cpu",
             "classes": "lo,mid,hi"},
        ),
        "predict": (
            {"model": given / "table.echelon", "data": given / "table.csv"},
            {"out": out / "p.csv"},
        ),
        "evaluate": (
            {"model": given / "table.echelon", "data": given / "data.csv"}, {"target": "y"}
        ),
        "check": ({"data": given / "data.csv"}, {"target": "y", "classes": "lo,mid,hi"}),
        "explain": (
            {"model": given / "table.echelon", "data": given / "data.csv"},
            {"target": "y", "rows": 0, "repeats": 1},
        ),
        "drift": ({"model": given / "table.echelon", "data": given / "data.csv"}, {}),
        "serve": ({"model": given / "table.echelon"}, {"token_file": given / "no-token"}),
        "tune": (
            {"data": given / "data.csv"},
            {"target": "y", "classes": "lo,mid,hi", "out": out / "search", "trials": 1,
             "workers": 1},
        ),
        "info": ({"model": given / "table.echelon"}, {}),
        "export": ({"model": given / "table.echelon"}, {"onnx": out / "m.onnx"}),
        "compare": (
            {"data": given / "data.csv"},
            {"target": "y", "out": out / "runs", "methods": "ce", "seeds": 1, "max_epochs": 1,
             "workers": 1, "device": "cpu", "classes": "lo,mid,hi", "dry_run": ""},
        ),
        "align": (
            {"folder": given / "folder"}, {"predictor": given / "data.csv", "out": out / "aligned"}
        ),
        "grid": ({"config": given / "grid.toml"}, {"out": out / "runs", "dry_run": ""}),
        "report": ({"folder": given / "runs"}, {"out": out / "page.html"}),
        "reproduce": (
            {"dataset": "fireman"},
            {"out": out / "runs", "methods": "ce", "seeds": 1, "max_epochs": 1, "dry_run": ""},
        ),
    }.get(name, ({}, {}))  # fmt: skip
    if option.name in ("cluster", "workers"):  # which a dry run does not use
        named.pop("dry_run", None)
    told = {**positional, **named, "as_json": "", option.name: value}
    line = [name]
    for one in known:
        if one.name not in told:
            continue
        said = [] if one.kind is bool else [str(told[one.name])]
        line += said if one.flag is None else [one.flag, *said]
    return line
