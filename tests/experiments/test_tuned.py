"""``echelon.tune``: a fitted model, what was tried, and scores that say what they are."""

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon.data import make_friedman
from echelon.evaluation.metrics import all_scores
from echelon.experiments import table_task
from echelon.experiments.contestants import contestant_parameters, contestant_spec, model_parameters
from echelon.experiments.tuned import make_tuning
from echelon.models.table import MODELS
from tests.experiments.made_up import task

DATA = make_friedman(260, num_classes=3, seed=3)
FRAME = pd.DataFrame(DATA.features, columns=[f"V{i}" for i in range(10)])


@pytest.fixture(scope="module")
def tuned() -> echelon.Tuned:
    return echelon.tune(FRAME, DATA.ranks, "cumulative_link", trials=4, workers=1)


def test_the_model_is_that_of_the_best_settings_on_all_rows_but_the_test(tuned) -> None:
    held = table_task("rows", FRAME, DATA.ranks)
    rebuilt = echelon.CumulativeLinkModel(**tuned.best_, random_state=0)
    rebuilt.fit(held.features, held.ranks)
    np.testing.assert_allclose(
        tuned.model.predict_proba(FRAME), rebuilt.predict_proba(FRAME), rtol=1e-9
    )
    expected = all_scores(
        held.test_ranks,
        rebuilt.predict(held.test_features),
        rebuilt.predict_proba(held.test_features),
    )
    assert tuned.test_["best"] == pytest.approx(expected)
    assert tuned.model.num_rows_ == len(held.ranks)


def test_the_table_has_a_row_for_each_trial(tuned) -> None:
    table = tuned.trials_
    assert table["trial"].tolist() == [0, 1, 2, 3]
    assert {"state", "ranked_probability_score", "seconds", "link", "ridge"} <= set(table)
    assert tuned.validation_["default"] == table["ranked_probability_score"][0]
    assert tuned.validation_["best"] == table["ranked_probability_score"].min()
    assert len(tuned.study().trials) == 4


def test_arrays_stay_arrays_and_no_test_is_no_score() -> None:
    tuned = echelon.tune(
        DATA.features, DATA.ranks, "prank", trials=2, workers=1, test_share=0, metric="mae"
    )
    assert tuned.test_ is None
    assert tuned.model.num_rows_ == 260
    assert tuned.model.predict(DATA.features).shape == (260,)


@pytest.mark.parametrize("name", [name for name, row in MODELS.items() if row.is_named])
def test_every_model_has_a_space_of_its_own_parameters(name: str) -> None:
    tuning = make_tuning(task(), contestant_parameters(name, {}), None)
    assert tuning.space


def test_what_was_given_is_not_searched() -> None:
    given = contestant_parameters("boosting:leaves=31:settings.l2=1", {})
    space = make_tuning(task(), given, None).space
    assert "leaves" not in space
    assert "settings.l2" not in space
    assert "learning_rate" in space
    cnnpor = make_tuning(task(), contestant_parameters("cnnpor", {}), None).space
    assert "backbone" not in cnnpor  # an ensemble would be refused


def test_a_model_can_be_given_as_it_is() -> None:
    model = echelon.OrdinalClassifier("coral", settings={"max_epochs": 3}, random_state=5)
    given = {"model": "network", "method": "coral", "settings": {"max_epochs": 3}}
    assert model_parameters(model) == given
    assert contestant_parameters(contestant_spec(given), {}) == given
    hidden = {"model": "network", "backbone_options": {"table": {"hidden": [8, 8]}}}
    assert contestant_parameters(contestant_spec(hidden), {}) == hidden


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("blend", "must be one that a name is enough for; got 'blend'"),
        ("corn:leaves=3", "has no option 'leaves=3'"),
        ("no", "model must be one of"),
        (3, "must be a name such as 'boosting', or an unfitted model"),
        (echelon.OrdinalReduction(object()), "estimator must be made of texts, numbers"),
    ],
)
def test_other_models_are_refused(model, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        echelon.tune(FRAME, DATA.ranks, model, trials=1, workers=1)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"test_share": 1.0}, "test_share must be at least 0 and below 1"),
        ({"model": echelon.OrdinalBoosting(), "X": np.zeros((4, 2, 2))}, "got 3 dimensions"),
    ],
)
def test_wrong_use_is_said(options, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        echelon.tune(**{"X": FRAME, "y": DATA.ranks, **options})


def test_without_optuna_the_extra_is_named(monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ValueError, match=r"need the extra `tune`: pip install 'echelon\[tune\]'"):
        echelon.tune(FRAME, DATA.ranks, "prank", trials=1, workers=1)
