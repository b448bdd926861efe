"""Boosted trees on rows that are read from files: a byte a value is all that stays of them.

The rows go to LightGBM slice by slice and become bins there. Each takes at most three thresholds:
those beside its rank, and one that stands for all others.
"""

import time
from collections.abc import Iterator
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray

from echelon.data.survey import Survey
from echelon.models.thresholds import few_threshold_pairs, pairs_a_row
from echelon.models.trees import (
    Grower,
    OnRound,
    OrdinalTrees,
    Prepared,
    TreeRows,
    TreeSettings,
    base_logits,
    side_by_side,
)

_BATCH = 100_000  # examples that LightGBM asks for at once
_BYTES_OF_AN_EXAMPLE = 50  # label, weight, start, score, gradients, and their order in a tree


def fit_streamed_trees(
    known: Survey,
    *,
    settings: TreeSettings,
    seed: int,
    threads: int,
    time_limit: float | None = None,
    on_round: OnRound | None = None,
) -> OrdinalTrees:
    """Grow trees on the training rows of a source.

    Rows that are held out choose the number of trees; they are few beside the others, and are not
    learnt from.

    Parameters
    ----------
    known : Survey
    settings, seed, threads, time_limit, on_round
        As for :func:`echelon.models.trees.fit_trees`.
    """
    started = time.monotonic()
    if not known.weights.sum():
        raise ValueError("trees need at least one row that counts; got weights of 0 alone")
    num_classes = known.stream.labels.num_classes
    grower = Grower(num_classes, settings, seed, threads, started, time_limit, on_round)
    held = None if known.held is None else _tree_rows(known.held)
    schema = known.stream.schema
    widths = len(schema.numeric), len(schema.categorical)
    trained = _prepared(grower, known, widths, held, seed)
    grower.choose_threads(trained)
    if held is None:
        rounds = 100 if settings.rounds is None else settings.rounds
        booster, _ = grower.grow(trained, rounds)
        return grower.finished(widths, booster, trained.base, -1)
    rounds = 1000 if settings.rounds is None else settings.rounds
    generator = np.random.default_rng(seed)
    booster, best = grower.grow(trained, rounds, grower.prepared(held, generator, like=trained))
    return grower.finished(widths, booster, trained.base, best)


def stream_bytes(known: Survey) -> int:
    """What the examples of a source take, and LightGBM beside them."""
    schema = known.stream.schema
    columns = len(schema.numeric) + len(schema.categorical) + 1
    return _num_examples(known) * (columns + _BYTES_OF_AN_EXAMPLE)


def _num_examples(known: Survey) -> int:
    return int(known.class_counts @ pairs_a_row(known.stream.labels.num_classes))


def _tree_rows(rows: Any) -> TreeRows:
    return TreeRows(
        rows.table.numbers.astype(np.float64), rows.table.codes, rows.ranks, rows.weight
    )


def _prepared(
    grower: Grower, known: Survey, widths: tuple[int, int], held: TreeRows | None, seed: int
) -> Prepared:
    """The examples of all training rows, as bins."""
    base = base_logits(known.weights, known.num_rows)
    examples = _Examples(known)
    parameters = grower.parameters(known.num_rows, *widths, len(examples.label))
    # Real rows show which columns are never filled together; those held out are a sample.
    shown = known.table if held is None else held
    columns = side_by_side(np.asarray(shown.numbers, np.float64), np.asarray(shown.codes))
    data = lightgbm.Dataset(
        _StreamSequence(known, examples, seed),
        label=examples.label,
        reference=grower.bins(columns, widths[0], parameters),
        categorical_feature=list(range(widths[0], sum(widths))),
        params=parameters,
    ).construct()
    # LightGBM has its own copy of each; ours go before the next is made.
    size = len(examples.label)
    data.label, examples.label = None, _NOTHING
    data.set_weight(examples.weight)
    data.weight, examples.weight = None, _NOTHING
    data.set_init_score(base[examples.threshold])
    data.init_score, examples.threshold = None, _NOTHING
    return Prepared(data, size, known.num_rows, base)


_NOTHING: NDArray[Any] = np.empty(0)


class _Examples:
    """What examples are beside their columns, filled in while they are read."""

    def __init__(self, known: Survey) -> None:
        size, most = _num_examples(known), known.stream.labels.num_classes - 1
        self.label: NDArray[Any] = np.empty(size, np.float32)
        self.weight: NDArray[Any] = np.empty(size, np.float32)
        self.threshold: NDArray[Any] = np.empty(size, np.min_scalar_type(most))


class _StreamSequence(lightgbm.Sequence):
    """Examples as LightGBM reads them: once, from the first to the last."""

    batch_size = _BATCH

    def __init__(self, known: Survey, examples: _Examples, seed: int) -> None:
        self._size = len(examples.label)
        self._slices = _example_slices(known, examples, seed)
        self._rest = np.empty((0, 0))
        self._place = 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, places: Any) -> NDArray[np.float64]:
        start, end, _ = places.indices(len(self))
        assert start == self._place, "examples are read in order"
        parts, count = [self._rest] * bool(len(self._rest)), len(self._rest)
        while count < end - start:
            parts.append(next(self._slices))
            count += len(parts[-1])
        whole = np.concatenate(parts)
        self._rest, self._place = whole[end - start :], end
        return whole[: end - start]


def _example_slices(known: Survey, examples: _Examples, seed: int) -> Iterator[NDArray[np.float64]]:
    """The columns of the examples of each slice, (m, p + q + 1), while the rest is filled in."""
    num_classes = known.stream.labels.num_classes
    mean = float(known.weights.sum()) / known.num_rows
    place = 0
    for number, (_, rows, hashes) in enumerate(known.stream):
        rows = rows.select(known.is_training(hashes))
        if not len(rows):
            continue
        generator = np.random.default_rng([seed, number])
        pairs = few_threshold_pairs(rows.ranks, num_classes, generator)
        end = place + len(pairs.row)
        weight = pairs.weight
        if rows.weight is not None:  # only its ratios matter
            weight = weight * (rows.weight / mean)[pairs.row]
        examples.label[place:end] = rows.ranks[pairs.row] > pairs.threshold
        examples.weight[place:end] = weight
        examples.threshold[place:end] = pairs.threshold
        columns = side_by_side(rows.table.numbers.astype(np.float64), rows.table.codes)
        yield np.column_stack([columns[pairs.row], pairs.threshold])
        place = end
