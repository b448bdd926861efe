"""Networks for texts: padding is never read, and layers learn at their own rates."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from echelon.networks.table import Origin, make_backbone
from echelon.networks.text import _CONFIG_FIELDS, LSTM, MODEL_TYPES, PretrainedText
from tests.media import save_tiny_encoder

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


def test_poolings_that_there_are_not_are_refused() -> None:
    with pytest.raises(ValueError, match="pooling must be"):
        LSTM(9, pooling="sum")


# ---- configurations that others made -------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "t5"}, "must be of one of the types albert"),
        ({"auto_map": {"AutoModel": "a--b.C"}}, "must not have 'auto_map'"),
        ({"quantization_config": {}}, "must not have 'quantization_config'"),
        ({"_attn_implementation": "kernels-community/x"}, "must not have '_attn_impl"),
        ({"vision_config": {"a": 1}}, "must not hold another, 'vision_config'"),
        ({"num_hidden_layers": 10**6}, "cannot have num_hidden_layers"),
        ({"hidden_size": 10**9}, "cannot have hidden_size"),
        ({"hidden_act": "a/b"}, "cannot have hidden_act"),
    ],
)
def test_configurations_that_are_refused(fields, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PretrainedText.rebuilt({**TINY_BERT, **fields})


def test_a_missing_configuration_is_no_name_to_look_for() -> None:
    with pytest.raises(ValueError, match="configuration of the text encoder is missing"):
        make_backbone("hf:evil/model", {"num_tokens": 9}, {}, Origin(fetch=False))


@pytest.mark.parametrize("kind", MODEL_TYPES)
def test_every_type_is_rebuilt_from_what_is_saved_of_it(kind: str) -> None:
    """On torch's device without memory, as their usual sizes are large."""
    import transformers

    config = transformers.AutoConfig.for_model(kind)
    with torch.device("meta"):
        made = transformers.AutoModel.from_config(config, attn_implementation="eager")
        encoder = PretrainedText(made)
        document = encoder.config_document()
        other = PretrainedText.rebuilt(document)
    assert set(document) <= _CONFIG_FIELDS | {"model_type"}
    found, expected = other.state_dict(), encoder.state_dict()
    assert {k: v.shape for k, v in found.items()} == {k: v.shape for k, v in expected.items()}


def test_an_encoder_of_a_folder_brings_no_code(tmp_path: Path) -> None:
    folder = save_tiny_encoder(tmp_path / "encoder")
    config = json.loads((folder / "config.json").read_text())
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    for changed in (
        {"model_type": "new", "auto_map": {"AutoConfig": "evil.C", "AutoModel": "evil.M"}},
        {"model_type": "t5"},
        {"is_decoder": True},
    ):
        (folder / "config.json").write_text(json.dumps({**config, **changed}))
        with pytest.raises(ValueError, match="there is no encoder 'hf:"):
            PretrainedText.of(str(folder))
    assert not (tmp_path / "ran").exists()


def test_tokens_that_the_encoder_does_not_know(tiny_encoder: PretrainedText) -> None:
    for tokens in (torch.tensor([[99]]), torch.zeros(1, 41, dtype=torch.long)):
        with pytest.raises(ValueError, match="does not know some tokens of its tokenizer"):
            tiny_encoder(tokens)
