"""What the words of a text do: how the curve changes when they are left out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from echelon.evaluation.recombining import Curves, Floats

MOST_PIECES = 40  # that a text is cut into
_PIECE = re.compile(r"\S+\s*")


@dataclass(frozen=True)
class WordReason:
    """Words that follow each other in a text, and what they do.

    Attributes
    ----------
    column : str
    words : str
        One word, or several where the text is long.
    change : array, shape (K-1,)
        P(y > k) of the whole text minus that of the text without these words.
    """

    column: str
    words: str
    change: Floats

    @property
    def rank_change(self) -> float:
        """What the words add to the expected rank."""
        return float(self.change.sum())


def pieces_of(text: str, most: int) -> list[tuple[int, int]]:
    """Where the words of a text begin and end; neighbours together where they are too many.

    Examples
    --------
    >>> pieces_of("not very good", 5)
    [(0, 4), (4, 9), (9, 13)]
    >>> pieces_of("not very good", 2)
    [(0, 9), (9, 13)]
    """
    words = [match.span() for match in _PIECE.finditer(text)]
    size = -(-len(words) // most) if words else 1
    return [
        (words[i][0], words[min(i + size, len(words)) - 1][1]) for i in range(0, len(words), size)
    ]


def word_reasons(
    curves: Curves,
    frame: pd.DataFrame,
    rows: Sequence[int],
    column: str,
    *,
    most: int = MOST_PIECES,
) -> list[list[WordReason]]:
    """What the words of some rows' texts do, the largest change of the expected rank first.

    Parameters
    ----------
    curves : Curves
    frame : DataFrame
    rows : sequence of int
        The places of the rows.
    column : str
        The column of texts.
    most : int
        How many pieces a text is cut into at most.

    Examples
    --------
    >>> def predict(rows):
    ...     has = {word: rows["text"].str.contains(word) for word in ("good", "not")}
    ...     p = 0.5 + 0.3 * has["good"] - 0.2 * has["not"]
    ...     return np.stack([1 - p, p], axis=1)
    >>> frame = pd.DataFrame({"text": ["not very good"]})
    >>> for found in word_reasons(Curves(predict), frame, [0], "text")[0]:
    ...     print(found.words, round(found.rank_change, 2))
    good 0.3
    not -0.2
    very 0.0
    """
    texts = [_text(frame[column].iloc[row]) for row in rows]
    cuts = [pieces_of(text, most) for text in texts]
    source = np.repeat(np.asarray(rows, dtype=np.int64), [len(spans) for spans in cuts])
    shorter = [
        text[:start] + text[end:]
        for text, spans in zip(texts, cuts, strict=True)
        for start, end in spans
    ]
    if not len(source):
        return [[] for _ in rows]
    asked = frame.iloc[source].reset_index(drop=True)
    asked[column] = pd.Series(shorter, dtype=object)
    without = curves(asked)
    before = curves(frame.iloc[np.asarray(rows, dtype=np.int64)])
    reasons, place = [], 0
    for i, (text, spans) in enumerate(zip(texts, cuts, strict=True)):
        of_row = [
            WordReason(column, text[start:end].strip(), before[i] - without[place + j])
            for j, (start, end) in enumerate(spans)
        ]
        place += len(spans)
        reasons.append(sorted(of_row, key=lambda reason: -abs(reason.rank_change)))
    return reasons


def _text(cell: object) -> str:
    return cell if isinstance(cell, str) else ""
