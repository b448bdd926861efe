"""What a model does with its columns: what matters, which way, and why a row gets its curve.

Everything is asked of a function from rows to probabilities, so it holds for any model, with what
was fitted, calibrated or blended inside it. It tells of the model and not of the world.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from echelon.evaluation.effects import Effect, local_effect
from echelon.evaluation.importance import Importance, correlated_groups, permutation_importance
from echelon.evaluation.interaction import Interaction, interactions
from echelon.evaluation.reasons import RowReasons, row_reasons, spread_rows
from echelon.evaluation.recombining import (
    Curves,
    Floats,
    Integers,
    Predict,
    Report,
    cell_words,
    column_kinds,
    named_cell,
)
from echelon.evaluation.words import MOST_PIECES, word_reasons

_MOST_ASKED = 200_000  # rows that the importance of all columns together may ask about
_FEWEST_ROWS = 500  # for the importance, however many columns there are
_EFFECT_ROWS = 1000
_INTERACTING = 8  # the most important columns, whose pairs are looked at
_INTERACTION_ROWS = 500
_THRESHOLDS = 9  # of the effects in a document
_WORDS = 8  # of a text in a document
_DIGITS = 6
_MATTERS = 0.01  # of the largest importance: a smaller one has no direction to speak of


@dataclass(frozen=True)
class OwnContributions:
    """Exact contributions that a model has of its own, on the scale on which it adds up.

    Attributes
    ----------
    scale : str
        What adds up, in words.
    columns : tuple of str
    start : array, shape (n, scores)
        What a row starts from.
    contributions : array, shape (n, columns, scores)
        What each column adds. There is one score for all ranks, or one for each P(y > k).
    """

    scale: str
    columns: tuple[str, ...]
    start: Floats
    contributions: Floats

    @property
    def total(self) -> Floats:
        """The scores that start and contributions add up to, (n, scores)."""
        return np.asarray(self.start + self.contributions.sum(axis=1))


@dataclass(frozen=True)
class Explanation:
    """What a model does with its columns.

    Attributes
    ----------
    classes : list
        The labels in rank order.
    kinds : dict from column to kind
        What each column holds, such as numbers or categories.
    num_rows : int
        How many rows the importance was measured on.
    has_truth : bool
        Whether true labels were given; without, importance is what it were if the model was right.
    importance : list of Importance
        What the model would miss of each column or group of columns, the largest first.
    effects : dict from column to Effect
        Which way each column works that can be moved, in the order of importance.
    interaction : Interaction or None
        The strongest interaction among the most important columns.
    reasons : list of RowReasons
        Why some rows get the curve that they get.
    exact_contributions : OwnContributions or None
        Exact contributions of the rows that have reasons, where the model has such.
    """

    classes: list[Any]
    kinds: dict[str, str]
    num_rows: int
    has_truth: bool
    importance: list[Importance]
    effects: dict[str, Effect]
    interaction: Interaction | None
    reasons: list[RowReasons] = field(default_factory=list)
    exact_contributions: OwnContributions | None = None

    def frame(self) -> pd.DataFrame:
        """The importance of each column or group, with which way it works."""
        rows = [
            {
                "column": " + ".join(group.columns),
                "importance": group.mean,
                "standard_error": group.standard_error,
                "direction": self.direction(group),
            }
            for group in self.importance
        ]
        table: pd.DataFrame = pd.DataFrame(rows)
        return table

    def direction(self, group: Importance) -> str:
        """Which way the columns of an importance work, in words."""
        largest = max(other.mean for other in self.importance)
        if group.mean <= max(2 * np.nan_to_num(group.standard_error), _MATTERS * largest):
            return "hardly matters"
        said = {
            name: self.effects[name].direction for name in group.columns if name in self.effects
        }
        if len(group.columns) == 1:
            return said.get(group.columns[0], "")
        return "; ".join(f"{name}: {words}" for name, words in said.items())

    def with_rows_named(self, names: Sequence[int] | Integers) -> "Explanation":
        """The same with other numbers for the rows: those in a file, say."""
        renamed = [replace(reason, row=int(names[reason.row])) for reason in self.reasons]
        return replace(self, reasons=renamed)

    def document(self, threshold: int | None = None) -> dict[str, Any]:
        """Everything in values of JSON, in numbers of six digits; NaN is None.

        Parameters
        ----------
        threshold : int, optional
            The k of P(y > k) that reasons are about; without it each row has its own.
        """
        exceeded = self._shown_thresholds()
        document = {
            "classes": self.classes,
            "rows": self.num_rows,
            "truth": self.has_truth,
            "importance": [
                {
                    "columns": group.columns,
                    "kinds": [self.kinds[name] for name in group.columns],
                    "mean": group.mean,
                    "standard_error": group.standard_error,
                    "direction": self.direction(group),
                }
                for group in self.importance
            ],
            "thresholds": exceeded,
            "effects": [
                {
                    "column": effect.column,
                    "kind": effect.kind,
                    "cells": [_json_cell(cell, effect.kind) for cell in effect.cells],
                    "rows": effect.rows,
                    "expected_rank": effect.expected_rank,
                    "spread": effect.spread,
                    "exceedance": effect.exceedance[:, exceeded],
                }
                for effect in self.effects.values()
            ],
            "interaction": None
            if self.interaction is None
            else {
                "columns": self.interaction.columns,
                "share": self.interaction.share,
                "standard_error": self.interaction.standard_error,
            },
            "reasons": [self._row_document(i, threshold) for i in range(len(self.reasons))],
        }
        plain: dict[str, Any] = _plain(document)
        return plain

    def _shown_thresholds(self) -> list[int]:
        count = len(self.classes) - 1
        spread = np.linspace(0, count - 1, min(count, _THRESHOLDS))
        return [int(k) for k in np.unique(spread.round())]

    def _row_document(self, place: int, threshold: int | None) -> dict[str, Any]:
        row = self.reasons[place]
        k = row.telling_threshold if threshold is None else threshold
        document: dict[str, Any] = {
            "row": row.row,
            "threshold": k,
            "start": row.start[k],
            "end": row.exceedance[k],
            "rank_start": row.start.sum(),
            "rank_end": row.exceedance.sum(),
            "columns": row.named_cells,
            "contributions": row.contributions[:, k],
            "rank_contributions": row.rank_contributions,
            "rank_standard_errors": row.standard_errors,
            "sentences": row.sentences(self.classes, k),
            "words": [
                {"column": word.column, "words": word.words, "change": word.change[k],
                 "rank_change": word.rank_change}
                for word in row.words[:_WORDS]
            ],
        }  # fmt: skip
        if self.exact_contributions is not None:
            score = min(k, self.exact_contributions.start.shape[1] - 1)
            document["own"] = {
                "scale": self.exact_contributions.scale,
                "start": self.exact_contributions.start[place, score],
                "contributions": self.exact_contributions.contributions[place, :, score],
            }
        return document

    def text(self, most: int = 20, threshold: int | None = None) -> str:
        """A table for a terminal: what matters, which way, what works together, and reasons."""
        measure = "" if self.has_truth else " (expected, as no labels were given)"
        names = [" + ".join(group.columns) for group in self.importance[:most]]
        width = max([len("column"), *(min(len(name), 40) for name in names)])
        lines = [
            f"importance: what shuffling a column adds to the ranked probability score{measure}",
            f"{'column':<{width}}  importance  +- error  which way",
        ]
        for group, name in zip(self.importance, names, strict=False):
            error = "" if math.isnan(group.standard_error) else f"{group.standard_error:.4f}"
            lines.append(
                f"{_shortened(name, width):<{width}}  {group.mean:10.4f}  {error:>8}  "
                f"{self.direction(group)}".rstrip()
            )
        if len(self.importance) > most:
            lines.append(f"and {len(self.importance) - most} more")
        if self.interaction is not None:
            first, second = self.interaction.columns
            lines.append(
                f"strongest interaction: {first} and {second}, {self.interaction.share:.1%} of the "
                f"variance of the expected rank"
            )
        for row in self.reasons:
            lines.append(f"row {row.row}: " + "; ".join(row.sentences(self.classes, threshold)))
            if row.words:
                telling = ", ".join(
                    f"{word.words!r} {word.rank_change:+.2f}" for word in row.words[:_WORDS]
                )
                lines.append(f"  words, by what they add to the expected rank: {telling}")
        return "\n".join(lines)


def explain(
    predict: Predict,
    frame: pd.DataFrame,
    ranks: ArrayLike | None = None,
    *,
    classes: Sequence[Any],
    kinds: Mapping[str, str] | None = None,
    texts: Sequence[str] = (),
    rows: Sequence[int] = (),
    correlated: float | None = None,
    repeats: int = 5,
    background: int = 16,
    most_rows: int | None = None,
    seed: int = 0,
    report: Report | None = None,
) -> Explanation:
    """Importance, effects, the strongest interaction, and the reasons of some rows.

    Parameters
    ----------
    predict : callable
        From a frame of rows to P(y = k), (n, K).
    frame : DataFrame of n rows
    ranks : array-like, shape (n,), optional
        The true ranks.
    classes : sequence of K labels, in rank order
    kinds : mapping from column to kind, optional
        What the columns hold; see :func:`echelon.evaluation.recombining.column_kinds`.
    texts : sequence of str
        Columns of texts, whose words are left out one by one.
    rows : sequence of int
        The places of the rows that get reasons.
    correlated : float, optional
        Columns that are correlated so much are shuffled together.
    repeats : int
        How often each column is shuffled.
    background : int
        How many rows, spread over the expected rank, the reasons compare with.
    most_rows : int, optional
        How many rows, drawn at random, the importance is measured on. Without it, so many that all
        columns together ask about 200,000 rows, at least 500.
    seed : int
    report : callable, optional
        ``report(rows, what)``: after how many rows more, and what they are for.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> frame = pd.DataFrame(generator.random((200, 2)), columns=["size", "noise"])
    >>> found = explain(
    ...     lambda rows: np.stack([1 - rows["size"], rows["size"]], axis=1), frame,
    ...     (frame["size"] > 0.5).astype(int), classes=["low", "high"], rows=[0],
    ... )
    >>> found.frame()["direction"].tolist()
    ['more of it raises the class', 'hardly matters']
    >>> found.reasons[0].sentences(found.classes)
    ['size 0.637 raises the chance of high from 55 to 64 %']
    """
    sizes = plan(len(frame), len(frame.columns), repeats, most_rows)
    known = column_kinds(frame, kinds)
    for row in rows:
        if not 0 <= row < len(frame):
            raise ValueError(f"rows to explain lie in 0..{len(frame) - 1}; got {row}")
    generator = np.random.default_rng(seed)
    drawn = np.sort(generator.permutation(len(frame))[: sizes["importance"]])
    some = frame.iloc[drawn].reset_index(drop=True)
    curves = Curves(predict, report)
    curves.doing = "importance"
    groups = None if correlated is None else correlated_groups(some, known, correlated)
    important = permutation_importance(
        curves, some, None if ranks is None else np.asarray(ranks)[drawn], groups=groups,
        repeats=repeats, seed=seed,
    )  # fmt: skip
    ordered = [name for group in important for name in group.columns]
    curves.doing = "effects"
    fewer = some.iloc[: sizes["effects"]]
    before = curves(fewer)
    effects = {name: local_effect(curves, fewer, name, known, before=before) for name in ordered}
    curves.doing = "interactions"
    pairs = interactions(
        curves, some, ordered[:_INTERACTING], rows=sizes["interactions"], seed=seed
    )
    curves.doing = "reasons"
    return Explanation(
        classes=list(classes),
        kinds=known,
        num_rows=len(some),
        has_truth=ranks is not None,
        importance=important,
        effects={name: effect for name, effect in effects.items() if effect is not None},
        interaction=pairs[0] if pairs else None,
        reasons=_reasons(curves, frame, known, texts, rows, background, seed) if len(rows) else [],
    )


def plan(num_rows: int, columns: int, repeats: int, most_rows: int | None) -> dict[str, int]:
    """How many rows each step looks at, by its name.

    Examples
    --------
    >>> plan(5000, 30, 5, None)
    {'importance': 1333, 'effects': 1000, 'interactions': 500}
    """
    if most_rows is not None and most_rows < 2:
        raise ValueError(f"most_rows must be at least 2; got {most_rows}")
    fitting = max(_FEWEST_ROWS, _MOST_ASKED // max(1, columns * repeats))
    important = min(num_rows, fitting if most_rows is None else most_rows)
    return {
        "importance": important,
        "effects": min(important, _EFFECT_ROWS),
        "interactions": min(important, _INTERACTION_ROWS),
    }


def planned_rows(
    num_rows: int,
    columns: int,
    explained: int,
    *,
    repeats: int = 5,
    background: int = 16,
    most_rows: int | None = None,
    texts: int = 0,
) -> int:
    """About how many rows :func:`explain` asks about, for a progress bar."""
    sizes = plan(num_rows, columns, repeats, most_rows)
    looked_at = min(columns, _INTERACTING)
    return (
        sizes["importance"] * (columns * repeats + 1)
        + sizes["effects"] * (2 * columns + 1)
        + sizes["interactions"] * (1 + looked_at + looked_at * (looked_at - 1) // 2)
        + explained * (min(background, num_rows) * max(columns - 1, 0) + texts * MOST_PIECES)
    )


def _reasons(
    curves: Curves,
    frame: pd.DataFrame,
    kinds: Mapping[str, str],
    texts: Sequence[str],
    rows: Sequence[int],
    background: int,
    seed: int,
) -> list[RowReasons]:
    """The reasons of rows against rows that stand for the table, with the words of their texts."""
    candidates = np.random.default_rng(seed).permutation(len(frame))[:_EFFECT_ROWS]
    expected = curves(frame.iloc[candidates]).sum(axis=1)
    behind = frame.iloc[candidates[spread_rows(expected, background)]]
    named = [
        [named_cell(name, frame[name].iloc[row], kinds[name]) for name in frame.columns]
        for row in rows
    ]
    reasons = row_reasons(curves, frame, rows, behind.reset_index(drop=True), named, seed=seed)
    for name in texts:
        words = word_reasons(curves, frame, rows, name)
        reasons = [
            replace(reason, words=[*reason.words, *of_row])
            for reason, of_row in zip(reasons, words, strict=True)
        ]
    return reasons


def _json_cell(cell: Any, kind: str) -> Any:
    if cell is None or pd.isna(cell):
        return None
    return float(cell) if kind == "number" else cell_words(cell, kind)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _plain(value: Any) -> Any:
    """Values of JSON: numbers of a few digits, None for those that JSON does not have."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value
