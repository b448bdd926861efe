"""Decisions, calibration and intervals of fitted models, and that they are saved with them."""

import copy

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon import OrdinalClassifier
from echelon.data import make_friedman
from echelon.evaluation import calibration, metrics
from tests.discrete import coverage_of_draw, discrete_model

NAMES = ["awful", "bad", "fair", "good", "great"]


def rows(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    data = make_friedman(n, num_classes=5, seed=seed)
    frame = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(10)])
    return frame, np.array(NAMES)[data.ranks]


@pytest.fixture(scope="module")
def fitted() -> OrdinalClassifier:
    model = OrdinalClassifier(
        backbone="mlp",
        classes=NAMES,
        random_state=0,
        device="cpu",
        settings={"max_epochs": 8, "refit": False},
    )
    return model.fit(*rows(1500, 0))


@pytest.fixture
def model(fitted: OrdinalClassifier) -> OrdinalClassifier:
    return copy.deepcopy(fitted)


# ---- decisions -----------------------------------------------------------------------------------


def test_a_decision_can_be_taken_after_fitting(model) -> None:
    table, truth = rows(4000, 1)
    costs = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    found = {
        name: model.predict(table, decision=name) for name in ("median", "mean", "mode", "kappa")
    }
    assert (model.predict(table) == found["median"]).all()
    assert (model.predict(table, decision=costs) == found["median"]).mean() > 0.999
    model.set_params(decision="kappa")
    assert (model.predict(table) == found["kappa"]).all()
    assert (found["kappa"] != found["median"]).any()
    expected = (model.predict_proba(table) @ np.arange(5))[:, None] > model.cutpoints_
    assert (found["kappa"] == np.array(NAMES)[expected.sum(axis=1)]).all()
    assert metrics.mae(truth, found["median"], classes=NAMES) < 0.6


def test_kappa_needs_validation_rows() -> None:
    table, truth = rows(100, 0)
    model = OrdinalClassifier(
        classes=NAMES,
        settings={"max_epochs": 1},
        validation_fraction=0,
        decision="kappa",
        device="cpu",
    ).fit(table, truth)
    with pytest.raises(ValueError, match="'kappa' needs cut-points"):
        model.predict(table)


@pytest.mark.parametrize(
    ("decision", "message"),
    [("best", "decision must be one of 'median', 'mean', 'mode', 'kappa'"), (np.ones(3), "cost_")],
)
def test_a_wrong_decision_is_refused_before_fitting(decision, message) -> None:
    table, truth = rows(100, 0)
    with pytest.raises(ValueError, match=message):
        OrdinalClassifier(classes=NAMES, decision=decision, device="cpu").fit(table, truth)


def test_crossings_reach_the_user() -> None:
    table, truth = rows(300, 0)
    model = OrdinalClassifier(
        "ornn", "mlp", classes=NAMES, settings={"max_epochs": 1}, random_state=0, device="cpu"
    )
    curve = model.fit(table, truth).curve(rows(20_000, 1)[0])
    assert float(curve.crossings().max()) > 0


def test_a_row_that_cannot_be_predicted_is_named() -> None:
    table, truth = rows(100, 0)
    model = OrdinalClassifier(
        classes=NAMES, settings={"max_epochs": 1, "scaling": "none"}, random_state=0, device="cpu"
    ).fit(table, truth)
    table = table.astype(float)
    table.loc[7, "V3"] = 1e300  # which is infinite for a network
    model.conformalize(*rows(50, 1))
    for ask in (model.predict, model.predict_interval):
        with pytest.raises(ValueError, match=r"row 7 cannot be .* its column 'V3', which holds 1e"):
            ask(table)
    found = model.predict(table, on_undefined="missing")
    assert found[7] is None
    assert set(np.delete(found, 7)) <= set(NAMES)
    with pytest.raises(ValueError, match="on_undefined must be 'raise' or 'missing'"):
        model.predict(table, on_undefined="skip")


# ---- calibration ---------------------------------------------------------------------------------


def test_predictions_beside_a_calibration_are_never_uncalibrated(model, monkeypatch) -> None:
    """Whoever predicts while a model is calibrated anew sees the old map or the new one."""
    table, truth = rows(200, 1)
    model.calibrate(table, truth)
    model.calibration_.temperature.fill_(3.0)  # far from doing nothing
    before = model.predict_proba(table)
    seen = []
    fit = calibration.fit_calibration

    def watched(*arguments, **options):
        seen.append(model.predict_proba(table))  # as another thread would, in the midst of it
        return fit(*arguments, **options)

    monkeypatch.setattr(calibration, "fit_calibration", watched)
    earlier = model.calibration_
    model.calibrate(table, truth)
    np.testing.assert_array_equal(seen[0], before)
    assert float(earlier.temperature) == 3.0  # who holds the old map keeps it
    assert not np.allclose(model.predict_proba(table), before)


@pytest.mark.parametrize("kind", ["temperature", "isotonic"])
def test_calibration_is_applied_saved_and_exported(model, kind, tmp_path) -> None:
    table, truth = rows(1500, 2)
    truth[:300] = truth[300:600]  # labels that the model is too sure about
    new, _ = rows(500, 3)
    before = model.predict_proba(new)
    assert model.calibrate(table, truth, kind=kind) is model
    after = model.predict_proba(new)
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_allclose(after.sum(axis=1), 1)
    assert set(model.calibration_summary_) == {"before", "after"}
    again = copy.deepcopy(model).calibrate(table, truth, kind=kind)  # not on top of each other
    np.testing.assert_allclose(again.predict_proba(new), after)

    model.save(tmp_path / "model")
    loaded = echelon.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(new), after)
    assert loaded.calibration_summary_ == model.calibration_summary_
    np.testing.assert_array_equal(loaded.predict(new, "kappa"), model.predict(new, "kappa"))
    model.set_params(decision="kappa").export_onnx(tmp_path / "model.onnx")
    assert run_onnx(tmp_path / "model.onnx", new) == model.predict(new).tolist()


def run_onnx(path, table: pd.DataFrame) -> list[str]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    columns = {name: table[name].to_numpy(np.float64) for name in table}
    return session.run(["label"], columns)[0].tolist()


def test_a_failed_calibration_changes_nothing(model) -> None:
    table, truth = rows(50, 2)
    before = model.predict_proba(table)
    for wrong in ({"kind": "magic"}, {"y": truth[:-1]}):
        with pytest.raises(ValueError, match=r"calibration must be|inconsistent"):
            model.calibrate(table, **({"y": truth} | wrong))
    np.testing.assert_array_equal(model.predict_proba(table), before)


def test_a_map_that_does_not_help_is_left_out_on_request(model) -> None:
    few, truth = rows(40, 2)
    before = model.predict_proba(few)
    model.calibrate(few, truth, kind="isotonic", keep="better")
    assert model.calibration_ is None
    assert set(model.calibration_summary_) == {"before", "after"}
    np.testing.assert_array_equal(model.predict_proba(few), before)
    table, wrong = rows(1500, 2)
    wrong[:500] = wrong[500:1000]  # labels that the model is too sure about
    model.calibrate(table, wrong, keep="better")
    assert float(model.calibration_.temperature) > 1
    with pytest.raises(ValueError, match="keep must be 'always' or 'better'; got 'never'"):
        model.calibrate(table, wrong, keep="never")


# ---- intervals -----------------------------------------------------------------------------------


def test_intervals_cover_and_are_saved(model, tmp_path) -> None:
    with pytest.raises(ValueError, match=r"call conformalize\(X, y\) first"):
        model.predict_interval(rows(5, 3)[0])
    model.conformalize(*rows(2000, 2))
    new, truth = rows(4000, 3)
    found = model.predict_interval(new, coverage=0.8)
    assert found.shape == (4000, 2)
    place = {name: k for k, name in enumerate(NAMES)}
    low, high, true = (np.vectorize(place.get)(one) for one in (found[:, 0], found[:, 1], truth))
    inside = (low <= true) & (true <= high)
    assert inside.mean() > 0.8 - 4 * np.sqrt(0.16 / 4000) - 4 * np.sqrt(0.16 / 2000)
    assert (high - low + 1).mean() < 3
    mode = np.vectorize(place.get)(model.predict(new, "mode"))
    assert ((low <= mode) & (mode <= high)).all()

    model.save(tmp_path / "model")
    loaded = echelon.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_interval(new, 0.8), found)
    per_class = model.predict_interval(new, 0.8, per_class=True)
    np.testing.assert_array_equal(loaded.predict_interval(new, 0.8, per_class=True), per_class)
    assert (per_class != found).any()


def test_coverage_holds_where_inputs_are_discrete_and_rows_many() -> None:
    """Two columns of categories: probabilities tie, and a tie must not hang on the precision."""
    model, table = discrete_model()
    shares = [coverage_of_draw(model, table, 0.8, seed) for seed in range(40)]
    assert np.mean(shares) > 0.8 - 2 * np.std(shares, ddof=1) / len(shares) ** 0.5


@pytest.mark.parametrize("kind", ["temperature", "isotonic"])
def test_weights_of_calibration_rows_count(model, kind) -> None:
    table, truth = rows(300, 2)
    weight = np.random.default_rng(0).integers(0, 4, size=300)
    again = np.repeat(np.arange(300), weight)
    other = copy.deepcopy(model).calibrate(table.iloc[again], truth[again], kind)
    model.calibrate(table, truth, kind, sample_weight=weight)
    new, _ = rows(200, 3)
    # an isotonic map also knows from how many rows it is
    np.testing.assert_allclose(model.predict_proba(new), other.predict_proba(new), atol=2e-3)
    model.conformalize(table, truth, sample_weight=np.where(truth == "great", 1000.0, 1.0))
    heavy = model.predict_interval(new, 0.9)
    model.conformalize(table, truth)
    assert (model.predict_interval(new, 0.9) != heavy).any()


def test_too_few_rows_for_a_coverage_are_said(model) -> None:
    model.conformalize(*rows(10, 2))
    with pytest.warns(UserWarning, match="a coverage of 0.95 needs 19 calibration rows"):
        found = model.predict_interval(rows(5, 3)[0], coverage=0.95)
    assert (found == ["awful", "great"]).all()


def test_calibrating_makes_old_intervals_invalid(model) -> None:
    model.conformalize(*rows(100, 2)).calibrate(*rows(100, 3))
    with pytest.raises(ValueError, match="call conformalize"):
        model.predict_interval(rows(5, 3)[0])


def test_a_new_fit_forgets_both(model) -> None:
    model.conformalize(*rows(100, 2))
    model.set_params(settings={"max_epochs": 1}).fit(*rows(100, 0))
    assert model.conformal_ is None


@pytest.mark.parametrize("score", ["rps", "window"])
def test_the_score_of_intervals_is_saved_with_the_model(fitted, tmp_path, score) -> None:
    model = copy.deepcopy(fitted).conformalize(*rows(300, 2), score=score)
    table, truth = rows(600, 3)
    ends = model.predict_interval(table, 0.8)
    places = {name: k for k, name in enumerate(NAMES)}
    low, found, high = ([places[one] for one in each] for each in (ends[:, 0], truth, ends[:, 1]))
    assert ((np.array(low) <= found) & (np.array(found) <= high)).mean() > 0.7
    model.save(tmp_path / "m.echelon")
    again = echelon.load(tmp_path / "m.echelon")
    assert again.conformal_score_ == score
    np.testing.assert_array_equal(again.predict_interval(table, 0.8), ends)


def test_an_unknown_score_of_intervals_is_named(fitted) -> None:
    with pytest.raises(ValueError, match="score must be one of 'probability', 'rps', 'window'"):
        copy.deepcopy(fitted).conformalize(*rows(100, 2), score="aps")
