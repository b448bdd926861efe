"""A folder with a table, in which the commands run."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from echelon.data import make_friedman


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = make_friedman(300, num_classes=3)
    table = pd.DataFrame(data.features[:, :5], columns=list("abcde"))
    table["kind"] = np.where(table["c"] > 0.5, "big", "small")
    table["grade"] = np.array(["lo", "mid", "hi"])[data.ranks]
    table["stars"] = data.ranks + 1
    table["weight"] = 1.0
    table.to_csv(tmp_path / "table.csv", index=False)
    table.to_parquet(tmp_path / "table.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path
