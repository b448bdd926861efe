"""The rounds of PRank: its theorems, and the perceptron that it is for two classes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Perceptron as BinaryPerceptron

from echelon.models.rounds import Perceptron, presentations


def paper_round(w: np.ndarray, b: np.ndarray, x: np.ndarray, y: int) -> int:
    """The algorithm as it is printed, for one row; the predicted rank."""
    f = w @ x
    predicted = next((r for r in range(len(b)) if f - b[r] < 0), len(b))
    if predicted != y:
        sign = [1 if y > r else -1 for r in range(len(b))]
        tau = [s if (f - b[r]) * s <= 0 else 0 for r, s in enumerate(sign)]
        w += sum(tau) * x
        b -= tau
    return predicted


def rows(n: int, num_classes: int, seed: int, *, noise: float = 0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    latent = x @ [1.0, -1.0, 0.5] + noise * rng.normal(size=n)
    return x, np.digitize(latent, np.quantile(latent, np.linspace(0, 1, num_classes + 1)[1:-1]))


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 7), st.integers(0, 10_000), st.booleans())
def test_every_round_is_that_of_the_paper_and_keeps_the_order(
    num_classes: int, seed: int, whole: bool
) -> None:
    x, ranks = rows(60, num_classes, seed, noise=1.0)
    if whole:  # so that scores often fall on cutpoints
        x = x.round()
    w, b, loss = np.zeros(3), np.zeros(num_classes - 1), 0
    total = np.zeros(3), np.zeros(num_classes - 1)
    state = Perceptron.start(3, num_classes)
    for place in range(60):
        loss += abs(paper_round(w, b, x[place], ranks[place]) - ranks[place])
        state.learn(x[place : place + 1], ranks[place : place + 1])
        np.testing.assert_array_equal(state.coefficients, w)
        np.testing.assert_array_equal(state.cutpoints, b)
        assert (np.diff(state.cutpoints) >= 0).all()
        assert (state.cutpoints == state.cutpoints.round()).all()
        total[0][:] += w
        total[1][:] += b
    assert state.loss == loss
    means = state.averaged()
    np.testing.assert_allclose(means[0], total[0] / 60, atol=1e-9)
    np.testing.assert_allclose(means[1], total[1] / 60, atol=1e-9)


@pytest.mark.parametrize("passes", [1, 5, 20])
def test_two_classes_are_the_perceptron_to_the_last_bit(passes: int) -> None:
    x, ranks = rows(200, 2, 0, noise=0.5)
    first = int(np.flatnonzero(ranks == 0)[0])  # at f = b scikit-learn updates on a correct row
    x[[0, first]], ranks[[0, first]] = x[[first, 0]], ranks[[first, 0]]
    state = Perceptron.start(3, 2)
    for _ in range(passes):
        state.learn(x, ranks)
    peer = BinaryPerceptron(shuffle=False, tol=None, max_iter=passes).fit(x, ranks)
    np.testing.assert_array_equal(state.coefficients, peer.coef_[0])
    np.testing.assert_array_equal(-state.cutpoints, peer.intercept_)


def test_the_loss_is_within_the_bound_where_the_ranks_can_be_separated() -> None:
    x, _ = rows(3000, 5, 1)
    direction = np.array([1.0, -1.0, 0.5])
    cutpoints = np.array([-2.0, -0.6, 0.5, 1.8])
    score = x @ direction
    clear = (np.abs(score[:, None] - cutpoints) > 0.1).all(1)
    x, ranks = x[clear], np.digitize(score[clear], cutpoints)
    unit = np.concatenate([direction, cutpoints])
    length = np.linalg.norm(unit)
    sign = np.where(ranks[:, None] > np.arange(4), 1, -1)
    gamma = (sign * (x @ direction[:, None] - cutpoints)).min() / length
    bound = 4 * ((x**2).sum(1).max() + 1) / gamma**2
    state = Perceptron.start(3, 5)
    for _ in range(30):
        state.learn(x, ranks)
    assert 0 < state.loss <= bound
    before = state.loss
    state.learn(x, ranks)
    assert state.loss - before < 0.02 * len(x)  # hardly any mistake is left


def test_a_weight_is_how_often_a_row_comes() -> None:
    rng = np.random.default_rng(0)
    weight = np.array([0.0, 0.25, 1.0, 2.5, 1.25])
    counts = np.zeros(5)
    for _ in range(2000):
        order = presentations(weight, rng)
        assert len(order) == 5
        assert (np.diff(order) >= 0).all()
        counts += np.bincount(order, minlength=5)
    np.testing.assert_allclose(counts / 2000, weight, atol=0.05)
    np.testing.assert_array_equal(presentations(np.ones(7), rng), np.arange(7))
