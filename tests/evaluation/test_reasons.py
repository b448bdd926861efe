"""Contributions against Shapley values by all orders, their sums, and their sentences."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from echelon.evaluation.reasons import RowReasons, row_reasons, spread_rows
from echelon.evaluation.recombining import Curves


def score(rows: pd.DataFrame) -> np.ndarray:
    """Four ranks, with interactions."""
    a, b, c, d = (rows[name].to_numpy() for name in "abcd")
    latent = np.stack([a * b + c - cut + 0.5 * d * a * c for cut in (0.2, 0.6, 1.0)], axis=1)
    above = 1 / (1 + np.exp(-3 * latent))
    edges = np.concatenate([np.ones((len(a), 1)), above, np.zeros((len(a), 1))], axis=1)
    return -np.diff(edges, axis=1)


def exceedance(rows: pd.DataFrame) -> np.ndarray:
    return Curves(score)(rows)


def shapley(row: pd.Series, background: pd.DataFrame) -> np.ndarray:
    """By the definition: the mean over all orders and all background rows, (columns, K-1)."""
    names = list(background.columns)
    total = np.zeros((len(names), 3))
    orders = list(permutations(range(len(names))))
    for order in orders:
        mixed = background.copy()
        before = exceedance(mixed)
        for place in order:
            mixed[names[place]] = row[names[place]]
            after = exceedance(mixed)
            total[place] += (after - before).mean(axis=0)
            before = after
    return total / len(orders)


def rows_of(n: int, seed: int) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).random((n, 4)), columns=list("abcd"))


NAMED = [["a 1", "b 1", "c 1", "d 1"]]


def test_sampled_values_are_within_three_standard_errors_of_the_exact_ones() -> None:
    background, frame = rows_of(10, 0), rows_of(5, 1)
    far = []
    for seed in range(4):
        found = row_reasons(
            Curves(score), frame, range(5), background, NAMED * 5, chains=200, seed=seed
        )
        for one in found:
            true = shapley(frame.iloc[one.row], background)
            gaps = np.abs(one.contributions - true) / one.exceedance_standard_errors
            rank = np.abs(one.rank_contributions - true.sum(axis=1)) / one.standard_errors
            far += [gaps.max(), rank.max()]
    assert max(far) < 3


def test_sums_are_exact_however_few_the_chains() -> None:
    frame = rows_of(6, 2)
    for size in (1, 2, 3, 8):
        background = rows_of(size, 3)
        for one in row_reasons(Curves(score), frame, [0, 5], background, NAMED * 2):
            own = exceedance(frame.iloc[[one.row]])[0]
            mean = exceedance(background).mean(axis=0)
            np.testing.assert_allclose(one.contributions.sum(axis=0), own - mean, atol=1e-12)
            np.testing.assert_allclose(one.rank_contributions.sum(), (own - mean).sum(), atol=1e-12)


def test_an_unused_column_contributes_nothing_and_twins_the_same() -> None:
    def twins(rows: pd.DataFrame) -> np.ndarray:
        p = rows["a"] * rows["b"]
        return np.stack([1 - p, p], axis=1)

    frame = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, 1.0], "c": [0.0, 1.0]})
    named = [["a 1", "b 1", "c 1"]]
    (one,) = row_reasons(Curves(twins), frame, [1], frame[:1], named, chains=40)
    assert one.rank_contributions[2] == 0
    np.testing.assert_allclose(one.rank_contributions, [0.5, 0.5, 0.0])  # a pair is symmetric


def reasons(start, contributions, named=("age 71", "bmi 20", "sex f")) -> RowReasons:
    parts = np.array(contributions, dtype=float)[:, None]
    zeros = np.zeros((len(parts), 1))
    return RowReasons(
        0, tuple("abc"), named, np.array([start]), np.array([start + parts.sum()]), parts,
        zeros[:, 0], zeros,
    )  # fmt: skip


def test_the_sentences_of_a_row() -> None:
    assert reasons(0.12, [0.19, -0.06, 0.001]).sentences(["healthy", "severe"]) == [
        "age 71 raises the chance of severe from 12 to 31 %",
        "bmi 20 lowers it from 31 to 25 %",
    ]
    assert reasons(0.12, [0.004, 0.0, 0.0]).sentences(["healthy", "severe"]) == [
        "nothing stands out: the chance of severe is 12 %, as for other rows"
    ]
    said = reasons(0.5, [0.1, 0.05, 0.02]).sentences(["no", "yes"], most=1)
    assert said[1] == "the other 2 columns together raise it from 60 to 67 %"
    assert reasons(0.5, [0.1, 0.05, 0.0]).sentences(["no", "yes"], most=2)[1].endswith("65 %")


def test_no_sentence_leaves_the_probabilities() -> None:
    """The order of telling is changed where a chance would fall below 0 or rise above 1."""
    assert reasons(0.3, [-0.4, 0.35, 0.0]).sentences(["no", "yes"]) == [
        "bmi 20 raises the chance of yes from 30 to 65 %",
        "age 71 lowers it from 65 to 25 %",
    ]
    assert reasons(0.5, [0.7, -0.6, 0.0]).sentences(["no", "yes"]) == [
        "age 71 and bmi 20 together raise the chance of yes from 50 to 60 %",
    ]
    generator = np.random.default_rng(0)
    for _ in range(300):
        start, end = generator.random(2)
        parts = generator.normal(size=3)
        parts += (end - start - parts.sum()) / 3
        for sentence in reasons(start, parts).sentences(["no", "yes"]):
            ends = sentence.rsplit("from ", 1)[-1].removesuffix(" %").split(" to ")
            if sentence.startswith("nothing"):
                continue
            assert all(0 <= float(value) <= 100 for value in ends), sentence


def test_the_threshold_is_the_one_that_tells_most() -> None:
    (one,) = row_reasons(Curves(score), rows_of(3, 5), [0], rows_of(4, 6), NAMED)
    gaps = np.abs(one.exceedance - one.start)
    assert gaps[one.telling_threshold] == gaps.max()
    assert (
        "w or higher" in one.sentences(list("uvwx"), threshold=1)[0]
        or "nothing" in (one.sentences(list("uvwx"), threshold=1)[0])
    )


def test_background_rows_are_spread_over_their_values() -> None:
    values = np.random.default_rng(0).normal(size=1000)
    chosen = values[spread_rows(values, 16)]
    assert abs(chosen.mean() - values.mean()) < 0.02  # a random sample has an error of 0.25
    assert sorted(spread_rows(values[:5], 9).tolist()) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="at least 1 row; got 0"):
        spread_rows(values, 0)


def test_wrong_use_is_refused() -> None:
    frame = rows_of(4, 0)
    with pytest.raises(ValueError, match="multiple of the 4 background rows"):
        row_reasons(Curves(score), frame, [0], frame, NAMED, chains=6)
    with pytest.raises(ValueError, match="at least 1 row; got none"):
        row_reasons(Curves(score), frame, [0], frame[:0], NAMED)
    with pytest.raises(ValueError, match="the columns of the table, in the same order"):
        row_reasons(Curves(score), frame, [0], frame[["b", "a", "c", "d"]], NAMED)
