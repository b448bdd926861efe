"""Tables of one distribution, and models fitted on one, for the rate of false alarms of drift."""

import numpy as np
import pandas as pd

import echelon
from echelon.data import make_friedman


def drawn(rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows with numbers, counts, gaps and categories, rare ones among them, and their ranks."""
    data, generator = (
        make_friedman(rows, num_classes=4, seed=seed),
        np.random.default_rng([seed, 1]),
    )
    frame = pd.DataFrame(data.features[:, :5], columns=list("abcde")).astype(float)
    frame["b"] = frame["b"].mask(generator.random(rows) < 0.1)
    frame["count"] = generator.poisson(2, rows).astype(float)
    frame["kind"] = generator.choice(["r", "g", "b", "y"], p=[0.6, 0.3, 0.09, 0.01], size=rows)
    frame["town"] = [f"t{int(x)}" for x in np.minimum(generator.exponential(6, rows), 40)]
    return frame, data.ranks


def alarm_rate(draws: int, training: int, rows: int, first: int = 0) -> float:
    """The share of models, each fitted on rows of its own, that raise an alarm on rows alike."""
    alarms = 0
    for number in range(first, first + draws):
        frame, ranks = drawn(training + 200, 2 * number)
        model = echelon.OrdinalBoosting(rounds=20, random_state=number)
        model.fit(frame[:training], ranks[:training])
        model.conformalize(frame[training:], ranks[training:])
        alarms += bool(model.drift(*drawn(rows, 2 * number + 1)).alarms)
    return alarms / draws
