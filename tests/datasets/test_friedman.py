"""The generator: its population, its floor, and the real data it stands for."""

from pathlib import Path

import numpy as np
import pytest
from scipy import integrate
from scipy.special import ndtr

from echelon.data import make_friedman
from echelon.datasets.friedman import fitted_probabilities, friedman_function
from echelon.evaluation import metrics
from echelon.evaluation.metrics import mae, rmse


def median_and_mean(probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    median = (probabilities.cumsum(axis=1) < 0.5).sum(axis=1)
    mean = np.rint(probabilities @ np.arange(probabilities.shape[1]))
    return median, mean


def test_the_seed_decides_everything() -> None:
    one, same, other = (
        make_friedman(50, seed=1),
        make_friedman(50, seed=1),
        make_friedman(50, seed=2),
    )
    assert np.array_equal(one.features, same.features)
    assert np.array_equal(one.ranks, same.ranks)
    assert not np.array_equal(one.features, other.features)


def test_boundaries_are_the_same_for_every_size_and_seed() -> None:
    assert np.array_equal(
        make_friedman(1, seed=5).boundaries, make_friedman(1000, seed=9).boundaries
    )


def population_cdf(x: float, noise: float) -> float:
    """P(response <= x) by characteristic functions (Gil-Pelaez), sharing nothing with the code."""
    p = (np.arange(20_000) + 0.5) / 20_000
    # u = p^2 removes the logarithmic peak of the density -log u of a product of two uniforms
    weight = -2 * np.log(p) * 2 * p / 20_000

    def characteristic(t: float) -> complex:
        sine = (weight * np.exp(10j * t * np.sin(np.pi * p**2))).sum()
        square = np.exp(20j * t * (p - 0.5) ** 2).mean()
        uniforms = np.exp(7.5j * t) * np.sinc(5 * t / np.pi) * np.sinc(2.5 * t / np.pi)
        return sine * square * uniforms * np.exp(-((noise * t) ** 2) / 2)

    def integrand(t: float) -> float:
        return (np.exp(-1j * t * x) * characteristic(t)).imag / t

    value, _ = integrate.quad(integrand, 1e-9, 9 / noise, limit=400)
    return 0.5 - value / np.pi


@pytest.mark.parametrize(("num_classes", "noise"), [(16, 1.0), (5, 2.0)])
def test_boundaries_are_population_quantiles(num_classes: int, noise: float) -> None:
    boundaries = make_friedman(1, num_classes, noise).boundaries
    for k in (0, num_classes // 2, num_classes - 2):
        found = population_cdf(boundaries[k], noise)
        assert found == pytest.approx((k + 1) / num_classes, abs=1e-6)


@pytest.mark.parametrize("noise", [0.0, 0.3, 4.0])
@pytest.mark.parametrize("num_classes", [2, 7, 100])
def test_classes_are_equally_likely(num_classes: int, noise: float) -> None:
    n = 400_000
    counts = np.bincount(make_friedman(n, num_classes, noise).ranks, minlength=num_classes)
    expected = n / num_classes
    z = (counts - expected) / np.sqrt(expected * (1 - 1 / num_classes))
    assert len(counts) == num_classes
    assert np.abs(z).max() < 4.5


def test_bayes_probabilities_are_those_of_the_noise() -> None:
    data = make_friedman(200, num_classes=6, noise=1.5)
    signal = friedman_function(data.features)
    edges = np.concatenate([[-np.inf], data.boundaries, [np.inf]])
    for row, probabilities in zip(signal[:20], data.bayes_probabilities, strict=False):
        expected = np.diff(ndtr((edges - row) / 1.5))
        np.testing.assert_allclose(probabilities, expected, atol=1e-12)


def test_bayes_probabilities_are_calibrated() -> None:
    """The mean truth of a class equals its mean probability, overall and where it is likely."""
    data = make_friedman(200_000, num_classes=8)
    probabilities = data.bayes_probabilities
    truth = np.eye(8)[data.ranks]
    np.testing.assert_allclose(truth.mean(0), probabilities.mean(0), atol=4e-3)
    likely = probabilities > 0.5
    assert truth[likely].mean() == pytest.approx(probabilities[likely].mean(), abs=4e-3)


def test_without_noise_the_truth_is_certain() -> None:
    data = make_friedman(500, num_classes=9, noise=0.0)
    assert np.array_equal(data.bayes_probabilities.argmax(1), data.ranks)
    assert data.bayes_probabilities.max() == 1


def test_the_floor_of_the_ideal_generator() -> None:
    data = make_friedman(400_000)
    median, mean = median_and_mean(data.bayes_probabilities)
    assert mae(data.ranks, median) == pytest.approx(0.699, abs=4e-3)
    assert rmse(data.ranks, mean) == pytest.approx(1.014, abs=4e-3)


@pytest.mark.realdata
def test_fireman_is_of_this_population(real_data: Path) -> None:
    table = np.loadtxt(real_data / "fireman" / "test.csv", delimiter=",", skiprows=1)
    ranks, features = table[:, 0].astype(int), table[:, 1:]
    ideal = make_friedman(1)
    ours = type(ideal)(features, ranks, ideal.boundaries, ideal.noise)
    median, mean = median_and_mean(ours.bayes_probabilities)
    assert mae(ranks, median) == pytest.approx(0.693, abs=2e-3)
    assert rmse(ranks, mean) == pytest.approx(1.006, abs=3e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be at least 1; got 0"),
        ({"n": 5, "num_classes": 1}, "num_classes must be at least 2; got 1"),
        ({"n": 5, "noise": -1.0}, "noise must be a finite number of at least 0; got -1"),
        ({"n": 5, "noise": float("nan")}, "noise must be a finite number"),
    ],
)
def test_wrong_arguments(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_friedman(**arguments)


def test_the_fitted_floor_is_close_to_the_true_one() -> None:
    train, test = make_friedman(20_000, 6, seed=1), make_friedman(20_000, 6, seed=2)
    fitted = fitted_probabilities(train.features, train.ranks, test.features)
    true = test.bayes_probabilities
    assert np.abs(fitted - true).mean() < 0.004
    scores = [metrics.ranked_probability_score(test.ranks, p) for p in (fitted, true)]
    assert scores[0] == pytest.approx(scores[1], rel=0.005)
