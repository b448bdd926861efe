"""The paper's data as tasks: a partition as it is, one table divided, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from echelon.paper.tasks import digits_task, fireman_task, generated_discs, generated_task
from tests.paper.partitions import COLUMNS, frame_of, write_partition


@pytest.fixture(scope="module")
def partition(tmp_path_factory):
    return write_partition(tmp_path_factory.mktemp("fireman"))


def test_a_partition_is_taken_as_it_is(partition) -> None:
    task = fireman_task(partition)
    assert task.rows == {"train": 600, "valid": 100, "test": 200}
    assert list(task.features.columns) == COLUMNS
    assert task.labels.num_classes == 4
    assert task.floor.shape == (200, 4)
    ranks = task.ranks, task.test_ranks, task.validation[1]
    assert [values.dtype for values in ranks] == [np.int64] * 3


def test_one_table_is_balanced_and_divided(tmp_path) -> None:
    whole = frame_of(2000, 5)
    whole = pd.concat([whole, whole[whole["response"] == 2]]).assign(
        response=lambda frame: frame["response"] + 1  # ranks from 1, as they often come
    )
    whole.to_csv(tmp_path / "fireman.csv", index=False)
    task = fireman_task(tmp_path / "fireman.csv")
    ranks = np.concatenate([task.ranks, task.validation[1], task.test_ranks])
    counts = np.bincount(ranks)
    assert len(set(counts.tolist())) == 1
    shares = np.array([task.rows[part] for part in ("train", "valid", "test")]) / len(ranks)
    np.testing.assert_allclose(shares, [0.75, 0.05, 0.2], atol=0.002)
    again = fireman_task(tmp_path / "fireman.csv")
    assert again.fingerprint == task.fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "valid.csv").unlink(), "not exactly one valid.csv"),
        (
            lambda folder: (
                pd.read_csv(folder / "test.csv").drop(columns="V3").to_csv(folder / "test.csv")
            ),
            "has no column 'V3'",
        ),
        (
            lambda folder: (
                pd.read_csv(folder / "test.csv").assign(response=0.5).to_csv(folder / "test.csv")
            ),
            "must be integers",
        ),
    ],
)
def test_wrong_partitions(tmp_path, change, message) -> None:
    for part in ("train", "valid", "test"):
        frame_of(40, 0).to_csv(tmp_path / f"{part}.csv", index=False)
    change(tmp_path)
    with pytest.raises(ValueError, match=message):
        fireman_task(tmp_path)


def test_divisions_of_generated_data_are_told_apart() -> None:
    assert [generated_task(data_seed=n).split for n in range(2)] == [0, 1]


def test_generated_fireman_has_the_sizes_of_the_paper_and_a_floor() -> None:
    found = generated_task()
    assert (len(found.ranks), len(found.validation[1]), len(found.test_ranks)) == (
        30_922, 1_628, 8_138,
    )  # fmt: skip
    assert found.floor.shape == (8_138, 16)


@pytest.mark.parametrize("make", [digits_task, generated_discs])
def test_images_stand_in_a_column_of_the_name_of_their_kind(make) -> None:
    found = make()
    assert (
        list(found.features)
        == list(found.test_features)
        == [*found.columns_by_kind.values()]
        == ["image"]
    )
