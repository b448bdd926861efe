"""OrdinalSVM: its forms and kernels, landmarks above the exact size, files."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import SVC

import echelon
from echelon.data import make_friedman
from echelon.evaluation import metrics
from echelon.models.margin import OrdinalSVM
from tests.forging import rewrite

DATA = make_friedman(700, num_classes=4, seed=3)
X, Y = DATA.features[:200], DATA.ranks[:200]
NEW, TRUTH = DATA.features[200:], DATA.ranks[200:]


def test_it_is_better_than_a_line_where_the_world_is_bent() -> None:
    """And no worse in the labels than a machine that knows of no order."""
    score = {}
    for model in (
        OrdinalSVM(C=3.0, random_state=0),
        OrdinalSVM("explicit", C=3.0, random_state=0),
        OrdinalSVM("reduction", C=3.0, random_state=0),
        OrdinalSVM(kernel="linear", random_state=0),
        SVC(C=3.0),
    ):
        name = getattr(model, "form", "svc") + model.kernel
        prepared = (X - X.mean(0)) / X.std(0), (NEW - X.mean(0)) / X.std(0)
        score[name] = metrics.mae(TRUTH, model.fit(prepared[0], Y).predict(prepared[1]))
    assert score["implicitrbf"] < score["implicitlinear"] - 0.03
    assert score["implicitrbf"] < score["svcrbf"] + 0.01
    assert abs(score["reductionrbf"] - score["implicitrbf"]) < 0.03


def test_all_rows_as_landmarks_are_the_exact_kernel() -> None:
    exact = OrdinalSVM(random_state=0).fit(X, Y)
    same = OrdinalSVM(landmarks=len(X), random_state=0).fit(X, Y)
    np.testing.assert_allclose(same.scores(NEW), exact.scores(NEW), atol=1e-6)
    assert exact.outcome()["landmarks"] < len(X)  # rows that keep their margins are not needed
    near = OrdinalSVM(landmarks=120, random_state=0).fit(X, Y)
    assert near.outcome()["landmarks"] == 120
    assert np.corrcoef(near.scores(NEW), exact.scores(NEW))[0, 1] > 0.95


def test_many_rows_have_landmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echelon.models.margin._EXACT_ROWS", 100)
    monkeypatch.setattr("echelon.models.margin._LANDMARKS", 40)
    model = OrdinalSVM(random_state=0).fit(X, Y)
    assert model.outcome()["landmarks"] == 40
    constant = np.abs(TRUTH - np.median(Y)).mean()
    assert metrics.mae(TRUTH, model.predict(NEW)) < 0.7 * constant


def test_support_vectors_alone_give_the_same_scores() -> None:
    """The sum over duals is the function that the features of the kernel stand for."""
    model = OrdinalSVM(C=2.0).fit(X, Y)
    landmarks = model.scored_.score.landmarks.numpy()
    assert landmarks.shape[1] == 10
    margins = model.scores(X)[:, None] - model.scored_.cutpoints
    sign = np.where(Y[:, None] > np.arange(3), 1, -1)
    kept = (sign * margins > 1 + 1e-4).all(1)
    assert len(landmarks) <= (~kept).sum()


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_kernels_are_saved(tmp_path: Path, kernel: str) -> None:
    model = OrdinalSVM(kernel=kernel, gamma=0.1, degree=2, random_state=0).fit(X[:60], Y[:60])
    model.save(tmp_path / "model")
    loaded = echelon.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))
    assert (loaded.kernel, loaded.gamma) == (kernel, 0.1)


@pytest.mark.parametrize(
    ("key", "value"),
    [("kernel", "eval"), ("kernel", 3), ("gamma", -1.0), ("gamma", "x"), ("degree", 10**9)],
)
def test_a_kernel_of_a_forged_file_is_refused(tmp_path: Path, key: str, value) -> None:
    OrdinalSVM(random_state=0).fit(X[:40], Y[:40]).save(tmp_path / "model")
    rewrite(tmp_path / "model", tmp_path / "forged", lambda d, _: d["model"].update({key: value}))
    with pytest.raises(ValueError, match=r"does not describe a model: .*kernel"):
        echelon.load(tmp_path / "forged")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "soft"}, "form must be one of"),
        ({"kernel": "sigmoid"}, "kernel must be one of 'rbf', 'linear', 'poly'; got 'sigmoid'"),
        ({"gamma": "wide"}, "gamma must be"),
        ({"degree": 0}, "degree must be a whole number from 1 to 20; got 0"),
        ({"landmarks": 0}, "landmarks must be a whole number of at least 1; got 0"),
        ({"C": -1.0}, "C must be a number above 0"),
    ],
)
def test_wrong_parameters(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OrdinalSVM(**options).fit(X[:30], Y[:30])
