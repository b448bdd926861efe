"""Year, month and weekday of dates."""

from pathlib import Path

import numpy as np
import pandas as pd

import echelon
from echelon.data.calendar import calendar_numbers
from echelon.data.schema import Column, TableSchema


def test_parts_are_those_of_pandas_over_four_centuries() -> None:
    days = np.arange(-80_000, 80_000, 7.3)
    moments = pd.to_datetime(pd.Series(np.floor(days)), unit="D", origin="unix")
    year, month, weekday = calendar_numbers(days)
    np.testing.assert_array_equal(year, moments.dt.year)
    np.testing.assert_array_equal(month, moments.dt.month)
    np.testing.assert_array_equal(weekday, moments.dt.day_of_week)
    assert np.isnan(calendar_numbers(np.array([np.nan]))).all()


def test_a_weekday_can_be_learnt_saved_and_exported(tmp_path: Path) -> None:
    day = pd.Series(np.datetime64("2024-01-01") + np.arange(400))
    frame = pd.DataFrame({"day": day, "other": np.arange(400) % 13 * 1.5})
    weekend = (day.dt.day_of_week >= 5).astype(int)
    model = echelon.OrdinalBoosting(rounds=40, random_state=0).fit(frame, weekend)
    assert (model.predict(frame) == weekend).mean() > 0.99
    assert model.feature_importances_.argmax() == 0
    assert len(model.feature_importances_) == 2
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    model.export_onnx(tmp_path / "m.onnx")  # which is compared with the model


def test_dates_of_older_files_are_days_alone() -> None:
    frame = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-02-01"])})
    assert TableSchema.of(frame).read(frame).numbers.shape == (2, 4)
    old = TableSchema((Column("day", "date"),), named=True)
    assert old.read(frame).numbers.shape == (2, 1)


def test_the_exact_linear_model_has_one_term_for_a_date() -> None:
    """Days, years and months say nearly the same, and would take each other's coefficients."""
    generator = np.random.default_rng(0)
    day = pd.Series(np.datetime64("2023-01-01") + generator.integers(0, 900, 300))
    day[::10] = pd.NaT
    frame = pd.DataFrame({"day": day, "size": generator.normal(size=300)})
    model = echelon.CumulativeLinkModel().fit(frame, generator.integers(0, 3, 300))
    assert np.isfinite(model.predict_proba(frame)).all()
    assert list(model.coefficients()) == ["day", "day is missing", "size"]
    at = model.probabilities_at({"day": ["2023-05-01", "2024-05-01"]})
    assert np.isfinite(at["probability"]).all()


def test_what_the_parts_of_a_date_add_belongs_to_the_date() -> None:
    """Also where another column has the name of a part."""
    day = pd.Series(np.datetime64("2024-01-01") + np.arange(400))
    noise = np.random.default_rng(0).normal(size=400)
    frame = pd.DataFrame({"day (weekday)": noise, "day": day})
    weekend = (day.dt.day_of_week >= 5).astype(int)
    model = echelon.OrdinalBoosting(rounds=40, random_state=0).fit(frame, weekend)
    own = model.contributions(frame)
    assert own.columns == ("day (weekday)", "day")
    exceedance = model.predict_exceedance(frame)[:, 0]
    logits = np.log(exceedance) - np.log1p(-exceedance)
    np.testing.assert_allclose(own.total, logits[:, None], atol=1e-4)
    assert np.abs(own.contributions[:, 1]).mean() > 10 * np.abs(own.contributions[:, 0]).mean()
    assert model.feature_importances_.argmax() == 1
    found = model.explain(frame, weekend, rows=[0], repeats=2)
    assert [one.columns for one in found.importance] == [("day",), ("day (weekday)",)]
