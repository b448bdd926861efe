"""Kernels against scikit-learn's, and the features that stand for them."""

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from echelon.models.kernels import (
    KERNELS,
    KernelScore,
    LinearScore,
    kernel_features,
    kernel_matrix,
    read_gamma,
)

REFERENCES = {
    "rbf": lambda x, z: rbf_kernel(x, z, gamma=0.3),
    "linear": linear_kernel,
    "poly": lambda x, z: polynomial_kernel(x, z, degree=3, gamma=0.3, coef0=1),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_those_of_scikit_learn(kernel: str) -> None:
    x, z = (np.random.default_rng(seed).normal(size=(10 + seed, 3)) for seed in (0, 1))
    found = kernel_matrix(torch.from_numpy(x), torch.from_numpy(z), kernel, 0.3, 3).numpy()
    np.testing.assert_allclose(found, REFERENCES[kernel](x, z), atol=1e-12)
    coefficients = np.arange(11.0)
    score = KernelScore.of(z, coefficients, kernel, 0.3, 3)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(score, REFERENCES[kernel](x, z) @ coefficients, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_more_landmarks_come_nearer_to_the_kernel_and_all_are_exact(kernel: str) -> None:
    x = np.random.default_rng(0).normal(size=(60, 3))
    exact, misses = REFERENCES[kernel](x, x), []
    for number in (2, 10, 60):
        made = kernel_features(x, x[:number], kernel, 0.3, 3)
        assert made.features.shape[1] == made.to_features.shape[1] <= number
        misses.append(np.abs(made.features @ made.features.T - exact).max())
    assert misses[0] > misses[1] >= misses[2] - 1e-12
    assert misses[2] < 1e-8


def test_rows_that_are_there_twice_do_no_harm() -> None:
    x = np.repeat(np.random.default_rng(0).normal(size=(5, 2)), 4, axis=0)
    made = kernel_features(x, x, "rbf", 0.5, 3)
    assert made.features.shape[1] == 5
    np.testing.assert_allclose(made.features @ made.features.T, rbf_kernel(x, gamma=0.5), atol=1e-9)


def test_a_linear_score() -> None:
    x = np.random.default_rng(0).normal(size=(4, 3))
    found = LinearScore.of(np.array([1.0, 2.0, 3.0]))(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, x @ [1, 2, 3])


def test_gamma_is_read() -> None:
    x = np.random.default_rng(0).normal(size=(40, 3)) * 2
    assert read_gamma("auto", x) == pytest.approx(1 / 3)
    assert read_gamma("scale", x) == pytest.approx(1 / (3 * x.var()))
    assert read_gamma("scale", np.ones((3, 2))) == 1.0
    assert read_gamma(2, x) == 2.0
    for wrong in (0, -1.0, "wide", None, np.inf, True):
        with pytest.raises(ValueError, match="gamma must be 'scale', 'auto' or a number above 0"):
            read_gamma(wrong, x)
