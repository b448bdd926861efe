"""Tasks: a table that is divided once."""

from pathlib import Path

import numpy as np

from echelon.experiments import compare_methods
from tests.experiments.made_up import HERE, QUICK, task


def test_several_divisions_differ_and_are_told_apart(tmp_path: Path) -> None:
    tasks = [task(split_seed=number) for number in range(2)]
    runs = compare_methods(tasks, ["ce"], 1, tmp_path, parameters=QUICK, executor=HERE)
    assert len(runs) == 6
    assert {run.config.split for run in runs} == {0, 1}
    assert len({run.config.fingerprint for run in runs}) == 2


def test_groups_stay_on_one_side() -> None:
    groups = np.arange(300) // 3
    found = task(groups=groups)
    assert len(found.ranks) + len(found.test_ranks) == 300
    assert set(found.groups) == {g for g in set(groups) if (found.groups == g).sum() == 3}
