"""Soft targets: known distances, and densities against those of dlordinal."""

import numpy as np
import pytest
import torch
from dlordinal.losses import SORDLoss
from dlordinal.soft_labelling import (
    get_beta_soft_labels,
    get_binomial_soft_labels,
    get_triangular_soft_labels,
)

from echelon.functional import sord_loss
from echelon.methods import method


def targets(num_classes: int, **options: object) -> np.ndarray:
    """The target of every rank, (K, K), read off the gradient: softmax - target."""
    logits = torch.zeros(num_classes, num_classes, dtype=torch.float64, requires_grad=True)
    sord_loss(logits, torch.arange(num_classes), reduction="sum", **options).backward()
    return (1 / num_classes - logits.grad).numpy()


@pytest.mark.parametrize("num_classes", [2, 5, 9])
def test_binomial_and_triangular_targets_are_those_of_dlordinal(num_classes: int) -> None:
    found = targets(num_classes, density="binomial")
    np.testing.assert_allclose(found, get_binomial_soft_labels(num_classes), atol=1e-12)
    if num_classes > 2:  # two halves of a triangle leave nothing between them
        found = targets(num_classes, density="triangular")
        np.testing.assert_allclose(found, get_triangular_soft_labels(num_classes), atol=1e-7)


@pytest.mark.parametrize("num_classes", [3, 5, 8, 13])
def test_beta_targets_are_close_to_the_published_tables(num_classes: int) -> None:
    """Our closed form against rounded tables."""
    found, table = targets(num_classes, density="beta"), get_beta_soft_labels(num_classes)
    np.testing.assert_allclose(found.sum(1), 1)
    assert (found.argmax(1) == np.arange(num_classes)).all()
    np.testing.assert_allclose(found, np.array(table), atol=0.04)


def test_equal_distances_change_nothing() -> None:
    logits, ranks = torch.randn(12, 6), torch.arange(12) % 6
    for distance in ("absolute", "squared"):
        plain = sord_loss(logits, ranks, distance=distance)
        assert torch.equal(plain, sord_loss(logits, ranks, distance=distance, positions=range(6)))
    peer = SORDLoss(1.0, 6, torch.arange(6))(logits, ranks)
    torch.testing.assert_close(sord_loss(logits, ranks), peer.float())


def test_known_distances_by_hand() -> None:
    positions = [1.0, 2.0, 8.0]
    for distance, phi in {
        "absolute": [1.0, 0.0, 6.0],
        "squared": [1.0, 0.0, 36.0],
        "squared_log": [np.log(2) ** 2, 0.0, np.log(4) ** 2],
    }.items():
        weight = np.exp(-np.array(phi) / 2)
        found = targets(3, distance=distance, positions=positions, temperature=2.0)[1]
        np.testing.assert_allclose(found, weight / weight.sum(), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"density": "normal"}, "density must be one of 'exponential', 'beta'.*; got 'normal'"),
        ({"positions": [0, 1]}, "positions must be 3 numbers, one for each class; got 2"),
        ({"positions": [0, 2, 2]}, "positions must be finite and rise from class to class"),
        ({"distance": "squared_log"}, "needs positions above 0, as ranks count from 0; pass"),
        ({"distance": "squared_log", "positions": [0, 1, 2]}, "needs positions above 0; got 0"),
        ({"density": "beta", "temperature": 2.0}, "has no distance, temperature or positions"),
    ],
)
def test_refuses_what_it_cannot_do(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method("sord", 3, **options)
