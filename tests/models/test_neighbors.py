"""MetricNeighbors: the shares of scikit-learn's neighbours, who they are, weights and files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

import echelon
from echelon.data import make_friedman
from echelon.evaluation import metrics
from echelon.models.features import encoded
from echelon.models.neighbors import MetricNeighbors
from tests.forging import rewrite

DATA = make_friedman(700, num_classes=4, seed=7)
X, Y = DATA.features[:200], DATA.ranks[:200]
NEW, TRUTH = DATA.features[200:], DATA.ranks[200:]


@pytest.mark.parametrize("votes", ["uniform", "distance"])
def test_without_a_metric_they_are_those_of_scikit_learn(votes: str) -> None:
    """Before smoothing, which adds a vote that is shared by all ranks."""
    model = MetricNeighbors("none", 7, votes=votes).fit(X, Y)
    own, new = (encoded(model.encoder_, model.schema_.read(each)) for each in (X, NEW))
    peer = KNeighborsClassifier(7, weights=votes).fit(own, Y)
    shares = (model.predict_proba(NEW) * 8 - 1 / 4) / 7
    np.testing.assert_allclose(shares, peer.predict_proba(new), atol=1e-8)
    seen = (model.predict_proba(X) * 8 - 1 / 4) / 7  # a row is its own neighbour, at no distance
    np.testing.assert_allclose(seen, peer.predict_proba(own), atol=1e-8)
    distances, places = peer.kneighbors(new)
    found = model.neighbors(NEW)
    np.testing.assert_allclose(found.distances, distances, atol=1e-8)
    np.testing.assert_array_equal(found.rows, places)
    np.testing.assert_array_equal(found.labels, Y[places])


def test_the_learnt_metric_is_better_than_none() -> None:
    scores = {
        metric: metrics.ranked_probability_score(
            TRUTH, MetricNeighbors(metric, random_state=0).fit(X, Y).predict_proba(NEW)
        )
        for metric in ("none", "gradient")
    }
    assert scores["gradient"] < 0.95 * scores["none"]


def test_chains_are_learnt_within_their_time() -> None:
    model = MetricNeighbors("chains", 9, anchors=60, time_limit=0.5, random_state=0).fit(X, Y)
    before, after = model.measure_
    assert after >= before > 0
    assert model.outcome()["n_neighbors"] == 9


def test_the_median_of_the_neighbours_is_the_label() -> None:
    model = MetricNeighbors(n_neighbors=9, random_state=0).fit(X, Y)
    found = model.neighbors(NEW)
    agreed = model.predict(NEW) == np.median(found.labels, axis=1)
    assert agreed.mean() > 0.95  # the shared vote may turn a bare majority
    assert model.neighbors(NEW[:2], number=3).rows.shape == (2, 3)


def test_the_number_is_chosen_by_rows_that_others_judge() -> None:
    """Left out of their own neighbours, or every row would choose itself alone."""
    noise = np.random.default_rng(0).integers(4, size=200)
    assert MetricNeighbors("none").fit(X, noise).n_neighbors_ >= 15
    held = MetricNeighbors("none", validation_fraction=0.3, random_state=0).fit(X, noise)
    assert held.n_neighbors_ >= 15
    assert len(held._rank_of) == 200  # all rows are neighbours in the end
    few = MetricNeighbors("none", classes=[0, 1]).fit([[0.0], [1.0]], [0, 1])
    assert few.n_neighbors_ == 1


def test_rows_without_weight_are_no_neighbours_and_places_are_those_of_the_fit() -> None:
    weight = np.ones(200)
    weight[:100] = 0
    model = MetricNeighbors("none", 5).fit(X, Y, sample_weight=weight)
    found = model.neighbors(X[100:110])
    assert (found.rows >= 100).all()
    np.testing.assert_array_equal(found.rows[:, 0], np.arange(100, 110))
    heavy = np.ones(200)
    heavy[Y == 3] = 50
    shares = MetricNeighbors("none", 5).fit(X, Y, sample_weight=heavy).predict_proba(NEW)
    assert (
        shares[:, 3].mean() > MetricNeighbors("none", 5).fit(X, Y).predict_proba(NEW)[:, 3].mean()
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, t: t.update({"model.ranks": t["model.ranks"] + 9}), "do not fit its classes"),
        (lambda d, t: t.update({"model.ranks": t["model.ranks"] - 9}), "hold what cannot be"),
        (lambda d, t: t.update({"model.votes": t["model.votes"][:-1]}), "votes must be of the"),
        (lambda d, t: t.update({"model.map": t["model.map"] * torch.nan}), "map hold what"),
        (lambda d, t: t.update({"model.map": t["model.map"][:, :-1]}), "map must be of the"),
        (lambda d, t: t.pop("model.places"), "lacks a tensor"),
        (lambda d, t: d["model"].update(n_neighbors=10**9), "must ask 1 to 40 neighbours"),
        (lambda d, t: d["parameters"].update(votes="eval"), "votes must be one of"),
    ],
)
def test_a_forged_file_is_refused(tmp_path: Path, change, message: str) -> None:
    MetricNeighbors(random_state=0).fit(X[:40], Y[:40]).save(tmp_path / "model")
    rewrite(tmp_path / "model", tmp_path / "forged", change)
    with pytest.raises(ValueError, match=f"does not describe a model: .*{message}"):
        echelon.load(tmp_path / "forged")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "cosine"}, "metric must be one of 'gradient', 'chains', 'none'; got 'cosine'"),
        ({"votes": "rank"}, "votes must be one of 'uniform', 'distance'; got 'rank'"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1; got 0"),
        ({"anchors": 1.5}, "anchors must be a whole number of at least 2; got 1.5"),
    ],
)
def test_wrong_parameters(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MetricNeighbors(**options).fit(X[:30], Y[:30])
