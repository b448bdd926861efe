"""Columns that name rows."""

import uuid

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon.data.identifiers import identifier_reason

N = 120


@pytest.mark.parametrize(
    ("name", "cells", "reason"),
    [
        ("who", [str(uuid.UUID(int=i * 7919)) for i in range(N)], "looks like an id"),
        ("code", [f"{i:05d}" for i in range(N)], "looks like an id"),
        ("customerId", np.arange(N) * 37 + 5000, "looks like an id"),
        ("customer id", [str(i * 37 + 5000) for i in range(N)], "looks like an id"),
        ("x", np.arange(1, N + 1), "looks like a row number"),
        (
            "said",
            [f"it was a good room number {i}" for i in range(N)],
            "free text, which --text said",
        ),
        ("income", np.arange(N) * 37 + 5000, None),
        ("year", np.arange(N) + 1900, None),
        ("id", np.arange(N) / 7, None),
        ("colour", ["red", "blue", "green"] * 40, None),
        ("measured", [f"{i * 0.37:.2f}" for i in range(N)], None),
        ("day", pd.date_range("2024-01-01", periods=N).astype(str), None),
        ("small", [f"P{i}" for i in range(20)], None),
        ("price", [f"EUR {i * 0.37:.2f}" for i in range(N)], None),
        ("seen", pd.date_range("2024-01-01", periods=N).strftime("%d %b %Y"), None),
    ],
)
def test_what_looks_like_an_id(name: str, cells, reason: str | None) -> None:
    found = identifier_reason(name, pd.Series(cells, name=name))
    assert (found is None) if reason is None else reason in found


def test_ids_are_left_out_of_frames_and_that_is_said() -> None:
    frame = pd.DataFrame({"id": [f"P{i}" for i in range(N)], "x": np.arange(N) % 7 * 1.5})
    with pytest.warns(UserWarning, match="column 'id' is left out: it looks like an id"):
        model = echelon.OrdinalBoosting(rounds=3).fit(frame, np.arange(N) % 2)
    assert model.feature_names_in_.tolist() == ["x"]
    model.predict(frame[["x"]])
    model.predict(frame)


def test_declared_categories_and_arrays_keep_everything() -> None:
    ids = pd.Series([f"P{i}" for i in range(N)]).astype("category")
    frame = pd.DataFrame({"id": ids, "x": np.arange(N) % 7 * 1.5})
    model = echelon.OrdinalBoosting(rounds=3).fit(frame, np.arange(N) % 2)
    assert model.n_features_in_ == 2
    array = np.array([[f"P{i}", str(i % 7)] for i in range(N)], dtype=object)
    assert echelon.OrdinalBoosting(rounds=3).fit(array, np.arange(N) % 2).n_features_in_ == 2
