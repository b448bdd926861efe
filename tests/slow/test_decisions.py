"""With one fitted model, each decision is the best at what it is for, over five seeds."""

import numpy as np

from echelon import OrdinalClassifier
from echelon.data import make_friedman
from echelon.evaluation import metrics

DECISIONS = ("median", "mean", "mode", "kappa")
SEEDS = 5


def test_each_decision_is_the_best_at_its_own_metric() -> None:
    found: dict[str, dict[str, list[float]]] = {name: {} for name in DECISIONS}
    for seed in range(SEEDS):
        train = make_friedman(30_000, seed=300 + seed)
        test = make_friedman(100_000, seed=400 + seed)
        model = OrdinalClassifier(random_state=seed, device="cpu")
        model.fit(train.features, train.ranks)
        curve = model.predict_curve(test.features)
        for name in DECISIONS:
            labels = model.label(curve, name)
            for metric in ("mae", "rmse", "accuracy", "quadratic_weighted_kappa"):
                value = getattr(metrics, metric)(test.ranks, labels)
                found[name].setdefault(metric, []).append(value)
    for name, scores in found.items():
        shown = "  ".join(f"{metric} {np.mean(values):.5f}" for metric, values in scores.items())
        print(f"{name:<8}{shown}")
    for metric, winner, sign in (
        ("mae", "median", 1),
        ("rmse", "mean", 1),
        ("accuracy", "mode", -1),
        ("quadratic_weighted_kappa", "kappa", -1),
    ):
        for rival in DECISIONS:
            gaps = sign * (np.array(found[winner][metric]) - np.array(found[rival][metric]))
            noise = 2 * gaps.std(ddof=1) / np.sqrt(SEEDS)
            assert gaps.mean() <= noise, (metric, winner, rival, gaps)
