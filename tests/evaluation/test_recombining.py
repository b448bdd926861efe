"""Rows put together from cells of others keep their types, and wrong functions are named."""

import numpy as np
import pandas as pd
import pytest

from echelon.evaluation.recombining import Curves, column_kinds, named_cell, recombined


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "number": [1.0, np.nan, 3.0],
            "date": pd.to_datetime(["2024-01-01", None, "2024-03-01"]),
            "category": pd.Categorical(["red", None, "blue"], categories=["blue", "red", "green"]),
            "text": ["one", "two", None],
            "flag": [True, False, True],
        }
    )


def test_every_kind_of_cell_is_taken_as_it_is() -> None:
    rows = frame()
    sources = np.array([[2, 0, 1, 1, 0], [1, 1, 2, 2, 2]])
    found = recombined(rows, sources)
    assert found.dtypes.tolist() == rows.dtypes.tolist()
    for i, name in enumerate(rows.columns):
        expected = rows[name].iloc[sources[:, i]].reset_index(drop=True)
        pd.testing.assert_series_equal(found[name], expected)


def test_kinds_are_told_by_type_unless_they_are_said() -> None:
    rows = frame()
    assert column_kinds(rows, {"text": "text"}) == {
        "number": "number", "date": "date", "category": "category", "text": "text",
        "flag": "number",
    }  # fmt: skip
    many = pd.DataFrame({"name": [f"n{i}" for i in range(100)]})
    assert column_kinds(many) == {"name": "cell"}
    images = pd.DataFrame({"image": [np.zeros((2, 2)), np.ones((2, 2))]})
    assert column_kinds(images) == {"image": "cell"}
    with pytest.raises(ValueError, match="several columns named 'a'"):
        column_kinds(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="nothing to explain"):
        column_kinds(pd.DataFrame({"a": []}))


def test_exceedances_add_up_to_the_expected_rank_and_rows_are_counted() -> None:
    counted = []
    p = np.random.default_rng(0).dirichlet(np.ones(5), size=3)
    curves = Curves(lambda rows: p, lambda rows, what: counted.append((rows, what)))
    curves.doing = "trying"
    found = curves(frame())
    np.testing.assert_allclose(found.sum(axis=1), p @ np.arange(5))
    np.testing.assert_allclose(found[:, 1], p[:, 2:].sum(axis=1))
    assert counted == [(3, "trying")]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.ones((2, 3)), r"of the shape \(3, K\), K at least 2; got \(2, 3\)"),
        (np.ones(3), r"got \(3,\)"),
        (np.full((3, 2), np.nan), "no probabilities for some rows, but NaN"),
    ],
)
def test_a_function_that_gives_no_probabilities_is_refused(answer, message) -> None:
    with pytest.raises(ValueError, match=message):
        Curves(lambda rows: answer)(frame())


def test_cells_in_words() -> None:
    rows = frame()
    kinds = column_kinds(rows, {"text": "text"})
    said = [named_cell(name, rows[name].iloc[0], kinds[name]) for name in rows.columns]
    assert said == ["number 1", "date 2024-01-01", "category red", "text this text", "flag 1"]
    assert named_cell("date", rows["date"].iloc[1], "date") == "date (missing)"
    assert named_cell("size", 0.123456, "number") == "size 0.1235"
    assert named_cell("at", pd.Timestamp("2024-01-01 13:05"), "date") == "at 2024-01-01 13:05"
    assert named_cell("image", np.zeros((2, 2)), "image") == "image this image"
