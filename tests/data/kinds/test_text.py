"""Texts as people write them, and the token ids they become."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon.data.kinds.text import (
    EMPTY,
    PADDING,
    UNKNOWN,
    TokenLists,
    WordTokenizer,
    plain_text,
    rebuild_tokenizer,
    split_words,
)


def ids(tokenizer: WordTokenizer, text) -> list[int]:
    return tokenizer.encode([text]).take(np.array([0]))[0].tolist()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Good, VERY good!", ["good", ",", "very", "good", "!"]),
        ("don't", ["don't"]),
        ("I ❤️ it 👍🏽", ["i", "❤", "️", "it", "👍", "🏽"]),
        ("ﬁne １２", ["fine", "12"]),  # noqa: RUF001
        ("naïve Straße", ["naïve", "straße"]),
        ("线上课程", ["线", "上", "课", "程"]),
        ("  \n\t ", []),
        ("", []),
        (None, []),
        (float("nan"), []),
        (3.5, ["3", ".", "5"]),
    ],
)
def test_tokens(text, tokens: list[str]) -> None:
    assert split_words(text) == tokens


def test_the_vocabulary_is_that_of_the_training_texts() -> None:
    tokenizer = WordTokenizer.of(["a b", "a c", "a b d d"], min_count=2)
    assert tokenizer.words == ("a", "b")  # d stands in one text only, if twice
    assert ids(tokenizer, "b z a") == [3, UNKNOWN, 2]
    assert tokenizer.num_tokens == 4
    assert WordTokenizer.of(["a b", "a c"], min_count=1, max_words=2).words == ("a", "b")


@pytest.mark.parametrize("text", ["", "   ", None, float("nan")])
def test_an_empty_text_is_a_token_of_its_own(text) -> None:
    assert ids(WordTokenizer.of(["a a", "a"]), text) == [EMPTY]


def test_emoji_are_words() -> None:
    tokenizer = WordTokenizer.of(["nice 😀", "😀 great", "sad 😢", "so 😢"])
    assert set(tokenizer.words) == {"😀", "😢"}
    assert ids(tokenizer, "😢") != ids(tokenizer, "😀")


def test_a_hundred_thousand_characters_keep_their_ends() -> None:
    tokenizer = WordTokenizer(["start", "middle", "end"], max_tokens=10)
    text = "start " * 10 + "middle " * 16_000 + "end " * 10
    assert len(text) > 100_000
    assert ids(tokenizer, text) == [2] * 5 + [4] * 5
    assert ids(tokenizer, "middle" * 20_000) == [UNKNOWN]  # one word of 120,000 letters
    assert WordTokenizer.of(["x" * 41, "x" * 41], min_count=1).words == ()


@given(st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=9), min_size=1, max_size=9))
def test_lists_come_back_as_they_went_in(lists: list[list[int]]) -> None:
    tokens = TokenLists.of(lists)
    order = np.random.default_rng(0).permutation(len(lists))
    padded = tokens.take(order)
    assert padded.shape == (len(lists), max(map(len, lists)))
    for row, place in zip(padded.tolist(), order, strict=True):
        assert [one for one in row if one != PADDING] == lists[place]
        assert row[len(lists[place]) :] == [PADDING] * (padded.shape[1] - len(lists[place]))


@given(st.text(max_size=200))
def test_any_text_has_ids_and_a_saved_tokenizer_gives_the_same(text: str) -> None:
    tokenizer = WordTokenizer.of([text, text], max_tokens=7)
    found = ids(tokenizer, text)
    assert 1 <= len(found) <= 7
    assert max(found) < tokenizer.num_tokens
    assert ids(rebuild_tokenizer(tokenizer.describe()), text) == found


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="max_tokens must be at least 1"):
        WordTokenizer.of(["a"], max_tokens=0)
    with pytest.raises(ValueError, match="no tokenizer of the kind 'other'"):
        rebuild_tokenizer({"kind": "other"})


def test_cells_of_any_kind_are_texts() -> None:
    found = [plain_text(cell) for cell in (pd.NA, None, float("nan"), pd.NaT, 5, 5.0, 0.5, "a")]
    assert found == ["", "", "", "", "5", "5", "0.5", "a"]


def test_scripts_without_spaces_have_a_token_for_each_letter() -> None:
    assert split_words("很好! bien sûr") == ["很", "好", "!", "bien", "sûr"]
    assert split_words("abc漢字def") == ["abc", "漢", "字", "def"]
