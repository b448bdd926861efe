"""Trees on rows that are read once: every row is there, with its label, weight and threshold."""

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon.data.source import scan
from echelon.data.stream import open_stream
from echelon.data.survey import survey
from echelon.models import streamed_trees
from echelon.models.streamed_trees import fit_streamed_trees, stream_bytes
from echelon.models.thresholds import few_threshold_pairs, pairs_a_row
from echelon.models.trees import TreeSettings


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(2000), "kind": rng.choice(["a", "b"], 2000)})
    frame["grade"] = np.digitize(frame["x"] + (frame["kind"] == "b") / 2, np.arange(1, 7) / 5)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=300)
    return tmp_path / "rows.parquet"


def test_examples_are_those_of_all_training_rows(path, monkeypatch) -> None:
    monkeypatch.setattr(streamed_trees._StreamSequence, "batch_size", 431)
    known = survey(open_stream(scan(path, "grade")), 0.1, 0)
    examples = streamed_trees._Examples(known)
    sequence = streamed_trees._StreamSequence(known, examples, 0)
    size = len(sequence)
    assert size == (known.class_counts * pairs_a_row(7)).sum()
    blocks = [sequence[start : min(start + 431, size)] for start in range(0, size, 431)]
    columns = np.concatenate(blocks)
    rows = [r.select(known.is_training(h)) for _, r, h in known.stream]
    x = np.concatenate([each.table.numbers[:, 0] for each in rows])
    ranks = np.concatenate([each.ranks for each in rows])
    assert set(columns[:, 0]) == set(x)
    rank_of = dict(zip(x, ranks, strict=True))
    truth = np.array([rank_of[value] for value in columns[:, 0]])
    np.testing.assert_array_equal(examples.label, truth > columns[:, -1])
    np.testing.assert_array_equal(examples.threshold, columns[:, -1])
    # the pairs of a row stand for all its thresholds
    total = pd.Series(examples.weight).groupby(columns[:, 0]).sum()
    assert set(total) == {6.0}


def test_a_few_pairs_estimate_the_sum_over_all_thresholds() -> None:
    """Without bias: the mean over many draws is the sum over all thresholds."""
    ranks = np.repeat(np.arange(9), 4000)
    values = np.random.default_rng(1).random((9, 8))
    pairs = few_threshold_pairs(ranks, 9, np.random.default_rng(0))
    assert np.bincount(pairs.row).max() == 3
    np.testing.assert_array_equal(np.bincount(pairs.row), pairs_a_row(9)[ranks])
    sums = np.bincount(ranks[pairs.row], pairs.weight * values[ranks[pairs.row], pairs.threshold])
    np.testing.assert_allclose(sums / 4000, values.sum(1), rtol=0.04)
    two = few_threshold_pairs(np.array([0, 1]), 2, np.random.default_rng(0))
    assert two.threshold.tolist() == [0, 0]
    assert pairs_a_row(3).tolist() == [2, 2, 2]


def test_without_rows_held_out_a_hundred_trees_are_grown(path) -> None:
    known = survey(open_stream(scan(path, "grade")), 0.0, 0)
    trees = fit_streamed_trees(known, settings=TreeSettings(), seed=0, threads=1)
    assert trees.num_trees == 100
    assert stream_bytes(known) > 3 * 5 * 1000


def test_the_best_number_of_trees_is_chosen(path) -> None:
    model = echelon.OrdinalBoosting(rounds=60, random_state=0).fit(scan(path, "grade"))
    scores = [row["ranked_probability_score"] for row in model.history_]
    assert model.num_trees_ == int(np.argmin(scores)) + 1
    assert model.scores_["accuracy"] > 0.9


def test_weights_of_zero_alone_are_refused(path) -> None:
    frame = pd.read_parquet(path).assign(w=0.0)
    frame.to_parquet(path)
    with pytest.raises(ValueError, match="at least one row that counts"):
        echelon.OrdinalBoosting().fit(scan(path, "grade", weight="w"))
