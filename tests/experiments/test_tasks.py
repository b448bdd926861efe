"""Tasks: a table that is divided once."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd

from echelon.experiments import compare_methods, table_task
from tests.experiments.made_up import HERE, QUICK, task
from tests.media import mixed_table


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


def test_rows_can_be_found_in_their_file() -> None:
    frame = pd.DataFrame({"x": np.arange(80.0), "said": [f"text {i}" for i in range(80)]})
    found = table_task("made up", frame, np.arange(80) % 4, columns_by_kind={"text": "said"})
    assert found.media == ["said"]
    assert found.rows == {"train": 60, "test": 20}
    for part, rows in (("train", found.features), ("test", found.test_features)):
        pd.testing.assert_frame_equal(frame.iloc[found.numbers[part]].reset_index(drop=True), rows)


def test_the_fingerprint_knows_every_cell_rank_and_group() -> None:
    plain = task()
    frame, ranks = plain.test_features, plain.test_ranks
    changed = [
        dataclasses.replace(plain, test_features=frame.assign(kind="big")),
        dataclasses.replace(plain, test_features=frame.rename(columns={"V0": "W0"})),
        dataclasses.replace(plain, test_ranks=(ranks + 1) % 3),
        dataclasses.replace(plain, groups=np.arange(len(plain.ranks))),
        dataclasses.replace(plain, validation=(frame, ranks)),
    ]
    assert task().fingerprint == plain.fingerprint
    assert len({one.fingerprint for one in (plain, *changed)}) == 6


def test_images_count_by_their_pixels() -> None:
    frame, ranks = mixed_table(40)
    one, same, other = (
        table_task(
            "images", table, ranks, columns_by_kind={"text": "review", "image": "photo"}
        ).fingerprint
        for table in (frame, frame.copy(), frame.assign(photo=[p + 1 for p in frame["photo"]]))
    )
    assert one == same != other
