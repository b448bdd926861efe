"""The comparison of all methods: every name, and what its tables say. It runs in tests/slow."""

import json
import subprocess
from pathlib import Path

import pytest

import methods
from echelon import METHODS, MODELS

MEANS = {"corn": 0.25, "ce": 0.5, "cumulative_link": 0.3, "cumulative link": 0.3, "constant": 0.9}


def document(behind: set[str]) -> dict:
    runs = [
        {"method": name, "seed": seed, "mae": mae + seed, "ranked_probability_score": mae}
        for name, mae in MEANS.items()
        for seed in (-0.01, 0.01)
    ]
    verdicts = {name: "different" if name in behind else "within noise" for name in MEANS}
    pairs = [
        {"first": "corn", "second": name, "mean": -mae, "se": 0.2, "verdict": verdicts[name]}
        for name, mae in MEANS.items()
        if name != "corn"
    ]
    strange = {"first": "ce", "second": "cumulative_link", "mean": 9.0, "se": 0.1}
    pairs.append(strange | {"verdict": "different"})
    return {"runs": runs, "differences": pairs}


def test_every_method_and_model_is_a_contestant() -> None:
    assert {*METHODS, *MODELS} - {*methods.contestants()} == {"network"}
    assert set(methods.contestants()) - set(methods.systems()) == {"auto", "blend"}


def test_a_star_is_a_verdict_against_the_best() -> None:
    text = methods.comparison({"one": document({"ce", "constant"}), "two": document(set())})
    maes = text.split("### MAE")[1].split("### RPS")[0]
    assert "| `corn` | **0.250** | **0.250** |" in maes
    assert "| `ce` | 0.500 * | 0.500 |" in maes
    assert "| `cumulative_link` | 0.300 | 0.300 |" in maes
    assert "| `constant` | 0.900 * | 0.900 |" in maes
    assert "cumulative link" not in text


def test_the_best_stands_first_and_a_lead_within_noise_counts_as_level() -> None:
    text = methods.comparison({"one": document({"ce", "constant"}), "two": document(set())})
    first, second, third, last = [line for line in text.splitlines() if line.startswith("| `")][:4]
    assert first == "| `corn` | 1.0 | 1.0 | 2 | 2 | 2 |"
    assert second == "| `cumulative_link` | 2.0 | 2.0 | 0 | 2 | 2 |"
    assert third == "| `ce` | 3.0 | 3.0 | 0 | 0 | 1 |"
    assert last.startswith("| `constant` | 4.0 |")


def test_a_set_is_not_run_again_unless_something_else_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        return subprocess.CompletedProcess(command, 0, json.dumps(document({"ce"})), "")

    monkeypatch.setattr(methods.subprocess, "run", run)

    def compared(out: str, seeds: int) -> dict:
        command = ["compare", "ESL.csv", "--out", out, "--methods", "ce,corn", "--seeds"]
        job = methods.Job("ESL", [*command, str(seeds), "--json"], tmp_path / "kept" / "ESL.json")
        return methods.compared([job], hours=1)

    first = compared("here", 2)
    assert first["ESL"]["runs"] == document({"ce"})["runs"]
    kept = compared("elsewhere", 2)["ESL"]
    assert {key: kept[key] for key in first["ESL"]} == first["ESL"]
    assert len(calls) == 1
    compared("here", 3)
    assert len(calls) == 2
