"""Columns that name rows instead of describing them: ids, row numbers, texts that hardly repeat.

As categories they would be learnt by heart, stored in the model file, and say nothing of new rows.
Columns of floats are never taken for such, nor is what its owner has declared a category.
"""

import re
from typing import Any

import numpy as np
import pandas as pd

from echelon.data.cells import MISSING_NAMES
from echelon.data.numerals import is_spelled

KEEP = "echelon.keep_ids"  # in the attributes of a frame: leave nothing out

_FEWEST = 30  # different cells, below which anything may be unique by chance
_MANY = 64  # different cells that a column of categories has at most
_UNIQUE, _NEARLY = 0.98, 0.8  # shares of different cells
_DENSE = 0.6  # share of a range of whole numbers that row numbers fill, also in a part of a table
_NAME = re.compile(
    r"(?:^|[^a-z])(?:id|ids|uuid|guid|key|index|idx|nr|no|number|num|row|record|serial|code)(?:$|[^a-z])"
    r"|respondent|participant|customer|patient|unnamed"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WHOLE = re.compile(r"\s*\d+\s*")
_WORDS_OF_A_TEXT = 4


def identifier_reason(name: str, column: "pd.Series[Any]", each: float = 1.0) -> str | None:
    """Why a column of training rows names rows rather than describing them; None if it does not.

    Where the column is a sample of different cells with all their rows, `each` is how many cells
    one of them stands for.

    Examples
    --------
    >>> identifier_reason("person", pd.Series([f"P{i}" for i in range(100)]))
    'looks like an id: 100 different values in 100 rows'
    >>> identifier_reason("person_id", pd.Series(np.arange(100) * 7 + 1000))
    'looks like an id: 100 different whole numbers in 100 rows'
    >>> identifier_reason("income", pd.Series(np.arange(100) * 7 + 1000)) is None
    True
    """
    dtype = column.dtype
    if pd.api.types.is_integer_dtype(dtype):
        return _of_whole_numbers(name, column.dropna().to_numpy(), each)
    if not (pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype)):
        return None
    what = pd.api.types.infer_dtype(column, skipna=True)
    if what == "string":
        return _of_texts(name, column, each)
    if what == "integer":
        return _of_whole_numbers(name, column.dropna().to_numpy(), each)
    return None


def _of_texts(name: str, column: "pd.Series[Any]", each: float) -> str | None:
    cells = column.dropna()
    counted = cells.value_counts()
    counted = counted[~counted.index.isin(MISSING_NAMES)]
    different, rows = len(counted), int(counted.sum())
    if different < _FEWEST:
        return None
    shown = counted.index[:200]
    if all(_WHOLE.fullmatch(cell) for cell in shown):
        codes = any(cell.strip()[0] == "0" and len(cell.strip()) > 1 for cell in shown)
        if not codes:
            numbers = pd.to_numeric(cells, errors="coerce").dropna().to_numpy()
            return _of_whole_numbers(name, numbers, each)
    if _spells_numbers_or_dates(shown):
        return None
    share = different / rows
    if share >= _UNIQUE or (different > _MANY and share >= _NEARLY):
        if np.mean([len(cell.split()) for cell in shown]) >= _WORDS_OF_A_TEXT:
            return f"looks like free text, which --text {name} would read"
        counts = f"{round(different * each):,} different values in {round(rows * each):,} rows"
        return f"looks like an id: {counts}"
    return None


def _spells_numbers_or_dates(shown: Any) -> bool:
    """Whether most cells hold no letters or spell one: measured values may all differ."""
    with_letters = [cell for cell in shown if any(sign.isalpha() for sign in cell.replace("T", ""))]
    spelled = sum(map(is_spelled, with_letters))
    if len(with_letters) - spelled >= 0.5 * len(shown):
        return False
    return spelled > 0 or any(sign in "".join(shown[:50]) for sign in ".,:/-%€$£")


def _of_whole_numbers(name: str, numbers: Any, each: float) -> str | None:
    rows = len(numbers)
    if rows < _FEWEST:
        return None
    different = round(len(np.unique(numbers)) * each)
    return whole_number_reason(
        name, round(rows * each), different, float(np.min(numbers)), float(np.max(numbers))
    )


def whole_number_reason(
    name: str, rows: int, different: int, low: float, high: float
) -> str | None:
    """What :func:`identifier_reason` says of whole numbers, by how many and how large they are.

    Examples
    --------
    >>> whole_number_reason("line", 1000, 1000, 0.0, 999.0)
    'looks like a row number: 1,000 different whole numbers in 1,000 rows'
    """
    if rows < _FEWEST or different < _UNIQUE * rows:
        return None
    said = f"{different:,} different whole numbers in {rows:,} rows"
    if _NAME.search(_CAMEL.sub("_", name).casefold()):
        return f"looks like an id: {said}"
    if 0 <= low <= 1 + 0.1 * rows and rows >= _DENSE * (high - low + 1):
        return f"looks like a row number: {said}"
    return None
