"""Everything together, as a document and as text."""

import json

import numpy as np
import pandas as pd
import pytest

from echelon.evaluation.explanation import explain, plan, planned_rows
from echelon.runs.explained import check_explanation


def table(n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": generator.random(n),
            "colour": generator.choice(["red", "blue"], size=n),
            "day": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(generator.integers(0, 50, n), unit="D"),
            "note": [f"word{i} fine" for i in range(n)],
            "noise": generator.random(n),
        }
    )
    frame.loc[::10, "size"] = np.nan
    ranks = (3 * score(frame)[:, 1:].sum(axis=1)).astype(int).clip(0, 2)
    return frame, ranks


def score(rows: pd.DataFrame) -> np.ndarray:
    p = 0.1 + 0.5 * rows["size"].fillna(0.5) * (1 + (rows["colour"] == "red")) / 2
    p = p + 0.3 * rows["note"].str.contains("fine")
    return np.stack([1 - p, p / 2, p / 2], axis=1)


def explained(**options):
    frame, ranks = table()
    return explain(
        score, frame, ranks, classes=["lo", "mid", "hi"], kinds={"note": "text"}, texts=["note"],
        rows=[0, 7], **options,
    )  # fmt: skip


def test_the_document_is_json_that_is_accepted_and_says_what_was_found() -> None:
    found = explained()
    document = json.loads(json.dumps(found.document(), allow_nan=False))
    check_explanation(document)
    assert [row["columns"] for row in document["importance"]][:2] == [["size"], ["colour"]]
    assert {row["column"] for row in document["effects"]} == {"size", "colour", "day", "noise"}
    assert document["interaction"]["columns"] == ["size", "colour"]
    assert [row["row"] for row in document["reasons"]] == [0, 7]
    first = document["reasons"][0]
    assert first["columns"][0] == "size (missing)"
    total = first["start"] + sum(first["contributions"])
    assert total == pytest.approx(first["end"], abs=1e-4)
    assert first["words"][0]["words"] == "fine"
    assert found.with_rows_named(range(100, 400)).document()["reasons"][1]["row"] == 107
    assert found.document(threshold=1)["reasons"][0]["threshold"] == 1


def test_the_text_names_columns_directions_and_reasons() -> None:
    shown = explained(correlated=0.9).text()
    assert "size" in shown.splitlines()[2]
    assert "more of it raises the class" in shown
    assert "noise" in shown
    assert "hardly matters" in shown
    assert "strongest interaction: size and colour" in shown
    assert "'fine' +0.45" in shown
    assert "no labels were given" not in shown


def test_the_plan_is_what_is_asked() -> None:
    frame, ranks = table()
    frame = frame.drop(columns="note")
    asked = []

    def predict(rows: pd.DataFrame) -> np.ndarray:
        return score(rows.assign(note="fine"))

    explain(
        predict, frame, ranks, classes=["lo", "mid", "hi"], rows=[0, 1],
        report=lambda rows, what: asked.append(rows),
    )  # fmt: skip
    total = planned_rows(300, 4, 2)
    assert 0.7 * total < sum(asked) < 1.3 * total
    assert plan(10, 3, 5, None) == {"importance": 10, "effects": 10, "interactions": 10}
    assert plan(10**6, 1000, 5, None)["importance"] == 500
    assert plan(1000, 2, 5, 50)["effects"] == 50


def test_wrong_use_is_refused() -> None:
    frame, ranks = table(20)
    with pytest.raises(ValueError, match=r"rows to explain lie in 0..19; got 20"):
        explain(score, frame, ranks, classes=list("abc"), rows=[20])
    with pytest.raises(ValueError, match="most_rows must be at least 2; got 1"):
        explain(score, frame, ranks, classes=list("abc"), most_rows=1)
