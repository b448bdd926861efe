"""Suspect labels over many generated tables."""

import numpy as np

from tests.evaluation.test_suspects import judged, moved_labels


def test_moved_labels_are_found_and_right_ones_are_not_accused() -> None:
    hits, announced = [], []
    for seed in range(8):
        features, ranks, moved = moved_labels(1000, seed, 0.05)
        hits.append(moved[judged(features, ranks).order[:50]].mean())
        features, ranks, _ = moved_labels(1000, seed, 0.0)
        announced.append(judged(features, ranks).beyond_chance)
    assert min(hits) >= 0.5
    assert np.mean(announced) < 2  # of 1,000 rows
