"""Every model against the same properties, whatever it is."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import echelon
from echelon.data import make_friedman
from echelon.evaluation import metrics
from echelon.models.table import MODELS, model_class
from tests.cases import THOROUGH
from tests.models.test_onnx import run

CLASSES = ["low", "mid", "high", "top"]
QUICK = {
    "network": {"settings": {"max_epochs": 3}, "device": "cpu"},
    "boosting": {"rounds": 40},
    "blend": {
        "models": [echelon.CumulativeLinkModel(), echelon.OrdinalBoosting(rounds=30)],
        "folds": 2,
    },
    "neighbors": {"anchors": 150},
    "auto": {"time_limit": 4, "folds": 2, "device": "cpu"},
}
ALL = list(MODELS)


def table(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, categories, booleans and gaps, with labels in words."""
    data = make_friedman(n, num_classes=len(CLASSES), seed=seed)
    frame = pd.DataFrame(data.features[:, :6], columns=[f"V{i}" for i in range(6)])
    generator = np.random.default_rng(seed)
    frame["size"] = np.where(frame["V3"] > 0.6, "big", np.where(frame["V3"] > 0.3, "mid", "small"))
    frame["flag"] = frame["V4"] > 0.5
    frame.loc[generator.random(n) < 0.1, "V1"] = np.nan
    frame.loc[generator.random(n) < 0.1, "size"] = None
    return frame, np.array(CLASSES)[data.ranks]


def make(name: str, **options):
    return model_class(name)(classes=CLASSES, random_state=0, **QUICK.get(name, {}), **options)


@pytest.fixture(scope="module", params=ALL)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def fitted(name: str):
    return make(name).fit(*table())


def test_probabilities_labels_and_curves_agree(name: str, fitted) -> None:
    frame, truth = table(200, seed=1)
    curve = fitted.curve(frame)
    probabilities = fitted.predict_proba(frame)
    assert probabilities.shape == (200, 4)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
    exceedance = fitted.predict_exceedance(frame)
    assert (np.diff(exceedance, axis=1) <= 1e-6).all()
    np.testing.assert_allclose(np.asarray(curve.exceedance.double()), exceedance)
    median = (probabilities.cumsum(1) < 0.5 - 1e-9).sum(1)
    labels = fitted.predict(frame, decision="median")
    assert (labels == np.array(CLASSES)[median]).mean() > 0.99
    assert fitted.classes_.tolist() == CLASSES
    # better than the best constant
    ranks = pd.Index(CLASSES).get_indexer(truth)
    constant = metrics.mae(ranks, np.full(200, np.median(ranks)))
    assert metrics.mae(ranks, pd.Index(CLASSES).get_indexer(labels)) < 0.9 * constant


def test_rows_alone_and_in_any_order_get_the_same(fitted) -> None:
    frame, _ = table(40, seed=2)
    whole = fitted.predict_proba(frame)
    alone = np.concatenate([fitted.predict_proba(frame.iloc[[i]]) for i in range(5)])
    np.testing.assert_allclose(alone, whole[:5], atol=1e-6)
    shuffled = frame[frame.columns[::-1]].sample(frac=1, random_state=0)
    np.testing.assert_allclose(fitted.predict_proba(shuffled), whole[shuffled.index], atol=1e-6)


def test_unknown_categories_and_empty_cells_are_fine(fitted) -> None:
    frame, _ = table(5, seed=3)
    frame["size"] = "enormous"
    frame["V0"] = np.nan
    assert np.isfinite(fitted.predict_proba(frame)).all()


def test_a_seed_decides_and_a_clone_is_unfitted(name: str) -> None:
    frame, truth = table(80)
    # Where a time limit decides, the same rows may give another model.
    without_limit = {"time_limit": None} if name == "auto" else {}
    model = make(name).set_params(**without_limit)
    first, second = clone(model).fit(frame, truth), clone(model).fit(frame, truth)
    np.testing.assert_array_equal(first.predict_proba(frame), second.predict_proba(frame))
    assert not hasattr(clone(first), "labels_")


def test_numbers_of_numpy_are_numbers(name: str, tmp_path: Path) -> None:
    """Grids of settings are made of them."""

    def of_numpy(value):
        if isinstance(value, dict):
            return {key: of_numpy(inner) for key, inner in value.items()}
        return np.int64(value) if type(value) is int else value

    quick = {"time_limit": 1} if name == "auto" else {}
    model = make(name).set_params(**quick)
    model.set_params(
        **{key: of_numpy(value) for key, value in model.get_params(deep=False).items()}
    )
    model.fit(*table(60)).save(tmp_path / "model.echelon")
    assert echelon.load(tmp_path / "model.echelon").predict(table(5)[0]).shape == (5,)


def test_calibration_and_intervals(name: str) -> None:
    frame, truth = table(500)
    model = make(name).fit(frame[:250], truth[:250])
    before = model.predict_proba(frame[400:])
    assert model.calibrate(frame[250:400], truth[250:400]) is model
    after = model.predict_proba(frame[400:])
    assert set(model.calibration_summary_) == {"before", "after"}
    assert not np.array_equal(before, after)
    model.conformalize(frame[250:400], truth[250:400])
    low, high = model.predict_interval(frame[400:], 0.8).T
    ends = [pd.Index(CLASSES).get_indexer(end) for end in (low, high)]
    ranks = pd.Index(CLASSES).get_indexer(truth[400:])
    assert (ends[0] <= ends[1]).all()
    assert ((ends[0] <= ranks) & (ranks <= ends[1])).mean() > 0.65


def test_every_decision(name: str) -> None:
    frame, truth = table(300)
    held = {} if name in ("blend", "auto") else {"validation_fraction": 0.2}
    model = make(name, **held).fit(frame, truth)
    for decision in (
        "median",
        "mean",
        "mode",
        "kappa",
        np.abs(np.subtract.outer(range(4), range(4))),
    ):
        assert set(model.predict(frame, decision=decision)) <= set(CLASSES)
    costs = np.ones((4, 4))
    costs[:, 3] = 0.0
    assert set(model.predict(frame, decision=costs)) == {"top"}


def test_weights_are_weights(name: str) -> None:
    """Rows of weight 0 are as if they were not there; a heavy class is predicted more often."""
    frame, truth = table(300)
    heavy = make(name, class_weight={"top": 20.0}).fit(frame, truth)
    plain = make(name).fit(frame, truth)
    assert heavy.predict_proba(frame)[:, 3].mean() > plain.predict_proba(frame)[:, 3].mean() + 0.05
    weight = np.where(truth == "top", 0.0, 1.0)
    without = make(name).fit(frame, truth, sample_weight=weight)
    assert without.predict_proba(frame)[:, 3].mean() < 0.05


def test_absent_classes_keep_their_place(name: str) -> None:
    frame, truth = table(200)
    rows = truth != "mid"
    model = make(name).fit(frame[rows], truth[rows])
    assert model.predict_proba(frame).shape == (200, 4)
    assert model.predict_proba(frame)[:, 1].mean() < 0.25


def test_cross_validation(name: str) -> None:
    frame, truth = table(120)
    curve = echelon.cross_val_curve(make(name), frame, truth, folds=2)
    assert curve.probabilities.shape == (120, 4)
    assert curve.is_defined.all()


def test_what_is_saved_is_what_was_fitted(name: str, tmp_path: Path) -> None:
    assert MODELS[name].saves
    path = tmp_path / "model"
    frame, truth = table(100, seed=4)
    model = make(name, decision="mean").fit(*table(200))
    model.calibrate(frame, truth).conformalize(frame, truth)
    expected = model.predict_proba(frame), model.predict(frame), model.predict_interval(frame)
    model.save(path)
    loaded = echelon.load(path)
    assert type(loaded) is type(model)
    assert loaded.get_params()["decision"] == "mean"
    np.testing.assert_array_equal(loaded.predict_proba(frame), expected[0])
    np.testing.assert_array_equal(loaded.predict(frame), expected[1])
    np.testing.assert_array_equal(loaded.predict_interval(frame), expected[2])
    assert loaded.columns_ == model.columns_
    loaded.save(tmp_path / "again")  # a loaded model is a whole one
    again = echelon.load(tmp_path / "again")
    np.testing.assert_array_equal(again.predict_proba(frame), expected[0])


def test_the_graph_gives_what_the_model_gives(name: str, fitted, tmp_path: Path) -> None:
    if not MODELS[name].exports:
        with pytest.raises(ValueError, match="has no ONNX graph; models that have one are: net"):
            fitted.export_onnx(tmp_path / "model.onnx")
        return
    if name in ("auto", "svm") and not THOROUGH:
        return  # a blend that chose its members itself; a score among cutpoints, as "prank"
    frame, _ = table(60, seed=6)
    frame.loc[:10, "size"] = "never seen"
    frame.loc[5:20, ["V0", "V2"]] = np.nan
    fitted.export_onnx(tmp_path / "model.onnx")
    for rows in (frame, frame.head(1)):
        found = run(tmp_path / "model.onnx", rows)
        np.testing.assert_allclose(found["probabilities"], fitted.predict_proba(rows), atol=1e-5)
        np.testing.assert_allclose(found["exceedance"], fitted.predict_exceedance(rows), atol=1e-5)
        assert (found["label"] == fitted.predict(rows)).mean() > 0.98


def test_columns_are_summarised(fitted) -> None:
    summary = {column["name"]: column for column in fitted.columns_}
    assert summary["V0"]["kind"] == "number"
    assert 0 <= summary["V0"]["quantiles"][0] < summary["V0"]["quantiles"][-1] <= 1
    assert 0.05 < summary["V1"]["missing"] < 0.2
    assert set(summary["size"]["frequent"]) == {"big", "mid", "small"}


def test_contributions_of_a_row_add_up(fitted) -> None:
    """To its expected rank, and to every P(y > k), minus the background's."""
    frame, truth = table(40, seed=7)
    frame.loc[0, "size"] = "never seen"
    found = fitted.explain(frame, truth, rows=[0, 1], repeats=1, background=4, most_rows=20)
    exceedance = fitted.predict_exceedance(frame)
    starts = [tuple(reasons.start) for reasons in found.reasons]
    assert starts[0] == starts[1]
    for reasons in found.reasons:
        own = exceedance[reasons.row]
        np.testing.assert_allclose(
            reasons.contributions.sum(axis=0), own - reasons.start, atol=1e-6
        )
        total = reasons.rank_contributions.sum()
        assert abs(total - (own.sum() - reasons.start.sum())) < 1e-6
    assert {one.columns[0] for one in found.importance} == set(frame.columns)


def test_own_contributions_add_up_to_what_decides_the_curve(fitted) -> None:
    """One score for all ranks orders the rows; scores for each rank are log-odds of P(y > k)."""
    frame, _ = table(60, seed=8)
    own = fitted.contributions(frame)
    if own is None:
        return
    assert own.columns == tuple(frame.columns)
    exceedance = fitted.predict_exceedance(frame)
    odds = np.log(exceedance) - np.log1p(-exceedance)
    if own.total.shape[1] == 1:
        # here the link is the logit, so the log-odds are the score and a constant
        odds = odds - own.total
        np.testing.assert_allclose(odds, np.broadcast_to(odds[:1], odds.shape), atol=1e-6)
    else:
        np.testing.assert_allclose(own.total, odds, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decision": "guess"}, "decision must be one of"),
        ({"class_weight": "heavy"}, "class_weight must be"),
        ({"classes": ["low", "mid"]}, "not in classes|is not among"),
    ],
)
def test_wrong_parameters_are_refused(name: str, change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(name).set_params(**change).fit(*table(60))
