"""A loss as a module: the method's own numbers, and what it refuses."""

import pytest
import torch

import echelon


@pytest.mark.parametrize("name", echelon.METHODS)
def test_it_is_the_loss_of_the_method(name: str) -> None:
    criterion = echelon.OrdinalLoss(name, num_classes=4)
    method = echelon.method(name, 4)
    logits, ranks = method.head(3)(torch.randn(8, 3)), torch.arange(8) % 4
    torch.testing.assert_close(criterion(logits, ranks), method.loss(logits, ranks))
    torch.testing.assert_close(criterion.probabilities(logits), method.curve(logits).probabilities)


def test_options_dense_outputs_and_rows_without_a_label() -> None:
    criterion = echelon.OrdinalLoss("sord", 4, temperature=2.0, dim=1, ignore_index=255)
    logits, ranks = torch.randn(2, 4, 3, 3), torch.randint(4, (2, 3, 3))
    ranks[0] = 255
    expected = echelon.functional.sord_loss(logits[1].movedim(0, -1), ranks[1], temperature=2.0)
    torch.testing.assert_close(criterion(logits, ranks), expected)
    assert criterion.curve(logits).median().shape == (2, 3, 3)
    assert "temperature=2.0" in repr(criterion)


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="num_classes must be given with the method 'corn'"):
        echelon.OrdinalLoss("corn")
    with pytest.raises(ValueError, match="already has its number of classes"):
        echelon.OrdinalLoss(echelon.method("corn", 4), num_classes=5)
