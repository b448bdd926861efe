"""Networks for texts: token ids (n, longest) in, features (n, out) out.

Invariant: what stands behind the end of a text, ids of -1, is never read, so the features of a row
do not depend on the rows that it was batched with.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from echelon.extras import require
from echelon.networks.dropout import hasten_dropout
from echelon.networks.table import Origin

Pooling = Literal["last", "mean", "max"]

# Left out: on a processor it takes a fifth of a step, and what comes out of a layer is dropped too.
_ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attention_dropout")

# Encoders that are read from files and saved with a model. What a saved model says of one is passed
# on to transformers only under the names below, none of which is a file, an address or code.
MODEL_TYPES = (
    "albert", "bert", "big_bird", "camembert", "convbert", "deberta", "deberta-v2", "distilbert",
    "electra", "ernie", "gpt2", "megatron-bert", "mobilebert", "modernbert", "mpnet", "nomic_bert",
    "rembert", "roberta", "roberta-prelayernorm", "roformer", "squeezebert", "xlm-roberta",
    "xlm-roberta-xl",
)  # fmt: skip
_CONFIG_FIELDS = {
    "activation", "activation_function", "attention_bias", "attention_dropout",
    "attention_head_size", "attention_probs_dropout_prob", "attention_type", "attn_pdrop",
    "block_size", "bos_token_id", "chunk_size_feed_forward", "cls_token_id", "conv_act",
    "conv_kernel_size", "dim", "dropout", "embd_pdrop", "embedding_dropout", "embedding_size",
    "eos_token_id", "global_attn_every_n_layers", "global_rope_theta", "head_dim", "head_ratio",
    "hidden_act", "hidden_activation", "hidden_dim", "hidden_dropout_prob", "hidden_size",
    "initializer_cutoff_factor", "initializer_range", "inner_group_num", "input_embedding_size",
    "intermediate_groups", "intermediate_size", "intra_bottleneck_size", "k_groups",
    "key_query_shared_bottleneck", "layer_norm_eps", "layer_norm_epsilon", "layer_types", "legacy",
    "local_attention", "local_rope_theta", "mask_token_id", "max_position_embeddings",
    "max_relative_positions", "mlp_bias", "mlp_dropout", "n_embd", "n_head", "n_heads", "n_inner",
    "n_layer", "n_layers", "n_positions", "norm_bias", "norm_eps", "norm_rel_ebd",
    "normalization_type", "num_attention_heads", "num_feedforward_networks", "num_groups",
    "num_hidden_groups", "num_hidden_layers", "num_random_blocks", "output_embedding_size",
    "output_groups", "pad_token_id", "pooler_dropout", "pooler_hidden_act", "pooler_hidden_size",
    "pos_att_type", "position_biased_input", "position_buckets", "position_embedding_type",
    "post_attention_groups", "q_groups", "relative_attention", "relative_attention_num_buckets",
    "reorder_and_upcast_attn", "rescale_embeddings", "resid_pdrop", "rope_parameters",
    "rotary_value", "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "sep_token_id",
    "share_att_key", "sinusoidal_pos_embds", "talking_head", "task_type_vocab_size",
    "trigram_input", "true_hidden_size", "type_vocab_size", "use_bias", "use_bottleneck",
    "use_bottleneck_attention", "use_task_id", "v_groups", "vocab_size",
}  # fmt: skip
# Fields of transformers that say nothing of the states of an encoder: left out, and not missed.
_WITHOUT_EFFECT = re.compile(
    r"_name_or_path|architectures|(torch_)?dtype|(id2|num_)?label.*|transformers_version|"
    r"(classifier|summary|sparse|decoder)_.*|(qa|seq_classif)_dropout|problem_type|return_dict|"
    r"output_(attentions|hidden_states)|use_cache|tie_word_embeddings|task_specific_params|"
    r"gradient_checkpointing|deterministic_flash_attn|reference_compile|repad_logits_with_grad"
)
_BY_WAY_OF_CODE = re.compile(r"auto_map|.*(quantiz|kernel(?!_size)|remote|custom|attn_impl).*")
_LARGEST_NUMBER = 2**24
_MOST_LAYERS = 1000
_LAYER = re.compile(r"\.(?:layers?|h|blocks?)\.(\d+)\.")  # in names of parameters


class LSTM(nn.Module):
    """Embeddings and one LSTM layer, as in the CORN paper, which reads no padding.

    States are only taken from inside a text, and what stands behind it cannot reach them: an LSTM
    reads forwards, and for the other direction every text is turned round within its own length.
    (A packed sequence does the same and takes four times as long on a processor.)

    Parameters
    ----------
    num_tokens : int
        How many ids there are.
    embedding, hidden : int
        The sizes of an embedding and of a state.
    pooling : {"last", "mean", "max"}
        What becomes of the states of a text: the last one, as in the paper, or their mean or
        their maximum.
    bidirectional : bool
        Also read from the end; `out_features` doubles.
    dropout : float
        The share of embeddings, and of what comes out, that is left out in training.
    word_dropout : float
        Share of the tokens that become the unknown in training.
    """

    def __init__(
        self,
        num_tokens: int,
        *,
        embedding: int = 128,
        hidden: int = 128,
        pooling: Pooling = "last",
        bidirectional: bool = False,
        dropout: float = 0.5,
        word_dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if pooling not in ("last", "mean", "max"):
            raise ValueError(f"pooling must be 'last', 'mean' or 'max'; got {pooling!r}")
        self.embedding = nn.Embedding(num_tokens, embedding)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.forwards = nn.LSTM(embedding, hidden, batch_first=True)
        self.backwards = nn.LSTM(embedding, hidden, batch_first=True) if bidirectional else None
        self.dropout = nn.Dropout(dropout)
        self.word_dropout = word_dropout
        self.pooling = pooling
        self.out_features = hidden * (2 if bidirectional else 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """(n, out) of ids (n, longest), -1 behind the end."""
        inside = tokens >= 0  # (n, longest)
        if self.training and self.word_dropout:
            dropped = torch.rand(tokens.shape, device=tokens.device) < self.word_dropout
            tokens = tokens.masked_fill(dropped & inside, 0)
        embedded = self.dropout(self.embedding(tokens.clamp(min=0)))  # (n, longest, e)
        pooled = self._pool(self.forwards(embedded)[0], inside)
        if self.backwards is not None:
            turned = self.backwards(_turned(embedded, inside))[0]
            pooled = torch.cat([pooled, self._pool(turned, inside)], -1)
        features: Tensor = self.dropout(pooled)
        return features

    def _pool(self, states: Tensor, inside: Tensor) -> Tensor:
        """Pool states (n, longest, hidden) over the tokens of each text."""
        kept = inside.unsqueeze(-1)
        if self.pooling == "max":
            return states.masked_fill(~kept, -2.0).amax(1)  # a state lies between -1 and 1
        if self.pooling == "mean":
            return states.masked_fill(~kept, 0.0).sum(1) / kept.sum(1)
        place = (kept.sum(1, keepdim=True) - 1).expand(-1, 1, states.shape[-1])
        return states.gather(1, place).squeeze(1)


def _turned(embedded: Tensor, inside: Tensor) -> Tensor:
    """Every text (n, longest, e) from its end to its start; what is behind it stays there."""
    places = inside.long().cumsum(1) - 1  # (n, longest); behind the end, that of the last token
    turned = inside.sum(1, keepdim=True) - 1 - places
    return embedded.gather(1, turned.unsqueeze(-1).expand(-1, -1, embedded.shape[-1]))


class PretrainedText(nn.Module):
    """An encoder of transformers (extra `text`), its states pooled into one vector a text.

    Parameters
    ----------
    encoder : nn.Module
        Called with `input_ids` and `attention_mask`, it gives `last_hidden_state`.
    pooling : {"mean", "cls"}
        The mean over the tokens, or the state of the first one.
    frozen : bool
        Train only what comes after it.
    rate : float
        The learning rate of its last layer, as a share of that of the head.
    layer_decay : float
        What each earlier layer learns at, as a share of the next: lower layers know more that
        should not be forgotten.
    dropout : float
        The share of what comes out that is left out in training.
    """

    def __init__(
        self,
        encoder: Any,
        *,
        pooling: Literal["mean", "cls"] = "mean",
        frozen: bool = False,
        rate: float = 0.1,
        layer_decay: float = 0.9,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if pooling not in ("mean", "cls"):
            raise ValueError(f"pooling must be 'mean' or 'cls'; got {pooling!r}")
        if getattr(encoder, "pooler", None) is not None:
            encoder.pooler = None  # never read, and so never trained
        hasten_dropout(encoder)
        self.encoder: nn.Module = encoder
        self.pooling = pooling
        self.frozen = frozen
        self.rate = rate
        self.layer_decay = layer_decay
        self.dropout = nn.Dropout(dropout)
        self.out_features = int(encoder.config.hidden_size)
        if frozen:
            encoder.requires_grad_(False)

    @classmethod
    def of(cls, name: str, **options: Any) -> "PretrainedText":
        """The encoder of a model's name or folder, for a fit; it never brings code of its own."""
        transformers = require("transformers", "pretrained text encoders")
        try:
            config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
            _require_type(config.model_type)
            for option in _ATTENTION_DROPOUT:
                if hasattr(config, option):
                    setattr(config, option, 0.0)
            _require_described(config)
            with _without_bars():
                encoder = transformers.AutoModel.from_pretrained(
                    name, config=config, attn_implementation="eager", trust_remote_code=False
                ).float()
        except Exception as error:  # transformers raises almost anything on a damaged folder
            reason = str(error).strip().split("\n")[0]
            raise ValueError(
                f"there is no encoder 'hf:{name}': {reason}; give the name of a model that "
                f"can be reached, or a folder with its files"
            ) from None
        return cls(encoder, **options)

    @classmethod
    def rebuilt(cls, config: Mapping[str, Any] | None, **options: Any) -> "PretrainedText":
        """The encoder that a configuration alone describes, with random weights, for a saved model.

        Parameters
        ----------
        config : mapping
            What :meth:`config_document` gave; it may come from anywhere, and is not trusted.
        **options
            As for the class.
        """
        transformers = require("transformers", "pretrained text encoders")
        made = _config_of(config)
        encoder = transformers.AutoModel.from_config(
            made, attn_implementation="eager", trust_remote_code=False
        )
        return cls(encoder, **options)

    def config_document(self) -> dict[str, Any]:
        """What :meth:`rebuilt` makes the encoder from."""
        return _describe(self.encoder.config)

    def train(self, mode: bool = True) -> "PretrainedText":
        """As always, but a frozen encoder has no dropout."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self

    def encode(self, tokens: Tensor) -> Tensor:
        """Pooled states (n, out) of ids (n, longest), -1 behind the end."""
        inside = tokens >= 0
        try:
            states: Tensor = self.encoder(
                input_ids=tokens.clamp(min=0), attention_mask=inside.long()
            ).last_hidden_state  # (n, longest, out)
        except (IndexError, RuntimeError) as error:
            longest = getattr(self.encoder.config, "max_position_embeddings", tokens.shape[1])
            if isinstance(error, RuntimeError) and tokens.shape[1] <= longest:
                raise  # want of memory, and the like
            raise ValueError(
                f"the encoder does not know some tokens of its tokenizer, or takes fewer than the "
                f"{tokens.shape[1]} of a text; give a smaller max_tokens, or the tokenizer that "
                f"belongs to it"
            ) from None
        if self.pooling == "cls":
            return states[:, 0]
        kept = inside.unsqueeze(-1).to(states.dtype)
        return (states * kept).sum(1) / kept.sum(1)

    def forward(self, tokens: Tensor) -> Tensor:
        """(n, out) of ids (n, longest), or of what a frozen :meth:`encode` gave before."""
        encoded = tokens if tokens.is_floating_point() else self.encode(tokens)
        features: Tensor = self.dropout(encoded)
        return features

    def learning_rates(self) -> dict[str, float]:
        """The share of the learning rate that each parameter takes, by its name."""
        names = [name for name, _ in self.named_parameters()]
        depths = {name: int(match[1]) + 1 for name in names if (match := _LAYER.search(name))}
        top = max(depths.values(), default=1)
        return {
            name: self.rate
            * self.layer_decay ** (top - depths.get(name, 0 if "embedding" in name else top))
            for name in names
        }


def build_pretrained(num_tokens: int, origin: Origin, **options: Any) -> PretrainedText:
    """A pretrained encoder by its name or folder, or, of a saved model, from its configuration."""
    if origin.fetch:
        return PretrainedText.of(origin.name, **options)
    return PretrainedText.rebuilt(origin.config, **options)


def _describe(config: Any) -> dict[str, Any]:
    """The fields of a configuration of transformers that shape its encoder."""
    document: dict[str, Any] = json.loads(config.to_json_string(use_diff=True))
    kept = {name: value for name, value in document.items() if name in _CONFIG_FIELDS}
    return kept | {"model_type": config.model_type}


def _require_described(config: Any) -> None:
    """Raise, before a fit, where a saved model could not say all that the encoder is."""
    whole, kept = config.to_dict(), _config_of(_describe(config)).to_dict()
    for name, value in kept.items():
        if not _WITHOUT_EFFECT.fullmatch(name) and whole.get(name, value) != value:
            raise ValueError(
                f"its configuration has {name} = {whole[name]!r}, which cannot be saved"
            )


def _config_of(described: Any) -> Any:
    """A configuration of transformers from a description that is not trusted."""
    if not isinstance(described, Mapping):
        raise ValueError("the configuration of the text encoder is missing")
    kind = described.get("model_type")
    _require_type(kind)
    fields = {}
    for name, value in described.items():
        if _BY_WAY_OF_CODE.fullmatch(name):
            raise ValueError(f"the configuration of a text encoder must not have {name!r}")
        if name in _CONFIG_FIELDS:
            fields[name] = _plain(name, value)
        elif isinstance(value, Mapping) and not _WITHOUT_EFFECT.fullmatch(name):
            raise ValueError(f"the configuration of a text encoder must not hold another, {name!r}")
    transformers = require("transformers", "pretrained text encoders")
    return transformers.AutoConfig.for_model(kind, **fields)


def _require_type(kind: Any) -> None:
    if not isinstance(kind, str) or kind not in MODEL_TYPES:
        raise ValueError(
            f"a text encoder must be of one of the types {', '.join(MODEL_TYPES)}; got {kind!r}"
        )


def _plain(name: str, value: Any, depth: int = 0) -> Any:
    """A number, a word, or a few of them, none of them large; an error otherwise."""
    limit = _MOST_LAYERS if "layer" in name else _LARGEST_NUMBER
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and abs(value) <= limit:
        return value
    if isinstance(value, str) and re.fullmatch(r"[\w.|+-]{0,64}", value, re.ASCII):
        return value
    if isinstance(value, list) and len(value) <= _MOST_LAYERS and not depth:
        return [_plain(name, part, 1) for part in value]
    if isinstance(value, dict) and name == "rope_parameters" and len(value) <= 16 and depth < 2:
        return {str(key): _plain(name, part, depth + 1) for key, part in value.items()}
    raise ValueError(f"the configuration of a text encoder cannot have {name} = {value!r:.80}")


@contextmanager
def _without_bars() -> Iterator[None]:
    """Keep transformers' own progress bars out of ours."""
    from transformers.utils import logging

    bars: Any = logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()
