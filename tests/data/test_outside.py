"""Rows outside what was trained on."""

import numpy as np
import pandas as pd

from echelon.data.outside import outside_columns
from echelon.data.schema import TableSchema
from echelon.data.summary import summarise_columns


def test_rows_of_the_same_kind_are_rarely_outside_and_foreign_ones_always() -> None:
    generator = np.random.default_rng(0)

    def made(n: int, shift: float = 0.0) -> pd.DataFrame:
        numbers = generator.normal(shift, 1, (n, 20))
        return pd.DataFrame(numbers, columns=[f"x{i}" for i in range(20)])

    rows = made(1000)
    schema = TableSchema.of(rows)
    summaries = summarise_columns(schema, schema.read(rows))
    same, other = made(1000), made(100, 9.0)
    assert (outside_columns(schema, summaries, rows, schema.read(rows)) != "").sum() == 0
    assert (outside_columns(schema, summaries, same, schema.read(same)) != "").mean() < 0.02
    assert (outside_columns(schema, summaries, other, schema.read(other)) != "").all()
