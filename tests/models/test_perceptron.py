"""PRank as a model: averaging, weights, learning row by row, files from which it goes on."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import echelon
from echelon.data import make_friedman
from echelon.evaluation import metrics
from echelon.models.perceptron import PRank
from tests.forging import rewrite

DATA = make_friedman(1500, num_classes=4, seed=5)
X, Y = DATA.features, DATA.ranks


def learnt(parts: int = 5, **options) -> PRank:
    model = PRank(classes=[0, 1, 2, 3], random_state=0, **options)
    for rows in np.array_split(np.arange(500), parts):
        model.partial_fit(X[rows], Y[rows])
    return model


def test_averaging_helps_where_no_line_separates() -> None:
    scores = {
        average: metrics.mae(
            Y[500:], PRank(average=average, random_state=0).fit(X[:500], Y[:500]).predict(X[500:])
        )
        for average in (True, False)
    }
    assert scores[True] < scores[False] - 0.02
    linear = echelon.CumulativeLinkModel().fit(X[:500], Y[:500])
    assert scores[True] < metrics.mae(Y[500:], linear.predict(X[500:])) + 0.05


def test_rows_in_parts_leave_what_rows_at_once_leave() -> None:
    """But for the standardisation, which is that of the first part."""
    model = PRank(1, shuffle=False, classes=[0, 1, 2, 3], random_state=0).fit(X[:200], Y[:200])
    model.partial_fit(X[200:350], Y[200:350]).partial_fit(X[350:500], Y[350:500])
    again = PRank(1, shuffle=False, classes=[0, 1, 2, 3], random_state=0).fit(X[:200], Y[:200])
    again.partial_fit(X[200:500], Y[200:500])
    np.testing.assert_array_equal(model.state_.coefficients, again.state_.coefficients)
    np.testing.assert_array_equal(model.state_.cutpoints, again.state_.cutpoints)
    assert model.state_.num_rounds == 500
    assert model.num_rows_ == 500


def test_the_first_part_is_a_pass_and_parameters_stay() -> None:
    model = learnt(1, passes=7)
    assert model.state_.num_rounds == 500
    assert model.get_params()["passes"] == 7
    assert model.get_params()["shuffle"] is True
    assert (model.predict(X[500:]) == Y[500:]).mean() > 0.4
    once = PRank(1, shuffle=False, random_state=0).fit(X[:500], Y[:500])
    np.testing.assert_array_equal(once.state_.coefficients, model.state_.coefficients)


def test_single_rows_keep_a_curve_that_is_calibrated() -> None:
    model = learnt(1)
    for place in range(500, 800):
        model.partial_fit(X[place : place + 1], Y[place : place + 1])
    assert model.state_.num_rounds == 800
    whole = PRank(1, shuffle=False, random_state=0).fit(X[:800], Y[:800])
    ours, theirs = (
        metrics.ranked_probability_score(Y[800:], each.predict_proba(X[800:]))
        for each in (model, whole)
    )
    assert ours == pytest.approx(theirs, rel=0.05)


def test_the_labels_must_be_known_before_they_come() -> None:
    with pytest.raises(ValueError, match=r"partial_fit must know all labels.*PRank\(classes="):
        PRank().partial_fit(X[:50], Y[:50])
    model = PRank().partial_fit(X[:50], Y[:50] // 2, classes=[0, 1])
    assert model.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"is not among|not in classes"):
        model.partial_fit(X[:5], [0, 1, 2, 1, 0])
    with pytest.raises(ValueError, match=r"classes must stay \[0, 1\]"):
        model.partial_fit(X[:5], [0, 1, 1, 1, 0], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.partial_fit(X[:5], [0, 1])


def test_a_class_may_come_late_and_words_are_labels() -> None:
    words = np.array(["low", "mid", "high", "top"])
    frame = pd.DataFrame(X[:500, :5], columns=list("abcde"))
    frame["size"] = np.where(X[:500, 3] > 0.5, "big", None)
    early = (Y[:500] < 3) & (np.arange(500) < 250)
    model = PRank(classes=words.tolist(), random_state=0)
    model.partial_fit(frame[early], words[Y[:500][early]])
    before = model.predict_proba(frame)[:, 3].mean()
    model.partial_fit(frame[250:], words[Y[250:500]])
    assert model.predict_proba(frame)[:, 3].mean() > before + 0.05
    assert set(model.coefficients()) == {*"abcde", "size = big"}


def test_what_belongs_to_the_model_as_it_was_is_dropped() -> None:
    model = learnt(2).calibrate(X[500:700], Y[500:700]).conformalize(X[700:900], Y[700:900])
    model.partial_fit(X[900:950], Y[900:950])
    assert model.calibration_ is None
    with pytest.raises(ValueError, match="call conformalize"):
        model.predict_interval(X[:3])


def test_weights_say_how_often_a_row_is_learnt_from() -> None:
    model = learnt(1)
    model.partial_fit(X[500:600], Y[500:600], sample_weight=np.full(100, 2.0))
    assert model.state_.num_rounds == 700
    nothing = learnt(1)
    before = nothing.state_.coefficients
    nothing.partial_fit(X[500:600], Y[500:600], sample_weight=np.full(100, 1e-9))
    np.testing.assert_array_equal(nothing.state_.coefficients, before)


def test_a_saved_model_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    model = learnt(3)
    model.save(tmp_path / "model")
    loaded = echelon.load(tmp_path / "model")
    loaded.random_state = 0  # which belongs to the machine
    for each in (model, loaded):
        for rows in (slice(500, 520), slice(520, 700)):
            each.partial_fit(X[rows], Y[rows])
    assert loaded.state_.loss == model.state_.loss
    assert loaded.scale_ == model.scale_
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, t: t.update({"model.state_cutpoints": t["model.state_cutpoints"].flip(0)}), "."),
        (lambda d, t: t.update({"model.state_ranks": t["model.state_ranks"] + 9}), "no rank"),
        (lambda d, t: t.update({"model.state_ranks": t["model.state_ranks"][:-1]}), "rank each"),
        (lambda d, t: t.update({"model.state_distances": torch.zeros(3, 9).double()}), "not fit"),
        (lambda d, t: t.update({"model.state_more": torch.zeros(3)}), "have no place"),
        (lambda d, t: d["model"].update(rounds=-1), "cannot have led"),
        (lambda d, t: d["model"].update(loss="2"), "must be of type int"),
    ],
)
def test_a_forged_file_is_refused(tmp_path: Path, change, message: str) -> None:
    learnt(1).save(tmp_path / "model")
    rewrite(tmp_path / "model", tmp_path / "forged", change)
    with pytest.raises(ValueError, match=f"does not describe a model: .*{message}"):
        echelon.load(tmp_path / "forged")


@pytest.mark.parametrize("passes", [0, -1, 2.5, True])
def test_wrong_passes(passes) -> None:
    with pytest.raises(ValueError, match="passes must be a whole number of at least 1"):
        PRank(passes).fit(X[:30], Y[:30])
