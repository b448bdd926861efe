"""A cell means the same alone, in any file and in any part of it."""

import datetime as dt
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from echelon import OrdinalClassifier
from echelon.data.files import read_chunks, read_table
from echelon.data.schema import TableSchema

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # to shrink whole tables takes minutes

# ---- rows alone and together ---------------------------------------------------------------------

numbers = st.integers(-9, 9) | st.floats(-1e6, 1e6, allow_subnormal=False)
days = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))
moments = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
KINDS = {
    "numbers": numbers,
    "whole": st.integers(0, 5),
    "strings": st.sampled_from(["red", "blue", "none", "-", "NA", "True", "1.0"]),
    "codes": st.sampled_from(["01", "02", "A1", "1"]),
    "booleans": st.booleans(),
    "mixed": st.integers(0, 3) | st.booleans() | st.sampled_from(["a", "1", "1.5", "?"]),
    "dates": days,
    "timestamps": moments,
    "decimals": st.decimals(-99, 99, places=2),
    "junk": st.sampled_from(["1", "2.5", "?", "many", "2020-01-01", "true"]),
}
TYPED = {"numbers", "whole", "booleans", "dates", "timestamps", "decimals", "strings", "codes"}


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    rows = draw(st.integers(12, 20))
    columns = {}
    for kind, cells in KINDS.items():
        some = st.none() | cells if draw(st.booleans()) else cells
        columns[kind] = pd.Series(draw(st.lists(some, min_size=rows, max_size=rows)), dtype=object)
    return pd.DataFrame(columns)


def same(one: np.ndarray, other: np.ndarray) -> None:
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def check_rows_alone(folder: Path, table: pd.DataFrame, fresh: pd.DataFrame, size: int) -> None:
    """Fit on a table, and predict other rows of its kind in every way that they can be given."""
    table.to_csv(folder / "train.csv", index=False)
    fresh.to_csv(folder / "new.csv", index=False)
    plain = fresh.drop(columns=["mixed", "junk"]).convert_dtypes()
    plain.assign(**{name: fresh[name].astype("string") for name in ("mixed", "junk")}).to_parquet(
        folder / "new.parquet"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train = read_table(folder / "train.csv")
        model = OrdinalClassifier(
            backbone="linear",
            settings={"max_epochs": 1},
            validation_fraction=0,
            random_state=0,
            device="cpu",
        )
        model.fit(train, np.arange(len(train)) % 3)
        whole = model.predict_proba(read_table(folder / "new.csv"))
        for name in ("new.csv", "new.parquet"):
            for rows in (1, size):
                chunks = [model.predict_proba(c) for c in read_chunks(folder / name, rows)]
                same(np.concatenate(chunks), whole)
        same(model.predict_proba(fresh), whole)  # a frame of objects
        rows_alone = [model.predict_proba(fresh.iloc[i : i + 1]) for i in range(len(fresh))]
        same(np.concatenate(rows_alone), whole)


@settings(max_examples=3, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(table=tables(), fresh=tables(), size=st.integers(1, 7))
def test_a_row_is_predicted_the_same_alone_in_any_chunk_and_in_any_format(
    tmp_path_factory: pytest.TempPathFactory, table: pd.DataFrame, fresh: pd.DataFrame, size: int
) -> None:
    check_rows_alone(tmp_path_factory.mktemp("rows"), table, fresh, size)


@settings(max_examples=8, deadline=None, phases=PHASES)
@given(table=tables())
def test_a_schema_of_a_file_is_that_of_its_frame(
    tmp_path_factory: pytest.TempPathFactory, table: pd.DataFrame
) -> None:
    folder = tmp_path_factory.mktemp("schema")
    typed = table[sorted(TYPED)].convert_dtypes()
    typed.to_csv(folder / "a.csv", index=False)
    typed.to_parquet(folder / "a.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schemas = [
            TableSchema.of(frame).columns
            for frame in (read_table(folder / "a.csv"), read_table(folder / "a.parquet"), typed)
        ]
    assert schemas[0] == schemas[1] == schemas[2]


def test_codes_beside_no_letter_stay_codes(tmp_path: Path) -> None:
    """They were read as 1 and 2 where no A1 was near, and so as categories never seen."""
    rows = 60
    table = pd.DataFrame({"code": ["01", "02", "A1"] * (rows // 3), "y": [0, 1, 2] * (rows // 3)})
    model = OrdinalClassifier(
        settings={"max_epochs": 60, "weight_decay": 0},
        validation_fraction=0,
        random_state=0,
        device="cpu",
    )
    model.fit(table[["code"]], table["y"])
    (tmp_path / "all.csv").write_text("code\n01\n02\nA1\n")
    (tmp_path / "some.csv").write_text("code\n02\n02\n01\n")
    assert model.predict(read_table(tmp_path / "all.csv")).tolist() == [0, 1, 2]
    assert model.predict(read_table(tmp_path / "some.csv")).tolist() == [1, 1, 0]


def test_one_empty_cell_does_not_rename_its_neighbours() -> None:
    kinds = pd.Series([1, 2, 3] * 20).astype("category")
    model = OrdinalClassifier(
        settings={"max_epochs": 60, "weight_decay": 0},
        validation_fraction=0,
        random_state=0,
        device="cpu",
    )
    model.fit(pd.DataFrame({"kind": kinds}), [0, 1, 2] * 20)
    with_gap = pd.DataFrame({"kind": [1.0, 2.0, 3.0, np.nan]})  # as pandas reads it from a file
    assert model.predict(with_gap)[:3].tolist() == [0, 1, 2]
