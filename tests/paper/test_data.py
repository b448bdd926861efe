"""Readers of published texts, on small files in exactly the published formats."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from echelon.paper.data import Partition, read_coursera, read_tripadvisor
from tests.paper.partitions import sizes

# ---- texts ---------------------------------------------------------------------------------------


def test_coursera_balanced(tmp_path: Path) -> None:
    texts = [f"review number {i // 2 if i < 40 else i}" for i in range(400)]  # twenty twins
    frame = pd.DataFrame(
        {"TEXT_COLUMN_NAME": texts, "LABEL_COLUMN_NAME": np.arange(400) // 2 % 5 + 1}
    )
    frame.to_csv(tmp_path / "c.csv", index=False)
    found = read_coursera(tmp_path / "c.csv")
    assert np.abs(np.subtract(sizes(found), [300, 20, 80])).max() <= 4
    assert found.columns_by_kind == {"text": "TEXT_COLUMN_NAME"}
    assert found.classes == (1, 2, 3, 4, 5)
    parts = [set(found.features[part]["TEXT_COLUMN_NAME"]) for part in found.features]
    assert sum(map(len, parts)) == len(set.union(*parts))  # no text is in two of them
    by_text = dict(zip(frame.TEXT_COLUMN_NAME, frame.LABEL_COLUMN_NAME, strict=True))
    for part, rows in found.features.items():  # ranks are in the order of the stars
        expected = [by_text[text] for text in rows["TEXT_COLUMN_NAME"]]
        assert found.labels(part).tolist() == expected
        assert (found.ranks[part] == np.array(expected) - 1).all()
    other = read_coursera(tmp_path / "c.csv", seed=1)
    assert list(other.features["test"].iloc[:, 0]) != list(found.features["test"].iloc[:, 0])


def test_coursera_raw_is_balanced_to_the_rarest(tmp_path: Path) -> None:
    stars = np.repeat([1, 2, 3, 4, 5], [20, 30, 40, 50, 160])
    frame = pd.DataFrame(
        {"Id": range(300), "Review": [f"r {i}" for i in range(300)], "Label": stars}
    )
    frame.to_csv(tmp_path / "c.csv", index=False)
    found = read_coursera(tmp_path / "c.csv")
    ranks = np.concatenate(list(found.ranks.values()))
    assert np.bincount(ranks).tolist() == [20] * 5


def test_tripadvisor_has_1400_a_class(tmp_path: Path) -> None:
    stars = np.repeat([1, 2, 3, 4, 5], [1421, 1793, 1400, 1500, 1450])
    frame = pd.DataFrame({"Review": [f"hotel {i}" for i in range(len(stars))], "Rating": stars})
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = read_tripadvisor(tmp_path / "t.csv")
    assert np.bincount(np.concatenate(list(found.ranks.values()))).tolist() == [1400] * 5
    assert np.abs(np.subtract(sizes(found), [5250, 350, 1400])).max() <= 3


def partition(counts: list[int]) -> Partition:
    """Rows whose cells say their subset and rank."""
    features, ranks = {}, {}
    for subset in ("train", "valid", "test"):
        ranks[subset] = np.repeat(np.arange(len(counts)), counts)
        cells = [f"{subset} {rank} {i}" for i, rank in enumerate(ranks[subset])]
        features[subset] = pd.DataFrame({"cell": cells})
    return Partition("made", features, ranks, tuple("abc"[: len(counts)]))


def test_a_partition_is_balanced_within_each_subset() -> None:
    balanced = partition([5, 3, 9]).balanced(seed=0)
    for subset, ranks in balanced.ranks.items():
        assert np.bincount(ranks).tolist() == [3, 3, 3]
        told = [cell.split()[:2] for cell in balanced.features[subset]["cell"]]
        assert told == [[subset, str(rank)] for rank in ranks]
    with pytest.raises(ValueError, match="the subset train has no 'b': give more rows"):
        partition([5, 0, 9]).balanced(seed=0)


def test_validation_and_test_are_swapped_and_training_is_not() -> None:
    given = partition([2, 1])
    swapped = given.swapped()
    assert swapped.features["test"] is given.features["valid"]
    assert swapped.features["valid"] is given.features["test"]
    assert swapped.features["train"] is given.features["train"]


def test_what_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"a": ["x"], "age": [40]}).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match="lacks the column 'Review'; it has: a, age"):
        read_tripadvisor(tmp_path / "a.csv")


@pytest.mark.realdata
def test_the_real_coursera(real_data: Path) -> None:
    found = read_coursera(real_data / "text" / "coursera_balanced.csv")
    assert np.abs(np.subtract(sizes(found), [8888, 593, 2370])).max() <= 10
    train, test = (set(found.features[part].iloc[:, 0]) for part in ("train", "test"))
    assert not train & test
