"""Tables in files."""

import gzip
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from echelon.data.files import _header, read_chunks, read_table, typed_table


def test_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({name: [1, 2, 3, 4] for name in "abcdef"})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        assert read_table(tmp_path / name).shape == (4, 6)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"x,y\n", "has a header but no rows"),
        ("a.csv", b"x,y\n1,2\n1,2,3,4\n", "not a readable CSV.*line 3 has 4"),
        ("a.csv", b"x,y\n1,2,3\n1,2,3\n", "not a readable CSV.*line 2 has 3"),
        ("a.csv", b'x,y\n1,2\n\n"1\n1",2\n3\n', "not a readable CSV.*line 6 has 1"),
        ("a.csv", b"x,y\n1,2,\n", "line 2 has 3; put quotes around cells that hold a comma"),
        ("a.csv", b'x,y\n1,"2\n', "not a readable CSV"),
        ("a.csv", b"\nx,y,x\n1,2,1\n", "line 2: .*'x' is the name of the columns 1 and 3"),
        ("a.csv.gz", gzip.compress(b"x,y\n1,2\n" * 99, mtime=0)[:-20], "not a readable CSV"),
        ("a.csv", b"x\n\xff\x81\n", "neither UTF-8 nor cp1252 .*--encoding"),
        ("a.csv", b"x,y\n1,\x002\n", "is no text"),
        ("a.csv", b"x;y;z\n1;2\n", "it was read with semicolons"),
        ("a.xls", b"\xd0\xcf\x11\xe0rubbish", "save it as .xlsx or CSV"),
        ("a.xlsx", b"rubbish", "not a readable Excel"),
        ("a.feather", b"ARROW1rubbish", "not a readable Feather"),
        ("a.jsonl", b'{"a": 1}\nrubbish\n', "JSON lines.*line 2"),
        ("a.json", b"[1, 2]", "an object for each row"),
        ("a.json", b'{"a": [1, 2', "not a readable file of JSON lines"),
        ("a.parquet", b"PAR1 rubbish", "not a readable Parquet"),
        (None, b"", "there is no file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name, content, message: str) -> None:
    path = tmp_path / (name or "missing.csv")
    if name:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_table(path)


def test_every_cell_of_a_csv_file_is_a_string(tmp_path: Path) -> None:
    text = 'code,"a ""b"""\n007,"x,\n1"\n\n,NA\n'
    (tmp_path / "a.csv").write_text(text, encoding="utf-8-sig")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.csv", "a.csv.gz"):
        found = read_table(tmp_path / name)
        assert found.to_dict("list") == {"code": ["007", ""], 'a "b"': ["x,\n1", "NA"]}


def test_a_long_cell_is_a_cell(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\n" + "word " * 100_000 + "\n")
    assert len(read_table(tmp_path / "a.csv").iloc[0, 0]) == 500_000


def test_a_column_without_a_name_gets_one(tmp_path: Path) -> None:
    pd.DataFrame({"x": [5]}, index=["a"]).to_csv(tmp_path / "a.csv")
    assert read_table(tmp_path / "a.csv").columns.tolist() == ["Unnamed: 0", "x"]


def test_chunks_are_the_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.arange(10), "b": list("abcdefghij")})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        for rows in (1, 3, 5, 10, 11):
            chunks = list(read_chunks(tmp_path / name, rows))
            assert [len(chunk) for chunk in chunks[:-1]] == [rows] * (len(chunks) - 1)
            whole = pd.concat(chunks).reset_index(drop=True)
            assert whole.astype(str).to_dict("list") == frame.astype(str).to_dict("list")


def test_files_without_rows(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0], "b": ["x"]}).head(0)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name, heading in (("a.csv", "a header"), ("a.parquet", "columns")):
        (empty,) = read_chunks(tmp_path / name)
        assert (len(empty), empty.columns.tolist()) == (0, ["a", "b"])
        with pytest.raises(ValueError, match=f"{name} has {heading} but no rows"):
            read_table(tmp_path / name)


def test_columns_of_one_name_in_parquet(tmp_path: Path) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="several are named 'a'; rename or remove one"):
        read_table(tmp_path / "a.parquet")


def test_whole_numbers_beside_missing_ones_keep_their_digits(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [2**62 + 1, None]}), tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet")["id"].tolist() == [2**62 + 1, None]


def test_a_typed_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "number,day,code,note,text\n" + "1.5,2020-01-01,01,low,5\n" * 10 + "?,,A1,high,6\n"
    )
    with pytest.warns(UserWarning, match=r"column 'number' holds numbers, and 1 of its cells"):
        found = typed_table(tmp_path / "a.csv", apart=["text"])
    assert [found[name].dtype.kind for name in found] == ["f", "M", "O", "O", "O"]
    assert found["number"].isna().sum() == found["day"].isna().sum() == 1
    assert (found["code"].iloc[0], found["text"].iloc[0]) == ("01", "5")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        typed_table(tmp_path / "a.csv", apart=["number"])


def test_a_folder_of_images(tmp_path) -> None:
    for name in ("2/b.png", "10/a.JPG", "10/.hidden.png", ".git/c.png", "10/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = read_table(tmp_path)
    assert found.to_dict("list") == {"image": ["10/a.JPG", "2/b.png"], "class": [10, 2]}
    (tmp_path / "10" / "a.JPG").rename(tmp_path / "stray.png")
    with pytest.raises(ValueError, match=r"beside the folders of the classes, such as stray\.png"):
        read_table(tmp_path)
    (tmp_path / "2" / "b.png").unlink()
    assert read_table(tmp_path).columns.tolist() == ["image"]
    (tmp_path / "stray.png").unlink()
    with pytest.raises(ValueError, match=r"holds no images; their names must end in one of \.jpg"):
        read_table(tmp_path)


def test_a_header_of_very_many_names_is_checked_at_once() -> None:
    names = [f"c{i}" for i in range(50_000)]
    began = time.process_time()
    assert _header(Path("a.csv"), names) == names
    assert time.process_time() - began < 2
