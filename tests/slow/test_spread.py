"""The spread of a regression is that of the latent value, not that of rounded ranks."""

import numpy as np
import pytest

from echelon import OrdinalClassifier
from echelon.evaluation import metrics


@pytest.mark.parametrize("spread", [0.15, 0.5])
def test_the_log_score_is_near_that_of_the_true_spread(spread: float) -> None:
    """Ranks of a straight line with noise: the model knows all but the slope and the spread."""
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 6, size=(30_000, 1))
    ranks = np.clip(np.round(x[:, 0] + spread * generator.normal(size=30_000)), 0, 6).astype(int)
    half = np.arange(30_000) < 15_000
    model = OrdinalClassifier(
        "regression", "linear", random_state=0, device="cpu", settings={"scaling": "standard"}
    ).fit(x[half], ranks[half])
    found = metrics.log_score(ranks[~half], model.predict_proba(x[~half]))
    edges = np.concatenate([[-np.inf], np.arange(6) + 0.5, [np.inf]])
    from scipy.stats import norm

    truth = np.diff(norm.cdf((edges - x[~half]) / spread), axis=1)
    best = metrics.log_score(ranks[~half], truth)
    print(f"{spread}: log score {found:.4f}, with the true spread {best:.4f}")
    assert found < 1.03 * best
