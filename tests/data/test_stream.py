"""Subsets of a source: by a hash of the row or its group, however the rows lie in files."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from echelon.data.source import scan
from echelon.data.stream import in_shares, open_stream, unit_numbers
from echelon.data.survey import survey


def frame(n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": np.arange(float(n)) + 0.5,
            "size": rng.normal(size=n),
            "colour": rng.choice(["red", "blue", None], n),
            "day": pd.date_range("2020-01-01", periods=n, freq="h").astype("datetime64[us]"),
            "who": rng.integers(0, 200, n),
            "grade": rng.integers(0, 4, n),
        }
    )


def held_numbers(path, **options) -> set[float]:
    known = survey(open_stream(scan(path, "grade", **options)), 0.2, seed=3)
    return set(known.held.table.numbers[:, 0])


def write(table: pd.DataFrame, folder, files: int, ending: str = "parquet") -> str:
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(table)), files)):
        some = table.iloc[part]
        if ending == "csv":
            some.to_csv(folder / f"{number:02}.csv", index=False)
        else:
            some.to_parquet(folder / f"{number:02}.parquet", row_group_size=77, index=False)
    return f"{folder}/*.{ending}"


@pytest.mark.parametrize("options", [{}, {"group": "who"}])
def test_subsets_are_equal_for_one_file_and_for_twenty(tmp_path, options) -> None:
    table = frame()
    shuffled = table.sample(frac=1, random_state=0)[table.columns[::-1]]
    held = held_numbers(write(table, tmp_path / "one", 1), **options)
    assert held == held_numbers(write(table, tmp_path / "twenty", 20), **options)
    assert held_numbers_of_last(write(shuffled, tmp_path / "other", 20), **options) == held
    assert held == held_numbers(write(table, tmp_path / "text", 3, "csv"), **options)
    assert 0.1 * len(table) < len(held) < 0.3 * len(table)


def held_numbers_of_last(path, **options) -> set[float]:
    """The same where the columns stand in another order."""
    known = survey(open_stream(scan(path, "grade", **options)), 0.2, seed=3)
    place = [column.name for column in known.stream.schema.numeric].index("number")
    return set(known.held.table.numbers[:, place])


def test_groups_and_twins_stay_on_one_side(tmp_path) -> None:
    table = frame()
    path = write(table, tmp_path / "groups", 5)
    known = survey(open_stream(scan(path, "grade", group="who")), 0.2, seed=0)
    held = set(known.held.groups)
    for _, rows, hashes in known.stream:
        assert not held & set(rows.groups[known.is_training(hashes)])
    twins = pd.concat([table.drop(columns="who")] * 2, ignore_index=True)
    twins["grade"] = np.arange(len(twins)) % 4  # their labels differ
    twins.loc[0, "size"], twins.loc[len(table), "size"] = 0.0, -0.0
    known = survey(open_stream(scan(write(twins, tmp_path / "twins", 5), "grade")), 0.2, seed=0)
    counts = pd.Series(known.held.table.numbers[:, 0]).value_counts()
    assert set(counts) == {2}


def test_other_seeds_and_other_shares_draw_other_rows(tmp_path) -> None:
    source = scan(write(frame(), tmp_path / "rows", 2), "grade", drop=["who"])
    first, second = (survey(open_stream(source), 0.2, seed) for seed in (0, 1))
    held = [set(known.held.table.numbers[:, 0]) for known in (first, second)]
    assert len(held[0] & held[1]) < 0.5 * len(held[0])
    low, high = (open_stream(source).subset(7, *ends) for ends in ((0.0, 0.3), (0.3, 1.0)))
    counts = [sum(len(rows) for _, rows, _ in stream) for stream in (low, high)]
    assert sum(counts) == 3000
    assert 700 < counts[0] < 1100
    # one division says nothing of the next
    known = survey(low, 0.5, seed=0)
    assert 0.4 < len(known.held) / counts[0] < 0.6


def test_numbers_of_units_are_uniform() -> None:
    numbers = unit_numbers(np.arange(100_000, dtype=np.uint64), salt=5)
    shares = np.histogram(numbers, bins=20, range=(0, 1))[0] / len(numbers)
    assert np.abs(shares - 0.05).max() < 0.004
    assert in_shares(np.arange(9, dtype=np.uint64), ()).all()


def test_rows_can_be_collected(tmp_path) -> None:
    table = frame(200)
    table["w"] = 2.0
    stream = open_stream(scan(write(table, tmp_path / "rows", 3), "grade", weight="w"))
    cells, ranks, weights = stream.collect()
    assert cells["size"].tolist() == table["size"].tolist()
    assert ranks.tolist() == table["grade"].tolist()
    assert set(weights) == {2.0}


def test_rows_without_a_label_are_left_out_or_refused(tmp_path) -> None:
    table = frame(100)
    table["grade"] = table["grade"].astype(float)
    table.loc[:9, "grade"] = np.nan
    source = scan(write(table, tmp_path / "rows", 2), "grade")
    stream = open_stream(source)
    assert stream.unlabelled == 10
    assert sum(len(rows) for _, rows, _ in stream) == 90
    with pytest.raises(ValueError, match=r"10 rows of .* have no label in the column 'grade'"):
        open_stream(replace(source, missing_target="error"))
