"""Networks for tables: the parts that are ours."""

from echelon.networks.dropout import Dropout
from echelon.networks.table import make_backbone


def test_the_papers_network_drops() -> None:
    network = make_backbone("paper", {"num_features": 4, "num_scaled": 4}, {"hidden": (8,)})
    assert [type(layer).__name__ for layer in network] == [
        "Linear", "LeakyReLU", "Dropout", "BatchNorm1d",
    ]  # fmt: skip
    assert isinstance(network[2], Dropout)
