"""A converted network, called in the ways that training loops call networks."""

import copy
import inspect
import io
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

import echelon
from echelon.extras import require
from echelon.networks.converted import OrdinalModel, OrdinalOutput

torchvision = require("torchvision", "these tests")
RANKS = torch.tensor([0, 3, 2, 1])


class Two(NamedTuple):
    logits: Tensor
    aux_logits: Tensor | None


class Auxiliary(nn.Module):
    """A classifier with an auxiliary head that gives something only in training."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Linear(3, 8)
        self.fc = nn.Linear(8, 10)
        self.aux = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 10))

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor | Two:
        h = torch.relu(self.features(x)) * scale
        return Two(self.fc(h), self.aux(h)) if self.training else self.fc(h)


@pytest.mark.parametrize("mode", ["training", "evaluation"])
def test_auxiliary_heads_are_replaced_and_count_in_the_loss(mode: str) -> None:
    """Whatever mode the network was in: the auxiliary ones show in training alone."""
    network = Auxiliary().train(mode == "training")
    model = echelon.convert(network, 4, auxiliary_weight=0.3)
    assert model.training  # as any new module
    assert network.training == (mode == "training")
    assert network.fc.out_features == network.aux[2].out_features == 3
    model.train()
    output = model(torch.randn(4, 3))
    parts = [model.method.loss(values, RANKS) for values in (output.logits, output.aux_logits)]
    expected = parts[0] + 0.3 * parts[1]
    torch.testing.assert_close(model.loss(output, RANKS), expected)
    torch.testing.assert_close(model.loss_parts(output, RANKS).mean(), expected)
    model.loss(output, RANKS).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.eval()
    assert model(torch.randn(4, 3)).shape == (4, 3)


def test_labels_bring_the_loss() -> None:
    model = echelon.convert(nn.Sequential(nn.Linear(3, 5)), 4)
    inputs = torch.randn(4, 3)
    output = model(inputs, labels=RANKS)
    assert list(output) == ["loss", "logits"]
    torch.testing.assert_close(output.loss, model.loss(model(inputs), RANKS))
    torch.testing.assert_close(output["logits"], model(inputs))
    assert torch.equal(model.curve(output).median(), model.curve(output.logits).median())
    left_out = model(inputs, labels=torch.tensor([0, 3, -100, -100]))
    torch.testing.assert_close(left_out.loss, model.loss(model(inputs)[:2], RANKS[:2]))
    soft = torch.nn.functional.one_hot(RANKS, 4).float()
    torch.testing.assert_close(model(inputs, labels=soft).loss, output.loss)


def test_the_inputs_are_those_of_the_network() -> None:
    model = echelon.convert(Auxiliary(), 4)
    for one in (model, copy.deepcopy(model)):
        taken = inspect.signature(one.forward).parameters
        assert list(taken) == ["x", "scale", "labels"]
    doubled = copy.deepcopy(model).eval()
    with torch.no_grad():
        doubled.network.fc.weight.zero_()
    inputs = torch.randn(2, 3)
    assert not torch.equal(model.eval()(inputs), doubled(inputs))  # each calls its own network
    assert doubled(x=inputs, scale=2.0).shape == (2, 3)


def test_a_whole_model_can_be_stored() -> None:
    model = echelon.convert(nn.Sequential(nn.Linear(3, 5)), 4)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    stored = torch.load(file, weights_only=False)
    inputs = torch.randn(2, 3)
    assert torch.equal(stored(inputs), model(inputs))
    assert stored(inputs, labels=RANKS[:2]).loss > 0


class Segmenter(nn.Module):
    """As torchvision's: a dictionary, convolutions as heads, and pixels made as many as before."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.classifier = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                                        nn.Conv2d(16, 21, 1))  # fmt: skip
        self.aux_classifier = nn.Conv2d(16, 21, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        h = torch.relu(self.backbone(x))
        grown = {"size": x.shape[-2:], "mode": "bilinear", "align_corners": False}
        return {
            "out": nn.functional.interpolate(self.classifier(h), **grown),
            "aux": nn.functional.interpolate(self.aux_classifier(h), **grown),
        }


@pytest.mark.parametrize("method", ["corn", "coral", "clm", "ce", "unimodal"])
def test_a_network_for_segmentation(method: str) -> None:
    network = Segmenter()
    model = echelon.convert(network, 4, method)
    images, ranks = torch.randn(2, 3, 8, 8), torch.randint(4, (2, 8, 8))
    output = model(images)
    assert output.logits.shape == (2, model.method.num_logits, 8, 8)
    assert output.aux.shape == output.logits.shape
    model.loss(output, ranks, ignore_index=255).backward()
    assert all(p.grad is not None for p in network.parameters() if p.requires_grad)
    assert model.curve(output).median().shape == (2, 8, 8)
    flat = model.method.loss(output.logits.movedim(1, -1), ranks)
    torch.testing.assert_close(model.method.loss(output.logits, ranks, dim=1), flat)


def test_a_segmenter_learns_dense_ranks() -> None:
    """The rank of a pixel is how bright its neighbourhood is."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 5, 3, padding=1)
    )
    model = echelon.convert(network, 3)
    optimiser = torch.optim.Adam(model.parameters(), 0.02)

    def batch() -> tuple[Tensor, Tensor]:
        images = torch.rand(8, 1, 12, 12)
        bright = nn.functional.avg_pool2d(images, 3, 1, 1, count_include_pad=False)
        return images, (bright.squeeze(1) > 0.45).long() + (bright.squeeze(1) > 0.55).long()

    for _ in range(60):
        images, ranks = batch()
        optimiser.zero_grad()
        model.loss(model(images), ranks).backward()
        optimiser.step()
    images, ranks = batch()
    assert (model.curve(model(images)).median() == ranks).double().mean() > 0.8


def test_auxiliary_heads_of_torchvision() -> None:
    network = torchvision.models.googlenet(init_weights=False, aux_logits=True)
    echelon.convert(network, 4)
    for name in ("fc", "aux1.fc2", "aux2.fc2"):
        assert network.get_submodule(name).out_features == 3
    segmenter = torchvision.models.segmentation.lraspp_mobilenet_v3_large(
        weights=None, weights_backbone=None
    )
    with pytest.raises(ValueError, match="not clear which layer"):  # it adds two heads up
        echelon.convert(segmenter, 4)
    model = echelon.convert(
        segmenter, 4, layer=["classifier.low_classifier", "classifier.high_classifier"]
    )
    assert model.eval()(torch.randn(1, 3, 32, 32)).logits.shape == (1, 3, 32, 32)


def test_a_loss_that_a_network_calls_auxiliary_is_no_head() -> None:
    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.score = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            return {"logits": self.score(x), "aux_loss": x.sum()}

    output = OrdinalModel(Experts(), echelon.method("corn", 4))(torch.randn(4, 3))
    assert list(output) == ["logits"]


def test_what_an_output_lacks_is_said() -> None:
    with pytest.raises(AttributeError, match="no 'loss'; it has logits"):
        _ = OrdinalOutput(logits=torch.zeros(1)).loss
    with pytest.raises(ValueError, match="auxiliary_weight must be at least 0; got -1"):
        echelon.convert(nn.Linear(3, 3), 4, auxiliary_weight=-1)
