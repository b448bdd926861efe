"""Converting the classifiers of other libraries, and what is refused."""

import copy

import pytest
import torch
from torch import Tensor, nn

import echelon
from echelon.extras import require
from echelon.networks.conversion import OrdinalModel, convert

torchvision, timm, transformers = (
    require(name, "these tests") for name in ("torchvision", "timm", "transformers")
)


def check(model: OrdinalModel, *inputs: Tensor, num_classes: int = 4) -> None:
    """The converted model trains and predicts."""
    model.train()
    output = model(*inputs)
    logits = getattr(output, "logits", output)
    rows = len(inputs[0])
    assert logits.shape == (rows, model.method.num_logits)
    model.loss(output, torch.arange(rows) % num_classes).backward()
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
    check(convert(network, 4, layer=["head", "head_dist"]), torch.randn(2, 3, 32, 32))


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
        (
            lambda: transformers.BartForSequenceClassification(
                transformers.BartConfig(
                    vocab_size=50,
                    d_model=16,
                    encoder_layers=1,
                    decoder_layers=1,
                    encoder_attention_heads=2,
                    decoder_attention_heads=2,
                    encoder_ffn_dim=16,
                    decoder_ffn_dim=16,
                    eos_token_id=2,
                    pad_token_id=1,
                    bos_token_id=0,
                )
            ),
            "classification_head.out_proj",
        ),
    ],
    ids=["bert", "roberta", "distilbert", "gpt2", "bart"],
)
def test_transformers(network, layer: str) -> None:
    network = network()
    model = convert(network, 4)
    assert isinstance(network.get_submodule(layer), echelon.heads.LinearHead)
    tokens = torch.randint(3, 50, (3, 7))
    tokens[:, -1] = 2  # where the sequence ends, for those that look for it
    check(model, tokens)


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
    with pytest.raises(ValueError, match="no linear layer or convolution 'last'; it has: '0', '1'"):
        convert(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)), 4, layer="last")


def test_no_linear_layer_at_all() -> None:
    with pytest.raises(ValueError, match=r"no nn\.Linear layer or convolution to replace"):
        convert(nn.Sequential(nn.BatchNorm1d(3)), 4)


class FromForward(nn.Module):
    """A network with a layer `fc`, and whatever forward does after or around it."""

    def __init__(self, after, **children: nn.Module) -> None:
        super().__init__()
        self.features = nn.Linear(8, 16)
        self.fc = nn.Linear(16, 16)
        for name, child in children.items():
            self.add_module(name, child)
        self.after = after

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self, torch.relu(self.features(x)))


@pytest.mark.parametrize(
    "network",
    [
        nn.Sequential(nn.Linear(3, 5), nn.Softmax(-1)),
        nn.Sequential(nn.Linear(3, 5), nn.ReLU()),
        FromForward(lambda net, h: torch.softmax(net.fc(h), -1)),
        FromForward(lambda net, h: nn.functional.log_softmax(net.fc(h), -1)),
        FromForward(lambda net, h: torch.tanh(net.fc(h))),
        FromForward(lambda net, h: net.last(net.fc(h)), last=nn.Sigmoid()),
    ],
)
@pytest.mark.parametrize("how", ["found", "named"])
def test_a_final_activation_is_refused(network: nn.Module, how: str) -> None:
    layer = None if how == "found" else "0" if isinstance(network, nn.Sequential) else "fc"
    with pytest.raises(ValueError, match=r"the model ends in \w+, and a head gives logits"):
        convert(network, 4, layer=layer)


def test_an_activation_child_of_an_untraceable_model_is_refused() -> None:
    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 5)
            self.softmax = nn.Softmax(-1)

        def forward(self, x: Tensor) -> Tensor:
            return self.softmax(self.fc(x)) if x.sum() > 0 else self.fc(x)

    with pytest.raises(ValueError, match=r"ends in Softmax \(layer 'softmax'\)"):
        convert(Branching(), 4)


def test_a_name_does_not_win_over_what_forward_does() -> None:
    network = FromForward(lambda net, h: net.out(torch.relu(net.fc(h))), out=nn.Linear(16, 5))
    check(convert(network, 4), torch.randn(6, 8))
    assert network.fc.out_features == 16
    assert network.out.out_features == 3


@pytest.mark.parametrize(
    "network",
    [
        nn.Sequential(nn.Linear(8, 16), nn.MultiheadAttention(16, 2)),
        FromForward(lambda net, h: net.norm(net.fc(h)), norm=nn.LayerNorm(16)),
        FromForward(lambda net, h: h + net.fc(h)),
        FromForward(
            lambda net, h: net.score(h).softmax(0) * net.last(h) if h.sum() > 0 else h,
            score=nn.Linear(16, 1),
            last=nn.Linear(16, 1),
        ),
    ],
    ids=["attention", "norm", "residual", "gate"],
)
def test_what_does_not_end_in_a_linear_layer_is_not_guessed(network: nn.Module) -> None:
    with pytest.raises(ValueError, match="not clear which layer"):
        convert(network, 4)


@pytest.mark.parametrize("first", echelon.METHODS)
@pytest.mark.parametrize("second", ["corn", "coral", "clm", "regression"])
def test_a_model_can_be_converted_again(first: str, second: str) -> None:
    network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 5))
    once = convert(network, 4, method=first)
    check(convert(once, 4, method=second), torch.randn(6, 3))
    alone = convert(convert(nn.Linear(3, 5), 4, method=first), 4, method=second)
    check(alone, torch.randn(6, 3))


def test_a_lazy_layer_is_refused_until_it_knows_its_size() -> None:
    with pytest.raises(ValueError, match="run the model once on a batch first"):
        convert(nn.Sequential(nn.Linear(3, 5), nn.LazyLinear(4)), 4)


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
        convert(Two(), 4, layer="fc")(torch.zeros(2, 3))


def test_state_can_be_saved_and_loaded() -> None:
    def fresh() -> OrdinalModel:
        return convert(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 5)), 4)

    one, other = fresh(), fresh()
    other.load_state_dict(one.state_dict())
    inputs = torch.randn(2, 3)
    assert torch.equal(one(inputs), other(inputs))
    assert "num_classes=4" in repr(one)
