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

from echelon.backbones.dropout import hasten_dropout
from echelon.extras import require

Pooling = Literal["last", "mean", "max"]

# Left out: on a processor it takes a fifth of a step, and what comes out of a layer is dropped too.
_ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attention_dropout")
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
    pooling : {"last", "mean", "max"}
        What becomes of the states of a text: the last one, as in the paper, or their mean or
        their maximum.
    bidirectional : bool
        Also read from the end; `out_features` doubles.
    dropout : float
        Of embeddings and of what comes out.
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
        Of what comes out.
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
    def of(
        cls,
        name: str,
        *,
        config: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> "PretrainedText":
        """The encoder of a model's name or folder; from a configuration alone, its shape."""
        transformers = require("transformers", "pretrained text encoders")
        if config is not None:
            described = dict(config)
            made = transformers.AutoConfig.for_model(str(described.pop("model_type")), **described)
            encoder = transformers.AutoModel.from_config(made, attn_implementation="eager")
        else:
            try:
                found = transformers.AutoConfig.from_pretrained(name)
                for one in _ATTENTION_DROPOUT:
                    if hasattr(found, one):
                        setattr(found, one, 0.0)
                with _without_bars():
                    encoder = transformers.AutoModel.from_pretrained(
                        name, config=found, attn_implementation="eager"
                    ).float()
            except (OSError, ValueError) as error:
                reason = str(error).strip().split("\n")[0]
                raise ValueError(
                    f"there is no encoder 'hf:{name}': {reason}; give the name of a model that "
                    f"can be reached, or a folder with its files"
                ) from None
        return cls(encoder, **options)

    def config_document(self) -> dict[str, Any]:
        """What :meth:`of` rebuilds the encoder from."""
        config: Any = self.encoder.config
        found: dict[str, Any] = json.loads(config.to_json_string(use_diff=True))
        return found | {"model_type": config.model_type}

    def train(self, mode: bool = True) -> "PretrainedText":
        """As always, but a frozen encoder has no dropout."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self

    def encode(self, tokens: Tensor) -> Tensor:
        """Pooled states (n, out) of ids (n, longest), -1 behind the end."""
        inside = tokens >= 0
        states: Tensor = self.encoder(
            input_ids=tokens.clamp(min=0), attention_mask=inside.long()
        ).last_hidden_state  # (n, longest, out)
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
        depths = {name: int(found[1]) + 1 for name in names if (found := _LAYER.search(name))}
        top = max(depths.values(), default=1)
        return {
            name: self.rate
            * self.layer_decay ** (top - depths.get(name, 0 if "embedding" in name else top))
            for name in names
        }


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
