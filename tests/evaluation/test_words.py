"""Words against a function that counts them."""

import numpy as np
import pandas as pd

from echelon.evaluation.recombining import Curves
from echelon.evaluation.words import pieces_of, word_reasons


def predict(rows: pd.DataFrame) -> np.ndarray:
    good = rows["text"].map(lambda text: text.split().count("good"))
    p = 0.2 + 0.1 * good + 0.1 * rows["size"]
    return np.stack([1 - p, p / 2, p / 2], axis=1)


def test_what_is_left_out_is_what_the_function_loses() -> None:
    frame = pd.DataFrame({"text": ["a good good\nday", "", "bad"], "size": [1.0, 0.0, 0.0]})
    found = word_reasons(Curves(predict), frame, [0, 1, 2], "text")
    assert [one.words for one in found[0]][:2] == ["good", "good"]
    np.testing.assert_allclose([one.rank_change for one in found[0]], [0.15, 0.15, 0, 0], atol=1e-9)
    np.testing.assert_allclose(found[0][0].change, [0.1, 0.05])
    assert found[1] == []
    assert [one.words for one in found[2]] == ["bad"]
    assert word_reasons(Curves(predict), frame, [1], "text") == [[]]


def test_a_long_text_is_cut_into_pieces_that_are_the_whole() -> None:
    text = "  " + " ".join(f"w{i}" for i in range(1000)) + " "
    pieces = pieces_of(text, 40)
    assert len(pieces) == 40
    assert "".join(text[start:end] for start, end in pieces) == text.lstrip()
    assert pieces_of("   ", 40) == []
