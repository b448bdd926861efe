"""Cross-validation on the curve: strings keep their order, and crossings are not lost."""

import copy

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon import CumulativeLinkModel, OrdinalClassifier
from echelon.data import make_friedman
from tests.models.test_predicting import NAMES, rows


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


def test_crossings_survive_cross_validation() -> None:
    table, truth = rows(300, 0)
    model = OrdinalClassifier(
        "ornn", "mlp", classes=NAMES, settings={"max_epochs": 1}, random_state=0, device="cpu"
    )
    curve = echelon.cross_val_curve(model, table, truth, folds=2)
    assert float(curve.crossings().max()) > 0
    alone = model.fit(table, truth).curve(table)
    assert alone.crossings().shape == curve.crossings().shape


@pytest.fixture(scope="module")
def data():
    return make_friedman(600, num_classes=4, seed=5)


def test_cross_validation_keeps_the_order_of_strings(data) -> None:
    names = np.array(["worst", "bad", "good", "best"])
    model = OrdinalClassifier(
        backbone="mlp",
        classes=list(names),
        settings={"max_epochs": 15},
        random_state=0,
        device="cpu",
    )
    curve = echelon.cross_val_curve(model, data.features, names[data.ranks], folds=3)
    error = np.abs(curve.median().numpy() - data.ranks).mean()
    assert error < 0.8 * np.abs(data.ranks - 1.5).mean()
    assert not hasattr(model, "network_")
    frame = pd.DataFrame(data.features)
    again = echelon.cross_val_curve(
        model,
        frame,
        names[data.ranks],
        folds=3,
        sample_weight=np.ones(600),
        groups=np.arange(600) // 7,
    )
    assert again.probabilities.shape == (600, 4)
    with pytest.raises(ValueError, match="folds must lie between 2"):
        echelon.cross_val_curve(model, data.features, names[data.ranks], folds=1)


def test_no_row_is_judged_by_a_model_that_has_seen_its_group() -> None:
    """Labels that are noise, alike in a group, and a column that names the group."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 5)
    ranks = rng.integers(0, 3, 40)[groups]
    seen: list[tuple[set[int], set[int]]] = []

    class Noting(CumulativeLinkModel):
        def fit(self, X, y, **more):  # noqa: N803
            self.seen_ = set(X["group"])
            return super().fit(X, y, **more)

        def curve(self, X):  # noqa: N803
            seen.append((self.seen_, set(X["group"])))
            return super().curve(X)

    frame = pd.DataFrame({"group": groups, "x": rng.normal(size=200)})
    curve = echelon.cross_val_curve(Noting(random_state=0), frame, ranks, folds=4, groups=groups)
    assert len(seen) == 4
    assert all(not fitted & judged for fitted, judged in seen)
    assert set().union(*(judged for _, judged in seen)) == set(range(40))
    assert curve.probabilities.shape == (200, 3)
