"""Searches that are killed, that run side by side, and on a real table."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import echelon
from echelon.data import make_friedman
from echelon.experiments import table_task
from echelon.experiments.contestants import contestant_parameters
from echelon.experiments.execute import Executor
from echelon.experiments.tuned import make_tuning, run_tuning
from echelon.models.table import MODELS
from tests.experiments.test_tuned import FRAME


def start(out: Path, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "echelon", "tune", "table.csv", "--target", "rank", "--json"]
    command += ["--out", str(out), "--trials", "12", *options]
    return subprocess.Popen(
        command, cwd=out.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def stamps(out: Path) -> dict[str, int]:
    return {p.parent.name: p.stat().st_mtime_ns for p in (out / "trials").glob("[!.]*/DONE")}


@pytest.mark.parametrize(
    "options",
    [("--workers", "2"), ("--workers", "1", "--model", "network:backbone=mlp")],
    ids=["boosting", "network"],
)
def test_killed_and_started_again_it_repeats_no_trial(options, tmp_path) -> None:
    """And ends where it would have ended."""
    data = make_friedman(400, num_classes=4, seed=1)
    FRAME.iloc[:0].reindex(range(400)).assign(
        **{f"V{i}": data.features[:, i] for i in range(10)}, rank=data.ranks
    ).to_csv(tmp_path / "table.csv", index=False)
    calm = start(tmp_path / "calm", *options)
    text, errors = calm.communicate(timeout=600)
    assert calm.returncode == 0, errors
    expected = json.loads(text)
    out = tmp_path / "killed"
    for done in (2, 7):
        process = start(out, *options)
        deadline = time.monotonic() + 300
        while len(stamps(out)) < done and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        before = stamps(out)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert len(before) >= done
    again = start(out, *options)
    text, errors = again.communicate(timeout=600)
    assert again.returncode == 0, errors
    assert before.items() <= stamps(out).items()
    assert len(stamps(out)) == 12
    document = json.loads(text)
    for trial in (*document["trials"], *expected["trials"]):
        del trial["seconds"]
    assert document["trials"] == expected["trials"]
    assert document["test"] == expected["test"]


def test_side_by_side_and_one_after_the_other_are_the_same(tmp_path) -> None:
    """Also on Ray; the processes stay from one batch to the next."""
    data = make_friedman(300, num_classes=3)
    found = [
        echelon.tune(data.features, data.ranks, "boosting:rounds=20", trials=6, **where)
        for where in ({"workers": 1}, {"workers": 2}, {"cluster": "local", "workers": 2})
    ]
    tables = [tuned.trials_.drop(columns="seconds") for tuned in found]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    with Executor(workers=2).opened(4) as opened:
        task = table_task("rows", FRAME, [0, 1, 2] * 86 + [0, 1])
        tuning = make_tuning(task, contestant_parameters("prank", {}), None, trials=8)
        run_tuning(task, tuning, tmp_path, executor=opened)
        assert len(opened.pool.processes) <= 2


@pytest.mark.parametrize("name", [name for name, row in MODELS.items() if row.is_named])
def test_every_model_can_be_tuned(name: str) -> None:
    data = make_friedman(260, num_classes=3, seed=3)
    limit = {"auto": ":time_limit=5", "network": ":settings.max_epochs=4"}.get(name, "")
    tuned = echelon.tune(data.features, data.ranks, f"{name}{limit}", trials=5, workers=1)
    assert set(tuned.trials_["state"]) <= {"done", "pruned"}
    assert tuned.test_["best"]["ranked_probability_score"] < 0.45  # a constant has 0.44


@pytest.mark.realdata
def test_thirty_trials_improve_on_the_default(real_data: Path) -> None:
    import pandas as pd

    table = pd.read_csv(real_data / "tabular" / "winequality-white.csv")
    tuned = echelon.tune(table.drop(columns="response"), table["response"], trials=30)
    assert len(tuned.trials_) == 30
    assert tuned.validation_["best"] < tuned.validation_["default"]
    # No trial has seen these rows; the search must not have made things worse there.
    best, default = (tuned.test_[name][tuned.metric] for name in ("best", "default"))
    assert best < 1.02 * default
