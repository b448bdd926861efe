"""What models of one score share: the curve on unseen rows, its median, files."""

from pathlib import Path

import numpy as np
import pytest
import torch

import echelon
from echelon.data import make_friedman
from tests.forging import rewrite

MODELS = [
    echelon.OrdinalSVM(random_state=0),
    echelon.OrdinalSVM(kernel="linear", random_state=0),
    echelon.PRank(passes=3, random_state=0),
]


def rows(n: int = 150, seed: int = 0):
    data = make_friedman(n, num_classes=4, seed=seed)
    return data.features, data.ranks


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_label_is_the_number_of_cutpoints_below_the_score(model) -> None:
    model = model.fit(*rows())
    new, _ = rows(300, 1)
    counted = (model.scores(new)[:, None] > model.scored_.cutpoints).sum(1)
    assert (model.predict(new) == counted).all()
    assert (np.diff(model.predict_exceedance(new), axis=1) <= 0).all()


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_scale_comes_from_rows_that_were_not_learnt_from(model) -> None:
    """Labels that are noise have no likelihood but for unseen rows: the curve must be flat."""
    x, _ = rows(120)
    noise = np.random.default_rng(0).integers(4, size=120)
    model = model.fit(x, noise)
    assert model.predict_proba(x).max(1).mean() < 0.75
    held = type(model)(random_state=0, validation_fraction=0.3).fit(x, noise)
    assert held.predict_proba(x).max(1).mean() < 0.75


def test_the_held_out_rows_of_a_user_fit_the_scale() -> None:
    x, y = rows(200)
    sharp = echelon.OrdinalSVM(kernel="linear").fit(x, y, X_val=x[:50], y_val=y[:50])
    wrong = echelon.OrdinalSVM(kernel="linear").fit(x, y, X_val=x[:50], y_val=3 - y[:50])
    assert wrong.scale_ < sharp.scale_ / 3
    np.testing.assert_array_equal(wrong.scored_.cutpoints, sharp.scored_.cutpoints)


def test_rows_that_are_all_alike_and_one_class_alone_are_fitted() -> None:
    alike = np.ones((8, 2))
    model = echelon.OrdinalSVM(classes=[0, 1, 2]).fit(alike, [0, 1, 2, 1, 1, 1, 1, 1])
    assert model.scale_ == 1.0
    assert np.isfinite(model.predict_proba(alike)).all()
    x, y = rows(60)
    alone = echelon.PRank(random_state=0).fit(x, y, sample_weight=(y == 2).astype(float))
    assert (alone.predict(x) == 2).all()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("model.cutpoints", lambda t: t.flip(0), "must ascend"),
        ("model.cutpoints", lambda t: t[:-1], "cutpoints must be 3 numbers"),
        ("model.cutpoints", lambda t: t * torch.nan, "must be finite"),
        ("model.scale", lambda t: -t, "scale be above 0"),
        ("model.score.coefficients", lambda t: t[:-1], "."),
        ("model.score.coefficients", lambda t: t / 0, "no number"),
        ("model.score.landmarks", lambda t: t[:, :-1], "does not fit its columns"),
    ],
)
def test_a_forged_file_is_refused(tmp_path: Path, name: str, change, message: str) -> None:
    model = echelon.OrdinalSVM(random_state=0).fit(*rows(40))
    model.save(tmp_path / "model")

    def forged(document, tensors):
        tensors[name] = change(tensors[name])

    rewrite(tmp_path / "model", tmp_path / "forged", forged)
    with pytest.raises(ValueError, match=message):
        echelon.load(tmp_path / "forged")
