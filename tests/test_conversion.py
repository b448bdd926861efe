"""Converting the classifiers of other libraries, and what is refused."""

import copy

import pytest
import timm
import torch
import torchvision
import transformers
from torch import Tensor, nn

import echelon
from echelon.conversion import OrdinalModel, convert


def check(model: OrdinalModel, *inputs: Tensor, num_classes: int = 4) -> None:
    """The converted model trains and predicts."""
    model.train()
    logits = model(*inputs)
    rows = len(inputs[0])
    assert logits.shape == (rows, model.method.num_logits)
    model.loss(logits, torch.arange(rows) % num_classes).backward()
    assert any(parameter.grad is not None for parameter in model.parameters())
    assert model.curve(logits.detach()).probabilities.shape == (rows, num_classes)


@pytest.mark.parametrize("method", echelon.METHODS)
def test_sequential(method: str) -> None:
    network = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 7), nn.Dropout())
    first = network[0].weight.clone()
    model = convert(network, 4, method=method)
    check(model, torch.randn(6, 10))
    assert torch.equal(network[0].weight, first)
    assert not isinstance(network[2], nn.Linear) or network[2].out_features != 7


@pytest.mark.parametrize(
    ("name", "layer", "size"),
    [
        ("resnet18", "fc", 32),
        ("vgg11", "classifier.6", 32),
        ("mobilenet_v3_small", "classifier.3", 32),
        ("densenet121", "classifier", 32),
        ("efficientnet_b0", "classifier.1", 32),
        ("convnext_tiny", "classifier.2", 32),
    ],
)
def test_torchvision(name: str, layer: str, size: int) -> None:
    network = getattr(torchvision.models, name)()
    model = convert(network, 4)
    assert isinstance(network.get_submodule(layer), echelon.heads.LinearHead)
    check(model, torch.randn(2, 3, size, size))


def test_torchvision_vit() -> None:
    network = torchvision.models.VisionTransformer(
        image_size=32, patch_size=16, num_layers=1, num_heads=2, hidden_dim=8, mlp_dim=16
    )
    model = convert(network, 4)
    assert isinstance(network.heads.head, echelon.heads.LinearHead)
    check(model, torch.randn(2, 3, 32, 32))


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("resnet18", "fc"),
        ("vgg11", "head.fc"),
        ("vit_tiny_patch16_224", "head"),
        ("mobilenetv3_small_050", "classifier"),
        ("convnext_atto", "head.fc"),
    ],
)
def test_timm(name: str, layer: str) -> None:
    options = {"img_size": 32} if name.startswith("vit") else {}
    network = timm.create_model(name, num_classes=10, **options)
    model = convert(network, 4, method="coral")
    assert isinstance(network.get_submodule(layer), echelon.heads.SharedWeightHead)
    check(model, torch.randn(2, 3, 32, 32))


def test_timm_with_two_heads_is_ambiguous() -> None:
    network = timm.create_model("deit_tiny_distilled_patch16_224", img_size=32)
    with pytest.raises(ValueError, match=r"not clear which layer.*'head', 'head_dist'"):
        convert(network, 4)
    assert isinstance(network.head, nn.Linear)  # nothing was changed
    convert(network, 4, layer="head_dist")


SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 50}


@pytest.mark.parametrize(
    ("network", "layer"),
    [
        (
            lambda: transformers.BertForSequenceClassification(
                transformers.BertConfig(**SMALL, intermediate_size=16)
            ),
            "classifier",
        ),
        (
            lambda: transformers.RobertaForSequenceClassification(
                transformers.RobertaConfig(**SMALL, intermediate_size=16)
            ),
            "classifier.out_proj",
        ),
        (
            lambda: transformers.DistilBertForSequenceClassification(
                transformers.DistilBertConfig(
                    vocab_size=50, dim=16, hidden_dim=16, n_layers=1, n_heads=2
                )
            ),
            "classifier",
        ),
        (
            lambda: transformers.GPT2ForSequenceClassification(
                transformers.GPT2Config(
                    vocab_size=50, n_embd=16, n_layer=1, n_head=2, pad_token_id=0
                )
            ),
            "score",
        ),
    ],
    ids=["bert", "roberta", "distilbert", "gpt2"],
)
def test_transformers(network, layer: str) -> None:
    network = network()
    model = convert(network, 4)
    assert isinstance(network.get_submodule(layer), echelon.heads.LinearHead)
    check(model, torch.randint(2, 50, (3, 7)))


def test_device_and_dtype_are_those_of_the_layer() -> None:
    network = nn.Sequential(nn.Linear(3, 8), nn.Linear(8, 2)).double()
    check(convert(network, 4, method="clm"), torch.randn(6, 3).double())
    meta = nn.Sequential(nn.Linear(3, 8, device="meta"), nn.Linear(8, 2, device="meta"))
    assert convert(meta, 4).network[1].weight.device.type == "meta"


def test_evaluation_mode_is_kept() -> None:
    network = nn.Sequential(nn.Linear(3, 8), nn.Linear(8, 2)).eval()
    assert not convert(network, 4).network[1].training


def test_a_lone_linear_layer() -> None:
    check(convert(nn.Linear(5, 3), 4), torch.randn(6, 5))


class OwnNetwork(nn.Module):
    """Two plain layers whose names say nothing; the order of use is that of `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.second = nn.Linear(8, 3)
        self.first = nn.Linear(5, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(x)))


def test_own_network_is_traced() -> None:
    network = OwnNetwork()
    check(convert(network, 4), torch.randn(6, 5))
    assert network.first.out_features == 8
    assert network.second.out_features == 3 == 4 - 1


class Unclear(OwnNetwork):
    """One that cannot be traced."""

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(x))) if x.sum() > 0 else self.first(x)


def test_ambiguity_lists_the_candidates_and_layer_settles_it() -> None:
    network = Unclear()
    before = copy.deepcopy(network.state_dict())
    with pytest.raises(
        ValueError, match=r"not clear which layer of Unclear.*layer=.*'second', 'first'"
    ):
        convert(network, 4)
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])
    model = convert(network, 4, layer="second")
    assert model.network.second.out_features == 3


def test_a_layer_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="no linear layer 'last'; it has: '0', '1'"):
        convert(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)), 4, layer="last")


def test_no_linear_layer_at_all() -> None:
    with pytest.raises(ValueError, match=r"no nn\.Linear layer to replace"):
        convert(nn.Sequential(nn.Conv2d(3, 4, 1)), 4)


def test_a_final_softmax_is_refused() -> None:
    network = nn.Sequential(nn.Linear(3, 5), nn.Softmax(-1))
    with pytest.raises(ValueError, match=r"ends in Softmax \(layer '1'\).*remove that layer"):
        convert(network, 4)


def test_a_last_layer_that_is_no_linear_one() -> None:
    network = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5))
    with pytest.raises(ValueError, match="not clear which layer"):
        convert(network, 4)


def test_a_shared_layer_is_replaced_everywhere() -> None:
    shared = nn.Linear(5, 5)

    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = shared
            self.same = shared

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x)

    model = convert(Shared(), 4)
    assert model.network.fc is model.network.same
    check(model, torch.randn(6, 5))


def test_options_and_ready_methods() -> None:
    network = nn.Sequential(nn.Linear(3, 5))
    assert convert(copy.deepcopy(network), 4, method="clm", link="probit").method.options == {
        "link": "probit"
    }
    ready = echelon.method("sord", 4, temperature=2.0)
    assert convert(copy.deepcopy(network), 4, method=ready).method is ready
    with pytest.raises(ValueError, match="already has its number of classes"):
        convert(network, 5, method=ready)


def test_outputs_that_are_no_logits() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 5)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return self.fc(x), x

    with pytest.raises(ValueError, match=r"must return logits.*got tuple"):
        convert(Two(), 4)(torch.zeros(2, 3))


def test_state_can_be_saved_and_loaded() -> None:
    def fresh() -> OrdinalModel:
        return convert(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 5)), 4)

    one, other = fresh(), fresh()
    other.load_state_dict(one.state_dict())
    inputs = torch.randn(2, 3)
    assert torch.equal(one(inputs), other(inputs))
    assert "num_classes=4" in repr(one)
