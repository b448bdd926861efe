"""The run folder: whole or not there."""

from pathlib import Path

import numpy as np
import pytest

from echelon.runs import read_run, write_run

RUN = {
    "config": {"method": "corn"},
    "history": [{"epoch": 1, "loss": 0.5}],
    "metrics": {"mae": 0.25},
    "predictions": {"truth": np.arange(3), "label": np.array(["a", "b", "c"])},
}


def test_round_trip(tmp_path: Path) -> None:
    write_run(tmp_path / "run", **RUN)
    found = read_run(tmp_path / "run")
    assert (found.config, found.history, found.metrics) == (
        RUN["config"], RUN["history"], RUN["metrics"],
    )  # fmt: skip
    assert found.predictions["label"].tolist() == ["a", "b", "c"]
    assert found.environment["echelon"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_finished_run_is_never_rewritten(tmp_path: Path) -> None:
    write_run(tmp_path / "run", **RUN)
    with pytest.raises(ValueError, match="never rewritten"):
        write_run(tmp_path / "run", **RUN)


def test_a_run_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_run(tmp_path / "run", **{**RUN, "metrics": {"mae": object()}})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["metrics.json", "predictions.npz"])
def test_damage_is_noticed(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "run", **RUN)
    (tmp_path / "run" / name).write_bytes(b"{")
    with pytest.raises(ValueError, match="is damaged"):
        read_run(tmp_path / "run")
