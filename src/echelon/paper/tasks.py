"""The data of the CORN paper as tasks, and those that stand in where its own cannot be had."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.files import typed_table
from echelon.data.labels import Labels
from echelon.data.rows import Rows
from echelon.datasets.digits import load_digits
from echelon.datasets.discs import make_discs
from echelon.datasets.friedman import fitted_probabilities, make_friedman
from echelon.datasets.reviews import make_reviews
from echelon.experiments.tasks import Task
from echelon.paper.data import Partition, three_parts

FIREMAN_ROWS = {"train": 30_922, "valid": 1_628, "test": 8_138}  # of the CORN paper's partition
COURSERA_ROWS = {"train": 8_888, "valid": 593, "test": 2_370}
DISCS_ROWS = {"train": 4_000, "valid": 400, "test": 2_000}
FIREMAN_COLUMNS = tuple(f"V{i}" for i in range(1, 11))


def generated_task(num_classes: int = 16, data_seed: int = 0) -> Task:
    """Fireman as echelon generates it: Friedman's function, in the sizes of the CORN paper."""
    parts = {
        name: make_friedman(rows, num_classes, seed=3 * data_seed + i)
        for i, (name, rows) in enumerate(FIREMAN_ROWS.items())
    }
    frames = {
        name: pd.DataFrame(part.features, columns=list(FIREMAN_COLUMNS))
        for name, part in parts.items()
    }
    return Task(
        "fireman (generated)",
        Labels(np.arange(num_classes)),
        frames["train"],
        parts["train"].ranks,
        frames["test"],
        parts["test"].ranks,
        validation=(frames["valid"], parts["valid"].ranks),
        floor=parts["test"].bayes_probabilities,
        split=data_seed,
        details={"data_seed": data_seed},
    )


def generated_reviews(data_seed: int = 0) -> Task:
    """Reviews that echelon generates, in the numbers of the paper's Coursera."""
    parts = {
        name: make_reviews(rows, seed=3 * data_seed + i)
        for i, (name, rows) in enumerate(COURSERA_ROWS.items())
    }
    frames = {name: pd.DataFrame({"review": part.texts}) for name, part in parts.items()}
    ranks = {name: part.ranks for name, part in parts.items()}
    floor = parts["test"].bayes_probabilities
    partition = Partition("reviews (generated)", frames, ranks, (1, 2, 3, 4, 5), {"text": "review"})
    return partition_task(partition, floor=floor, details={"data_seed": data_seed})


def generated_discs(data_seed: int = 0) -> Task:
    """Images of partly filled discs that echelon generates."""
    parts = {
        name: make_discs(rows, seed=3 * data_seed + i)
        for i, (name, rows) in enumerate(DISCS_ROWS.items())
    }
    frames = {
        name: pd.DataFrame({"image": list(part.images)}, dtype=object)
        for name, part in parts.items()
    }
    ranks = {name: part.ranks for name, part in parts.items()}
    floor = parts["test"].bayes_probabilities
    partition = Partition("discs (generated)", frames, ranks, (1, 2, 3, 4, 5), {"image": "image"})
    return partition_task(partition, floor=floor, details={"data_seed": data_seed})


def digits_task() -> Task:
    """The handwritten digits that scikit-learn brings, in the shares of the paper: 75, 5 and 20 %.

    The seed of the division is fixed, as in the paper's own data.
    """
    images, ranks = load_digits()
    frame = pd.DataFrame({"image": list(images)}, dtype=object)
    columns = {"image": "image"}
    rows = three_parts(Rows.of(frame, ranks, columns), seed=0)
    return partition_task(
        Partition(
            "digits",
            {part: frame.iloc[index].reset_index(drop=True) for part, index in rows.items()},
            {part: ranks[index] for part, index in rows.items()},
            tuple(range(10)),
            columns,
        )
    )


def partition_task(
    partition: Partition,
    *,
    floor: NDArray[np.float64] | None = None,
    split: int = 0,
    details: dict[str, Any] | None = None,
) -> Task:
    """A task of data that come in three subsets; `split` says which of several divisions it is."""
    return Task(
        partition.name,
        Labels(np.array(partition.classes)),
        partition.features["train"],
        partition.ranks["train"],
        partition.features["test"],
        partition.ranks["test"],
        validation=(partition.features["valid"], partition.ranks["valid"]),
        groups=None if partition.groups is None else partition.groups["train"],
        floor=floor,
        split=split,
        columns_by_kind=partition.columns_by_kind,
        details=details or {},
    )


def fireman_task(folder: str | Path) -> Task:
    """The CORN paper's partition of Fireman: `train.csv`, `valid.csv` and `test.csv` in a folder.

    Each has the columns `V1` to `V10` and `response`, the rank from 0 to 15. One CSV file with all
    rows is balanced and divided here, 75/5/20, as the paper describes it.
    """
    folder = Path(folder)
    if folder.is_file():
        return _divided_fireman(folder)
    files = {part: sorted(folder.glob(f"*{part}.csv")) for part in FIREMAN_ROWS if folder.is_dir()}
    missing = [part for part in FIREMAN_ROWS if len(files.get(part, ())) != 1]
    if missing:
        raise ValueError(
            f"{folder} must hold the partition of Fireman as three files whose names end in "
            f"train.csv, valid.csv and test.csv, or be one CSV file with all rows; there is not "
            f"exactly one {missing[0]}.csv"
        )
    frames = {part: _fireman_frame(places[0]) for part, places in files.items()}
    return _fireman(frames, "fireman", {})


def _divided_fireman(path: Path) -> Task:
    """Balance the classes, then divide at random: 75 % to train on, 5 % to validate, 20 % to test.

    The seed of the division is fixed: the paper has one partition, not one for each run.
    """
    frame = _fireman_frame(path)
    generator = np.random.default_rng(0)
    least = int(frame["response"].value_counts().min())
    rows = [
        generator.permutation(np.flatnonzero(frame["response"].to_numpy() == rank))[:least]
        for rank in sorted(frame["response"].unique())
    ]
    order = generator.permutation(np.concatenate(rows))
    ends = [round(0.75 * len(order)), round(0.8 * len(order))]
    parts = dict(zip(("train", "valid", "test"), np.split(order, ends), strict=True))
    frames = {name: frame.iloc[index].reset_index(drop=True) for name, index in parts.items()}
    made = _fireman(frames, "fireman (divided here)", {"balanced_to": least})
    return replace(made, numbers=parts)


def _fireman_frame(path: Path) -> pd.DataFrame:
    frame = typed_table(path)
    missing = [name for name in (*FIREMAN_COLUMNS, "response") if name not in frame.columns]
    if missing:
        raise ValueError(f"{path} has no column {missing[0]!r}; Fireman has V1 to V10 and response")
    response = frame["response"].to_numpy()
    ranks = response.astype(np.int64)
    lowest = ranks.min() if len(ranks) else 0
    if not np.array_equal(response, ranks) or lowest not in (0, 1):
        raise ValueError(f"{path}: response must be integers from 0 or 1 on; got {response[:5]}")
    ranked: pd.DataFrame = frame.assign(response=ranks - lowest)
    return ranked


def _fireman(frames: dict[str, pd.DataFrame], name: str, details: dict[str, Any]) -> Task:
    parts = {
        part: (frame[list(FIREMAN_COLUMNS)], frame["response"].to_numpy())
        for part, frame in frames.items()
    }
    num_classes = int(max(ranks.max() for _, ranks in parts.values())) + 1
    features, ranks = parts["train"]
    return Task(
        name,
        Labels(np.arange(num_classes)),
        *parts["train"],
        *parts["test"],
        validation=parts["valid"],
        floor=fitted_probabilities(features.to_numpy(), ranks, parts["test"][0].to_numpy()),
        details=details,
    )
