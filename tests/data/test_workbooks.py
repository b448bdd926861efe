"""Excel as people have it: several sheets, titles above the table, cells beside it."""

from pathlib import Path

import pytest

from echelon.data.files import read_chunks, read_table
from echelon.data.formats import Reading
from echelon.data.workbooks import sheet_chunks, sheet_in_words

openpyxl = pytest.importorskip("openpyxl")


def book(path: Path, **sheets: list[list]) -> Path:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for title, lines in sheets.items():
        sheet = made.create_sheet(title)
        for line in lines:
            sheet.append(line)
    made.save(path / "a.xlsx")
    return path / "a.xlsx"


DATA = [["size", "grade"], [1.5, 1], [2.5, 2], [None, 3]]


def test_a_sheet_is_chosen_by_name_or_number(tmp_path: Path) -> None:
    path = book(tmp_path, Notes=[["made by", "us"]], Data=DATA, Empty=[])
    assert [*read_table(path, Reading(sheet="Data")).columns] == ["size", "grade"]
    assert len(read_table(path, Reading(sheet=" data"))) == 3
    assert len(read_table(path, Reading(sheet="2"))) == 3
    with pytest.raises(ValueError, match="has columns but no rows"):  # the first one is read
        read_table(path)
    assert sheet_in_words(path) == "the sheet 'Notes'; --sheet names another: 'Data'"
    assert sheet_in_words(path, "2") == "the sheet 'Data'; --sheet names another: 'Notes'"
    for wrong in ("Sheet1", "4", "0"):
        with pytest.raises(ValueError, match="number from 1 to 3, or one of 'Notes', 'Data', 'Em"):
            read_table(path, Reading(sheet=wrong))
    with pytest.raises(ValueError, match=r"the sheet 'Empty' of .* is empty"):
        read_table(path, Reading(sheet="Empty"))


def test_a_single_filled_sheet_needs_no_words(tmp_path: Path) -> None:
    assert sheet_in_words(book(tmp_path, Empty=[], Data=DATA)) == ""
    assert len(read_table(tmp_path / "a.xlsx")) == 3
    assert [len(one) for one in read_chunks(tmp_path / "a.xlsx", 2)] == [2, 1]


def test_a_title_above_the_table_is_passed_over(tmp_path: Path) -> None:
    path = book(tmp_path, Data=[["Survey of 2024"], [], [None, "by us"], *DATA])
    (found,) = sheet_chunks(path, None, 100)
    assert found["grade"].tolist() == [1, 2, 3]


def test_a_table_of_one_column_has_no_title(tmp_path: Path) -> None:
    path = book(tmp_path, Data=[["grade"], [1], [2]])
    (found,) = sheet_chunks(path, None, 100)
    assert found["grade"].tolist() == [1, 2]


def test_no_cell_is_left_out_in_silence(tmp_path: Path) -> None:
    path = book(tmp_path, Data=[*DATA, [4.5, 1, None, "see above"]])
    with pytest.raises(ValueError, match=r"row 5 has a cell behind the 2 columns .* remove what"):
        read_table(path)


def test_columns_of_one_name_are_refused_with_their_row(tmp_path: Path) -> None:
    path = book(tmp_path, Data=[["A title"], ["a", "a"], [1, 2]])
    with pytest.raises(ValueError, match="row 2: every column needs a name of its own"):
        read_table(path)


def test_a_sheet_of_what_is_no_workbook(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(
        ValueError, match=r"--sheet is for Excel and MedMNIST files, and .*a\.csv is none"
    ):
        read_table(tmp_path / "a.csv", Reading(sheet="1"))
