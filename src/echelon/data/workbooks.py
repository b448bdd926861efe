"""Tables in workbooks of Excel: which sheet is read, where its header stands, and its rows.

Invariant: no cell is left out in silence. What stands above the header (a title in one cell) is
passed over, and a cell beside the table is refused.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pandas as pd

from echelon.extras import require

_LOOKED_AT = 20  # rows in which the header is looked for

Line = tuple[int, tuple[Any, ...]]  # its number in the sheet, and its cells


def sheet_chunks(
    path: Path, sheet: str | None, rows: int, name: str = ""
) -> Iterator[pd.DataFrame]:
    """The rows of a sheet as frames of at most so many rows; one without rows gives an empty one.

    Parameters
    ----------
    path : Path
    sheet : str, optional
        The name of the sheet, or its number from 1 on. Without it, the first that is not empty.
    rows : int
    name : str
        The file as messages name it.
    """
    name = name or str(path)
    book = _opened(path, name)
    try:
        chosen = _chosen(book, sheet, name)
        header, lines = _header(chosen)
        if header is None:
            what = name if sheet is None else f"the sheet {chosen.title!r} of {name}"
            raise ValueError(f"{what} is empty; a header and at least one row are needed")
        names = _names(header, name)
        taken = 0
        while True:
            some = [_cells(line, len(names), chosen.title, name) for line in islice(lines, rows)]
            if not some and taken:
                return
            columns = zip(*some, strict=True) if some else [()] * len(names)
            yield pd.DataFrame(
                {
                    column: pd.Series(cells, dtype=object).infer_objects()
                    for column, cells in zip(names, columns, strict=True)
                }
            )
            taken += len(some)
            if len(some) < rows:
                return
    finally:
        book.close()


def sheet_in_words(path: Path, sheet: str | None = None) -> str:
    """Which of several filled sheets of a workbook is read; "" where there is only one."""
    book = _opened(path, str(path))
    try:
        filled = [page.title for page in book.worksheets if _header(page)[0] is not None]
        if len(filled) < 2:
            return ""
        others = [repr(title) for title in filled if title != _chosen(book, sheet, "").title]
        return (
            f"the sheet {_chosen(book, sheet, '').title!r}; --sheet names another: "
            f"{', '.join(others[:5])}{', ..' * (len(others) > 5)}"
        )
    finally:
        book.close()


def _opened(path: Path, name: str) -> Any:
    openpyxl = require("openpyxl", "Excel files")
    try:
        return openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    except Exception as error:  # as many kinds as there are parts of such a file
        raise ValueError(f"{name} is not a readable Excel file: {error}") from None


def _chosen(book: Any, sheet: str | None, name: str) -> Any:
    """The sheet of a name or a number, or the first that is not empty."""
    sheets = book.worksheets
    if sheet is None:
        filled = (page for page in sheets if _header(page)[0] is not None)
        return next(filled, sheets[0])
    titles = [page.title for page in sheets]
    folded = [title.strip().casefold() for title in titles]
    if sheet in titles:
        return sheets[titles.index(sheet)]
    if folded.count(sheet.strip().casefold()) == 1:
        return sheets[folded.index(sheet.strip().casefold())]
    if sheet.isdecimal() and 1 <= int(sheet) <= len(sheets):
        return sheets[int(sheet) - 1]
    raise ValueError(
        f"{name} has no sheet {sheet!r}; --sheet must be a number from 1 to {len(sheets)}, or one "
        f"of {', '.join(map(repr, titles))}"
    )


def _header(sheet: Any) -> tuple[Line | None, Iterator[Line]]:
    """The row with the names, and those below it, without rows that are empty.

    What stands alone in its row, above rows that have several cells, is a title.
    """
    numbered = enumerate(sheet.iter_rows(values_only=True), 1)
    lines = (line for line in numbered if any(map(_is_filled, line[1])))
    first = list(islice(lines, _LOOKED_AT))
    if not first:
        return None, iter(())
    is_wide = [sum(map(_is_filled, cells)) > 1 for _, cells in first]
    place = next((i for i, wide in enumerate(is_wide) if wide), 0)
    if sum(is_wide[place:]) <= len(is_wide[place:]) / 2:
        place = 0
    return first[place], chain(first[place + 1 :], lines)


def _is_filled(cell: Any) -> bool:
    return cell is not None and cell != ""


def _names(header: Line, name: str) -> list[str]:
    number, cells = header
    width = max(i + 1 for i, cell in enumerate(cells) if _is_filled(cell))
    names = [
        str(cell) if _is_filled(cell) and str(cell).strip() else f"Unnamed: {i}"
        for i, cell in enumerate(cells[:width])
    ]
    counted = Counter(names)
    twice = next((column for column in names if counted[column] > 1), None)
    if twice is not None:
        raise ValueError(
            f"{name}, row {number}: every column needs a name of its own, and several are named "
            f"{twice!r}; rename or remove one"
        )
    return names


def _cells(line: Line, width: int, title: str, name: str) -> Sequence[Any]:
    number, cells = line
    if any(map(_is_filled, cells[width:])):
        raise ValueError(
            f"{name}, sheet {title!r}: row {number} has a cell behind the {width} columns that the "
            f"header names; name every column in the row of the header, or remove what stands "
            f"beside the table"
        )
    return (*cells[:width], *(None,) * (width - len(cells)))
