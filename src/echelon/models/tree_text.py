"""LightGBM's text format of a model, read with suspicion.

LightGBM trusts the text that it parses: a child that does not exist or a wrong number of values may
end the process. So nothing reaches it that was not read here first, line by line: every key in its
place, every list of the length that the others demand, every index within its range, every tree
a tree. Trees that would let a curve rise are refused, too.
"""

import math
import re
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_NUMBER = re.compile(r"-?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:e[+-]?\d{1,4})?", re.ASCII)
_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)
_VALUE_RANGE = re.compile(
    r"none|\[[-+.:\da-z]{1,100}\]|-?\d{1,18}(?::-?\d{1,18}){0,100000}", re.ASCII
)

_CATEGORICAL, _DEFAULT_LEFT = 1, 2  # bits of a decision type
_NO_GAPS, _GAPS = 0, 8  # the other two: what a missing number is; there is a third, not of ours
_END = "end of trees\n"
_MOST_LEAVES = 131_072  # LightGBM's own limit


class Tree(NamedTuple):
    """A tree; split i sends a row to `left[i]` or `right[i]`, where ~j stands for leaf j.

    A number goes left where it is at most `thresholds[i]`, a code where it is in the set of that
    number: bits in words of 32.
    """

    columns: list[int]
    thresholds: list[float]
    decisions: list[int]
    left: list[int]
    right: list[int]
    leaf_values: list[float]
    sets: list[tuple[int, ...]]

    def gap_goes_left(self, split: int) -> bool:
        """Where a missing number goes: for LightGBM it is 0 where training rows had no gaps."""
        decision = self.decisions[split]
        return bool(decision & _DEFAULT_LEFT) if decision & _GAPS else self.thresholds[split] >= 0


class TreeText(NamedTuple):
    """What a text holds: what the splits gained by column, (p + q + 1,), thresholds last."""

    trees: list[Tree]
    gains: NDArray[np.float64]
    threshold_splits: list[float]


class DamagedTreesError(ValueError):
    """A text that cannot have come from a fit."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the trees of the model {what}; the file is damaged or was not written by echelon: "
            f"fit and save the model again"
        )


def without_parameters(text: str) -> str:
    """A model as LightGBM writes it, up to the end of its trees: all that predictions need."""
    return text[: text.index(_END) + len(_END)]


def check_model_text(text: str, num_numbers: int, num_codes: int) -> TreeText:
    """Read the text of trees on columns of numbers, then of categories, and the threshold.

    Parameters
    ----------
    text : str
        What :func:`without_parameters` gave.
    num_numbers, num_codes : int

    Returns
    -------
    TreeText

    Raises
    ------
    ValueError
        Where LightGBM could not have written the text.
    """
    if num_numbers < 0 or num_codes < 0:
        raise DamagedTreesError("have a negative number of columns")
    return _read_text(text, num_numbers, num_codes, by_threshold=True)


def check_plain_text(text: str, num_numbers: int) -> TreeText:
    """Read the text of trees for two classes on columns of numbers alone, none a threshold.

    Parameters
    ----------
    text : str
        What :func:`without_parameters` gave.
    num_numbers : int

    Raises
    ------
    ValueError
        Where LightGBM could not have written the text.
    """
    return _read_text(text, num_numbers, 0, by_threshold=False)


def _read_text(text: str, num_numbers: int, num_codes: int, *, by_threshold: bool) -> TreeText:
    if not text.isascii() or not text.endswith(_END) or "\r" in text or "\0" in text:
        raise DamagedTreesError("do not end as they should, or hold characters that do not belong")
    head, *bodies = text[: -len(_END)].split("Tree=")
    num_columns = num_numbers + num_codes + by_threshold
    sizes = _read_head(head, num_columns, by_threshold=by_threshold)
    if sizes != [len("Tree=") + len(body) for body in bodies]:
        raise DamagedTreesError("do not have the number or the sizes that are written above them")
    gains = np.zeros(num_columns)
    threshold_splits: list[float] = []
    trees = [
        _read_tree(body, number, num_numbers, num_numbers + num_codes, gains, threshold_splits)
        for number, body in enumerate(bodies)
    ]
    return TreeText(trees, gains, threshold_splits)


def _read_head(head: str, num_columns: int, *, by_threshold: bool) -> list[int]:
    """The sizes of the trees that follow."""
    lines = _Lines(head)
    lines.require("tree")
    lines.require("version=v4")
    lines.require("num_class=1")
    lines.require("num_tree_per_iteration=1")
    lines.require("label_index=0")
    lines.require(f"max_feature_idx={num_columns - 1}")
    lines.require("objective=binary sigmoid:1")
    names = " ".join(f"Column_{column}" for column in range(num_columns))
    lines.require(f"feature_names={names}")
    if by_threshold or lines.comes("monotone_constraints"):
        constraints = lines.integers("monotone_constraints", num_columns, -1, 1)
        if by_threshold and constraints[-1] != -1:
            raise DamagedTreesError("do not have to fall with the threshold")
    ranges = lines.values("feature_infos")
    if len(ranges) != num_columns or not all(map(_VALUE_RANGE.fullmatch, ranges)):
        raise DamagedTreesError("have ranges that do not fit the columns")
    sizes = lines.integers("tree_sizes", None, 1, len(head) + 2**40)
    lines.require("")
    lines.require_end()
    return sizes


def _read_tree(
    body: str,
    number: int,
    num_numbers: int,
    threshold_column: int,
    gains: NDArray[np.float64],
    threshold_splits: list[float],
) -> Tree:
    lines = _Lines(body)
    lines.require(str(number))
    (num_leaves,) = lines.integers("num_leaves", 1, 1, _MOST_LEAVES)
    (num_sets,) = lines.integers("num_cat", 1, 0, num_leaves - 1)
    count = num_leaves - 1
    columns = lines.integers("split_feature", count, 0, len(gains) - 1)
    split_gains = lines.numbers("split_gain", count)
    thresholds = lines.numbers("threshold", count, may_be_infinite=True)  # all numbers, or NaN
    decisions = lines.integers("decision_type", count, 0, 11)
    left = lines.integers("left_child", count, -num_leaves, count - 1)
    right = lines.integers("right_child", count, -num_leaves, count - 1)
    leaf_values = lines.numbers("leaf_value", num_leaves)
    lines.numbers("leaf_weight", num_leaves if count else None)
    lines.integers("leaf_count", num_leaves, 0, 2**31 - 1)
    lines.numbers("internal_value", count)
    lines.numbers("internal_weight", count)
    lines.integers("internal_count", count, 0, 2**31 - 1)
    sets: list[tuple[int, ...]] = []
    if num_sets:
        bounds = lines.integers("cat_boundaries", num_sets + 1, 0, 2**31 - 1)
        if bounds[0] != 0 or any(a >= b for a, b in pairwise(bounds)):
            raise DamagedTreesError("have sets of categories with bounds out of order")
        words = lines.integers("cat_threshold", bounds[-1], 0, 2**32 - 1)
        sets = [tuple(words[start:end]) for start, end in pairwise(bounds)]
    lines.require("is_linear=0")
    lines.numbers("shrinkage", 1)
    lines.require("")
    lines.require("")
    lines.require_end()

    for column, threshold, decision in zip(columns, thresholds, decisions, strict=True):
        by_set = bool(decision & _CATEGORICAL)
        if by_set != (num_numbers <= column < threshold_column):
            raise DamagedTreesError("split numbers as categories, or categories as numbers")
        if decision & ~(_CATEGORICAL | _DEFAULT_LEFT) not in (_NO_GAPS, _GAPS):
            raise DamagedTreesError("have a split of an unknown kind")
        if by_set and not (threshold.is_integer() and 0 <= threshold < num_sets):
            raise DamagedTreesError("split by a set of categories that is not there")
        if column == threshold_column:
            if not math.isfinite(threshold):
                raise DamagedTreesError("split the threshold at infinity")
            threshold_splits.append(threshold)
    np.add.at(gains, columns, split_gains)
    _require_tree(left, right, num_leaves)
    _require_falling(left, right, [c == threshold_column for c in columns], leaf_values)
    return Tree(columns, thresholds, decisions, left, right, leaf_values, sets)


def _require_tree(left: list[int], right: list[int], num_leaves: int) -> None:
    """Every node but the first has one parent, which stands before it: then all is a tree."""
    expected = {*range(1, num_leaves - 1), *(~leaf for leaf in range(num_leaves))}
    children = [*left, *right]
    if num_leaves == 1:
        return
    if len(children) != len(expected) or set(children) != expected:
        raise DamagedTreesError("have a node without a parent, or one with two")
    for node, pair in enumerate(zip(left, right, strict=True)):
        if any(0 <= child <= node for child in pair):
            raise DamagedTreesError("have a node above its parent")


def _require_falling(
    left: list[int], right: list[int], by_threshold: list[bool], leaf_values: list[float]
) -> None:
    """Under a split on the threshold, no leaf of the right side is above one of the left."""
    lowest, highest = [0.0] * len(left), [0.0] * len(left)
    for node in reversed(range(len(left))):  # children stand after their parents
        ends = []
        for child in (left[node], right[node]):
            of_leaf = leaf_values[~child] if child < 0 else 0.0
            ends.append((of_leaf, of_leaf) if child < 0 else (lowest[child], highest[child]))
        if by_threshold[node] and ends[1][1] > ends[0][0]:
            raise DamagedTreesError("rise with the threshold")
        lowest[node] = min(ends[0][0], ends[1][0])
        highest[node] = max(ends[0][1], ends[1][1])


class _Lines:
    """Lines that must come in an order."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._next = 0

    def require(self, line: str) -> None:
        """Pass a line that must be exactly so."""
        if self._line() != line:
            raise DamagedTreesError(f"lack the line {line[:60]!r}")

    def require_end(self) -> None:
        """No line is left but the empty one behind the last line break."""
        if self._lines[self._next :] != [""]:
            raise DamagedTreesError("hold lines that do not belong")

    def comes(self, key: str) -> bool:
        """Whether the next line is one of a key."""
        return any(line.startswith(f"{key}=") for line in self._lines[self._next : self._next + 1])

    def values(self, key: str) -> list[str]:
        """What stands behind a key, divided at its spaces."""
        name, equals, rest = self._line().partition("=")
        if name != key or not equals:
            raise DamagedTreesError(f"lack {key}")
        return rest.split(" ") if rest else []

    def integers(self, key: str, count: int | None, lowest: int, highest: int) -> list[int]:
        """Integers behind a key, so many of them, within bounds."""
        texts = self.values(key)
        if count is not None and len(texts) != count:
            raise DamagedTreesError(f"have {len(texts)} values of {key} where {count} must be")
        if not all(map(_INTEGER.fullmatch, texts)):
            raise DamagedTreesError(f"have something else than integers as {key}")
        numbers = list(map(int, texts))
        if any(not lowest <= number <= highest for number in numbers):
            raise DamagedTreesError(f"have a value of {key} out of its range")
        return numbers

    def numbers(self, key: str, count: int | None, *, may_be_infinite: bool = False) -> list[float]:
        """Numbers behind a key, so many of them, finite where nothing else is said."""
        texts = self.values(key)
        if count is not None and len(texts) != count:
            raise DamagedTreesError(f"have {len(texts)} values of {key} where {count} must be")
        infinite = ("inf", "-inf") if may_be_infinite else ()
        if not all(text in infinite or _NUMBER.fullmatch(text) for text in texts):
            raise DamagedTreesError(f"have something else than finite numbers as {key}")
        numbers = list(map(float, texts))
        if not may_be_infinite and not all(map(math.isfinite, numbers)):
            raise DamagedTreesError(f"have an infinite value of {key}")
        return numbers

    def _line(self) -> str:
        if self._next >= len(self._lines):
            raise DamagedTreesError("end too soon")
        line = self._lines[self._next]
        self._next += 1
        return line
