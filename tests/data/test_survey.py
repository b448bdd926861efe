"""What one pass learns of a source: within the error of what all rows in memory say."""

import numpy as np
import pandas as pd
import pytest

from echelon.data.kinds.tabular import TableEncoder
from echelon.data.schema import TableSchema
from echelon.data.source import scan
from echelon.data.stream import open_stream
from echelon.data.summary import summarise_columns
from echelon.data.survey import TableSketch, survey


def table(n: int = 40_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "real": rng.lognormal(size=n),
            "few": rng.integers(0, 5, n).astype(float),
            "same": 7.0,
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "colour": rng.choice(["red", "blue", "green"], n, p=[0.7, 0.2999, 0.0001]),
            "grade": rng.integers(0, 4, n),
        }
    )
    frame.loc[5, "real"] = 1e20
    return frame


def test_the_table_of_a_survey_stands_for_all_rows(tmp_path) -> None:
    frame = table()
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=3000)
    known = survey(open_stream(scan(tmp_path / "rows.parquet", "grade")), 0.0, 0)
    schema = TableSchema.of(frame.drop(columns="grade"))
    assert known.stream.schema.columns == schema.columns
    assert len(known.table) == 10_000
    exact = schema.read(frame.drop(columns="grade"))
    for place in range(4):
        column = exact.numbers[:, place]
        ordered = np.sort(column[~np.isnan(column)])
        guess = known.table.numbers[:, place]
        guess = guess[~np.isnan(guess)]
        shares = (np.arange(len(guess)) + 0.5) / len(guess)
        low = np.searchsorted(ordered, guess, "left") / len(ordered)
        high = np.searchsorted(ordered, guess, "right") / len(ordered)
        assert np.maximum(low - shares, shares - high).max() < 0.005
        assert (guess.min(), guess.max()) == (ordered[0], ordered[-1])
    for mine, theirs in zip(
        summarise_columns(schema, known.table), summarise_columns(schema, exact), strict=True
    ):
        assert abs(mine["missing"] - theirs["missing"]) < 1e-3
    assert set(known.table.codes[:, 0]) == {1, 2, 3}  # the rarest too
    encoder = TableEncoder.of(known.table, schema, scaling="quantile")
    expected = TableEncoder.of(exact, schema, scaling="quantile")
    assert encoder.kept.tolist() == expected.kept.tolist()
    assert encoder.indicators.tolist() == expected.indicators.tolist()
    assert encoder.reach[0] < 1e6  # 1e20 does not squeeze the others into one point


def test_counts_of_classes_and_what_a_subset_lacks(tmp_path) -> None:
    frame = pd.DataFrame({"x": np.arange(500.0) + 0.5, "grade": np.arange(500) % 2})
    frame.loc[0, "grade"] = 2
    frame.to_parquet(tmp_path / "rows.parquet")
    stream = open_stream(scan(tmp_path / "rows.parquet", "grade"))
    known = survey(stream, 0.1, 0)
    counts = np.bincount(known.held.ranks, minlength=3)
    assert (known.class_counts + counts).tolist() == [249, 250, 1]
    (sentence,) = known.absent()
    lacking = "validation" if known.class_counts[2] else "training"
    assert sentence == f"no {lacking} row has the class 2"
    assert survey(stream, 0.0, 0).held is None


def test_no_more_rows_are_held_out_than_stay_in_memory(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("echelon.data.survey.MOST_HELD", 50)
    frame = pd.DataFrame({"x": np.arange(5000.0) + 0.5, "grade": np.arange(5000) % 2})
    frame.to_parquet(tmp_path / "rows.parquet")
    known = survey(open_stream(scan(tmp_path / "rows.parquet", "grade")), 0.2, 0)
    assert 20 < len(known.held) < 90
    assert known.num_rows + len(known.held) == 5000


def test_the_digest_is_of_the_rows_whatever_their_order(tmp_path) -> None:
    frame = table(3000)
    frame.to_parquet(tmp_path / "a.parquet")
    frame[::-1].to_parquet(tmp_path / "b.parquet", row_group_size=100)
    frame.assign(few=frame["few"] + (frame.index == 9)).to_parquet(tmp_path / "c.parquet")
    a, b, c = (
        survey(open_stream(scan(tmp_path / f"{name}.parquet", "grade")), 0.1, 0).digest
        for name in "abc"
    )
    assert a == b != c


def test_sketches_of_tables_add_up() -> None:
    frame = table(9000).drop(columns="grade")
    schema = TableSchema.of(frame)
    whole, first, second = (TableSketch(schema) for _ in range(3))
    whole.add(schema.read(frame))
    first.add(schema.read(frame[:2000]))
    second.add(schema.read(frame[2000:]))
    first.merge(second)
    assert first.rows == whole.rows
    assert first.table().codes.tolist() == whole.table().codes.tolist()
    np.testing.assert_allclose(
        np.nanquantile(first.table().numbers[:, 3], [0.1, 0.5, 0.9]),
        np.nanquantile(whole.table().numbers[:, 3], [0.1, 0.5, 0.9]),
        atol=0.03,
    )


def test_a_source_without_rows_to_train_on_is_refused(tmp_path) -> None:
    pd.DataFrame({"x": [1.0, 1.0], "grade": [0, 1]}).to_parquet(tmp_path / "rows.parquet")
    stream = open_stream(scan(tmp_path / "rows.parquet", "grade"))
    with pytest.raises(ValueError, match="no row to train on"):
        survey(stream.subset(0, 0.0, 0.0), 0.0, 0)
