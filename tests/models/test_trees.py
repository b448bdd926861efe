import math
import pickle
from dataclasses import replace

import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon.data import make_friedman
from echelon.models.trees import OrdinalTrees, TreeRows, TreeSettings, fit_trees

QUICK = TreeSettings(rounds=20, learning_rate=0.2, rows_in_leaf=5)


def made(n, num_classes=5, seed=0, categories=0):
    generator = np.random.default_rng(seed)
    numbers = generator.normal(size=(n, 3))
    codes = generator.integers(0, 6, size=(n, categories))
    score = numbers[:, 0] + 0.5 * numbers[:, 1] ** 2 + generator.logistic(size=n) / 2
    if categories:
        score += np.array([0, 2, -2, 1, -1, 0])[codes[:, 0]]
    edges = np.quantile(score, np.linspace(0, 1, num_classes + 1)[1:-1])
    numbers[generator.random(numbers.shape) < 0.1] = np.nan
    return TreeRows(numbers, codes, np.searchsorted(edges, score))


def friedman(n, num_classes, seed):
    data = make_friedman(n, num_classes=num_classes, seed=seed)
    return TreeRows(data.features.astype(np.float64), np.zeros((n, 0), np.int64), data.ranks)


def ranked_probability_score(trees, rows):
    cumulative = np.exp(trees.log_probabilities(rows.numbers, rows.codes)).cumsum(1)[:, :-1]
    truth = rows.ranks[:, None] <= np.arange(trees.num_classes - 1)
    return float(np.square(cumulative - truth).sum(1).mean())


# ---- curves --------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10_000),
    num_classes=st.integers(2, 30),
    n=st.integers(1, 300),
    categories=st.integers(0, 2),
    leaves=st.integers(2, 31),
    rows_in_leaf=st.integers(1, 20),
    weighted=st.booleans(),
    sampled=st.booleans(),
)
def test_no_curve_rises(seed, num_classes, n, categories, leaves, rows_in_leaf, weighted, sampled):
    rows = made(n, num_classes, seed, categories)
    generator = np.random.default_rng(seed)
    if weighted:
        rows = rows._replace(weight=generator.exponential(size=n))
    settings = replace(
        QUICK, leaves=leaves, rows_in_leaf=rows_in_leaf, learning_rate=1.0,
        most_examples=0 if sampled else 100_000,
    )  # fmt: skip
    trees = fit_trees(rows, num_classes, settings=settings, seed=seed)
    numbers = generator.normal(scale=10, size=(50, 3))
    numbers[generator.random(numbers.shape) < 0.2] = np.nan
    codes = generator.integers(0, 9, size=(50, categories))  # 6 and above were never seen
    logits = trees.logits(numbers, codes)
    assert logits.shape == (50, num_classes - 1)
    assert (np.diff(logits, axis=1) <= 0).all()
    logs = trees.log_probabilities(numbers, codes)
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, atol=1e-12)


def test_logits_far_from_zero_lose_no_probability():
    trees = fit_trees(made(200, 4), 4, settings=QUICK)
    trees.base = np.array([40.0, -40.0, -700.0])
    logs = trees.log_probabilities(np.zeros((1, 3)), np.zeros((1, 0), np.int64))
    assert np.isfinite(logs).all()
    shift = trees.logits(np.zeros((1, 3)), np.zeros((1, 0), np.int64))[0] - trees.base
    np.testing.assert_allclose(logs[0, 0], -40 - shift[0], atol=1e-9)
    np.testing.assert_allclose(logs[0, 3], -700 + shift[2], atol=1e-9)


def test_two_classes_are_plain_lightgbm():
    rows = made(600, 2)
    settings = replace(QUICK, rounds=30, leaves=7, column_share=1.0)
    trees = fit_trees(rows, 2, settings=settings)
    plain = lightgbm.train(
        {
            "objective": "binary", "num_leaves": 7, "learning_rate": 0.2, "min_data_in_leaf": 5,
            "verbose": -1, "num_threads": 1, "min_data_in_bin": 1,
        },
        lightgbm.Dataset(rows.numbers, rows.ranks, params={"verbose": -1, "min_data_in_bin": 1}),
        30,
    )  # fmt: skip
    ours = np.exp(trees.log_probabilities(rows.numbers, rows.codes))[:, 1]
    theirs = plain.predict(rows.numbers)
    np.testing.assert_allclose(ours, theirs, atol=0.02)


def test_a_table_of_one_class_or_one_row_gives_curves():
    for ranks in ([1], [2] * 30):
        rows = TreeRows(np.ones((len(ranks), 2)), np.ones((len(ranks), 1)), np.array(ranks))
        trees = fit_trees(rows, 4)
        logs = trees.log_probabilities(rows.numbers, rows.codes)
        assert (logs.argmax(axis=1) == ranks).all()


# ---- columns and weights -------------------------------------------------------------------------


def test_categories_and_missing_values_are_learnt_from():
    generator = np.random.default_rng(0)
    codes = generator.permutation(600)[:, None] % 6 + 0
    numbers = generator.normal(size=(600, 1))
    numbers[generator.random(600) < 0.5] = np.nan
    ranks = np.isin(codes[:, 0], [1, 4]) * 2 + np.isnan(numbers[:, 0])
    trees = fit_trees(TreeRows(numbers, codes, ranks), 4, settings=replace(QUICK, rounds=60))
    found = trees.log_probabilities(numbers, codes).argmax(axis=1)
    assert (found == ranks).mean() > 0.99
    assert trees.importance.shape == (2,)
    assert (trees.importance > 0.1).all()
    assert trees.importance.sum() == pytest.approx(1)


def test_weights_are_repetitions():
    rows = made(1500, 5)
    rows = rows._replace(numbers=rows.numbers.round(1))  # the same bins, however often
    times = np.where(rows.numbers[:, 2] > 0, rows.ranks % 4, 3 - rows.ranks % 4)
    settings = replace(QUICK, leaves=6, column_share=1.0)
    repeated = TreeRows(*(np.repeat(values, times, axis=0) for values in rows[:3]))
    weighted = rows._replace(weight=times.astype(float))
    curves = [
        np.exp(fit_trees(some, 5, settings=settings).log_probabilities(rows.numbers, rows.codes))
        for some in (repeated, weighted, weighted._replace(weight=times * 1e-6), rows)
    ]
    # Only the fewest rows of a leaf are counted otherwise.
    assert np.abs(curves[0] - curves[1]).mean() < 0.02
    assert np.abs(curves[1] - curves[3]).mean() > 0.05
    np.testing.assert_allclose(curves[1], curves[2], atol=1e-6)


def test_the_rank_follows_a_column_that_must_be_monotone():
    rows = made(300, 5)
    numbers = np.repeat(rows.numbers[:1], 50, axis=0)
    numbers[:, 1] = np.linspace(-3, 3, 50)
    codes = np.zeros((50, 0), np.int64)
    for sign in (1, -1):
        trees = fit_trees(rows, 5, settings=replace(QUICK, monotone=(0, sign, 0)))
        steps = sign * np.diff(trees.logits(numbers, codes), axis=0)
        assert (steps >= 0).all()
    free = fit_trees(rows, 5, settings=QUICK)
    steps = np.diff(free.logits(numbers, codes), axis=0)
    assert steps.min() < 0 < steps.max()
    with pytest.raises(ValueError, match="for each of the 3 columns"):
        fit_trees(rows, 5, settings=replace(QUICK, monotone=(1,)))


def test_rows_that_cannot_be_learnt_from_are_refused():
    rows = made(20, 3)
    with pytest.raises(ValueError, match="ranks must be"):
        fit_trees(rows, 2)
    with pytest.raises(ValueError, match="at least one row"):
        fit_trees(rows._replace(weight=np.zeros(20)), 3)
    trees = fit_trees(rows, 3)
    with pytest.raises(ValueError, match="3 columns of numbers"):
        trees.logits(rows.numbers[:, :2], rows.codes)


# ---- growing -------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_trees():
    rows, held = made(300, 5), made(80, 5, seed=1)
    settings = replace(QUICK, column_share=0.5, most_examples=0)
    texts = [
        fit_trees(rows, 5, validation=held, settings=settings, seed=seed).text for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_draw_of_columns_without_a_split_does_not_end_the_fit():
    numbers = np.random.default_rng(0).normal(size=(400, 1)).repeat(12, axis=1)
    numbers[:, 1:] = 0  # one column of twelve can be split
    ranks = np.digitize(numbers[:, 0], [-1, 0, 1])
    rows = TreeRows(numbers, np.zeros((400, 0), np.int64), ranks)
    scores = []
    trees = fit_trees(
        rows, 4, validation=rows, settings=replace(QUICK, column_share=0.3, refit=0),
        on_round=lambda number, score: scores.append(score),
    )  # fmt: skip
    assert trees.num_trees == 20
    assert ranked_probability_score(trees, rows) == pytest.approx(min(scores), rel=1e-5)
    assert min(scores) < 0.2


def test_validation_rows_choose_the_number_of_trees():
    rows, held = made(300, 5), made(100, 5, seed=1)
    settings = replace(QUICK, rounds=400, patience=10)
    scores = []
    kept = fit_trees(
        rows, 5, validation=held, settings=replace(settings, refit=0),
        on_round=lambda number, score: scores.append(score),
    )  # fmt: skip
    assert len(scores) < 400
    assert kept.num_trees == int(np.argmin(scores)) + 1 == len(scores) - 10
    assert ranked_probability_score(kept, held) == pytest.approx(min(scores), rel=1e-5)
    again = fit_trees(rows, 5, validation=held, settings=replace(settings, refit=2.0))
    assert again.num_trees == 2 * kept.num_trees
    # learnt from by now
    assert ranked_probability_score(again, held) < min(scores)


def test_a_fit_ends_where_its_time_or_its_caller_ends_it():
    rows, held = made(300, 5), made(100, 5, seed=1)
    late = fit_trees(rows, 5, validation=held, time_limit=0)
    assert late.num_trees == 1
    assert late.out_of_time
    asked = fit_trees(rows, 5, on_round=lambda number, score: number == 7)
    assert asked.num_trees == 7
    assert not asked.out_of_time


def test_nothing_is_printed(capfd):
    fit_trees(made(30, 3), 3, validation=made(10, 3, seed=1))
    fit_trees(TreeRows(np.ones((1, 1)), np.ones((1, 1)), np.array([0])), 2)
    assert capfd.readouterr() == ("", "")


# ---- samples of thresholds -----------------------------------------------------------------------


def test_a_sample_of_thresholds_is_as_good_as_all():
    test = friedman(2000, 40, seed=1)
    scores = []
    for most in (0, 100_000):
        settings = TreeSettings(rounds=60, most_examples=most)
        trees = fit_trees(friedman(2000, 40, seed=0), 40, settings=settings)
        scores.append(ranked_probability_score(trees, test))
    assert scores[0] == pytest.approx(scores[1], rel=0.03)


# ---- saving --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved():
    return fit_trees(made(300, 5, categories=2), 5, settings=QUICK)


def test_rebuilt_trees_give_the_same_bits(saved):
    rows = made(100, 5, seed=3, categories=2)
    expected = saved.log_probabilities(rows.numbers, rows.codes)
    for copy in (OrdinalTrees.rebuild(saved.describe()), pickle.loads(pickle.dumps(saved))):
        np.testing.assert_array_equal(copy.log_probabilities(rows.numbers, rows.codes), expected)
        np.testing.assert_array_equal(copy.importance, saved.importance)
    assert "Inf" not in saved.text


@pytest.mark.parametrize(
    "change",
    [
        {"base": [0.0, 1.0, 2.0, 3.0]},
        {"base": [0.0, math.nan]},
        {"base": []},
        {"base": ["1"]},
        {"base": [10**400]},
        {"num_numbers": 2},
        {"num_codes": -1},
        {"num_numbers": True},
        {"trees": None},
        {"more": 1},
    ],
)
def test_damaged_descriptions_are_refused(saved, change):
    with pytest.raises(ValueError, match="damaged"):
        OrdinalTrees.rebuild(saved.describe() | change)


def test_any_number_of_threads_grows_the_same_trees(monkeypatch) -> None:
    """So that it may be tried which is quickest."""
    monkeypatch.setattr("echelon.models.trees._WORTH_A_TRIAL", 1)
    rows = friedman(400, 5, 0)
    one, several = (fit_trees(rows, 5, threads=threads).text for threads in (1, 3))
    assert one == several


def test_contributions_add_up_to_the_logits_and_unused_columns_add_nothing() -> None:
    generator = np.random.default_rng(0)
    numbers, codes = generator.random((300, 2)), generator.integers(0, 4, (300, 1))
    numbers[::9, 0] = np.nan
    ranks = (np.nan_to_num(numbers[:, 0]) * 3 + (codes[:, 0] == 2)).astype(int).clip(0, 3)
    numbers[:, 1] = 1.0
    trees = fit_trees(TreeRows(numbers, codes, ranks), 4, settings=TreeSettings(rounds=20))
    start, added = trees.contributions(numbers, codes)
    assert added.shape == (300, 3, 3)
    np.testing.assert_allclose(start + added.sum(axis=1), trees.logits(numbers, codes), atol=1e-10)
    assert (added[:, 1] == 0).all()
    assert np.abs(added[:, [0, 2]]).max(axis=(0, 2)).min() > 0.1
