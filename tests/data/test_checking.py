"""What a look at a table finds."""

import numpy as np
import pandas as pd
import pytest

from echelon.data.checking import check_table

N = 200


def findings(target=None, classes=(), **columns) -> str:
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=N), **columns})
    return " | ".join(check_table(frame, target=target, classes=classes).findings)


GRADES = np.array(["low", "mid", "high"])[np.random.default_rng(1).integers(0, 3, N)]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"y": np.where(np.arange(N) % 4, GRADES, " LOW")}, "differ only by case"),
        ({"y": GRADES}, "order is not known: name it with --classes"),
        ({"y": np.where(np.arange(N) < 5, "", GRADES)}, "5 rows have no label in 'y'"),
        ({"y": np.where(np.arange(N) < 5, 9, np.arange(N) % 3)}, "few rows.*'9' (5)"),
        (
            {"y": np.where(np.arange(N) < 15, 99, np.arange(N) % 3)},
            "label 99 in 15 rows looks like",
        ),
    ],
)
def test_the_target(columns, words: str) -> None:
    found = findings("y", **columns)
    for part in words.split(".*"):
        assert part in found


def test_a_missing_label_is_not_a_label() -> None:
    frame = pd.DataFrame({"x": np.arange(N), "y": np.where(np.arange(N) < 5, "", GRADES)})
    (column,) = [column for column in check_table(frame, target="y").columns if column.name == "y"]
    assert column.holds == "3 different"
    assert column.missing == 5 / N


def test_columns() -> None:
    stars = np.random.default_rng(2).integers(1, 4, N)
    found = findings(
        "y", y=stars, copy=np.array(["a", "b", "c"])[stars - 1],
        score=stars + np.linspace(0, 0.9, N),
        q=np.where(np.arange(N) % 9, stars[::-1], 99),
        colour=np.array(["red", "Red", "blue"])[np.arange(N) % 3],
    )  # fmt: skip
    assert "column 'copy' gives the label away" in found
    assert "column 'score' gives the label away" in found
    assert "column 'q' holds 99 in" in found
    assert "column 'colour' has categories that differ only by case" in found
    assert "'x' gives" not in found


def test_what_becomes_of_columns() -> None:
    frame = pd.DataFrame(
        {
            "id": [f"P{i}" for i in range(N)],
            "said": [f"it was quite good, number {i}" for i in range(N)],
            "constant": "a",
            "empty": "",
            "size": ["1,5", "2,5"] * (N // 2),
        }
    )
    uses = {column.name: column.use for column in check_table(frame).columns}
    assert "left out: looks like an id" in uses["id"]
    assert "--text said" in uses["said"]
    assert "alike" in uses["constant"]
    assert "empty" in uses["empty"]
    assert uses["size"] == "used"
    kept = {column.name: column.use for column in check_table(frame, keep_ids=True).columns}
    assert kept["id"] == "used"


def test_an_order_that_is_none_is_noticed_and_a_right_one_is_not() -> None:
    generator = np.random.default_rng(3)
    ranks = generator.integers(0, 7, 1500)
    numbers = ranks[:, None] + generator.normal(0, 1.5, (1500, 3))
    shuffled = np.array([3, 0, 5, 1, 6, 2, 4])[ranks]
    for labels, is_said in ((ranks, False), (shuffled, True)):
        frame = pd.DataFrame(numbers, columns=list("abc")).assign(y=labels)
        found = check_table(frame, target="y").findings
        assert any("looks unordered" in one for one in found) == is_said
