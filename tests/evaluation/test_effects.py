"""Local effects against functions whose effects are known."""

import numpy as np
import pandas as pd
import pytest

from echelon.evaluation.effects import local_effect
from echelon.evaluation.recombining import Curves, column_kinds


def curves_of(score) -> Curves:
    """Three ranks; P(y > 0) and P(y > 1) are a score and a half of it."""

    def predict(rows: pd.DataFrame) -> np.ndarray:
        above = np.asarray(score(rows), dtype=np.float64)
        return np.stack([1 - above, above / 2, above / 2], axis=1)

    return Curves(predict)


def uniform(n: int = 2000, columns: str = "abc", seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(
        np.random.default_rng(seed).random((n, len(columns))), columns=list(columns)
    )


def test_the_shape_of_an_additive_function_is_found_exactly() -> None:
    frame = uniform()
    curves = curves_of(lambda rows: 0.2 + 0.5 * (rows["a"] - 0.5) ** 2 + 0.3 * rows["b"])
    effect = local_effect(curves, frame, "a", column_kinds(frame))
    true = 0.5 * (np.array(effect.cells) - 0.5) ** 2
    np.testing.assert_allclose(np.diff(effect.exceedance[:, 0]), np.diff(true), atol=1e-12)
    np.testing.assert_allclose(effect.exceedance[:, 1], effect.exceedance[:, 0] / 2, atol=1e-12)
    np.testing.assert_allclose(effect.expected_rank, 1.5 * effect.exceedance[:, 0], atol=1e-12)
    np.testing.assert_allclose(effect.spread, 0, atol=1e-12)
    assert effect.rows.sum() == 2000
    assert effect.direction.startswith("rises and falls")
    assert local_effect(curves, frame, "b", column_kinds(frame)).direction.endswith(
        "raises the class"
    )
    assert local_effect(curves, frame, "c", column_kinds(frame)).direction == "hardly matters"


def test_the_mean_over_rows_is_zero() -> None:
    frame = uniform()
    frame["a"] **= 3
    effect = local_effect(curves_of(lambda rows: rows["a"]), frame, "a", column_kinds(frame))
    middle = (effect.expected_rank[1:] + effect.expected_rank[:-1]) / 2
    assert effect.rows[1:] @ middle == pytest.approx(0, abs=1e-9)


def test_the_spread_is_that_of_the_rows() -> None:
    """The slope in a is b, which is uniform: the change over a step has a known deviation."""
    frame = uniform(20_000)
    effect = local_effect(
        curves_of(lambda rows: rows["a"] * rows["b"]), frame, "a", column_kinds(frame), points=5
    )
    widths = np.diff(np.array(effect.cells))
    np.testing.assert_allclose(effect.spread[1:], 1.5 * widths / np.sqrt(12), rtol=0.03)
    np.testing.assert_allclose(np.diff(effect.expected_rank), 1.5 * widths / 2, rtol=0.03)


def test_correlated_columns_do_not_lend_each_other_their_effect() -> None:
    """a does nothing where b is; partial dependence would ask about rows that cannot be."""
    generator = np.random.default_rng(0)
    a = generator.random(3000)
    frame = pd.DataFrame({"a": a, "b": a + 0.02 * generator.normal(size=3000)})

    def score(rows: pd.DataFrame) -> pd.Series:
        far = (rows["a"] - rows["b"]).abs() > 0.3  # no row is there
        return (rows["b"].clip(0, 1) * 0.8).where(~far, 1 - rows["a"])

    effect = local_effect(curves_of(score), frame, "a", column_kinds(frame))
    assert np.ptp(effect.expected_rank) < 0.01


def test_few_values_booleans_and_dates() -> None:
    frame = uniform()
    frame["count"] = (frame["a"] * 4).astype(int)
    frame["flag"] = frame["b"] > 0.5
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta((frame["c"] * 100).round(), "D")
    kinds = column_kinds(frame)
    start = pd.Timestamp("2020-01-01")

    def score(rows: pd.DataFrame) -> pd.Series:
        days = (rows["day"] - start).dt.days / 100
        return 0.1 * rows["count"] + 0.2 * rows["flag"] - 0.3 * days + 0.3

    curves = curves_of(score)
    count = local_effect(curves, frame, "count", kinds)
    assert count.cells == [0, 1, 2, 3]
    np.testing.assert_allclose(np.diff(count.exceedance[:, 0]), 0.1)
    assert count.rows.tolist() == np.bincount(frame["count"]).tolist()
    flag = local_effect(curves, frame, "flag", kinds)
    np.testing.assert_allclose(np.diff(flag.exceedance[:, 0]), 0.2)
    day = local_effect(curves, frame, "day", kinds)
    assert day.direction == "later is lower"
    assert np.ptp(day.exceedance[:, 0]) == pytest.approx(0.3)
    assert all(isinstance(cell, pd.Timestamp) for cell in day.cells)


def test_categories_move_to_their_neighbours_and_a_gap_is_one() -> None:
    frame = uniform()
    values = {"low": 0.1, "mid": 0.3, "high": 0.6}
    names = np.array(["low", "mid", "high"])[(frame["a"] * 3).astype(int)]
    frame["level"] = pd.Series(names).where(frame["b"] > 0.1, None)
    curves = curves_of(lambda rows: rows["level"].map(values).fillna(0.2).astype(float))
    effect = local_effect(curves, frame, "level", column_kinds(frame))
    found = dict(zip(effect.cells, effect.exceedance[:, 0], strict=True))
    for name, value in values.items():
        assert found[name] - found["low"] == pytest.approx(value - 0.1)
    assert found[None] - found["low"] == pytest.approx(0.1)
    # a says which level is which, so levels that are alike in a lie beside each other
    known = [cell for cell in effect.cells if cell is not None]
    assert known in (["low", "mid", "high"], ["high", "mid", "low"])
    assert effect.direction == "highest for high, lowest for low"


def test_a_gap_in_numbers_is_compared_with_the_median() -> None:
    frame = uniform()
    frame.loc[frame["b"] < 0.2, "a"] = np.nan
    curves = curves_of(lambda rows: rows["a"].fillna(0.9) * 0.5 + 0.1)
    effect = local_effect(curves, frame, "a", column_kinds(frame))
    assert effect.cells[-1] is None
    assert effect.rows[-1] == frame["a"].isna().sum()
    at = int(np.abs(np.array(effect.cells[:-1]) - 0.5).argmin())
    gap = effect.exceedance[-1, 0] - effect.exceedance[at, 0]
    assert gap == pytest.approx(0.5 * (0.9 - effect.cells[at]), abs=1e-9)
    only = pd.DataFrame({"a": [1.0, np.nan, 1.0]})
    pair = local_effect(curves_of(lambda rows: rows["a"].fillna(0) / 2), only, "a", {"a": "number"})
    assert pair.cells == [1.0, None]
    np.testing.assert_allclose(np.diff(pair.exceedance[:, 0]), -0.5)


def test_what_cannot_be_moved_has_no_effect() -> None:
    frame = pd.DataFrame({"text": ["a b", "c"], "constant": [1.0, 1.0]})
    curves = curves_of(lambda rows: np.full(len(rows), 0.5))
    kinds = {"text": "text", "constant": "number"}
    assert local_effect(curves, frame, "text", kinds) is None
    assert local_effect(curves, frame, "constant", kinds) is None
