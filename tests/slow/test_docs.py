"""The pages whose code takes more than a few seconds, and the start as a newcomer walks it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT, commands, name, run_python
from tests.test_docs import LONG


@pytest.mark.parametrize("page", sorted(LONG))
def test_the_python_of_a_long_page_runs(page: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_python(ROOT / page)


def test_the_start_leads_to_a_model_a_kappa_an_interval_and_a_page(tmp_path, monkeypatch) -> None:
    """The commands of the page run one after the other, as they stand there."""
    monkeypatch.chdir(tmp_path)
    start = ROOT / "docs" / "start" / "table.md"
    run_python(start)  # writes wine.csv, train.csv and test.csv
    printed = ""
    for block, words in commands(start):
        assert words[0] == "echelon", f"{block}: {words}"
        done = subprocess.run(
            [sys.executable, "-m", "echelon.cli.main", *words[1:]], capture_output=True, text=True
        )
        assert done.returncode == 0, f"{name(block.page)}: {words}\n{done.stderr}"
        printed += done.stdout
    assert "quadratic_weighted_kappa" in printed
    header, first = (tmp_path / "predictions.csv").read_text().splitlines()[:2]
    assert {"lower", "upper"} <= set(header.split(","))
    assert first
    page = (tmp_path / "wine.html").read_text()
    assert "quadratic weighted kappa" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
