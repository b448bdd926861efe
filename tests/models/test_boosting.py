"""The model that is boosted trees: columns by name, rows held out and taken back, files forged."""

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon import OrdinalBoosting
from tests.forging import rewrite


def rows(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Ranks that rise with `size`, fall with `age` and depend on `kind`; `noise` says nothing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "kind": rng.choice(["a", "b", "c"], n),
            "size": rng.normal(size=n),
            "age": rng.normal(size=n),
        }
    )
    score = 2 * frame["size"] - frame["age"] + 2 * (frame["kind"] == "c")
    score = score + rng.logistic(size=n) * 0.5
    return frame, np.digitize(score, [-1.5, 0.0, 1.5])


@pytest.fixture(scope="module")
def fitted() -> OrdinalBoosting:
    return OrdinalBoosting(rounds=30, random_state=0).fit(*rows())


@pytest.mark.parametrize(("column", "sign"), [("size", 1), ("age", -1), ("noise", 1)])
def test_the_rank_follows_a_column_that_is_named_as_monotone(column: str, sign: int) -> None:
    model = OrdinalBoosting(rounds=30, random_state=0, monotone={column: sign}).fit(*rows())
    line = rows(8, seed=1)[0].loc[np.repeat(np.arange(8), 40)].reset_index(drop=True)
    line[column] = np.tile(np.linspace(-4, 4, 40), 8)
    above = model.predict_exceedance(line).reshape(8, 40, 3)
    assert (sign * np.diff(above, axis=1)).min() >= -1e-12


def test_the_rank_follows_the_days_and_years_of_a_date() -> None:
    """Compared on one weekday of one month, as these come on top."""
    day = pd.Series(np.datetime64("2019-01-01") + np.arange(0, 2000, 4))
    ranks = np.random.default_rng(0).integers(0, 3, 500)
    model = OrdinalBoosting(rounds=30, random_state=0, monotone={"day": 1})
    frame = pd.DataFrame({"day": day})
    model.fit(frame, ranks)
    same = day[(day.dt.month == 5) & (day.dt.day_of_week == 2)].to_frame("day")
    assert len(same) > 4
    assert (np.diff(model.predict_exceedance(same), axis=0) > -1e-9).all()


def test_what_can_not_be_monotone_is_named() -> None:
    with pytest.raises(ValueError, match="'kind', which is no column of numbers; these are: noise"):
        OrdinalBoosting(monotone={"kind": 1}).fit(*rows(50))
    with pytest.raises(ValueError, match="monotone must be 1, -1 or 0 for 'size'; got 2"):
        OrdinalBoosting(monotone={"size": 2}).fit(*rows(50))
    with pytest.raises(ValueError, match="settings have no 'depth'; they may have: "):
        OrdinalBoosting(settings={"depth": 3}).fit(*rows(50))


def test_the_final_trees_are_grown_on_all_rows() -> None:
    """As many as the held-out rows chose: they are those of a fit of so many on everything."""
    frame, ranks = rows()
    model = OrdinalBoosting(random_state=0).fit(frame, ranks)
    assert 0 < model.num_trees_ < len(model.history_)
    plain = OrdinalBoosting(rounds=model.num_trees_, validation_fraction=0, random_state=0)
    np.testing.assert_array_equal(
        plain.fit(frame, ranks).predict_proba(frame), model.predict_proba(frame)
    )
    kept = OrdinalBoosting(random_state=0, settings={"refit": 0.0}).fit(frame, ranks)
    assert kept.num_trees_ == model.num_trees_
    assert (kept.predict_proba(frame) != model.predict_proba(frame)).any()


def test_the_time_limit_ends_a_fit_with_a_model() -> None:
    frame, ranks = rows(2000)
    start = time.monotonic()
    model = OrdinalBoosting(
        rounds=100_000, validation_fraction=0, time_limit=0.3, random_state=0
    ).fit(frame, ranks)
    assert time.monotonic() - start < 10
    assert 0 < model.num_trees_ < 100_000
    assert (model.predict(frame) == ranks).mean() > 0.5


def test_importances_stand_in_the_order_of_the_columns(fitted: OrdinalBoosting) -> None:
    """Inside, the categories stand behind the numbers."""
    shares = dict(zip(fitted.feature_names_in_, fitted.feature_importances_, strict=True))
    assert sum(shares.values()) == pytest.approx(1)
    assert sorted(shares, key=shares.get) == ["noise", "kind", "age", "size"]


def test_trees_that_do_not_fit_the_file_are_refused(
    fitted: OrdinalBoosting, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "m")
    frame = rows(50, seed=2)[0]
    np.testing.assert_array_equal(
        echelon.load(tmp_path / "m").predict_proba(frame), fitted.predict_proba(frame)
    )
    for change, message in (
        (lambda d, t: d["schema"]["columns"].pop(), "do not fit its columns"),
        (_with_a_class_more, "do not fit its classes"),
        (lambda d, t: d["model"].pop("trees"), "does not describe a model"),
        (_with_a_leaf_of_nan, "damaged"),
    ):
        rewrite(tmp_path / "m", tmp_path / "forged", change)
        with pytest.raises(ValueError, match=message):
            echelon.load(tmp_path / "forged")


def _with_a_class_more(document, tensors) -> None:
    document["classes"].append(4)
    document["cutpoints"].append(3.9)
    document["reference"] = {name: [*counts, 0] for name, counts in document["reference"].items()}


def _with_a_leaf_of_nan(document, tensors) -> None:
    trees = document["model"]["trees"]
    (name,) = (key for key, value in trees.items() if "leaf_value=" in str(value))
    before, _, after = trees[name].partition("leaf_value=")
    trees[name] = f"{before}leaf_value=nan {after.partition(' ')[2]}"


def test_a_time_limit_covers_the_second_growing_too(monkeypatch) -> None:
    frame, truth = rows()
    model = OrdinalBoosting(rounds=20, classes=sorted(set(truth)), random_state=0, time_limit=1000)
    whole = model.fit(frame, truth).trees_.text

    class Slow:
        """A clock by which everything takes minutes."""

        now = 0.0

        def monotonic(self) -> float:
            self.now += 300
            return self.now

    monkeypatch.setattr("echelon.models.boosting.time", Slow())
    short = model.set_params(time_limit=500).fit(frame, truth)
    assert short.trees_.text != whole  # of the training rows alone
    assert model.set_params(time_limit=None).fit(frame, truth).trees_.text == whole
