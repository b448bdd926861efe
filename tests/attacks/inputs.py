"""Attacks through tables: CSV and Parquet files of every odd kind, to fit on and to predict."""

import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.attacks.harness import Case, Place
from tests.attacks.material import table


def inputs(material: Path) -> list[Case]:
    """Every file is fitted on, predicted, and evaluated."""
    cases = []
    for name, (suffix, make) in _files().items():
        for action in ("fit", "predict", "evaluate"):
            cases.append(_case(material, name, suffix, make, action))
    return cases


def _case(material: Path, name: str, suffix: str, make: Any, action: str) -> Case:
    def prepare(place: Place) -> None:
        path = place.given / f"t{suffix}"
        made = make(path) if callable(make) else make
        if isinstance(made, str):
            made = made.encode()
        if isinstance(made, bytes):
            path.write_bytes(made)

    def command(place: Place) -> list[str]:
        data, out = str(place.given / f"t{suffix}"), str(place.out / "p.csv")
        model = str(material / "table.echelon")
        if action == "fit":
            return [
                "fit", data, "--target", "y", "--out", str(place.out / "m.echelon"),
                "--max-epochs", "1", "--device", "cpu", "--json",
                *(() if "label" in name else ("--classes", "lo,mid,hi")),
            ]  # fmt: skip
        if action == "predict":
            return ["predict", model, data, "--out", out, "--json"]
        return ["evaluate", model, data, "--target", "y", "--json"]

    always = name in ("fifo", "duplicate header", "ragged long", "parquet struct", "null bytes")
    whole = name in ("whole", "parquet whole")
    return Case(
        f"{action} {name}", prepare, command=command, whole=whole,
        always=whole or (always and action != "evaluate"),
    )  # fmt: skip


def _csv(change: Callable[[pd.DataFrame], Any]) -> Callable[[Path], str]:
    def make(path: Path) -> str:
        frame = table(30, 2)
        changed = change(frame)
        return (frame if changed is None else changed).to_csv(index=False)

    return make


def _parquet(change: Callable[[pd.DataFrame], Any]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        frame = table(30, 2)
        changed = change(frame)
        (frame if changed is None else changed).to_parquet(path)

    return make


def _column(name: str, values: Any) -> Callable[[pd.DataFrame], Any]:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        made = values(len(frame)) if callable(values) else [values] * len(frame)
        return frame.assign(**{name: pd.Series(made)})

    return change


def _cell(name: str, value: Any) -> Callable[[pd.DataFrame], Any]:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.astype({name: object})
        frame.loc[3, name] = value
        return frame

    return change


def _arrow(make: Callable[[Any, int], Any]) -> Callable[[Path], None]:
    """A Parquet file whose column `size` has a type of Arrow's."""

    def write(path: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        frame = pyarrow.Table.from_pandas(table(30, 2), preserve_index=False)
        frame = frame.set_column(0, "size", make(pyarrow, 30))
        pyarrow.parquet.write_table(frame, path)

    return write


def _whole() -> str:
    return table(30, 2).to_csv(index=False)


def _files() -> dict[str, tuple[str, Any]]:
    whole = _whole()
    lines = whole.splitlines(keepends=True)
    head, rest = lines[0], "".join(lines[1:])
    csv: dict[str, Any] = {
        "whole": whole,
        "empty": b"",
        "blank lines": "\n\n\n",
        "one byte": b"x",
        "header only": head,
        "one row": head + lines[1],
        "two rows": head + lines[1] + lines[2],
        "one class": _csv(_column("y", "lo")),
        "no header": rest,
        "duplicate header": whole.replace("weight", "size", 1),
        "duplicate target": whole.replace("weight", "y", 1),
        "header renamed as pandas does": whole.replace("weight", "size.1", 1),
        "empty header": ",,,\n" + rest,
        "header with a quote": 'si"ze,weight,kind,y\n' + rest,
        "ragged long": whole + "1,2,big,lo,more\n",
        "ragged short": whole + "1,2\n",
        "all rows longer": head + rest.replace("\n", ",9\n"),
        "open quote": whole + '"1,2,big,lo\n',
        "null bytes": whole.encode().replace(b"big", b"b\0g"),
        "only null bytes": b"\0" * 3000,
        "utf-16": whole.encode("utf-16"),
        "utf-32": whole.encode("utf-32"),
        "latin-1": whole.replace("big", "gro\xdf").encode("latin-1"),
        "byte order mark": b"\xef\xbb\xbf" + whole.encode(),
        "carriage returns": whole.replace("\n", "\r"),
        "windows lines": whole.replace("\n", "\r\n"),
        "semicolons": whole.replace(",", ";"),
        "tabs": whole.replace(",", "\t"),
        "gzip under csv": gzip.compress(whole.encode()),
        "zip magic": b"PK\x03\x04" + whole.encode(),
        "parquet under csv": lambda path: table(30, 2).to_parquet(path),
        "json": b'{"a": [1, 2, 3]}',
        "deep json": b"[" * 100_000 + b"]" * 100_000,
        "html": b"<html><script>alert(1)</script></html>",
        "pickle": b"cos\nsystem\n(S'true'\ntR.",
        "huge field": head + "1,2," + "x" * 5_000_000 + ",lo\n" + rest,
        "huge number": head + "9" * 5000 + ",2,big,lo\n" + rest,
        "many columns": lambda path: ",".join(f"c{i}" for i in range(3000)) + ",y\n" + (
            ("1," * 3000 + "lo\n") + ("2," * 3000 + "mid\n")
        ) * 5,
        "wide header only": ",".join(f"c{i}" for i in range(10_000)) + ",y\n",
        "infinities": _csv(_cell("size", "inf")),
        "all infinite": _csv(_column("size", np.inf)),
        "all missing": _csv(_column("size", np.nan)),
        "constant": _csv(_column("size", 1.0)),
        "subnormal": _csv(_column("size", lambda n: [5e-324] * (n - 1) + [1.0])),
        "large numbers": _csv(_column("size", lambda n: [1.7e308 * (-1) ** i for i in range(n)])),
        "long integers": _csv(_column("size", lambda n: [2**64 + i for i in range(n)])),
        "hexadecimal": _csv(_column("size", lambda n: [hex(i) for i in range(n)])),
        "one question mark": _csv(_cell("size", "?")),
        "dates": _csv(_column("size", lambda n: pd.date_range("2020", periods=n).astype(str))),
        "booleans": _csv(_column("kind", lambda n: [i % 2 == 0 for i in range(n)])),
        "mixed": _csv(_column("kind", lambda n: [1, "a", None, 2.5, True] * (n // 5))),
        "leading zeros": _csv(_column("kind", lambda n: ["01", "02", "A1"] * (n // 3))),
        "many categories": _csv(_column("kind", lambda n: [f"k{i}" for i in range(n)])),
        "escapes": _csv(_column("kind", "\x1b[31mred\x07")),
        "escapes in header": whole.replace("weight", "we\x1b[31might", 1),
        "escapes in labels": _csv(_column("y", lambda n: ["\x1b[31mlo", "mid", "hi"] * (n // 3))),
        "formulas": _csv(_column("kind", "=cmd|' /C calc'!A0")),
        "formula labels": _csv(_column("y", lambda n: ["=1+1", "@x", "-2"] * (n // 3))),
        "path labels": _csv(_column("y", lambda n: ["../a", "/etc/passwd", "b"] * (n // 3))),
        "direction marks": _csv(_column("kind", "\u202eabc")),
        "surrogates": whole.encode().replace(b"big", b"\xed\xa0\x80"),
        "labels missing": _csv(_cell("y", "")),
        "all labels missing": _csv(_column("y", "")),
        "labels NA": _csv(_column("y", lambda n: ["NA", "lo", "hi"] * (n // 3))),
        "numeric labels": _csv(_column("y", lambda n: [0.1, 0.30000000000000004, 0.3] * (n // 3))),
        "nan labels": _csv(_column("y", lambda n: ["nan", "inf", "-inf"] * (n // 3))),
        "large labels": _csv(_column("y", lambda n: [2**63, 2**63 + 1, 2**64 - 1] * (n // 3))),
        "as many labels as rows": _csv(_column("y", lambda n: list(range(n)))),
        "rows twice": _csv(lambda frame: pd.concat([frame, frame])),
        "all rows the same": _csv(lambda frame: pd.concat([frame[:1]] * 20)),
        "target alone": _csv(lambda frame: frame[["y"]]),
        "no target": _csv(lambda frame: frame.drop(columns="y")),
        "other columns": _csv(lambda frame: frame.rename(columns={"size": "other"})),
        "columns in another order": _csv(lambda frame: frame[["y", "kind", "weight", "size"]]),
    }  # fmt: skip
    parquet: dict[str, Any] = {
        "parquet whole": _parquet(lambda frame: None),
        "parquet empty": b"",
        "parquet magic": b"PAR1" + b"\0" * 100 + b"PAR1",
        "csv under parquet": whole,
        "parquet no rows": _parquet(lambda frame: frame[:0]),
        "parquet no columns": _parquet(lambda frame: frame[[]]),
        "parquet cut": lambda path: _cut_parquet(path, 0.5),
        "parquet cut at its end": lambda path: _cut_parquet(path, 0.99),
        "parquet all missing": _parquet(_column("size", lambda n: [None] * n)),
        "parquet bytes": _parquet(_column("kind", b"\xff\0")),
        "parquet lists": _parquet(_column("kind", lambda n: [[1, 2]] * n)),
        "parquet timestamps": _parquet(_column("size", lambda n: pd.date_range("2020", periods=n))),
        "parquet zones": _parquet(
            _column("size", lambda n: pd.date_range("2020", periods=n, tz="UTC"))
        ),
        "parquet categories": _parquet(lambda frame: frame.astype({"kind": "category"})),
        "parquet category labels": _parquet(lambda frame: frame.astype({"y": "category"})),
        "parquet integers with gaps": _parquet(lambda frame: frame.astype({"weight": "Int64"})),
        "parquet index": _parquet(lambda frame: frame.set_index("kind")),
        "parquet struct": _arrow(lambda a, n: a.array([{"x": i, "z": "a"} for i in range(n)])),
        "parquet map": _arrow(
            lambda a, n: a.array([[("a", 1)]] * n, type=a.map_(a.string(), a.int64()))
        ),
        "parquet decimals": _arrow(
            lambda a, n: a.array(list(range(n))).cast(a.decimal128(24, 2))
        ),
        "parquet days": _arrow(lambda a, n: a.array(list(range(n)), type=a.date32())),
        "parquet times": _arrow(lambda a, n: a.array(list(range(n)), type=a.time32("s"))),
        "parquet durations": _arrow(lambda a, n: a.array(list(range(n)), type=a.duration("s"))),
        "parquet nothing": _arrow(lambda a, n: a.nulls(n)),
        "parquet unsigned": _arrow(lambda a, n: a.array([2**64 - 1] * n, type=a.uint64())),
        "parquet half": _arrow(lambda a, n: a.array(np.ones(n, dtype=np.float16))),
        "parquet dictionary": _arrow(
            lambda a, n: a.array(["x", "z"] * (n // 2)).dictionary_encode()
        ),
    }  # fmt: skip
    no_files: dict[str, Any] = {
        "fifo": os.mkfifo,
        "folder": lambda path: path.mkdir(),
        "loop": lambda path: path.symlink_to(path),
        "link to zeros": lambda path: path.symlink_to("/dev/zero"),
        "link to nothing": lambda path: path.symlink_to("/no/such/file"),
        "not there": lambda path: None,
    }
    found = {name: (".csv", make) for name, make in csv.items()}
    found |= {name: (".parquet", make) for name, make in parquet.items()}
    found |= {name: (".csv", make) for name, make in no_files.items()}
    found |= {f"parquet {name}": (".parquet", make) for name, make in no_files.items()}
    for suffix in ("", ".txt", ".xlsx", ".json", ".csv.gz", ".PARQUET", ".pkl"):
        found[f"suffix {suffix or 'none'}"] = (suffix, whole)
    return found


def _cut_parquet(path: Path, share: float) -> bytes:
    buffer = io.BytesIO()
    table(30, 2).to_parquet(buffer)
    content = buffer.getvalue()
    return content[: int(len(content) * share)]
