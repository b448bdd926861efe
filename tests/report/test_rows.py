"""Single rows on the page: their columns, their numbers, and what paper shows of them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from echelon.report.groups import Groups
from echelon.report.rows import explored_rows, printed_rows
from echelon.runs import Comparison, read_runs
from tests.made_runs import write_made_runs


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Comparison:
    folder = write_made_runs(tmp_path_factory.mktemp("runs"), rows=60, seeds=1)
    run = Comparison.of(read_runs(folder)).main_run
    rows = len(run.predictions["truth"])
    cells = {
        "row": 3 * np.arange(rows),
        "cell_rows": np.arange(rows),
        "cell_names": np.array(["age", "<b>name"]),
        "cells": np.array([[str(i), "</td><script>"] for i in range(rows)]),
    }
    return Comparison.of([replace(run, predictions={**run.predictions, **cells})])


def test_rows_have_the_values_of_their_columns(found) -> None:
    rows = explored_rows(found, Groups.of(found.classes))
    assert rows["names"] == ["age", "<b>name"]
    for number, (age, _) in zip(rows["number"], rows["cells"], strict=True):
        assert number == 3 * int(age)
    json.dumps(rows, allow_nan=False)


def test_paper_shows_the_largest_errors_and_escapes_what_they_hold(found) -> None:
    shown = printed_rows(found)
    assert shown.count("<tr>") == 13  # and the head
    assert "&lt;b&gt;name: &lt;/td&gt;&lt;script&gt;" in shown
    assert "<script>" not in shown
