"""The comparison of all methods: every name, and the best first. It runs in tests/slow."""

import methods
from echelon import METHODS, MODELS


def test_every_method_and_model_is_a_contestant() -> None:
    assert {*METHODS, *MODELS} - {*methods.contestants()} == {"network"}


def test_the_best_stands_first() -> None:
    runs = [
        {"method": name, "seed": seed, "mae": mae + seed, "rmse": 2 * mae}
        for name, mae in (("ce", 0.5), ("corn", 0.25))
        for seed in (0, 1)
    ]
    lines = methods.comparison({"runs": runs}).splitlines()
    assert lines[-2:] == ["| `corn` | 0.7500 | 0.5000 | 2 |", "| `ce` | 1.0000 | 1.0000 | 2 |"]
