"""Attacks through options: every option of every command with values that it does not expect.

The options are those that the program has, so that a new one is attacked from its first day.
"""

import shutil
from pathlib import Path
from typing import Any

from tests.attacks.harness import Case, Place

_NUMBERS = ("-1", "0", "1.5", "", "zyx", "99999999999999999999", "nan", "1e3", "٣")
_SHARES = ("nan", "inf", "-inf", "-1", "0", "1", "2", "1e308", "1e-308", "", "zyx")
_WORDS = (
    "", " ", "zyx", ",", "size,size", "../../x", "/dev/null", "-", "\x1b[31mred", "x" * 5000,
    "$(touch ran)", "; touch ran", "hf:someone/network", "timm:hf-hub:someone/network",
    "http://127.0.0.1:9/x", "\u202e", "size=1:2", "%s%n", "y",
)  # fmt: skip
_PATHS = (
    "", " ", "zyx/zyx/zyx", "/dev/full", "/proc/self/mem", "x" * 300, "given:folder", "given:link",
    "given:loop", "given:fifo", "given:input", "given:model", "given:read-only/x", "a\x1b[31mb",
    "/dev/null", "p.parquet", "p.xlsx",
)  # fmt: skip
# What takes long or starts processes, tried with few values.
_FEW = {
    "devices": ("0", "-1", "zyx"),
    "workers": ("0", "-1", "zyx", "99999999999999999999"),
    "cluster": ("", "zyx:1:2"),
}


def options(material: Path) -> list[Case]:
    """All values of all options; and the arguments, of which a command needs some."""
    import typer

    from echelon.cli.main import app

    cases: list[Case] = []
    for name, command in sorted(typer.main.get_command(app).commands.items()):  # type: ignore[attr-defined]
        for option in command.params:
            if option.name in ("help",):
                continue
            for value in _values(option):
                cases.append(_case(material, name, option, value))
        cases.append(Case(f"option {name} alone", command=lambda place, name=name: [name]))
        cases.append(
            Case(
                f"option {name} unknown",
                command=lambda place, name=name: [name, "--no-such-option", "1"],
            )
        )
    return cases


def _values(option: Any) -> tuple[str, ...]:
    if option.name in _FEW:
        return _FEW[option.name]
    kind = option.type.name
    if kind == "boolean":
        return ("",)
    if kind == "integer":
        return _NUMBERS
    if kind == "float":
        return _SHARES
    return _PATHS if kind in ("path", "file", "directory") else _WORDS


def _case(material: Path, name: str, option: Any, value: str) -> Case:
    def command(place: Place) -> list[str]:
        return _command_line(material, place, name, option, _placed(place, value))

    return Case(
        f"option {name} {option.name} = {value[:40]!r}",
        lambda place: _prepare(material, place),
        command=command,
        starts=option.name in ("devices", "workers", "cluster"),
        always=(option.name, value) in _ALWAYS,
    )


_ALWAYS = {("seeds", "99999999999999999999"), ("out", "given:link"), ("out", "given:input")}


def _prepare(material: Path, place: Place) -> None:
    for name in ("data.csv", "table.csv", "table.echelon", "image.csv"):
        shutil.copy(material / name, place.given / name)
    (place.given / "folder").mkdir()
    (place.given / "folder" / "kept.txt").write_text("kept")
    (place.given / "target.txt").write_text("kept")
    (place.given / "link").symlink_to(place.given / "target.txt")
    (place.given / "loop").symlink_to(place.given / "loop")
    read_only = place.given / "read-only"
    read_only.mkdir()
    read_only.chmod(0o500)
    grid = 'methods = ["ce"]\ntarget = "y"\ntest_seeds = 0\n[grid]\nmax_epochs = [1]\n'
    data = f'data = "{place.given / "data.csv"}"\n'
    (place.given / "grid.toml").write_text(data + grid)
    shutil.copytree(material / "runs", place.given / "runs")


def _placed(place: Place, value: str) -> str:
    names = {"input": "data.csv", "model": "table.echelon"}
    if value.startswith("given:"):
        name = value.removeprefix("given:")
        return str(place.given / names.get(name, name))
    return value


def _command_line(material: Path, place: Place, name: str, option: Any, value: str) -> list[str]:
    given, out = place.given, place.out
    positional, named = {
        "fit": (
            {"data": given / "data.csv"},
            {"target": "y", "out": out / "m.echelon", "max_epochs": 1, "device": "cpu"},
        ),
        "predict": (
            {"model": given / "table.echelon", "data": given / "table.csv"},
            {"out": out / "p.csv"},
        ),
        "evaluate": (
            {"model": given / "table.echelon", "data": given / "data.csv"}, {"target": "y"}
        ),
        "export": ({"model": given / "table.echelon"}, {"onnx": out / "m.onnx"}),
        "compare": (
            {"data": given / "data.csv"},
            {"target": "y", "out": out / "runs", "methods": "ce", "seeds": 1, "max_epochs": 1,
             "workers": 1, "device": "cpu", "dry_run": ""},
        ),
        "grid": ({"config": given / "grid.toml"}, {"out": out / "runs", "dry_run": ""}),
        "report": ({"folder": given / "runs"}, {"out": out / "page.html"}),
        "reproduce": (
            {"dataset": "fireman"},
            {"out": out / "runs", "methods": "ce", "seeds": 1, "max_epochs": 1, "dry_run": ""},
        ),
    }.get(name, ({}, {}))  # fmt: skip
    if name == "export" and option.name == "onnx":
        pass
    if option.name in ("cluster", "workers"):
        named.pop("dry_run", None)
    flags = {"as_json": ""}
    words = {**positional, option.name: value} if option.param_type_name == "argument" else (
        dict(positional)
    )  # fmt: skip
    line = [name, *(str(one) for one in words.values())]
    chosen = {**named, **flags}
    if option.param_type_name != "argument":
        chosen[option.name] = value
    for one, told in chosen.items():
        flag = "--json" if one == "as_json" else f"--{one.replace('_', '-')}"
        if one == option.name and option.param_type_name != "argument":
            flag = option.opts[-1]
        is_flag = told == "" and (one in ("dry_run", "as_json") or option.type.name == "boolean")
        line += [flag] if is_flag else [flag, str(told)]
    return line
