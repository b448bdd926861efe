"""What the engines refuse before they compute anything."""

import numpy as np
import pytest

from echelon.models.arguments import as_features, as_ranks, as_weight


def test_what_is_right_comes_back_in_the_types_of_the_engines() -> None:
    assert as_features([[1, 2]]).dtype == np.float64
    found = as_ranks(np.array([0, 2], dtype=np.uint8), 3, length=2)
    assert found.dtype == np.int64
    assert found.tolist() == [0, 2]
    assert as_weight(None, 3).tolist() == [1.0, 1.0, 1.0]
    assert as_weight([0, 2], 2).tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: as_features([1.0, 2.0]), r"features must have the shape \(n, d\); got \(2,\)"),
        (lambda: as_features([[1.0]], columns=3), r"the shape \(n, 3\); got \(1, 1\)"),
        (lambda: as_features([[1.0]], rows=2), "1 rows and ranks 2; each row needs a rank"),
        (lambda: as_features([[np.nan, np.inf]]), "got 2 cells that are not. Fill or drop"),
        (lambda: as_ranks([0.5], 3), r"vector of integers; got the shape \(1,\) of float64"),
        (lambda: as_ranks(np.array([], dtype=int), 3), "non-empty vector"),
        (lambda: as_ranks([0, 3], 3), r"ranks must lie in 0\.\.2; got 0 to 3"),
        (lambda: as_ranks([-1], 3), r"ranks must lie in 0\.\.2; got -1"),
        (lambda: as_ranks([0], 1), "num_classes must be at least 2; got 1"),
        (lambda: as_ranks([0, 1], 3, length=5), "features have 5 rows and ranks 2"),
        (lambda: as_weight([1.0], 2), r"weight must have 2 values, one a row; got \(1,\)"),
        (lambda: as_weight([0.0, 0.0], 2), "not all 0; got 0 to 0"),
        (lambda: as_weight([-1.0, 2.0], 2), "not negative .*got -1 to 2"),
        (lambda: as_weight([np.nan, 2.0], 2), "weight must be finite"),
    ],
)
def test_what_is_refused_is_named(ask, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask()
