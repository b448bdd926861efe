"""Cut-points for kappa: never worse than rounding, and no single one can be moved to gain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon.evaluation.cutpoints import fit_cutpoints, tuned_kappa
from echelon.evaluation.metrics import quadratic_weighted_kappa
from tests.cases import THOROUGH


def labels(means: np.ndarray, cutpoints: np.ndarray) -> np.ndarray:
    return (means[:, None] > cutpoints).sum(axis=1)


@st.composite
def cases(draw):
    k, n = draw(st.integers(2, 5)), draw(st.integers(1, 12))
    truth = np.array(draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    means = draw(st.lists(st.integers(0, 4 * (k - 1)), min_size=n, max_size=n))
    weight = draw(st.none() | st.lists(st.integers(1, 3), min_size=n, max_size=n).map(np.array))
    return k, truth, np.array(means) / 4, weight


@given(cases())
def test_no_single_cutpoint_can_be_moved_to_gain(case) -> None:
    k, truth, means, weight = case

    def kappa(cutpoints: np.ndarray) -> float:
        return quadratic_weighted_kappa(truth, labels(means, cutpoints), sample_weight=weight)

    found = fit_cutpoints(truth, means, k, sample_weight=weight)
    assert found.shape == (k - 1,)
    assert (np.diff(found) >= 0).all()
    if len(np.unique(truth)) == 1:
        return  # kappa is 0 or 1 by convention there
    best = kappa(found)
    assert best >= kappa(np.arange(k - 1) + 0.5) - 1e-9
    for i in range(k - 1):
        for place in np.arange(-1, 4 * k) / 4 - 0.1:
            moved = found.copy()
            moved[i] = place
            if (np.diff(moved) >= 0).all():
                assert kappa(moved) <= best + 1e-9


def test_one_cutpoint_is_the_best_there_is() -> None:
    generator = np.random.default_rng(0)
    means = generator.random(200)
    truth = (means + 0.3 * generator.normal(size=200) > 0.8).astype(int)
    found = fit_cutpoints(truth, means, 2)
    best = quadratic_weighted_kappa(truth, labels(means, found))
    every = [quadratic_weighted_kappa(truth, means > cut) for cut in means]
    assert best == pytest.approx(max(every))


def test_without_gain_rounding_stays() -> None:
    assert fit_cutpoints([0, 1, 2], [0.0, 1.0, 2.0], 3).tolist() == [0.5, 1.5]


def test_smooth_cutpoints_hold_on_other_rows() -> None:
    """With few rows and many classes, free cut-points fit noise; those of a line do not."""
    generator = np.random.default_rng(1)
    k = 16

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        means = generator.uniform(0, k - 1, size=n)
        centre = (k - 1) / 2
        spread = centre + 1.3 * (means - centre)  # the model is too timid by a third
        return np.rint(spread + generator.normal(size=n)).clip(0, k - 1), means

    truth, means = draw(400)
    new_truth, new_means = draw(50_000)
    scores = {
        name: quadratic_weighted_kappa(new_truth, labels(new_means, cuts))
        for name, cuts in (
            ("rounding", np.arange(k - 1) + 0.5),
            ("free", fit_cutpoints(truth, means, k)),
            ("smooth", fit_cutpoints(truth, means, k, smooth=True)),
        )
    }
    assert scores["smooth"] > scores["free"]
    assert scores["smooth"] > scores["rounding"] + 0.005


# ---- the kappa of tuned cut-points ---------------------------------------------------------------


def draw(generator: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranks 0..4 that the expected rank tells little about, so that tuning finds much noise."""
    expected = generator.uniform(1, 3, size=n)
    return (expected + 1.5 * generator.normal(size=n)).round().clip(0, 4), expected


@pytest.mark.parametrize("n", [60, 300] if THOROUGH else [60])
def test_the_interval_counts_the_tuning(n: int) -> None:
    """It holds the kappa on new rows as often as it says; that of the tuned rows is too high."""
    generator = np.random.default_rng(0)
    truth, means = draw(generator, 50_000)
    inside, naive, honest = [], [], []
    for _ in range(150):
        ranks, expected = draw(generator, n)
        cuts = fit_cutpoints(ranks, expected, 5, smooth=True)
        real = quadratic_weighted_kappa(truth, labels(means, cuts))
        found = tuned_kappa(ranks, expected, 5)
        inside.append(found.low <= real <= found.high)
        honest.append(found.kappa - real)
        free = fit_cutpoints(ranks, expected, 5)
        naive.append(
            quadratic_weighted_kappa(ranks, labels(expected, free))
            - quadratic_weighted_kappa(truth, labels(means, free))
        )
    share = np.mean(inside)
    assert share > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 150)
    assert np.mean(honest) < 2 * np.std(honest) / np.sqrt(150)
    assert np.mean(naive) > 4 * np.std(naive) / np.sqrt(150)


def test_weights_of_tuned_kappa_are_weights() -> None:
    ranks, expected = draw(np.random.default_rng(1), 200)
    plain = tuned_kappa(ranks, expected, 5)
    assert tuned_kappa(ranks, expected, 5, sample_weight=np.full(200, 7.0)) == pytest.approx(plain)
    assert tuned_kappa(ranks, expected, 5, sample_weight=1 + ranks) != pytest.approx(plain)


@pytest.mark.parametrize(("ranks", "expected"), [([0, 1], [0.2, 0.7]), ([1] * 40, [1.0] * 40)])
def test_too_little_to_tell_is_no_kappa(ranks, expected) -> None:
    assert tuned_kappa(ranks, expected, 3) is None
