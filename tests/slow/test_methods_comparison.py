"""The comparison of all methods on a small table, and a second run that changes nothing."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import methods


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(150, 3))
    ranks = np.digitize(features[:, 0] + 0.3 * generator.normal(size=150), [-0.6, 0.6])
    frame = pd.DataFrame(features, columns=list("abc")).assign(rank=ranks)
    path = tmp_path_factory.mktemp("table") / "small.csv"
    frame.to_csv(path, index=False)
    return path


def test_it_writes_a_section_and_resumes(table: Path, tmp_path: Path, monkeypatch) -> None:
    page = tmp_path / "methods.md"
    arguments = [
        "methods.py", "--data", str(table), "--target", "rank", "--methods", "ce,forest",
        "--seeds", "2", "--max-epochs", "2", "--out", str(tmp_path / "runs"),
        "--markdown", str(page),
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", arguments)
    methods.main()
    first = page.read_text()
    assert f"## {methods.TITLE_OF_COMPARISON}" in first
    for name in ("ce", "forest"):
        line = next(each for each in first.splitlines() if each.startswith(f"| `{name}` |"))
        assert line.endswith("| 1 |")
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("DONE")}
    assert len(written) >= 4
    methods.main()
    assert page.read_text() == first
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("DONE")} == written
