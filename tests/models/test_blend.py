"""Blends: weights from unseen rows, folds that keep groups together, and what a time limit does."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import echelon
from echelon import AutoOrdinal, CumulativeLinkModel, OrdinalBlend, OrdinalBoosting
from echelon.data import make_friedman
from echelon.data.rows import Rows
from echelon.data.schema import TableSchema
from echelon.evaluation import metrics
from echelon.models.base import CurveClassifier

QUICK = OrdinalBoosting(rounds=30)


@pytest.fixture(scope="module")
def data():
    return make_friedman(400, num_classes=4, seed=1)


def rps(model, data) -> float:
    return metrics.ranked_probability_score(data.ranks, model.predict_proba(data.features))


def test_a_blend_is_the_mixture_that_its_weights_say(data) -> None:
    blend = OrdinalBlend([CumulativeLinkModel(), QUICK], folds=3, random_state=0)
    blend.fit(data.features, data.ranks)
    table = blend.schema_.read(data.features)
    mixed = sum(
        member.weight
        * np.mean(
            [
                np.concatenate([c.probabilities.numpy() for c in fit.curves_of_rows(table)])
                for fit in member.fits
            ],
            axis=0,
        )
        for member in blend.members_
    )
    np.testing.assert_allclose(blend.predict_proba(data.features), mixed, atol=1e-9)
    assert sum(member.weight for member in blend.members_) == pytest.approx(1)


def test_a_useless_member_gets_no_weight_and_a_blend_beats_its_members(data) -> None:
    fresh = make_friedman(2000, num_classes=4, seed=2)
    useless = CumulativeLinkModel(ridge=1e9)
    blend = OrdinalBlend({"linear": CumulativeLinkModel(), "trees": QUICK, "none": useless})
    blend.set_params(random_state=0).fit(data.features, data.ranks)
    board = blend.leaderboard_.set_index("member")
    assert board.loc["none", "weight"] < 0.1
    trees = [clone(QUICK).set_params(random_state=seed) for seed in range(5)]
    alone = [rps(model.fit(data.features, data.ranks), fresh) for model in trees]
    linear = CumulativeLinkModel().fit(data.features, data.ranks)
    assert rps(blend, fresh) < min(np.mean(alone), rps(linear, fresh))


def test_groups_stay_on_one_side(data, monkeypatch) -> None:
    groups = np.arange(400) // 8
    seen = []
    original = CurveClassifier.fit_read

    def noted(self, rows, validation, labels, seed):
        seen.append(set(rows.groups))
        return original(self, rows, validation, labels, seed)

    monkeypatch.setattr(CumulativeLinkModel, "fit_read", noted)
    blend = OrdinalBlend([CumulativeLinkModel()], folds=5, random_state=0)
    blend.fit(data.features, data.ranks, groups=groups)
    assert [len(inside) for inside in seen] == [40] * 5


def test_given_validation_rows_weigh_the_members(data) -> None:
    blend = OrdinalBlend([CumulativeLinkModel(), QUICK], random_state=0)
    blend.fit(
        data.features[:300], data.ranks[:300], X_val=data.features[300:], y_val=data.ranks[300:]
    )
    assert [len(member.fits) for member in blend.members_] == [1] * len(blend.members_)


def test_several_seeds_of_one_model(data) -> None:
    model = echelon.OrdinalClassifier("corn", "linear", settings={"max_epochs": 1}, device="cpu")
    blend = OrdinalBlend([model], n_models=2, folds=2, random_state=0)
    blend.fit(data.features, data.ranks)
    first, second = blend.members_[0].fits[:2]
    assert not np.array_equal(
        first.network_.head.weight.detach(), second.network_.head.weight.detach()
    )


@pytest.mark.parametrize("rows", [2, 5, 9, 30])
def test_tiny_tables_are_fitted(rows: int) -> None:
    data = make_friedman(rows, num_classes=3, seed=4)
    ranks = np.arange(rows) % 2  # a class is absent, and another has a row or two
    model = AutoOrdinal(time_limit=3, classes=[0, 1, 2], random_state=0, device="cpu")
    probabilities = model.fit(data.features, ranks).predict_proba(data.features)
    assert np.isfinite(probabilities).all()


def test_an_interruption_keeps_what_is_there(data, monkeypatch) -> None:
    calls = []
    original = OrdinalBoosting.fit_rows

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(OrdinalBoosting, "fit_rows", interrupted)
    blend = OrdinalBlend([QUICK], folds=4, random_state=0).fit(data.features, data.ranks)
    assert blend.out_of_time_
    assert len(blend.members_[0].fits) == 2


def test_the_time_limit_is_kept_and_said(data) -> None:
    model = AutoOrdinal(time_limit=1.5, random_state=0, device="cpu")
    model.fit(data.features, data.ranks)
    assert model.out_of_time_
    assert set(model.leaderboard_["member"]) >= {"cumulative_link"}


def test_texts_beside_a_table(tmp_path) -> None:
    reviews = echelon.data.make_reviews(80, num_classes=3)
    frame = pd.DataFrame({"text": reviews.texts, "size": reviews.scores})
    model = AutoOrdinal(time_limit=8, folds=2, text="text", random_state=0, device="cpu")
    model.fit(frame, reviews.ranks)
    assert {"boosting", "cumulative_link"} <= set(model.leaderboard_["member"])
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        echelon.load(tmp_path / "model").predict_proba(frame), model.predict_proba(frame)
    )


def test_a_blend_without_models_says_what_it_needs(data) -> None:
    with pytest.raises(ValueError, match="a blend needs models"):
        OrdinalBlend().fit(data.features, data.ranks)


def test_several_processes_do_not_fit_one_blend(data, monkeypatch) -> None:
    monkeypatch.setenv(
        "WORLD_SIZE", "2"
    )  # their clocks would disagree, and one would wait for ever
    with pytest.raises(ValueError, match="fitted in one process, and this is one of 2"):
        OrdinalBlend([QUICK]).fit(data.features, data.ranks)


def test_the_kappa_of_a_blend_is_of_unseen_rows(data) -> None:
    blend = OrdinalBlend([CumulativeLinkModel()], folds=3, decision="kappa", random_state=0)
    blend.fit(data.features, data.ranks)
    fresh = make_friedman(20_000, num_classes=4, seed=2)
    real = metrics.quadratic_weighted_kappa(fresh.ranks, blend.predict(fresh.features))
    assert blend.kappa_.low < real < blend.kappa_.high
    assert blend.set_params(decision="median").fit(data.features, data.ranks).kappa_ is None


def test_more_rows_than_the_limit_allows_are_not_fitted(data, monkeypatch) -> None:
    monkeypatch.setattr("echelon.models.blend._ROWS_A_SECOND", {"cumulative_link": 40})
    seen = []
    original = CumulativeLinkModel.fit_rows

    def noted(self, rows, *rest):
        seen.append(len(rows))
        original(self, rows, *rest)

    monkeypatch.setattr(CumulativeLinkModel, "fit_rows", noted)
    AutoOrdinal(time_limit=2, folds=2, random_state=0, device="cpu").fit(data.features, data.ranks)
    assert set(seen) == {80}


def test_models_that_were_fitted_before_are_kept_and_weighed(data, tmp_path) -> None:
    frame = pd.DataFrame(data.features[:, :4], columns=list("abcd"))
    frame["kind"] = np.where(frame["a"] > 0.5, "x", "y")
    first, second = slice(0, 250), slice(250, None)
    members = [
        model.fit(frame[first], data.ranks[first])
        for model in (CumulativeLinkModel(), OrdinalBoosting(rounds=30, random_state=0))
    ]
    before = [model.predict_proba(frame) for model in members]
    blend = OrdinalBlend(members, prefitted=True)
    # Rows with other categories than those of training, which the models have never seen.
    judged = frame[second].assign(kind=["z", *frame["kind"][251:]])
    blend.fit(judged, data.ranks[second])
    weights = {member.name: member.weight for member in blend.members_}
    mixed = sum(
        weights.get(model.kind, 0.0) * curves for model, curves in zip(members, before, strict=True)
    )
    np.testing.assert_allclose(blend.predict_proba(frame), mixed, atol=1e-9)
    assert [member.fits[0] in members for member in blend.members_] == [True] * len(weights)
    assert len(blend.leaderboard_) == 2
    assert blend.cutpoints_ is not None
    blend.save(tmp_path / "m")
    np.testing.assert_array_equal(
        echelon.load(tmp_path / "m").predict_proba(frame), blend.predict_proba(frame)
    )


def test_fitted_models_that_do_not_belong_together_are_refused(data) -> None:
    model = CumulativeLinkModel().fit(data.features, data.ranks)
    rows = data.features, data.ranks
    unfitted = OrdinalBlend([model, CumulativeLinkModel()], prefitted=True)
    with pytest.raises(ValueError, match="needs fitted models; this CumulativeLinkModel is not"):
        unfitted.fit(*rows)
    other = CumulativeLinkModel().fit(data.features[:, :5], data.ranks)
    with pytest.raises(ValueError, match="must read the same columns"):
        OrdinalBlend([model, other], prefitted=True).fit(*rows)
    with pytest.raises(ValueError, match=r"knows the classes \[0, 1, 2, 3\], and the rows have"):
        OrdinalBlend([model], prefitted=True).fit(data.features, data.ranks + 1)
    calibrated = CumulativeLinkModel().fit(*rows).calibrate(*rows)
    with pytest.raises(ValueError, match="was calibrated"):
        OrdinalBlend([calibrated], prefitted=True).fit(*rows)


def test_a_single_row_is_fitted_saved_and_loaded(tmp_path) -> None:
    """Nothing can be held out, so there are no scores to be saved."""
    frame = pd.DataFrame({"a": [1.0]})
    model = AutoOrdinal(5, classes=["lo", "hi"], random_state=0, device="cpu").fit(frame, ["lo"])
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    pd.testing.assert_frame_equal(loaded.leaderboard_, model.leaderboard_)
    assert model.outcome()["leaderboard"][0]["rps"] is None


def test_auto_takes_the_networks_that_the_rows_and_the_time_bear() -> None:
    def networks(rows: int, time_limit: float | None) -> list[str]:
        frame = pd.DataFrame({"x": np.arange(rows, dtype=float)})
        schema = TableSchema.of(frame)
        read = Rows(schema, schema.read(frame), np.arange(rows) % 3, None, None)
        found = AutoOrdinal(time_limit=time_limit).candidates(read, 3)
        return [name for name in found if name.startswith("corn")]

    assert networks(5_000, 60) == networks(5_000, None) == ["corn/tabm"]
    assert networks(5_001, 60) == networks(20_000, 60) == ["corn"]
    assert networks(5_001, 300) == networks(20_000, None) == ["corn", "corn/tabm"]
