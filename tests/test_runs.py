"""The run folder: whole or not there."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from echelon.runs import Run, RunConfig, read_run, read_runs, set_aside, write_run
from echelon.storage.atomic import sweep

CONFIG = RunConfig(
    "corn",
    "wine.csv",
    seed=3,
    classes=["a", "b"],
    parameters={"backbone_options": {"hidden": (8,)}},
)
RUN = Run(
    config=CONFIG,
    history=[{"epoch": 1, "loss": 0.5}],
    metrics={"mae": 0.25, "log_score": float("inf")},
    predictions={"truth": np.arange(3), "label": np.array(["a", "b", "c"])},
    outcome={"best_epoch": np.int64(1)},
)


def test_round_trip(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RUN)
    found = read_run(tmp_path / "run")
    assert found.config.document() == CONFIG.document()
    assert found.config.name == CONFIG.name
    assert found.history == RUN.history
    assert found.metrics == {"mae": 0.25, "log_score": None}  # JSON has no infinities
    assert found.outcome == {"best_epoch": 1}
    assert found.predictions["label"].tolist() == ["a", "b", "c"]
    assert found.environment["echelon"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_finished_run_is_never_rewritten(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RUN)
    with pytest.raises(ValueError, match="never rewritten"):
        write_run(tmp_path / "run", RUN)


def test_a_run_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_run(tmp_path / "run", replace(RUN, metrics={"mae": object()}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["config.json", "metrics.json", "outcome.json", "predictions.npz", "DONE"]
)
def test_damage_is_noticed(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "run", RUN)
    path = tmp_path / "run" / name
    path.write_bytes(path.read_bytes()[:-2] + b" ")
    with pytest.raises(ValueError, match="is damaged"):
        read_run(tmp_path / "run")


def test_a_changed_digit_is_noticed(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RUN)
    path = tmp_path / "run" / "metrics.json"
    path.write_text(path.read_text().replace("0.25", "0.15"))
    with pytest.raises(ValueError, match=r"metrics\.json is not what was written"):
        read_run(tmp_path / "run")


def test_the_name_tells_configurations_apart_and_nothing_else() -> None:
    assert CONFIG.name == RunConfig.of(CONFIG.document()).name
    assert CONFIG.name.startswith("corn-seed3-")
    changes = [
        {"seed": 4}, {"fingerprint": "x"}, {"threads": 2}, {"parameters": {}}, {"part": "valid"},
        {"split": 1}, {"details": {"test_share": 0.3}}, {"data": "other"},
    ]  # fmt: skip
    names = {replace(CONFIG, **change).name for change in changes}
    assert len(names | {CONFIG.name}) == len(changes) + 1
    odd = replace(CONFIG, method="corn_without_subsets:mask=published / x").name
    assert "/" not in odd
    assert ":" not in odd


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="has no key 'epochs'"):
        RunConfig.of({**CONFIG.document(), "epochs": 3})
    with pytest.raises(ValueError, match="role must be one of"):
        RunConfig("corn", "wine.csv", role="rival")


def test_what_was_left_behind_is_not_read_and_is_swept(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RUN)
    dead = 2**22 + 1  # above the largest process number
    write_run(tmp_path / f".other.{dead}.partial", RUN)
    write_run(tmp_path / f".mine.{os.getpid()}.partial", RUN)
    (tmp_path / f".shared-abc.{dead}.partial").touch()
    assert len(read_runs(tmp_path)) == 1
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f".mine.{os.getpid()}.partial", "run",
    ]  # fmt: skip


def test_damaged_folders_are_set_aside_and_kept(tmp_path: Path) -> None:
    for number in (1, 2):
        write_run(tmp_path / "run", RUN)
        place = set_aside(tmp_path / "run")
        assert place.name == f".damaged-{number}-run"
        assert (place / "DONE").is_file()
    with pytest.raises(ValueError, match="has no finished run"):
        read_runs(tmp_path)
