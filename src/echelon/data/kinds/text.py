"""From texts to token ids.

The rules, which hold for training and prediction alike:

- A missing or blank text is one token of its own, so every text has at least one token.
- Texts are brought to one Unicode form (NFKC) and to lower case. A token is a word, with its
  apostrophe, or any other single sign: a comma, an emoji, a letter of a script that puts no
  spaces between words.
- Words that fewer than `min_count` training texts hold, words longer than 40 letters and words
  never seen share one token, the unknown.
- Of a text with more than `max_tokens` tokens, the first and the last halves are kept: a review
  ends with its verdict. So 100,000 characters cost no more than a page.

A pretrained encoder brings a tokenizer with rules of its own; only the length is ours.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon.data.kinds.base import CellKind, Encoding
from echelon.extras import require

PADDING = -1  # behind the end of a text
UNKNOWN, EMPTY = 0, 1  # ids before those of the words
_NUM_SPECIAL = 2
_LONGEST_WORD = 40
_MOST_TOKENS = 1_000_000  # of one text, in a saved model
_PHRASE_WORDS = 8  # below which a text is one that anyone may write
_EXAMPLE_TOKENS = 7
_PRETRAINED = "pretrained text encoders"
# Scripts that put no spaces between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_LETTERS = rf"(?:(?![{_UNSPACED}])\w)+"
_TOKEN = re.compile(rf"[{_UNSPACED}]|{_LETTERS}(?:['’]{_LETTERS})*|[^\w\s]")  # noqa: RUF001


@dataclass(frozen=True)
class TokenLists:
    """Token ids of many texts, one after the other.

    Attributes
    ----------
    ids : array of int32, shape (total,)
    ends : array of int64, shape (n,)
        Where each text ends in `ids`.
    """

    is_slow: ClassVar[bool] = False
    ids: NDArray[np.int32]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, lists: Iterable[Sequence[int]]) -> "TokenLists":
        """Of a list of ids for each text, none of them empty."""
        rows = [np.asarray(tokens, dtype=np.int32) for tokens in lists]
        ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
        return cls(np.concatenate(rows) if rows else np.zeros(0, np.int32), ends)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many tokens each text has, (n,)."""
        return np.diff(self.ends, prepend=0)

    def take(self, rows: NDArray[np.int64], seed: tuple[int, ...] | None = None) -> Tensor:
        """Ids of some texts, (rows, longest of them), `PADDING` behind the end of each.

        Examples
        --------
        >>> TokenLists.of([[5, 6, 7], [8]]).take(np.array([1, 0]))
        tensor([[ 8, -1, -1],
                [ 5,  6,  7]])
        """
        ends, lengths = self.ends[rows], self.lengths[rows]
        places = np.arange(lengths.max(initial=1))
        inside = places < lengths[:, None]
        padded = np.full(inside.shape, PADDING, dtype=np.int64)
        padded[inside] = self.ids[((ends - lengths)[:, None] + places)[inside]]
        return torch.from_numpy(padded)

    def contents(self) -> Iterator[bytes]:
        """All ids, and where texts end."""
        yield self.ids.tobytes() + self.ends.tobytes()


class _TokenEncoding:
    """What the tokenizers have in common."""

    max_tokens: int

    @property
    def free(self) -> dict[int, tuple[str, int]]:
        """The tokens of the longest text vary, unless there is one at most."""
        return {1: ("tokens", self.max_tokens)} if self.max_tokens > 1 else {}

    def example(self, rows: int) -> Tensor:
        """Token ids that there are, (rows, tokens)."""
        return torch.ones(rows, min(_EXAMPLE_TOKENS, self.max_tokens), dtype=torch.int64)

    def made_up(self, rows: int, generator: np.random.Generator) -> list[Any]:
        """Texts of known and unknown words, some of them empty."""
        words = getattr(self, "words", ("good", "bad", "not", "a", "course"))
        choices = [*words[:200], "neverseen"]
        lengths = generator.integers(0, 30, size=rows)
        return [" ".join(generator.choice(choices, size=length)) for length in lengths]


class WordTokenizer(_TokenEncoding):
    """Words as numbers; the vocabulary is that of the training texts.

    Parameters
    ----------
    words : sequence of str
        Known words; the first has the id 2, after the unknown and the empty text.
    max_tokens : int
        Of one text.

    Examples
    --------
    >>> tokenizer = WordTokenizer.of(["Good, very good!", "Not good", "not bad 🙂"], min_count=2)
    >>> tokenizer.words
    ('good', 'not')
    >>> tokenizer.encode(["not GOOD at all", "", None]).take(np.arange(3))
    tensor([[ 3,  2,  0,  0],
            [ 1, -1, -1, -1],
            [ 1, -1, -1, -1]])
    """

    kind = "words"

    def __init__(self, words: Sequence[str], max_tokens: int) -> None:
        if max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1; got {max_tokens}")
        self.words = tuple(words)
        self.max_tokens = max_tokens
        self._ids = {word: i + _NUM_SPECIAL for i, word in enumerate(self.words)}

    @property
    def num_tokens(self) -> int:
        """How many ids there are."""
        return len(self.words) + _NUM_SPECIAL

    @property
    def sizes(self) -> dict[str, Any]:
        """What a backbone must know of its token ids."""
        return {"num_tokens": self.num_tokens}

    @classmethod
    def of(
        cls,
        texts: Iterable[Any],
        *,
        max_tokens: int = 256,
        max_words: int = 20_000,
        min_count: int = 2,
    ) -> "WordTokenizer":
        """Learn the words of the training texts, the most frequent first."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(set(split_words(text)))
        frequent = [
            (-count, word)
            for word, count in counts.items()
            if count >= min_count and len(word) <= _LONGEST_WORD
        ]
        return cls([word for _, word in sorted(frequent)[:max_words]], max_tokens)

    def encode(self, texts: Iterable[Any]) -> TokenLists:
        """Token ids of each text."""
        find = self._ids.get
        return TokenLists.of(
            [find(word, UNKNOWN) for word in shortened(split_words(text), self.max_tokens)]
            or [EMPTY]
            for text in texts
        )

    def describe(self) -> dict[str, Any]:
        """What a saved model stores."""
        return {"kind": self.kind, "words": list(self.words), "max_tokens": self.max_tokens}


class PretrainedTokenizer(_TokenEncoding):
    """The tokenizer of a pretrained encoder (extra `text`), rebuilt from its one JSON file.

    Parameters
    ----------
    document : str
        The content of a ``tokenizer.json``.
    max_tokens : int
        Of one text, special tokens included; the end of a longer one is cut.
    """

    kind = "pretrained"

    def __init__(self, document: str, max_tokens: int) -> None:
        tokenizers = require("tokenizers", _PRETRAINED)
        self.document = document
        self.max_tokens = max_tokens
        with _without_panic():
            self._tokenizer = tokenizers.Tokenizer.from_str(document)
            self._tokenizer.no_padding()
            self._tokenizer.enable_truncation(max_tokens)

    @classmethod
    def of(cls, name: str, *, max_tokens: int = 256) -> "PretrainedTokenizer":
        """The tokenizer of a model's name or folder."""
        transformers = require("transformers", _PRETRAINED)
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                name, use_fast=True, trust_remote_code=False
            )
        except Exception as error:  # transformers raises almost anything on a damaged folder
            raise ValueError(
                f"there is no tokenizer for 'hf:{name}': {_first_line(error)}; give the name of "
                f"a model that can be reached, or a folder with its files"
            ) from None
        if not getattr(tokenizer, "is_fast", False):
            raise ValueError(f"'hf:{name}' has no tokenizer.json, which a saved model needs")
        longest = min(max_tokens, int(getattr(tokenizer, "model_max_length", max_tokens)))
        return cls(tokenizer.backend_tokenizer.to_str(), longest)

    @property
    def num_tokens(self) -> int:
        """How many ids there are."""
        return int(self._tokenizer.get_vocab_size())

    @property
    def sizes(self) -> dict[str, Any]:
        """What a backbone must know of its token ids."""
        return {"num_tokens": self.num_tokens}

    def encode(self, texts: Iterable[Any]) -> TokenLists:
        """Token ids of each text, with the special tokens around them."""
        plain = [plain_text(text) for text in texts]
        with _without_panic():
            encodings = self._tokenizer.encode_batch(plain)
        # A tokenizer without special tokens gives an empty text nothing.
        return TokenLists.of(encoding.ids or [0] for encoding in encodings)

    def describe(self) -> dict[str, Any]:
        """What a saved model stores."""
        return {"kind": self.kind, "document": self.document, "max_tokens": self.max_tokens}


Tokenizer = WordTokenizer | PretrainedTokenizer


def rebuild_tokenizer(described: Mapping[str, Any]) -> Tokenizer:
    """A tokenizer from what :meth:`describe` gave, and from nothing else."""
    kind = described["kind"]
    if kind not in (WordTokenizer.kind, PretrainedTokenizer.kind):
        raise ValueError(f"there is no tokenizer of the kind {kind!r}")
    max_tokens = described["max_tokens"]
    if type(max_tokens) is not int or not 1 <= max_tokens <= _MOST_TOKENS:
        raise ValueError(f"max_tokens must lie between 1 and {_MOST_TOKENS:,}; got {max_tokens!r}")
    if kind == WordTokenizer.kind:
        words = described["words"]
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError("the words of a tokenizer must be a list of texts")
        return WordTokenizer(words, max_tokens)
    document = described["document"]
    if not isinstance(document, str):
        raise ValueError("the tokenizer of a pretrained encoder must be a text")
    return PretrainedTokenizer(document, max_tokens)


class TextKind(CellKind):
    """Texts: every cell is a string, empty where it is missing."""

    name = "text"
    has_words = True

    def read(self, column: "pd.Series[Any]") -> NDArray[Any]:
        """The cells of a column, (n,) strings, empty where missing."""
        texts = np.empty(len(column), dtype=object)
        texts[:] = [plain_text(value) for value in column]
        return texts

    def alone(self, cells: NDArray[Any]) -> NDArray[np.bool_]:
        """Texts of fewer than eight words are phrases that anyone may write."""
        counts = [sum(word[0].isalnum() for word in split_words(text)) for text in cells]
        return np.array(counts) < _PHRASE_WORDS

    def learn(
        self, cells: NDArray[Any], way: str, source: str, options: Mapping[str, Any]
    ) -> Encoding:
        """The words of training texts, or the tokenizer of a pretrained encoder."""
        try:
            if way == WordTokenizer.kind:
                return WordTokenizer.of(cells, **options)
            return PretrainedTokenizer.of(source, **options)
        except TypeError as error:
            raise ValueError(f"texts as {way} do not take these options: {error}") from None

    def rebuild(self, described: Mapping[str, Any]) -> Encoding:
        """A tokenizer from what it described."""
        return rebuild_tokenizer(described)


TEXT = TextKind()


@contextmanager
def _without_panic() -> Iterator[None]:
    """Turn what tokenizers raises on a damaged document into an error like all others."""
    try:
        yield
    except Exception as error:
        raise ValueError(f"the tokenizer cannot be used: {_first_line(error)}") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of its compiled half, which has no name here
            raise
        raise ValueError(f"the tokenizer cannot be used: {_first_line(error)}") from None


def plain_text(value: Any) -> str:
    """A cell as a text: empty where it is missing."""
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or value != value:  # NaN, or a time that is none
        return ""
    if isinstance(value, float) and value.is_integer():  # a number beside missing ones
        return str(int(value))
    return str(value)


def split_words(text: Any) -> list[str]:
    """The tokens of a text; see the rules at the top of this module."""
    return _TOKEN.findall(unicodedata.normalize("NFKC", plain_text(text)).lower())


def shortened(tokens: list[str], max_tokens: int) -> list[str]:
    """The first and the last halves of too many tokens."""
    if len(tokens) <= max_tokens:
        return tokens
    last = max_tokens // 2
    return tokens[: max_tokens - last] + tokens[len(tokens) - last :]


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
