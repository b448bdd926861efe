"""Losses that compare the rows of a batch: what they refuse."""

import pytest
import torch

import echelon

COUPLING = [name for name, row in echelon.METHODS.items() if row.couples_rows]


@pytest.mark.parametrize("name", COUPLING)
def test_what_has_no_meaning_is_refused_by_name(name: str) -> None:
    method, ranks = echelon.method(name, 4), torch.arange(6) % 4
    with pytest.raises(ValueError, match=f"{name} couples.*a row has no loss of its own"):
        method.loss(torch.zeros(6, 4), ranks, reduction="none")
    with pytest.raises(ValueError, match=rf"{name} couples.*logits must be \(N, K\); got \(2, 3"):
        method.loss(torch.zeros(2, 3, 4), ranks.reshape(2, 3))
    with pytest.raises(ValueError, match=f"{name} couples rows by their ranks, so soft labels"):
        method.loss(torch.zeros(6, 4), torch.full((6, 4), 0.25))
