"""Rows on demand: what is taken for some rows is what those rows hold, in any order."""

import threading
import time

import numpy as np
import pytest
import torch

from echelon.data.inputs import Inputs, prefetched
from echelon.data.kinds.text import PADDING, TokenLists


def mixed() -> Inputs:
    return Inputs(
        {"table": torch.arange(6.0).reshape(3, 2), "text": TokenLists.of([[4], [5, 6, 7], [8, 9]])}
    )


def test_parts_of_the_same_rows_come_together() -> None:
    batch = mixed().take(np.array([2, 0]))
    assert batch["table"].tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert batch["text"].tolist() == [[8, 9], [4, PADDING]]
    assert mixed().lengths.tolist() == [1, 3, 2]
    assert Inputs({"table": torch.ones(3, 2)}).lengths is None


def test_the_digest_knows_every_cell_of_every_part() -> None:
    plain = mixed()
    other = plain.replaced("text", TokenLists.of([[4], [5, 6, 7], [8, 1]]))
    moved = plain.replaced("table", torch.arange(6.0).reshape(3, 2) + 1e-6)
    assert mixed().digest() == plain.digest()
    assert len({plain.digest(), other.digest(), moved.digest()}) == 3


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_what_is_read_ahead_comes_in_order_and_fails_in_its_place(workers: int) -> None:
    def make(number: int) -> int:
        time.sleep(0.002 * (5 - number % 5))  # later ones are ready sooner
        if number == 17:
            raise ValueError("row 17")
        return number * number

    reading = prefetched(make, range(30), workers)
    seen = [next(reading) for _ in range(17)]
    with pytest.raises(ValueError, match="row 17"):
        next(reading)
    assert seen == [number * number for number in range(17)]


def test_threads_are_not_far_ahead_and_end_with_their_reader() -> None:
    made = []
    reading = prefetched(lambda number: made.append(number) or number, range(1000), 2, ahead=2)
    assert next(reading) == 0
    time.sleep(0.05)
    assert len(made) <= 6  # four, and those asked for in place of the one that was taken
    reading.close()
    assert not [one for one in threading.enumerate() if one.name.startswith("echelon")]
