"""Runs that were kept in a file are those that a comparison goes on with."""

from pathlib import Path

import numpy as np
import pytest

import kept_runs
from echelon.runs import Run, RunConfig, read_run, write_run


def run(seed: int, mae: float = 0.5) -> Run:
    predictions = {
        "row": np.arange(3), "truth": np.array([0, 1, 2]), "prediction": np.array([0, 1, 1]),
        "probabilities": np.full((3, 3), 1 / 3, dtype=np.float32),
        "cells": np.array([["somebody's"], ["own"], ["words"]]),
        "cell_names": np.array(["text"]), "cell_rows": np.arange(3),
    }  # fmt: skip
    config = RunConfig("corn", "faces", seed=seed, classes=[1, 2, 3], rows={"test": 3})
    return Run(config, [], {"mae": mae}, predictions)


def test_what_was_put_is_taken_elsewhere_without_what_the_rows_held(tmp_path: Path) -> None:
    names = []
    for seed in (0, 1):
        names.append(run(seed).config.name)
        write_run(tmp_path / "here" / names[-1], run(seed))
    file = tmp_path / "kept" / "faces.zip"
    assert kept_runs.put(tmp_path / "here", file) == sorted(names)
    assert kept_runs.take(file, tmp_path / "there") == sorted(names)
    for seed, name in enumerate(names):
        taken = read_run(tmp_path / "there" / name)
        assert taken.config == run(seed).config
        assert taken.metrics == {"mae": 0.5}
        assert set(taken.predictions) == {"row", "truth", "prediction", "probabilities"}
        np.testing.assert_array_equal(taken.predictions["prediction"], [0, 1, 1])


def test_runs_that_are_there_stay_as_they_are(tmp_path: Path) -> None:
    name = run(0).config.name
    write_run(tmp_path / "here" / name, run(0))
    kept_runs.put(tmp_path / "here", tmp_path / "file.zip")
    write_run(tmp_path / "there" / name, run(0, mae=0.25))
    assert kept_runs.take(tmp_path / "file.zip", tmp_path / "there") == []
    assert read_run(tmp_path / "there" / name).metrics["mae"] == 0.25


def test_a_folder_without_runs_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no finished run"):
        kept_runs.main(["put", str(tmp_path / "empty"), str(tmp_path / "file.zip")])
    assert not (tmp_path / "file.zip").exists()
