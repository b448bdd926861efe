"""Where outputs come from, as the forward pass tells."""

import torch
from torch import Tensor, nn

from echelon.networks.tracing import Origin, trace_outputs

LAYERS = (nn.Linear, nn.Conv2d)


def test_what_only_reshapes_or_grows_is_looked_through() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Dropout2d(), nn.Upsample(scale_factor=2))
    assert trace_outputs(network, LAYERS) == {"": Origin("0", None)}


def test_an_activation_is_named_and_anything_else_is_not_guessed() -> None:
    ending = nn.Sequential(nn.Linear(3, 4), nn.Softmax(-1))
    assert trace_outputs(ending, LAYERS) == {"": Origin(None, "Softmax")}
    norm = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    assert trace_outputs(norm, LAYERS) == {"": Origin(None, None)}


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        h = self.norm(x)
        return {"out": self.a(h), "aux": torch.sigmoid(self.b(h))}


def test_outputs_have_the_names_that_the_network_gives_them() -> None:
    network = Named().eval()
    before = network.norm.running_mean.clone()
    found = trace_outputs(network, LAYERS)
    assert found == {"out": Origin("a", None), "aux": Origin(None, "sigmoid")}
    # looking changes nothing
    assert not network.training
    assert torch.equal(network.norm.running_mean, before)


def test_what_cannot_be_traced_gives_nothing() -> None:
    class Branching(Named):
        def forward(self, x: Tensor) -> Tensor:
            return self.a(x) if x.sum() > 0 else self.b(x)

    assert trace_outputs(Branching(), LAYERS) == {}
