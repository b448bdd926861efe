"""Networks for texts: padding is never read, and layers learn at their own rates."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from echelon.backbones.parts import JoinedBackbone, choose_backbones, options_by_part
from echelon.backbones.tabular import make_backbone
from echelon.backbones.text import LSTM, PretrainedText

OPTIONS = [
    {"pooling": pooling, "bidirectional": both}
    for pooling in ("last", "mean", "max")
    for both in (False, True)
]


def padded(lists: list[list[int]], longest: int) -> Tensor:
    return torch.tensor([row + [-1] * (longest - len(row)) for row in lists])


@pytest.fixture(scope="module")
def tiny_encoder() -> PretrainedText:
    return PretrainedText.rebuilt(TINY_BERT).eval()


TINY_BERT = {
    "model_type": "bert", "vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 3,
    "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 40,
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
@given(
    lists=st.lists(st.lists(st.integers(0, 19), min_size=1, max_size=12), min_size=1, max_size=6),
    extra=st.integers(0, 5),
)
def test_a_row_does_not_depend_on_its_batch(options, lists, extra: int) -> None:
    torch.manual_seed(0)
    network = LSTM(20, embedding=6, hidden=5, **options).double().eval()
    together = network(padded(lists, max(map(len, lists)) + extra))
    alone = torch.cat([network(torch.tensor([row])) for row in lists])
    torch.testing.assert_close(together, alone)


@given(
    lists=st.lists(st.lists(st.integers(0, 29), min_size=1, max_size=12), min_size=1, max_size=6)
)
def test_a_row_of_an_encoder_does_not_depend_on_its_batch(
    tiny_encoder: PretrainedText, lists
) -> None:
    together = tiny_encoder(padded(lists, max(map(len, lists)) + 2))
    alone = torch.cat([tiny_encoder(torch.tensor([row])) for row in lists])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)


def test_both_directions_equal_torchs_own_packed_layer() -> None:
    torch.manual_seed(0)
    network = LSTM(20, embedding=6, hidden=5, bidirectional=True).eval()
    reference = torch.nn.LSTM(6, 5, batch_first=True, bidirectional=True)
    state = {f"{k}": v for k, v in network.forwards.state_dict().items()}
    state |= {f"{k}_reverse": v for k, v in network.backwards.state_dict().items()}
    reference.load_state_dict(state)
    tokens = padded([[3, 4, 5, 6], [7, 8], [9]], 4)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        network.embedding(tokens.clamp(min=0)), (tokens >= 0).sum(1), batch_first=True
    )
    _, (last, _) = reference(packed)
    torch.testing.assert_close(network(tokens), torch.cat(list(last), -1))


def test_layers_learn_at_their_own_rates(tiny_encoder: PretrainedText) -> None:
    rates = tiny_encoder.learning_rates()
    first = rates["encoder.embeddings.word_embeddings.weight"]
    layers = [rates[f"encoder.encoder.layer.{i}.output.dense.weight"] for i in range(3)]
    assert first < layers[0] < layers[1] < layers[2] == pytest.approx(0.1)
    assert layers[1] == pytest.approx(0.9 * layers[2])


def test_a_frozen_encoder_has_no_dropout_and_no_gradients() -> None:
    network = PretrainedText.rebuilt(TINY_BERT, frozen=True, pooling="cls").train()
    assert not any(p.requires_grad for p in network.parameters())
    tokens = torch.tensor([[1, 2, 3]])
    torch.testing.assert_close(network.encode(tokens), network.encode(tokens), rtol=0, atol=0)
    made = network.encode(tokens)
    network.eval()
    assert torch.equal(network(made), made)  # what was encoded before is taken as it is


def test_an_encoder_is_rebuilt_from_its_configuration(tiny_encoder: PretrainedText) -> None:
    other = PretrainedText.rebuilt(tiny_encoder.config_document()).eval()
    other.load_state_dict(tiny_encoder.state_dict())
    tokens = torch.tensor([[1, 2, 3]])
    torch.testing.assert_close(other(tokens), tiny_encoder(tokens))


def test_parts_stand_side_by_side_and_members_see_the_same() -> None:
    table = make_backbone("tabm", 3, 3, {"members": 4, "hidden": (8, 8)})
    joined = JoinedBackbone({"table": table, "text": LSTM(20, hidden=5)}).eval()
    found = joined({"table": torch.zeros(2, 3), "text": torch.tensor([[3], [4]])})
    assert found.shape == (2, 4, 13)
    assert torch.equal(found[:, 0, 8:], found[:, 3, 8:])


@pytest.mark.parametrize(
    ("asked", "parts", "chosen"),
    [
        ("mlp", ("table", "text"), {"table": "mlp", "text": "lstm"}),
        ("lstm", ("table", "text"), {"table": "mlp", "text": "lstm"}),
        ("timm:vgg16", ("image",), {"image": "timm:vgg16"}),
        (None, ("text", "image"), {"text": "lstm", "image": "resnet"}),
        (None, ("table", "text"), {"table": "mlp", "text": "lstm"}),
        ({"text": "hf:x"}, ("text", "image"), {"text": "hf:x", "image": "resnet"}),
    ],
)
def test_each_part_has_a_backbone(asked, parts, chosen) -> None:
    assert choose_backbones(asked, parts) == chosen


@pytest.mark.parametrize(
    ("asked", "parts", "message"),
    [
        ("lstm", ("table",), "'lstm' needs a column of texts, and none was named: say text="),
        ("resnet", ("text",), "needs a column of images"),
        ("gru", ("text",), "backbone must be one of .* lstm, hf:NAME"),
        ({"text": "mlp"}, ("text",), "'mlp' reads tables, not texts"),
        ({"sound": "mlp"}, ("text",), "has the parts table, text, image; got 'sound'"),
        ({"table": "mlp"}, ("text",), "needs numbers or categories"),
        ("mlp", ("text",), "needs numbers or categories"),
    ],
)
def test_what_is_refused(asked, parts, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_backbones(asked, parts)


def test_options_belong_to_a_part() -> None:
    parts = ("table", "text")
    assert options_by_part({"hidden": 8}, "lstm", parts) == {"table": {}, "text": {"hidden": 8}}
    by_part = options_by_part({"text": {"hidden": 8}}, {"text": "lstm"}, parts)
    assert by_part == {"table": {}, "text": {"hidden": 8}}
    with pytest.raises(ValueError, match="must say which part"):
        options_by_part({"hidden": 8}, {"text": "lstm"}, parts)
    with pytest.raises(ValueError, match="pooling must be"):
        LSTM(9, pooling="sum")
