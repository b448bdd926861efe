"""Typical rows: their columns hold what the training columns held, in the same shares."""

import numpy as np
import pandas as pd

from echelon.data.schema import TableSchema
from echelon.data.summary import summarise_columns
from echelon.data.typical import typical_rows


def test_columns_have_the_shares_of_the_training_rows() -> None:
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": generator.normal(size=2000),
            "kind": generator.choice(["red", "blue"], p=[0.75, 0.25], size=2000),
            "day": pd.to_datetime(generator.integers(0, 1000, 2000), unit="D"),
            "gone": np.nan,
        }
    )
    frame["size"] = frame["size"].mask(generator.random(2000) < 0.2)
    schema = TableSchema.of(frame)
    rows = typical_rows(schema, summarise_columns(schema, schema.read(frame)), 400)
    assert abs(rows["size"].isna().mean() - 0.2) < 0.03
    assert abs(rows["size"].mean()) < 0.1
    assert abs((rows["kind"] == "red").mean() - 0.75) < 0.03
    assert rows["day"].between("1970-01-01", "1972-10-01").all()
    assert rows["gone"].isna().all()
    table = schema.read(rows)  # which reads them as any others
    assert len(table) == 400


def test_a_column_of_which_nothing_is_known_is_empty() -> None:
    schema = TableSchema.of(pd.DataFrame({"a": [1.0, 2.0], "said": ["x y", "z"]}), text="said")
    rows = typical_rows(schema, [], 3)
    assert rows.isna().all(axis=None)
