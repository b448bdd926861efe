"""Files of every format, encoding and compression, each as a program would write it."""

import bz2
import gzip
import io
import json
import lzma
import time
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from echelon.data import files
from echelon.data.files import expand_paths, lines_of, read_chunks, read_table
from echelon.data.formats import Reading, look_at, separator_of

FRAME = pd.DataFrame({"größe": ["1,5", "2,5", "3,5"], "note": ["a, b", "ü", 'say "x"\nand y']})


def written(sep: str = ",", encoding: str = "utf-8") -> bytes:
    return FRAME.to_csv(index=False, sep=sep).encode(encoding)


def same(path: Path, reading: Reading = Reading()) -> None:  # noqa: B008
    assert read_table(path, reading).to_dict("list") == FRAME.to_dict("list")


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_separator_and_encoding_are_found(tmp_path: Path, sep: str, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(written(sep, encoding))
    same(path)
    assert look_at(path).sep == sep


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compression_is_found_whatever_the_name(tmp_path: Path, pack) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(pack(written(";")))
    same(path)
    (tmp_path / "a.csv.gz").write_bytes(written())  # and what is not packed is read too
    same(tmp_path / "a.csv.gz")


def test_a_zip_file_of_one_table(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", written())
    same(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("a.csv", written())
        archive.writestr("b.csv", written())
    with pytest.raises(ValueError, match="holds 2 files, and one is read at a time"):
        read_table(tmp_path / "b.zip")


def test_a_letter_of_windows_behind_much_that_is_plain(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x\n" + b"abc\n" * 100_000 + "größe\n".encode("cp1252"))
    assert read_table(tmp_path / "a.csv")["x"].iloc[-1] == "größe"


def test_options_overrule_what_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("a;b\n1;ő\n".encode("cp1250"))
    assert read_table(tmp_path / "a.csv", Reading(encoding="cp1250"))["b"].tolist() == ["ő"]
    assert read_table(tmp_path / "a.csv", Reading(sep=",")).columns.tolist() == ["a;b"]
    (tmp_path / "a.tsv").write_text("a\tb\n1\t2\n")
    assert read_table(tmp_path / "a.tsv", Reading(sep="tab")).columns.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="leave out --encoding utf-8"):
        read_table(tmp_path / "a.csv", Reading(encoding="utf-8"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sep": ";;"}, "--sep must be one character"),
        ({"decimal": ";"}, "--decimal must be . or ,"),
        ({"encoding": "klingon"}, "--encoding must be the name of one"),
    ],
)
def test_options_that_mean_nothing(options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Reading(**options)


def test_excel(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"a": [1, 2], "b": [1.5, None], "c": ["x", None], "d": pd.to_datetime(["2024-01-01"] * 2)}
    )
    with pd.ExcelWriter(tmp_path / "a.xlsx") as writer:
        pd.DataFrame().to_excel(writer, sheet_name="empty")
        frame.to_excel(writer, sheet_name="data", index=False)
    found = read_table(tmp_path / "a.xlsx")
    assert found["a"].tolist() == [1, 2]
    assert found["b"].tolist()[0] == 1.5
    assert found["d"].dtype.kind == "M"
    assert [len(one) for one in read_chunks(tmp_path / "a.xlsx", 1)] == [1, 1]


def test_json_lines_and_lists(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": "x"}, {"a": 2.5}, {"a": None, "b": "ü"}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "a.json").write_text(json.dumps(rows, indent=1))
    (tmp_path / "a").write_text("\n".join(map(json.dumps, rows)))
    for name in ("a.jsonl", "a.json", "a"):
        found = read_table(tmp_path / name)
        assert found["a"].tolist() == [1, 2.5, None]
        assert found["b"].tolist() == ["x", None, "ü"]


def test_a_large_json_file_that_is_no_table_is_refused_at_once(tmp_path: Path) -> None:
    nested = {"rows": [{"a": i, "b": [1, 2, 3]} for i in range(25_000)]}
    path = tmp_path / "a.json"
    for content in (json.dumps(nested), json.dumps(nested, indent=1)):
        path.write_text(content)
        assert path.stat().st_size > 600_000
        began = time.process_time()
        with pytest.raises(ValueError, match=r"a\.json|holds lists"):
            files.typed_table(path)
        assert time.process_time() - began < 2


def test_feather_and_folders_of_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": list("wxyz")})
    frame.to_feather(tmp_path / "a.feather")
    assert read_table(tmp_path / "a.feather").to_dict("list") == frame.to_dict("list")
    for year in (2023, 2024):
        (tmp_path / "all" / f"year={year}").mkdir(parents=True)
        frame.to_parquet(tmp_path / "all" / f"year={year}" / "part.parquet")
    (tmp_path / "all" / "_SUCCESS").touch()
    found = read_table(tmp_path / "all")
    assert found["a"].tolist() == [1, 2, 3, 4] * 2
    assert found["year"].astype(int).tolist() == [2023] * 4 + [2024] * 4


def test_several_files_and_patterns(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("b;a\n4;3\n")
    for asked in (str(tmp_path / "*.csv"), [tmp_path / "1.csv", tmp_path / "2.csv"]):
        assert read_table(asked).to_dict("list") == {"a": ["1", "3"], "b": ["2", "4"]}
    (tmp_path / "3.csv").write_text("a,c\n1,2\n")
    with pytest.raises(ValueError, match=r"3\.csv lacks the column 'b'"):
        read_table(str(tmp_path / "*.csv"))
    with pytest.raises(ValueError, match="no file matches"):
        expand_paths(str(tmp_path / "*.tsv"))


def test_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_STANDARD_INPUT", [])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(written(";")))))
    assert read_table("-").to_dict("list") == FRAME.to_dict("list")
    assert [len(one) for one in read_chunks("-", 2)] == [2, 1]


def test_the_hint_for_spreadsheets_and_the_lines_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"sep=;\n" + written(";"))
    same(path)
    path.write_text('a,b\n1,"x\ny"\n\n2,z\n')
    assert lines_of(path, look_at(path), [1, 2]) == [2, 5]


def test_a_text_with_signs_in_its_cells_keeps_its_separator() -> None:
    assert separator_of('text,n\n"a; b; c",1\n"d; e",2\n') == ","
    assert separator_of("text\nhello; you\nand; me; too\n") == ","
