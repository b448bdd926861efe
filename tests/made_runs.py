"""Run folders with made-up predictions, quick to make, for tests of reports."""

from pathlib import Path

import numpy as np

from echelon.data import make_friedman
from echelon.evaluation.metrics import all_scores
from echelon.runs import Run, RunConfig, write_run

METHODS = {"corn": 1.0, "ornn": 1.6, "ce": 1.2}  # and how much they distort


def write_made_runs(
    folder: Path,
    *,
    rows: int = 400,
    num_classes: int = 6,
    seeds: int = 3,
    classes: list[str] | None = None,
    extra: dict[str, object] | None = None,
) -> Path:
    """Runs of three methods, a baseline with coefficients and members, and a floor."""
    data = make_friedman(rows, num_classes=num_classes, seed=11)
    true = data.bayes_probabilities
    generator = np.random.default_rng(0)
    _write(folder, data.ranks, "best possible", "floor", None, true, classes, extra)
    shares = np.tile(true.mean(axis=0), (rows, 1))
    board = {"member": "trees <1>", "weight": 1.0, "rps": None, "mae": 0.61, "fits": 5}
    outcome = {"coefficients": {"V1": 0.5, "V2": -0.25}, "leaderboard": [board]}
    _write(folder, data.ranks, "constant", "baseline", None, shares, classes, extra, outcome)
    for method, power in METHODS.items():
        for seed in range(seeds):
            noise = np.exp(0.4 * generator.normal(size=true.shape))
            p = np.maximum(true, 1e-9) ** power * noise
            p /= p.sum(axis=1, keepdims=True)
            _write(folder, data.ranks, method, "method", seed, p, classes, extra)
    return folder


def _write(folder, truth, method, role, seed, p, classes, extra, outcome=None) -> None:
    prediction = (p.cumsum(axis=1)[:, :-1] < 0.5).sum(axis=1)
    crossings = np.where(np.arange(len(p)) % 5 == 0, 0.01, 0.0) * (method == "ornn")
    history = [
        {"epoch": e, "loss": 1 / e, "validation_ranked_probability_score": 0.5 + 0.1 / e}
        for e in range(1, 5)
    ]
    config = RunConfig(
        method=method, data="made up", role=role, seed=seed, rows={"train": 1000, "test": len(p)},
        classes=classes or list(range(p.shape[1])), **(extra or {}),
    )  # fmt: skip
    run = Run(
        config=config,
        history=history if role == "method" else [],
        metrics=all_scores(truth, prediction, p),
        predictions={
            "truth": truth, "prediction": prediction, "probabilities": p.astype(np.float32),
            "crossings": crossings.astype(np.float32),
        },
        outcome=outcome or ({"best_epoch": 4} if role == "method" else {}),
    )  # fmt: skip
    write_run(folder / (method.replace(" ", "-") if seed is None else f"{method}-seed{seed}"), run)
