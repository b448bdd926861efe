"""Small tables in the form of the paper's Fireman, and how large partitions are."""

from pathlib import Path

import pandas as pd

from echelon.data import make_friedman
from echelon.paper.data import Partition

COLUMNS = [f"V{i}" for i in range(1, 11)]


def frame_of(rows: int, seed: int, num_classes: int = 4) -> pd.DataFrame:
    data = make_friedman(rows, num_classes=num_classes, seed=seed)
    return pd.DataFrame(data.features, columns=COLUMNS).assign(response=data.ranks)


def write_partition(folder: Path) -> Path:
    """The three files of a partition."""
    for seed, (part, rows) in enumerate({"train": 600, "valid": 100, "test": 200}.items()):
        frame_of(rows, seed).to_csv(folder / f"fireman_balanced_{part}.csv", index=False)
    return folder


def sizes(partition: Partition) -> list[int]:
    for part in ("train", "valid", "test"):
        assert len(partition.features[part]) == len(partition.ranks[part])
    return [len(partition.ranks[part]) for part in ("train", "valid", "test")]
