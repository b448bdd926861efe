"""What is said of streamed fits, and that a fit which is in the file of results is not repeated."""

import json
from pathlib import Path
from typing import Any

import pytest

import streaming


def row(streamed: bool, **given: Any) -> dict[str, Any]:
    plain = {
        "kind": "network", "size": 1000, "streamed": streamed, "seed": 0, "asked_epochs": 1,
        "backbone": "mlp", "rows": 1000, "epochs": [3.0, 2.0], "peak_mib": 500.0, "mae": 0.7,
    }  # fmt: skip
    return {**plain, **given}


def test_each_promise_is_said_to_hold_or_to_fail() -> None:
    rows = [
        row(True, epochs=[2.4]), row(False), row(True, seed=1, epochs=[2.6]), row(False, seed=1),
        row(True, size=9000, rows=9000, epochs=[27.0], peak_mib=2000.0),
    ]  # fmt: skip
    said = streaming.verdicts(rows)
    assert [line.split()[0] for line in said] == ["FAILS", "FAILS", "holds", "FAILS", "holds"]
    assert "peak of 2,000 MiB, below 1,536" in said[0]
    assert "4.00 times" in said[1]
    assert "1.20, at most 1.25" in said[2]
    assert "1.50, at most 1.25" in said[3]
    assert "+0.00 % (standard error 0.00 %)" in said[4]
    worse = [{**each, "mae": 0.7022} if each["streamed"] else each for each in rows]
    assert streaming.verdicts(worse)[4].startswith("FAILS")


def test_fits_that_were_made_are_not_made_again(tmp_path: Path, monkeypatch) -> None:
    made = []

    def fit(*asked: Any) -> dict[str, Any]:
        made.append(asked)
        if len(made) == 4:
            raise RuntimeError("stopped")
        return {"rows": 50, "epochs": [1.0], "peak_mib": 1.0, "mae": 0.5}

    monkeypatch.setattr(streaming, "in_a_process", fit)
    results = tmp_path / "fits.jsonl"
    asked = {"seeds": 3, "keep": tmp_path, "results": results}
    with pytest.raises(RuntimeError, match="stopped"):
        streaming.measure([50], ["network"], **asked)
    assert len(results.read_text().splitlines()) == 3
    rows = streaming.measure([50], ["network"], **asked)
    assert len(made) == 4 + 3
    assert [(each["seed"], each["streamed"]) for each in rows] == [
        (0, True), (0, False), (1, True), (1, False), (2, True), (2, False),
    ]  # fmt: skip
    assert [json.loads(line)["seed"] for line in results.read_text().splitlines()] == [
        *(0, 0), *(1, 1), *(2, 2),
    ]  # fmt: skip


def test_the_page_shows_single_fits_apart_and_several_seeds_together() -> None:
    several = [
        row(streamed, seed=seed, asked_epochs=5, mae=0.7 + 0.007 * streamed * seed)
        for seed in (0, 2) for streamed in (True, False)
    ]  # fmt: skip
    text = streaming.page_text([row(True), row(False), *several])
    assert text.count("| network | 1,000 |") == 2
    assert "| mlp, 1,000 rows, 5 epochs | 2 | 0.7070 | 0.7000 | +1.00 % | 1.00 % |" in text
    assert "networks of the same rows" not in streaming.page_text([row(True), row(False)])
