"""Permutation importance against scikit-learn's, and groups of correlated columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import permutation_importance as of_scikit_learn
from sklearn.linear_model import LogisticRegression

from echelon.data import make_friedman
from echelon.evaluation.importance import correlated_groups, permutation_importance
from echelon.evaluation.metrics import ranked_probability_score
from echelon.evaluation.recombining import Curves


def test_it_is_that_of_scikit_learn_on_the_same_shuffles() -> None:
    data = make_friedman(200, num_classes=4, seed=1)
    columns = [f"V{i + 1}" for i in range(10)]
    frame = pd.DataFrame(data.features.astype(np.float64), columns=columns)
    model = LogisticRegression(max_iter=500).fit(frame, data.ranks)

    def scorer(fitted, rows, truth) -> float:
        return -ranked_probability_score(truth, fitted.predict_proba(rows))

    theirs = of_scikit_learn(model, frame, data.ranks, scoring=scorer, n_repeats=3, random_state=7)
    # the shuffles that it makes, the same for every column: each of what the last one left
    seed = np.random.RandomState(7).randint(np.iinfo(np.int32).max + 1)
    generator, order, shuffles = np.random.RandomState(seed), np.arange(200), [np.arange(200)]
    for _ in range(3):
        generator.shuffle(order)
        shuffles.append(shuffles[-1][order])
    ours = permutation_importance(
        Curves(model.predict_proba), frame, data.ranks, shuffles=shuffles[1:]
    )
    for one in ours:
        place = frame.columns.get_loc(one.columns[0])
        np.testing.assert_allclose(one.values, theirs.importances[place], atol=1e-12)
        error = theirs.importances[place].std(ddof=1) / np.sqrt(3)
        assert one.standard_error == pytest.approx(error)
    assert [one.mean for one in ours] == sorted((one.mean for one in ours), reverse=True)


def test_without_labels_it_is_what_the_model_itself_would_expect() -> None:
    """Labels that are drawn from the model give the same importance, up to their noise."""
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(generator.random((4000, 2)), columns=["a", "b"])
    curves = Curves(lambda rows: np.stack([1 - rows["a"], rows["a"]], axis=1))
    ranks = (generator.random(4000) < frame["a"]).astype(int)
    expected, found = (
        permutation_importance(curves, frame),
        permutation_importance(curves, frame, ranks),
    )
    assert [one.columns for one in expected] == [("a",), ("b",)]
    assert expected[0].mean == pytest.approx(1 / 6, abs=0.01)  # E (U - V)^2 of two uniforms
    assert found[0].mean == pytest.approx(expected[0].mean, abs=0.03)
    assert expected[1].mean == 0
    assert np.isnan(permutation_importance(curves, frame, repeats=1)[0].standard_error)


def test_twins_hide_each_other_and_a_group_shows_them() -> None:
    generator = np.random.default_rng(0)
    a = generator.random(500)
    frame = pd.DataFrame({"a": a, "twin": a + 0.01 * generator.random(500), "c": a[::-1]})
    kinds = dict.fromkeys(frame, "number")

    def predict(rows: pd.DataFrame) -> np.ndarray:
        p = (rows["a"] + rows["twin"]).clip(0, 2) / 2
        return np.stack([1 - p, p], axis=1)

    ranks = (a > 0.5).astype(int)
    groups = correlated_groups(frame, kinds, 0.8)
    assert groups == [("a", "twin"), ("c",)]
    alone = permutation_importance(Curves(predict), frame, ranks)
    together = permutation_importance(Curves(predict), frame, ranks, groups=groups)
    assert together[0].columns == ("a", "twin")
    assert together[0].mean > 1.5 * alone[0].mean


def test_correlation_of_categories_numbers_and_dates() -> None:
    generator = np.random.default_rng(0)
    size = generator.normal(size=300)
    letter = np.where(size > 0, "big", "small")
    frame = pd.DataFrame(
        {
            "size": size,
            "date": pd.Timestamp("2020-01-01") + pd.to_timedelta(size, unit="D"),
            "letter": letter,
            "same": np.where(letter == "big", "B", "S"),
            "other": generator.choice(["x", "y"], size=300),
            "text": letter,
            "constant": 1.0,
        }
    )
    frame.loc[:5, "size"] = np.nan
    kinds = {**dict.fromkeys(frame, "category"), "size": "number", "date": "date"}
    kinds |= {"text": "text", "constant": "number"}
    groups = correlated_groups(frame, kinds, 0.8)
    assert groups == [("size", "date", "letter", "same"), ("other",), ("text",), ("constant",)]
    with pytest.raises(ValueError, match=r"lies above 0 and up to 1; got 1\.5"):
        correlated_groups(frame, kinds, 1.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 0}, "repeats must be at least 1; got 0"),
        ({"groups": [["nobody"]]}, "groups name 'nobody'; the columns are: a"),
        ({"shuffles": [[0, 0]]}, "shuffles must be orders of the 2 rows"),
        ({"ranks": [1]}, r"ranks must have 2 values, one for each row; got \(1,\)"),
    ],
)
def test_wrong_use_is_refused(options, message) -> None:
    frame = pd.DataFrame({"a": [0.1, 0.2]})
    curves = Curves(lambda rows: np.stack([1 - rows["a"], rows["a"]], axis=1))
    with pytest.raises(ValueError, match=message):
        permutation_importance(curves, frame, **options)
