"""Labels that differ from a class by case and spaces alone."""

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon.data.labels import Labels, typed_labels
from echelon.data.matching import matched


def test_labels_of_files_are_matched_regardless_of_case_and_outer_spaces() -> None:
    column = pd.Series(["LOW", " high ", "low"])
    assert typed_labels(column, ["Low", "High"])[0].tolist() == ["Low", "High", "Low"]
    labels = Labels(np.array(["Low", "High"], dtype=object))
    assert labels.read_cells(column).tolist() == ["Low", "High", "Low"]


def test_nothing_is_matched_where_classes_differ_by_case_alone() -> None:
    assert matched(pd.Series(["LOW"]), ["low", "Low"]).tolist() == ["LOW"]


def test_python_names_the_class_that_is_meant() -> None:
    with pytest.raises(
        ValueError, match=r"label 'Low' in y is not in classes .*did you mean 'low'"
    ):
        Labels.of(["Low"], ["low", "high"]).to_ranks(["Low"])


def test_labels_that_were_encoded_elsewhere_are_recognised() -> None:
    from sklearn.ensemble import VotingClassifier

    features = np.random.default_rng(0).normal(size=(30, 2))
    labels = np.array(["low", "mid", "high"])[np.arange(30) % 3]
    model = echelon.OrdinalBoosting(classes=["low", "mid", "high"], rounds=2)
    with pytest.raises(ValueError, match=r"encoded the labels by letter .*echelon\.as_ranks"):
        VotingClassifier([("a", model)]).fit(features, labels)
    ranks = echelon.as_ranks(labels, ["low", "mid", "high"])
    assert ranks.tolist() == [0, 1, 2] * 10
    voting = VotingClassifier([("a", echelon.OrdinalBoosting(rounds=2))], voting="soft")
    assert set(voting.fit(features, ranks).predict(features)) <= {0, 1, 2}
