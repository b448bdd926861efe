"""Noise in which few rows weigh much: what a fit that takes weights for weights must find."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon import OrdinalClassifier

HEAVY, WEIGHT, TRUE_SHARE = 10, 900, 0.901


def rows(seed: int, n: int = 1000) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """One column of noise; of n rows, ten are of class 1 and weigh 900 times as much each."""
    features = np.random.default_rng(seed).normal(size=(n, 1))
    ranks = (np.arange(n) < HEAVY).astype(int)
    return features, ranks, np.where(ranks, WEIGHT, 1)


def weighted_share(seed: int, backbone: str, n: int = 1000, **parameters: Any) -> float:
    """The mean of P(class 1) over the rows, of a fit with weights."""
    features, ranks, weight = rows(seed, n)
    model = OrdinalClassifier(backbone=backbone, random_state=seed, device="cpu", **parameters)
    model.fit(features, ranks, sample_weight=weight)
    return float(model.predict_proba(features)[:, 1].mean())


def repeated_share(seed: int, backbone: str, **parameters: Any) -> float:
    """The same with every row as often as it weighs, in about as many steps of the same size."""
    features, ranks, weight = rows(seed)
    again = np.repeat(np.arange(len(ranks)), weight)
    model = OrdinalClassifier(backbone=backbone, random_state=seed, device="cpu", **parameters)
    alike = model.training_settings(features)  # of the weighted fit
    draws = len(ranks) + np.ceil(weight / weight.mean() - 1).sum()
    steps = alike.max_epochs * draws / alike.batch_size
    model.set_params(
        settings={
            "batch_size": alike.batch_size,
            "max_epochs": round(steps / (len(again) / alike.batch_size)),
            "refit": alike.refit,
        }
    )
    model.fit(features[again], ranks[again])
    return float(model.predict_proba(features)[:, 1].mean())
