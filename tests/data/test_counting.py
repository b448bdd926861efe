"""Counts of new rows in the bins of the training columns: every row is in one of them, once."""

import numpy as np
import pandas as pd
import pytest

from echelon.data.counting import add_counts, column_counts
from echelon.data.schema import TableSchema
from echelon.data.summary import summarise_columns


def counted(training: pd.DataFrame, *chunks: pd.DataFrame):
    schema = TableSchema.of(training)
    counts = column_counts(schema, summarise_columns(schema, schema.read(training)))
    for chunk in chunks:
        add_counts(counts, schema, chunk, schema.read(chunk))
    return counts


def table(rows: int, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": generator.normal(size=rows).round(1),
            "kind": generator.choice(["red", "blue", "green"], size=rows),
        }
    )
    return frame.mask(generator.random((rows, 2)) < 0.1)


def test_the_training_rows_have_their_own_counts() -> None:
    training = table(500, 0)
    for counts in counted(training, training).values():
        np.testing.assert_array_equal(counts.before, counts.now)
        assert counts.missing == counts.missing_before
        assert counts.rows == counts.rows_before == 500
        assert (counts.below, counts.above, counts.unseen.total()) == (0, 0, 0)


def test_chunks_add_up_and_every_row_is_counted_once() -> None:
    training, new = table(500, 0), table(300, 1)
    new.loc[:4, "size"] = [-99.0, 99.0, 99.0, np.nan, 0.0]
    new.loc[:3, "kind"] = ["violet", "violet", "black", None]
    whole, parts = counted(training, new), counted(training, new[:100], new[100:])
    for name, counts in whole.items():
        np.testing.assert_array_equal(counts.now, parts[name].now)
        assert counts.rows == parts[name].rows == 300
    assert (parts["size"].below, parts["size"].above) == (1, 2)
    assert parts["kind"].unseen == {"violet": 2, "black": 1}


def test_rare_categories_and_missing_ones_stay_one_cell_where_they_were() -> None:
    """Of a column with more than 64 categories, those beyond share the code of the missing."""
    names = [f"c{i}" for i in range(80) for _ in range(80 - i)]
    training = pd.DataFrame({"town": names, "x": np.arange(len(names), dtype=float)})
    schema = TableSchema.of(training.assign(town=training["town"].astype("category")))
    counts = column_counts(schema, summarise_columns(schema, schema.read(training)))
    add_counts(counts, schema, training, schema.read(training))
    assert counts["town"].missing == counts["town"].missing_before > 0
    assert not counts["town"].unseen


def test_counts_that_do_not_belong_to_their_column_are_refused() -> None:
    training = table(50, 0)
    schema = TableSchema.of(training)
    summaries = summarise_columns(schema, schema.read(training))
    for wrong in ({"counts": [1, 2], "edges": [2.0, 1.0]}, {"counts": [-1], "edges": [1.0]}):
        summaries[0]["bins"] = {**wrong, "missing": 0}
        with pytest.raises(ValueError, match="the counts of the column 'size' are not"):
            column_counts(schema, summaries)
