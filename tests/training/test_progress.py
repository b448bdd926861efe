"""Progress bars: on standard error, and only where they are asked for."""

import pytest

from echelon import OrdinalClassifier
from echelon.data import make_friedman

QUICK = {"max_epochs": 3, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def data():
    return make_friedman(600, num_classes=4, seed=5)


def test_progress_goes_to_standard_error(data, capsys) -> None:
    OrdinalClassifier(**QUICK, verbose=1).fit(data.features, data.ranks)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "600 rows, 10 features: about" in shown.err
    assert "validation_ranked_probability_score" in shown.err
    OrdinalClassifier(**QUICK).fit(data.features, data.ranks)
    assert capsys.readouterr().err == ""
