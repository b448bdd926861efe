"""Several backbones side by side."""

import torch

from echelon.networks.joined import JoinedBackbone
from echelon.networks.table import make_backbone
from echelon.networks.text import LSTM


def test_parts_stand_side_by_side_and_members_see_the_same() -> None:
    sizes = {"num_features": 3, "num_scaled": 3}
    table = make_backbone("tabm", sizes, {"members": 4, "hidden": (8, 8)})
    joined = JoinedBackbone({"table": table, "text": LSTM(20, hidden=5)}).eval()
    found = joined({"table": torch.zeros(2, 3), "text": torch.tensor([[3], [4]])})
    assert found.shape == (2, 4, 13)
    assert torch.equal(found[:, 0, 8:], found[:, 3, 8:])
