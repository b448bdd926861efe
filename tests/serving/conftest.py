"""A small model with columns of every plain kind, and a server of it on the loopback address."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from echelon import OrdinalBoosting
from echelon.data import make_friedman
from echelon.serving.refusal import Limits
from tests.serving.client import Client, serving

LIMITS = Limits(body=200_000, rows=500, seconds=10.0)


@pytest.fixture(scope="session")
def table() -> pd.DataFrame:
    data = make_friedman(400, num_classes=3, seed=1)
    table = pd.DataFrame(data.features[:, :4].astype(float), columns=list("abcd"))
    table["b"] = table["b"].mask(table["c"] > 0.9)
    table["kind"] = np.where(table["c"] > 0.5, "big", "small")
    table["day"] = pd.to_datetime(np.round(table["d"] * 1000), unit="D")
    table["grade"] = np.array(["low", "mid", "high"])[data.ranks]
    return table


@pytest.fixture(scope="session")
def fitted(table: pd.DataFrame) -> OrdinalBoosting:
    features = table.drop(columns="grade")
    model = OrdinalBoosting(rounds=10, classes=["low", "mid", "high"], random_state=0)
    model.fit(features[:300], table["grade"][:300])
    return model.conformalize(features[300:], table["grade"][300:])


@pytest.fixture(scope="session")
def model_path(fitted: OrdinalBoosting, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "m.echelon"
    fitted.save(path)
    return path


@pytest.fixture(scope="session")
def client(model_path: Path) -> Iterator[Client]:
    with serving(model_path, LIMITS) as client:
        yield client
