"""Dropout: the right share, decided by the seed."""

import pytest
import torch
from torch import nn

from echelon.networks.dropout import Dropout, hasten_dropout


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    dropout = Dropout(0.2)
    x = torch.ones(400, 1000)
    y = dropout(x)
    dropped = (y == 0).float().mean()
    assert dropped.item() == pytest.approx(0.2, abs=0.003)  # about five standard errors
    assert y.mean().item() == pytest.approx(1.0, abs=0.004)
    assert len(y.unique()) == 2
    columns, rows = (y == 0).float().mean(0), (y == 0).float().mean(1)
    assert columns.std().item() == pytest.approx((0.16 / 400) ** 0.5, rel=0.15)
    assert rows.std().item() == pytest.approx((0.16 / 1000) ** 0.5, rel=0.15)


def test_dropout_is_decided_by_the_seed_and_differs_between_calls() -> None:
    dropout, x = Dropout(0.5), torch.ones(7, 9)
    torch.manual_seed(3)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(3)
    assert torch.equal(first, dropout(x))
    assert not torch.equal(first, second)


def test_dropout_passes_gradients_of_what_was_kept() -> None:
    x = torch.rand(50, 3, requires_grad=True)
    y = Dropout(0.4)(x)
    y.sum().backward()
    assert torch.equal(x.grad != 0, y != 0)
    kept = x.grad[x.grad != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / 0.6), rtol=1e-4, atol=0)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_dropout_of_nothing_and_of_everything(p: float) -> None:
    assert Dropout(p)(torch.ones(4, 4)).unique().tolist() == [1 - p]


def test_dropout_does_nothing_in_evaluation() -> None:
    x = torch.rand(5, 5)
    assert torch.equal(Dropout(0.5).eval()(x), x)


def test_only_torchs_own_dropout_is_replaced() -> None:
    network = nn.Sequential(nn.Dropout(0.3), nn.Dropout2d(0.3), Dropout(0.2)).eval()
    kept = network[2]
    hasten_dropout(network)
    assert (type(network[0]), type(network[1])) == (Dropout, nn.Dropout2d)
    assert network[2] is kept
    assert not network[0].training
