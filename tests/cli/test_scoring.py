"""Tables of results: their columns and types."""

import datetime as dt
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from echelon.cli.main import app
from tests.cli.commands import run


@pytest.fixture
def typed(folder: Path) -> pd.DataFrame:
    table = pd.read_parquet("table.parquet")
    table["id"] = range(2**53, 2**53 + len(table))
    table["day"] = dt.date(2024, 2, 29)
    table["flag"] = table["a"] > 0.5
    table["gap"] = table["id"].astype(object).where(table["flag"], None)
    table.to_parquet("typed.parquet")
    left_out = "grade,id,day,flag,gap"
    run(
        "fit", "typed.parquet", "--target", "stars", "--drop", left_out, "--model",
        "cumulative_link", "--out", "m",
    )  # fmt: skip
    return table


def test_kept_columns_of_parquet_keep_their_types_in_parquet(typed: pd.DataFrame) -> None:
    run("predict", "m", "typed.parquet", "--out", "p.parquet", "--keep", "id,day,flag,gap,kind")
    import pyarrow.parquet

    before = pyarrow.parquet.read_table("typed.parquet")
    after = pyarrow.parquet.read_table("p.parquet")
    for name in ("id", "day", "flag", "gap"):
        assert after[name].type == before[name].type
        assert after[name].to_pylist() == before[name].to_pylist()
    assert after["kind"].to_pylist() == before["kind"].to_pylist()


def test_kept_columns_are_texts_where_files_bring_no_types_or_disagree(typed) -> None:
    from echelon.data.files import arrow_types

    typed.to_csv("typed.csv", index=False)
    run("predict", "m", "typed.csv", "--out", "p.parquet", "--keep", "id")
    assert pd.read_parquet("p.parquet")["id"].tolist() == typed["id"].astype(str).tolist()
    typed.assign(id=typed["id"].astype(str)).to_parquet("other.parquet")
    assert "id" not in arrow_types(["typed.parquet", "other.parquet"])
    run("predict", "m", "typed.parquet", "other.parquet", "--out", "p.parquet", "--keep", "id")
    assert pd.read_parquet("p.parquet")["id"].tolist() == 2 * typed["id"].astype(str).tolist()


def test_parquet_and_csv_say_the_same(typed: pd.DataFrame) -> None:
    run("predict", "m", "typed.parquet", "--out", "p.parquet", "--keep", "id,flag")
    run("predict", "m", "typed.parquet", "--out", "p.csv", "--keep", "id,flag")
    parquet, csv = pd.read_parquet("p.parquet"), pd.read_csv("p.csv", keep_default_na=False)
    assert [*parquet] == [*csv]
    pd.testing.assert_frame_equal(parquet, csv, check_dtype=False, rtol=1e-4, atol=1e-6)


def test_a_result_cannot_have_the_name_of_a_kept_column(typed: pd.DataFrame) -> None:
    typed.assign(outside=1).to_parquet("named.parquet")
    command = ("predict", "m", "named.parquet", "--out", "p.csv", "--keep", "outside")
    result = CliRunner().invoke(app, command)
    assert "also the name of a result; rename it" in str(result.exception)
    assert not Path("p.csv").exists()
