"""With one fitted model, each decision is the best at what it is for, over five seeds."""

import numpy as np

from echelon import OrdinalClassifier
from echelon.evaluation import metrics
from echelon.evaluation.comparison import compare, row_losses
from echelon.paper.tasks import generated_task

WINNERS = {"mae": "median", "squared_error": "mean", "accuracy": "mode"}
DECISIONS = ("median", "mean", "mode", "kappa")
SEEDS = 5


def test_each_decision_is_the_best_at_its_own_metric() -> None:
    """On generated Fireman: no rival is better by more than noise, of seeds and of test rows."""
    task = generated_task()
    labels: dict[str, list[np.ndarray]] = {name: [] for name in DECISIONS}
    for seed in range(SEEDS):
        model = OrdinalClassifier(random_state=seed, device="cpu")
        held, held_ranks = task.validation
        model.fit(task.features, task.ranks, X_val=held, y_val=held_ranks)
        curve = model.curve(task.test_features)
        for name in DECISIONS:
            labels[name].append(model.label(curve, name))

    for metric, winner in WINNERS.items():
        losses = {
            name: np.stack([row_losses(metric, task.test_ranks, one) for one in own])
            for name, own in labels.items()
        }
        print(metric, {name: round(float(table.mean()), 5) for name, table in losses.items()})
        pairs = [(winner, rival) for rival in DECISIONS if rival != winner]
        for found in compare(losses, pairs=pairs):
            assert found.mean <= 0 or found.verdict == "within noise", found.sentence

    kappas = {
        name: np.array([metrics.quadratic_weighted_kappa(task.test_ranks, one) for one in own])
        for name, own in labels.items()
    }
    print("kappa", {name: round(float(values.mean()), 6) for name, values in kappas.items()})
    for rival in DECISIONS:
        gaps = kappas[rival] - kappas["kappa"]
        assert gaps.mean() <= 2 * gaps.std(ddof=1) / np.sqrt(SEEDS), (rival, gaps)
