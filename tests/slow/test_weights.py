"""Weights are weights: twenty draws of noise in which ten rows weigh nine tenths."""

import numpy as np

from tests.weighting import TRUE_SHARE, repeated_share, weighted_share

SEEDS = range(20)


def test_a_linear_model_finds_the_share() -> None:
    shares = [weighted_share(seed, "linear") for seed in SEEDS]
    print(f"linear {np.mean(shares):.3f}")
    assert np.mean(shares) >= 0.85


def test_weights_are_as_good_as_repeated_rows() -> None:
    """No farther from the true share, within two standard errors of the paired difference."""
    weighted = np.array([weighted_share(seed, "mlp") for seed in SEEDS])
    repeated = np.array([repeated_share(seed, "mlp") for seed in SEEDS])
    print(f"mlp weighted {weighted.mean():.3f}, repeated {repeated.mean():.3f}")
    error = (weighted - repeated).std(ddof=1) / len(SEEDS) ** 0.5
    distance = abs(weighted.mean() - TRUE_SHARE) - abs(repeated.mean() - TRUE_SHARE)
    assert distance <= 2 * error
