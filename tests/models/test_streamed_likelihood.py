"""The exact linear model on slices: the same maximum as that of all rows at once."""

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon.data.source import scan


def frame(n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, n))
    table = pd.DataFrame({"x": x * 1e-3 + 5, "z": z, "sum": x * 1e-3 + z, "same": 1.0})
    table["kind"] = rng.choice(["a", "b", "c"], n)
    score = x - 2 * z + (table["kind"] == "b") + rng.logistic(size=n)
    return table.assign(grade=np.digitize(score, [-2, 0, 2]))


@pytest.fixture
def path(tmp_path):
    frame().to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    return tmp_path / "rows.parquet"


@pytest.mark.parametrize(
    "options", [{}, {"link": "probit"}, {"link": "cloglog"}, {"ridge": 3.0}], ids=str
)
def test_the_maximum_is_that_of_all_rows(path, options) -> None:
    table = frame()
    streamed = echelon.CumulativeLinkModel(**options).fit(scan(path, "grade"))
    memory = echelon.CumulativeLinkModel(**options).fit(table.drop(columns="grade"), table["grade"])
    mine, theirs = streamed.fitted_, memory.fitted_
    np.testing.assert_allclose(mine.coefficients, theirs.coefficients, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(mine.cutpoints, theirs.cutpoints, rtol=1e-7)
    np.testing.assert_allclose(mine.covariance, theirs.covariance, rtol=1e-6)
    assert mine.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-10)
    assert mine.null_log_likelihood == pytest.approx(theirs.null_log_likelihood, rel=1e-12)
    assert (mine.aliased, mine.separated) == (theirs.aliased, theirs.separated)
    assert mine.num_rows == 3000
    assert streamed.coefficients() == pytest.approx(memory.coefficients())
    if not options:
        pd.testing.assert_frame_equal(
            streamed.summary().frame(), memory.summary().frame(), rtol=1e-6
        )


def test_gaps_are_marked_or_left_out(tmp_path) -> None:
    table = frame(1000).drop(columns=["sum", "same"])
    table.loc[::5, "z"] = np.nan
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=300)
    for missing in ("drop", "indicator"):
        model = echelon.CumulativeLinkModel(missing=missing)
        streamed = model.fit(scan(tmp_path / "rows.parquet", "grade")).fitted_
        memory = echelon.CumulativeLinkModel(missing=missing)
        memory.fit(table.drop(columns="grade"), table["grade"])
        assert streamed.num_rows == memory.fitted_.num_rows
        np.testing.assert_allclose(streamed.coefficients, memory.fitted_.coefficients, rtol=1e-6)


def test_a_class_without_rows_keeps_a_probability(path) -> None:
    model = echelon.CumulativeLinkModel().fit(scan(path, "grade", classes=[0, 1, 2, 3, 4]))
    table = frame().drop(columns="grade")
    memory = echelon.CumulativeLinkModel(classes=[0, 1, 2, 3, 4])
    memory.fit(table, frame()["grade"])
    np.testing.assert_allclose(
        model.predict_proba(table[:20]), memory.predict_proba(table[:20]), atol=1e-8
    )
    with pytest.raises(ValueError, match="this model has no statistics"):
        model.summary()


def test_a_column_that_divides_the_classes_is_said(tmp_path) -> None:
    table = frame(500)[["z", "grade"]]
    table["sure"] = (table["grade"] > 1) * 1.0
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    model = echelon.CumulativeLinkModel().fit(scan(tmp_path / "rows.parquet", "grade"))
    assert model.fitted_.separated


def test_rows_that_all_have_gaps_are_refused(tmp_path) -> None:
    table = frame(100).assign(z=np.where(np.arange(100) % 2, np.nan, 1.0))
    table["x"] = np.where(np.arange(100) % 2, 1.0, np.nan)
    table.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="no row is left to learn from"):
        echelon.CumulativeLinkModel(missing="drop").fit(scan(tmp_path / "rows.parquet", "grade"))
    with pytest.raises(ValueError, match="ridge must be a finite number"):
        echelon.CumulativeLinkModel(ridge=-1.0).fit(scan(tmp_path / "rows.parquet", "grade"))
