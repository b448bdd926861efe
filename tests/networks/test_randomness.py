"""Random numbers of a fit: decided by its seed, in any thread, and nobody else's."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from echelon import OrdinalClassifier
from echelon.data import make_friedman
from echelon.networks.randomness import RandomStream


def fitted(seed: int) -> np.ndarray:
    data = make_friedman(200, num_classes=3, seed=1)
    model = OrdinalClassifier(
        settings={"max_epochs": 6},
        random_state=seed,
        device="cpu",
        backbone_options={"hidden": (16,), "dropout": 0.3},
    )
    return model.fit(data.features, data.ranks).predict_proba(data.features)


def test_fits_with_dropout_in_threads_are_those_of_one_thread() -> None:
    expected = [fitted(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fitted, range(4)))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_whoever_draws_meanwhile_sees_only_their_own_numbers() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    stream, numbers = RandomStream(1), []
    for _ in range(3):
        numbers.append(torch.rand(1))
        with stream.drawn():
            torch.rand(7)
    assert torch.equal(torch.cat(numbers), expected)


def test_an_error_inside_gives_the_generator_back() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    try:
        with RandomStream(1).drawn():
            torch.rand(1)
            raise KeyError
    except KeyError:
        pass
    assert torch.equal(torch.get_rng_state(), before)
    with RandomStream(1).drawn():  # and nobody waits for it
        pass
