"""From raw cells to logits: encoding belongs to the network, loss and curve to the method."""

import pytest
import torch
from torch import nn

import echelon
from echelon.data.kinds.tabular import TableEncoder
from echelon.networks.conversion import OrdinalModel
from echelon.networks.network import OrdinalNetwork
from echelon.networks.table import make_backbone

NUMBERS = torch.tensor([[1.0, 5.0], [torch.nan, 2.0], [0.5, 3.0]], dtype=torch.float64)
CODES = torch.tensor([[1], [0], [2]])
RANKS = torch.tensor([0, 2, 1])


def network(backbone: str = "mlp", **options) -> OrdinalNetwork:
    torch.manual_seed(0)
    encoder = TableEncoder(2, (2,), scaling="none", kept=[0, 1], indicators=[0])
    made = make_backbone(backbone, encoder.sizes, {"hidden": (4,), **options})
    return OrdinalNetwork(encoder, made, echelon.method("corn", 3), made.out_features).eval()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_raw_cells_are_encoded_and_features_pass(dtype: torch.dtype) -> None:
    made = network().to(dtype)
    features = made.encoder(NUMBERS, CODES).to(dtype)
    expected = made(features)
    assert expected.dtype == dtype
    assert torch.equal(made({"table": (NUMBERS, CODES)}), expected)
    assert torch.equal(made({"table": features}), expected)


def test_loss_and_curve_are_those_of_a_converted_network() -> None:
    made = network()
    other = OrdinalModel(nn.Identity(), made.method)
    logits, weight = made({"table": (NUMBERS, CODES)}), torch.tensor([1.0, 2.0, 3.0])
    assert torch.equal(made.loss(logits, RANKS), other.loss(logits, RANKS))
    assert torch.equal(made.loss(logits, RANKS, weight), other.loss(logits, RANKS, weight))
    parts, others = (one.loss_parts(logits, RANKS, weight) for one in (made, other))
    assert torch.equal(parts.total, others.total)
    assert torch.equal(parts.count, others.count)
    assert torch.equal(made.curve(logits).probabilities, other.curve(logits).probabilities)


@pytest.mark.parametrize("backbone", ["mlp", "tabm"])
def test_networks_side_by_side_give_the_mean_of_their_curves(backbone: str) -> None:
    each = [network(backbone) for _ in range(3)]
    for number, single in enumerate(each):
        torch.nn.init.normal_(single.head.weight, std=number + 1.0)
    made = OrdinalNetwork.side_by_side(each)
    cells = {"table": (NUMBERS, CODES)}
    curves = [single.curve(single(cells)).probabilities for single in each]
    assert not torch.allclose(curves[0], curves[1], atol=1e-3)
    torch.testing.assert_close(made.curve(made(cells)).probabilities, sum(curves) / 3)
    assert OrdinalNetwork.side_by_side(each[:1]) is each[0]


def test_members_of_an_ensemble_learn_side_by_side() -> None:
    made = network("tabm", members=4)
    logits = made({"table": (NUMBERS, CODES)})
    assert logits.shape == (3, 4, 2)
    each = [made.method.loss_parts(logits[:, i], RANKS) for i in range(4)]
    total = sum(parts.total for parts in each) / sum(parts.count for parts in each)
    torch.testing.assert_close(made.loss(logits, RANKS), total.sum())
    mean = made.method.curve(logits).probabilities.mean(1)
    torch.testing.assert_close(made.curve(logits).probabilities, mean)
