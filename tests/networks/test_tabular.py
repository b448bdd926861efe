"""Networks for tables: the parts that are ours."""

import copy

import torch

from echelon.networks.dropout import Dropout
from echelon.networks.table import make_backbone
from echelon.networks.tabular import PiecewiseLinear


def test_the_papers_network_drops() -> None:
    network = make_backbone("paper", {"num_features": 4, "num_scaled": 4}, {"hidden": (8,)})
    assert [type(layer).__name__ for layer in network] == [
        "Linear", "LeakyReLU", "Dropout", "BatchNorm1d",
    ]  # fmt: skip
    assert isinstance(network[2], Dropout)


def test_inference_of_tabm_is_what_its_layers_give_to_the_last_bit() -> None:
    torch.manual_seed(0)
    sizes = {"num_features": 5, "num_scaled": 3}
    network = make_backbone(
        "tabm", sizes, {"hidden": (16, 16), "members": 5, "dropout": 0.3}
    ).eval()
    for scale in (
        layer for name, layer in network.named_parameters() if name.endswith((".r", ".s"))
    ):
        torch.nn.init.normal_(scale)
    features = torch.randn(7, 5)
    expected = network(features)
    assert expected.requires_grad
    with torch.no_grad():
        assert torch.equal(network(features), expected)


def test_what_inference_keeps_follows_the_weights() -> None:
    torch.manual_seed(0)
    layer = PiecewiseLinear(3, 2).eval()
    features = torch.rand(4, 3)

    def inferred(module: PiecewiseLinear, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return module(x)

    before = inferred(layer, features)
    layer(features).sum().backward()
    torch.optim.AdamW(layer.parameters(), lr=0.1).step()
    assert not torch.equal(inferred(layer, features), before)
    assert torch.equal(inferred(layer, features), layer(features))
    layer.weight = torch.nn.Parameter(torch.zeros_like(layer.weight))
    assert torch.equal(inferred(layer, features), layer(features))
    precise = copy.deepcopy(layer).double()
    assert torch.equal(inferred(precise, features.double()), precise(features.double()))
    assert set(layer.state_dict()) == {"weight", "bias"}
