"""Labels that curves of unseen rows find unlikely."""

import numpy as np

import echelon
from echelon.data import make_friedman
from echelon.evaluation.suspects import UNLIKELY, find_suspects, likelihoods


def moved_labels(n: int, seed: int, share: float, num_classes: int = 5):
    """Generated rows, of which a share has its label moved by two ranks or more."""
    data = make_friedman(n, num_classes=num_classes, seed=seed)
    generator = np.random.default_rng(seed)
    ranks, moved = data.ranks.copy(), np.zeros(n, dtype=bool)
    moved[generator.choice(n, round(share * n), replace=False)] = True
    for row in np.flatnonzero(moved):
        away = [rank for rank in range(num_classes) if abs(rank - ranks[row]) >= 2]
        ranks[row] = generator.choice(away)
    return data.features, ranks, moved


def judged(features, ranks):
    classes = list(range(int(ranks.max()) + 1))
    model = echelon.OrdinalBoosting(random_state=0, classes=classes)
    curve = echelon.cross_val_curve(model, features, ranks)
    return find_suspects(ranks, curve.probabilities.numpy())


def test_likelihoods_are_those_of_the_shorter_tail() -> None:
    curve = np.array([[0.1, 0.2, 0.3, 0.4]] * 4)
    np.testing.assert_allclose(likelihoods(np.arange(4), curve), [0.1, 0.3, 0.6, 0.4])


def test_moved_labels_are_among_the_first() -> None:
    features, ranks, moved = moved_labels(800, 0, 0.05)
    found = judged(features, ranks)
    assert moved[found.order[:40]].mean() >= 0.5
    assert found.beyond_chance > 0


def test_right_labels_are_no_more_than_chance_gives() -> None:
    features, ranks, _ = moved_labels(800, 1, 0.0)
    assert judged(features, ranks).beyond_chance == 0


def test_labels_drawn_from_the_curves_themselves_are_announced_rarely() -> None:
    generator = np.random.default_rng(2)
    announced = 0
    for _ in range(40):
        curves = generator.dirichlet(np.full(5, 0.3), 300)
        ranks = (curves.cumsum(1) < generator.random((300, 1))).sum(1).clip(max=4)
        found = find_suspects(ranks, curves)
        assert found.unlikely == (found.likelihood < UNLIKELY).sum()
        announced += found.beyond_chance > 0
    assert announced <= 4  # 1 in 40 is expected; 5 or more has a probability of 0.003
