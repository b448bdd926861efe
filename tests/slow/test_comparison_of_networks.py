"""Comparisons of real networks: one with itself, and two that truly differ."""

import numpy as np
import pytest

from echelon import OrdinalClassifier
from echelon.data import make_friedman
from echelon.evaluation.comparison import compare, row_losses
from tests.evaluation.test_comparison import SETTINGS, share_called_different

NETWORKS = 60
COMPARISONS = 500


def losses(method: str, rows: int, seeds: range, test, **parameters) -> np.ndarray:
    train = make_friedman(rows, seed=500)
    tables = []
    for seed in seeds:
        model = OrdinalClassifier(method, random_state=seed, device="cpu", **parameters)
        model.fit(train.features, train.ranks)
        tables.append(row_losses("mae", test.ranks, model.predict(test.features)))
    return np.stack(tables)


def test_a_method_is_rarely_called_different_from_itself() -> None:
    """500 comparisons of five networks with five others, on test rows of their own."""
    test = make_friedman(20_000, seed=501)
    quick = {"settings": {"max_epochs": 4, "refit": False}}
    pool = losses("corn", 2000, range(NETWORKS), test, **quick)
    generator = np.random.default_rng(0)
    different = 0
    for _ in range(COMPARISONS):
        seeds = generator.choice(NETWORKS, size=10, replace=False)
        rows = generator.choice(20_000, size=1000, replace=False)
        chosen = pool[seeds][:, rows]
        found = compare({"a": chosen[:5], "b": chosen[5:]})
        different += found[0].verdict == "different"
    print(f"called different: {different / COMPARISONS:.3f}")
    assert different / COMPARISONS <= 0.05 + 3 * (0.05 * 0.95 / COMPARISONS) ** 0.5


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize(("seeds", "methods"), [(2, 2), (2, 4), (3, 4), (5, 4), (10, 4)])
def test_equal_methods_are_rarely_called_different(seeds, methods, n, setting) -> None:
    draws = 3000 if n == 100 else 1000
    found = share_called_different(seeds, methods, setting, draws, n)
    print(f"{seeds} seeds, {methods} methods, {n} rows, {setting}: {found:.3f}")
    assert found <= 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5


@pytest.fixture(scope="module")
def fireman():
    return make_friedman(8138, seed=502)


def test_more_rows_are_called_a_difference(fireman) -> None:
    tables = {
        "2,000 rows": losses("corn", 2000, range(3), fireman),
        "30,000 rows": losses("corn", 30_000, range(3), fireman),
    }
    found = compare(tables)[0]
    assert found.verdict == "different"
    assert found.mean > 0


def test_the_verdict_on_corn_and_cross_entropy_is_printed(fireman) -> None:
    tables = {name: losses(name, 30_000, range(5), fireman) for name in ("corn", "ce")}
    found = compare(tables)[0]
    print(found.sentence)
    assert found.verdict in ("different", "within noise")
    assert found.se > 0
