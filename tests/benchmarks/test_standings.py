"""The arithmetic behind the accuracy page, against values found by hand."""

import numpy as np
import pytest

import standings
from standings import Ratio, Scores


def scores(mae: list[float], rps: list[float] | None = None, overlap: float = 1 / 3) -> Scores:
    values = dict.fromkeys(standings.METRICS, mae) | {"RPS": mae if rps is None else rps}
    return Scores(values, [1.0] * len(mae), overlap)


def test_shared_rows_widen_the_standard_error() -> None:
    """Variance 2.5, five divisions, a quarter for testing: 2.5 (1/5 + 1/3)."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert standings.standard_error(values, 1 / 3) == pytest.approx((2.5 * (1 / 5 + 1 / 3)) ** 0.5)
    assert standings.standard_error(values, 0.0) == pytest.approx((2.5 / 5) ** 0.5)
    assert np.isnan(standings.standard_error([1.0], 1 / 3))


def test_ratio_is_that_of_the_means_and_its_error_is_paired() -> None:
    found = standings.ratio([1.0, 3.0], [2.0, 2.0], 1 / 3)
    assert found.value == 1.0
    # Each division adds -0.5 or +0.5, whose variance is 0.5.
    assert found.error == pytest.approx((0.5 * (1 / 2 + 1 / 3)) ** 0.5)
    hard = standings.ratio([1.1, 11.0, 2.2], [1.0, 10.0, 2.0], 1 / 3)
    assert hard.value == pytest.approx(1.1)
    assert hard.error == pytest.approx(0.0, abs=1e-12)  # a hard division is hard for both


def test_behind_means_by_more_than_two_standard_errors() -> None:
    assert Ratio(1.05, 0.02).is_behind
    assert not Ratio(1.05, 0.03).is_behind
    assert not Ratio(0.5, 0.01).is_behind
    assert not Ratio(2.0, float("nan")).is_behind
    assert str(Ratio(1.05, 0.02)) == "1.050 (0.020) behind"


def test_ratios_are_averaged_geometrically() -> None:
    assert standings.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert standings.geometric_mean([0.9, 0.9, 0.9]) == pytest.approx(0.9)


def test_equal_contestants_share_their_places() -> None:
    results = {
        "one": {"a": scores([1, 1]), "b": scores([1, 1]), "c": scores([2, 2])},
        "two": {"a": scores([3, 3]), "b": scores([1, 1]), "c": scores([2, 2])},
    }
    assert standings.mean_ranks(results, "MAE") == {"a": 2.25, "b": 1.25, "c": 2.5}


def test_who_lacks_a_set_has_no_place_and_takes_none() -> None:
    results = {
        "one": {"partial": scores([0.1, 0.1]), "a": scores([1, 1]), "b": scores([2, 2])},
        "two": {"a": scores([1, 1]), "b": scores([2, 2])},
    }
    assert standings.mean_ranks(results, "RPS") == {"a": 1.0, "b": 2.0}


def test_summary_shows_means_over_sets_and_where_someone_is_behind() -> None:
    reference = standings.REFERENCE
    results = {
        "one": {reference: scores([1, 1.01, 0.99]), "a": scores([0.5, 0.51, 0.49])},
        "two": {reference: scores([1, 1.01, 0.99]), "a": scores([2, 2.01, 1.99])},
    }
    (row,) = (line for line in standings.summary("S", results).split("\n") if line[:4] == "| a ")
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells == ["a", "1.50", "1.50", "1.000", "1.000", "two", "two", "1.0 to 1.0"]
    assert "2.000 (0.008) behind" in standings.set_table("two", results["two"])


def test_one_is_put_beside_another_in_a_sentence() -> None:
    results = {
        "easy": {"a": scores([1.0, 1.0]), "b": scores([2.0, 2.0])},
        "hard": {"a": scores([4.0, 4.0]), "b": scores([2.0, 2.0]), "c": scores([1.0, 1.0])},
    }
    found = standings.beside(results, "a", "b")
    assert found == "a over b: MAE 1.000, behind on hard; RPS 1.000, behind on hard."
    assert standings.beside(results, "a", "c") == ""
