"""A run of the accuracy benchmark: it goes on where it stopped, and a failure does not end it."""

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import accuracy
from contestants import Contestant
from sets import Division, Rows
from tuning import Outcome


def division(name: str, number: int, first: float = 0.0) -> Division:
    ranks = np.arange(12) % 3
    rows = Rows(pd.DataFrame({"x": np.arange(12.0) + first}), ranks)
    test = Rows(pd.DataFrame({"x": np.arange(4.0)}), np.array([0, 1, 2, number % 3]))
    return Division(name, number, rows, np.arange(12) < 3, test, 3, 1 / 3)


class Fits:
    """Contestants that count their fits."""

    def __init__(self) -> None:
        self.counts = {"perfect": 0, "constant": 0, "broken": 0, "slow": 0}

    def everyone(self) -> dict[str, Contestant]:
        return {
            name: Contestant(getattr(self, name), name, module="json", package="none")
            for name in self.counts
        } | {"absent": Contestant(self.perfect, "absent", "no_such_module", "no-such-package")}

    def perfect(self, division: Division, threads: int) -> Outcome:
        self.counts["perfect"] += 1
        return Outcome(np.eye(3)[division.test.ranks], division.test.ranks, 0.5, {"alpha": 1})

    def constant(self, division: Division, threads: int) -> Outcome:
        self.counts["constant"] += 1
        return Outcome(np.full((4, 3), 1 / 3), np.ones(4, dtype=np.int64), 0.1, {})

    def broken(self, division: Division, threads: int) -> Outcome:
        self.counts["broken"] += 1
        raise ValueError("a class is absent")

    def slow(self, division: Division, threads: int) -> Outcome:
        self.counts["slow"] += 1
        try:
            time.sleep(5)
        except Exception:  # as a library might that goes on after every failure
            return self.constant(division, threads)
        return self.perfect(division, threads)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Fits:
    fits = Fits()
    # A run sets the threads of its process, and other tests run in this one.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr("torch.set_num_threads", lambda number: None)
    monkeypatch.setattr(accuracy, "contestants", fits.everyone)
    monkeypatch.setattr(accuracy, "divide", division)
    return fits


def run(out: Path, *options: str) -> None:
    common = ["--sets", "ESL,LEV", "--divisions", "2", "--threads", "1", "--out", str(out)]
    accuracy.main([*common, *options])


def test_run_goes_on_where_it_stopped(fits: Fits, tmp_path: Path) -> None:
    run(tmp_path, "--only", "perfect,constant", "--sets", "ESL")
    assert fits.counts["perfect"] == fits.counts["constant"] == 2
    run(tmp_path, "--only", "perfect,constant")
    assert fits.counts["perfect"] == fits.counts["constant"] == 4
    lines = (tmp_path / "ESL.jsonl").read_text().splitlines()
    assert json.loads(lines[-2])["contestant"] == "perfect"
    (tmp_path / "ESL.jsonl").write_text("\n".join([*lines[:-2], lines[-1], lines[-2][:40]]))
    run(tmp_path, "--only", "perfect,constant")
    assert (fits.counts["perfect"], fits.counts["constant"]) == (5, 4)
    run(tmp_path, "--only", "perfect", "--again")
    assert (fits.counts["perfect"], fits.counts["constant"]) == (9, 4)


def test_results_of_other_rows_are_not_taken(
    fits: Fits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, "--only", "perfect")
    monkeypatch.setattr(accuracy, "divide", lambda name, number: division(name, number, first=0.5))
    run(tmp_path, "--only", "constant")
    options = accuracy.parsed(["--sets", "ESL", "--divisions", "2"])
    results, _, _ = accuracy.collect(accuracy.Store(tmp_path), options, list(fits.counts))
    assert list(results["ESL"]) == ["constant"]


def test_failure_is_written_down_with_its_reason(
    fits: Fits, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    run(tmp_path, "--only", "broken,slow,perfect", "--minutes", "0.001", "--markdown", str(page))
    lines = (tmp_path / "ESL.jsonl").read_text().splitlines()
    first = next(record for record in map(json.loads, lines) if record["contestant"] == "broken")
    assert first["failed"] == "ValueError: a class is absent"
    assert fits.counts == {"perfect": 4, "constant": 0, "broken": 4, "slow": 4}
    text = page.read_text()
    assert "broken on LEV: ValueError: a class is absent" in text
    assert "slow on ESL: took more than 0.001 minutes" in text
    assert "not installed: no-such-package" in text
    assert "| perfect | 0.000 (0.000) |" in text
    assert "home game" in text  # Friedman's function


def test_no_fit_is_begun_after_the_hours(fits: Fits, tmp_path: Path) -> None:
    run(tmp_path, "--only", "perfect", "--hours", "-1")
    assert fits.counts["perfect"] == 0


def test_wrong_names_are_refused(fits: Fits, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--sets", "tuning,nothing"], ["--only", "nobody"]):
        with pytest.raises(SystemExit) as ended:
            accuracy.main(wrong)
        assert ended.value.code == 2
    assert "no such name: nobody" in capsys.readouterr().err
