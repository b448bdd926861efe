"""Gradient-boosted trees on all thresholds at once.

A row of rank y becomes one example for each threshold k, (x, k) with the label 1{y > k}, and one
ensemble of trees gives the logit of P(y > k) from x and the number k. No split may raise the logit
with k, so no curve rises: the sum of the trees falls with k exactly, as rounding keeps the order of
sums. The logit starts at that of the shares of the classes, so trees need not spell them out.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import lightgbm
import numpy as np
from numpy.typing import NDArray

from echelon.models.thresholds import ThresholdPairs, threshold_pairs
from echelon.models.tree_text import Tree, TreeText, check_model_text, without_parameters

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Called after each round with its number, from 1, and the ranked probability score of the
# validation rows, NaN without them; where it returns True, no more trees are grown.
OnRound = Callable[[int, float], bool | None]

_SMOOTHING = 0.5  # rows, shared by all classes: what a class that was never seen counts for
_BATCH = 100_000  # examples that are built at a time
_WORTH_A_TRIAL = 20_000  # examples, from which on it is tried how many threads are quickest
_TRIAL_ROUNDS = 3
_MOST_BARREN = 20  # rounds without a split after which there is none to be found
_LOWEST = math.log(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class TreeSettings:
    """How trees are grown.

    Parameters
    ----------
    learning_rate : float
        The share of each tree that is added.
    leaves : int
        The most leaves of a tree.
    rows_in_leaf : int
        The fewest rows, with all their thresholds, in a leaf; an eighth of all rows where they are
        few.
    l2 : float
        The penalty on the values of the leaves.
    column_share : float
        The share of the columns, the threshold among them, that each tree may use, drawn anew for
        each; all of them where a table has three columns or fewer.
    rounds : int, optional
        The number of trees; with validation rows the most there can be. None stands for 100
        without and 1000 with them.
    patience : int
        The rounds without a better score of the validation rows that end the fit.
    refit : float
        With validation rows, how many times the best number of trees are then grown on all
        rows, validation rows too; 0 keeps the trees that were grown without them.
    most_examples : int
        How many pairs of a row and a threshold are trained on as they are; where there are more,
        each row takes a sample of the thresholds that stands for all (see
        :mod:`echelon.models.thresholds`).
    monotone : tuple of int
        For each column of numbers 1, -1 or 0: whether the rank must never fall, must never rise or
        may do both as the column rises. Empty: no constraint.
    """

    learning_rate: float = 0.1
    leaves: int = 15
    rows_in_leaf: int = 20
    l2: float = 0.0
    column_share: float = 0.7
    rounds: int | None = None
    patience: int = 30
    refit: float = 1.0
    most_examples: int = 100_000
    monotone: tuple[int, ...] = ()


class TreeRows(NamedTuple):
    """Rows to learn from, or to stop by.

    `numbers` (n, p) may hold NaN, `codes` (n, q) are 0 where a category is missing or unknown,
    `ranks` (n,) are 0..K-1 and `weight` (n,) is what each row counts for, None for 1.
    """

    numbers: Floats
    codes: Integers
    ranks: Integers
    weight: Floats | None = None


def fit_trees(
    rows: TreeRows,
    num_classes: int,
    *,
    validation: TreeRows | None = None,
    settings: TreeSettings | None = None,
    seed: int = 0,
    threads: int = 1,
    time_limit: float | None = None,
    on_round: OnRound | None = None,
) -> "OrdinalTrees":
    """Grow trees on the thresholds of ordinal labels.

    The same rows, settings and seed give the same trees with any number of threads, unless the
    time ran out.

    Parameters
    ----------
    rows : TreeRows
    num_classes : int
        K, at least 2; a class without rows is given a small share.
    validation : TreeRows, optional
        Rows whose ranked probability score chooses the number of trees; afterwards they are learnt
        from, too (see `refit` of the settings).
    settings : TreeSettings, optional
    seed : int
    threads : int
        The most; fewer where that is quicker.
    time_limit : float, optional
        Seconds after which no more trees are grown.
    on_round : callable, optional
        ``on_round(number, score)`` after each round; True ends the fit.

    Returns
    -------
    OrdinalTrees

    Examples
    --------
    >>> numbers = np.linspace(0, 1, 200)[:, None]
    >>> rows = TreeRows(numbers, np.zeros((200, 0), dtype=np.int64), np.arange(200) // 50)
    >>> trees = fit_trees(rows, 4)
    >>> trees.log_probabilities(numbers[[0, 70, 199]], rows.codes[:3]).argmax(axis=1)
    array([0, 1, 3])
    """
    started = time.monotonic()
    settings = TreeSettings() if settings is None else settings
    rows = _counting(rows, num_classes)
    validation = None if validation is None else _counting(validation, num_classes)
    if not len(rows.ranks):
        raise ValueError("trees need at least one row that counts; got none, or weights of 0 alone")
    if validation is not None and not len(validation.ranks):
        validation = None
    generator = np.random.default_rng(seed)
    grower = Grower(num_classes, settings, seed, threads, started, time_limit, on_round)
    trained = grower.prepared(rows, generator)
    grower.choose_threads(trained)
    if validation is None:
        rounds = 100 if settings.rounds is None else settings.rounds
        booster, _ = grower.grow(trained, rounds)
        return grower.finished(_widths(rows), booster, trained.base, -1)
    rounds = 1000 if settings.rounds is None else settings.rounds
    held = grower.prepared(validation, generator, like=trained)
    booster, best = grower.grow(trained, rounds, held)
    again = max(1, round(best * settings.refit))
    if not settings.refit or not grower.has_time_for(again):
        return grower.finished(_widths(rows), booster, trained.base, best)
    rows = _together(rows, validation)
    grower.on_round = None  # the number of trees is known by now
    everything = grower.prepared(rows, generator)
    booster, _ = grower.grow(everything, again)
    return grower.finished(_widths(rows), booster, everything.base, -1)


class OrdinalTrees:
    """Trees that give the logit of P(y > k) from a row and the threshold k.

    Parameters
    ----------
    text : str
        The trees in LightGBM's own format, as :func:`check_model_text` demands it.
    base : array, shape (K-1,)
        The logits that the trees start from, falling.
    num_numbers, num_codes : int
        How many columns of numbers and of categories a row has.
    out_of_time : bool
        Whether a time limit ended the fit.

    Attributes
    ----------
    num_classes, num_trees : int
    importance : array, shape (p + q,)
        What the splits on each column, numbers before categories, have gained, in shares of the
        whole; thresholds are left out.
    """

    def __init__(
        self,
        text: str,
        base: Floats,
        num_numbers: int,
        num_codes: int,
        *,
        out_of_time: bool = False,
    ) -> None:
        if (
            base.ndim != 1
            or not len(base)
            or not np.isfinite(base).all()
            or (np.diff(base) > 0).any()
        ):
            raise ValueError(
                "the base of trees must be finite numbers that never rise, one for each "
                "threshold; the file is damaged: fit and save the model again"
            )
        self.text, self.base = text, base
        self.num_numbers, self.num_codes = num_numbers, num_codes
        self.out_of_time = out_of_time
        self.num_classes = len(base) + 1
        content = check_model_text(text, num_numbers, num_codes)
        self.num_trees = len(content.trees)
        self.importance = _shares(content)
        # The trees are constant between the thresholds that they split at.
        steps = np.unique(np.floor(content.threshold_splits))
        steps = steps[(steps >= 0) & (steps < len(base) - 1)]
        self._levels = np.concatenate([steps, [float(len(base) - 1)]])  # the last k of each
        self._level_of = np.searchsorted(self._levels, np.arange(len(base)))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_booster"}

    @cached_property
    def _booster(self) -> lightgbm.Booster:
        return lightgbm.Booster(model_str=self.text)

    def logits(self, numbers: Floats, codes: Integers, *, threads: int = 1) -> Floats:
        """The logit of P(y > k), (n, K-1): it never rises with k.

        Parameters
        ----------
        numbers : array, shape (n, p)
        codes : array, shape (n, q)
        threads : int
        """
        self._require_columns(numbers, codes)
        columns = side_by_side(numbers, codes)
        levels = len(self._levels)
        result = np.empty((len(columns), len(self.base)))
        step = max(1, _BATCH // levels)
        for start in range(0, len(columns), step):
            some = columns[start : start + step]
            raw = self._booster.predict(self._examples(some), raw_score=True, num_threads=threads)
            of_levels = np.asarray(raw, dtype=np.float64).reshape(len(some), levels)
            result[start : start + step] = of_levels[:, self._level_of] + self.base
        return result

    def log_probabilities(self, numbers: Floats, codes: Integers, *, threads: int = 1) -> Floats:
        """log P(y = k), (n, K), without subtracting one probability from another.

        Parameters
        ----------
        numbers : array, shape (n, p)
        codes : array, shape (n, q)
        threads : int
        """
        logits = self.logits(numbers, codes, threads=threads)
        above, below = _log_sigmoid(logits), _log_sigmoid(-logits)
        logs = np.empty((len(logits), self.num_classes))
        logs[:, 0], logs[:, -1] = below[:, 0], above[:, -1]
        # s(a) - s(b) = s(a) s(-b) (1 - exp(b - a))
        drop = logits[:, :-1] - logits[:, 1:]
        with np.errstate(divide="ignore"):  # where two logits are equal
            logs[:, 1:-1] = above[:, :-1] + below[:, 1:] + np.log(-np.expm1(-drop))
        return np.maximum(logs, _LOWEST)

    def contributions(
        self, numbers: Floats, codes: Integers, *, threads: int = 1
    ) -> tuple[Floats, Floats]:
        """What each logit starts from, (n, K-1), and what each column adds, (n, p + q, K-1).

        They add up to :meth:`logits`. These are the exact Shapley values of the trees along their
        paths (Lundberg and others 2018); what the threshold itself adds is part of the start.

        Parameters
        ----------
        numbers : array, shape (n, p)
        codes : array, shape (n, q)
        threads : int
        """
        self._require_columns(numbers, codes)
        columns = side_by_side(numbers, codes)
        levels, width = len(self._levels), columns.shape[1]
        start = np.empty((len(columns), len(self.base)))
        added = np.empty((len(columns), width, len(self.base)))
        step = max(1, _BATCH // levels)
        for first in range(0, len(columns), step):
            some = slice(first, first + step)
            raw = self._booster.predict(
                self._examples(columns[some]), pred_contrib=True, num_threads=threads
            )
            parts = np.asarray(raw, dtype=np.float64).reshape(-1, levels, width + 2)
            if not np.isfinite(parts).all():  # counts of rows that were written by hand
                raise ValueError(
                    "the trees do not say how many rows their leaves hold; the file is damaged: "
                    "fit and save the model again"
                )
            start[some] = parts[:, self._level_of, width:].sum(axis=2) + self.base
            added[some] = parts[:, self._level_of, :width].transpose(0, 2, 1)
        return start, added

    def _examples(self, columns: Floats) -> Floats:
        """Rows beside each level of the threshold, (n levels, columns + 1)."""
        examples = np.empty((len(columns), len(self._levels), columns.shape[1] + 1))
        examples[:, :, :-1] = columns[:, None]
        examples[:, :, -1] = self._levels
        return examples.reshape(-1, examples.shape[-1])

    def read(self) -> list[Tree]:
        """The trees themselves."""
        return check_model_text(self.text, self.num_numbers, self.num_codes).trees

    def describe(self) -> dict[str, Any]:
        """Everything that :meth:`rebuild` needs, as what JSON can hold."""
        return {
            "trees": self.text,
            "base": self.base.tolist(),
            "num_numbers": self.num_numbers,
            "num_codes": self.num_codes,
            "out_of_time": self.out_of_time,
        }

    @classmethod
    def rebuild(cls, description: Mapping[str, Any]) -> "OrdinalTrees":
        """The trees of a description; a ValueError where it cannot be one.

        Examples
        --------
        >>> rows = TreeRows(np.eye(4), np.zeros((4, 0), dtype=np.int64), np.arange(4) % 2)
        >>> trees = fit_trees(rows, 2)
        >>> OrdinalTrees.rebuild(trees.describe()).num_classes
        2
        """
        kinds = {
            "trees": str, "base": list, "num_numbers": int, "num_codes": int, "out_of_time": bool,
        }  # fmt: skip
        if not isinstance(description, Mapping) or set(description) != set(kinds):
            raise ValueError(
                f"trees are described by {', '.join(kinds)}; the file is damaged: fit and save "
                f"the model again"
            )
        base = description["base"]
        sound = all(type(description[name]) is kind for name, kind in kinds.items())
        if not sound or not all(type(value) in (int, float) for value in base):
            raise ValueError(
                "the description of trees holds values of the wrong kinds; the file is damaged: "
                "fit and save the model again"
            )
        try:
            numbers = np.array(base, dtype=np.float64)
        except OverflowError as error:
            raise ValueError("the base of trees must be finite; the file is damaged") from error
        return cls(
            description["trees"],
            numbers,
            description["num_numbers"],
            description["num_codes"],
            out_of_time=description["out_of_time"],
        )

    def _require_columns(self, numbers: Floats, codes: Integers) -> None:
        widths = numbers.shape[1], codes.shape[1]
        if widths != (self.num_numbers, self.num_codes) or len(numbers) != len(codes):
            raise ValueError(
                f"the trees were fitted to {self.num_numbers} columns of numbers and "
                f"{self.num_codes} of categories; got {widths[0]} ({len(numbers)} rows) and "
                f"{widths[1]} ({len(codes)} rows)"
            )


# ---- growing -------------------------------------------------------------------------------------


class Prepared(NamedTuple):
    """A data set of LightGBM, where trees start, and, to score it, what its examples are."""

    data: lightgbm.Dataset
    num_examples: int
    num_rows: int
    base: Floats
    label: NDArray[np.bool_] | None = None
    weight: Floats | None = None


@dataclass
class Grower:
    """Grows trees on examples that were prepared, within a time."""

    num_classes: int
    settings: TreeSettings
    seed: int
    threads: int
    started: float
    time_limit: float | None
    on_round: OnRound | None
    out_of_time: bool = False
    seconds_a_round: float = 0.0

    def prepared(
        self, rows: TreeRows, generator: np.random.Generator, *, like: Prepared | None = None
    ) -> Prepared:
        """The examples of some rows, binned as those of `like` are."""
        counts = np.bincount(rows.ranks, rows.weight, minlength=self.num_classes)
        base = base_logits(counts, len(rows.ranks)) if like is None else like.base
        examples = threshold_pairs(
            rows.ranks, self.num_classes, self.settings.most_examples, generator
        )
        label = rows.ranks[examples.row] > examples.threshold
        weight = examples.weight
        if rows.weight is not None:  # only its ratios matter
            weight = weight * (rows.weight / rows.weight.mean())[examples.row]
        columns = side_by_side(rows.numbers, rows.codes)
        num_numbers = rows.numbers.shape[1]
        categories = list(range(num_numbers, columns.shape[1]))
        widths = num_numbers, rows.codes.shape[1]
        parameters = self.parameters(len(rows.ranks), *widths, len(examples.row))
        reference = self.bins(columns, widths[0], parameters) if like is None else like.data
        data = lightgbm.Dataset(
            _ExampleSequence(columns, examples),
            label=label.astype(np.float32),
            weight=None if (weight == 1).all() else weight,
            init_score=base[examples.threshold],
            reference=reference,
            categorical_feature=categories,
            params=parameters,
        )
        return Prepared(data, len(label), len(rows.ranks), base, label, weight)

    def bins(
        self, columns: Floats, num_numbers: int, parameters: Mapping[str, Any]
    ) -> lightgbm.Dataset:
        """A data set whose bins are those of columns (n, p + q).

        Bins come from rows as they are, with each threshold beside some of them, so that no more
        than one batch of examples is ever held as numbers.
        """
        copies = math.ceil((self.num_classes - 1) / len(columns))
        place = np.arange(copies * len(columns))
        binned = np.column_stack([columns[place % len(columns)], place % (self.num_classes - 1)])
        categories = list(range(num_numbers, columns.shape[1]))
        return lightgbm.Dataset(
            binned, categorical_feature=categories, params=dict(parameters)
        ).construct()

    def choose_threads(self, trained: Prepared) -> None:
        """Use one thread instead of several where it is quicker, as on a machine that is busy.

        Threads that wait for each other may be ten times slower than one, and the trees are the
        same. A few of them tell.
        """
        if self.threads == 1 or trained.num_examples < _WORTH_A_TRIAL:
            self.threads = 1
            return
        seconds: dict[int, float] = {}
        for threads in (1, self.threads):
            booster = self._booster(trained, threads)
            for _ in range(_TRIAL_ROUNDS):
                begun = time.monotonic()
                booster.update()
                taken = time.monotonic() - begun
                seconds[threads] = min(taken, seconds.get(threads, math.inf))
        self.threads = min(seconds, key=lambda threads: seconds[threads])

    def parameters(
        self, num_rows: int, num_numbers: int, num_codes: int, num_examples: int
    ) -> dict[str, Any]:
        """Those of LightGBM, for so many rows, columns and examples."""
        settings = self.settings
        if settings.monotone and len(settings.monotone) != num_numbers:
            raise ValueError(
                f"monotone needs one of -1, 0 and 1 for each of the {num_numbers} columns of "
                f"numbers; got {len(settings.monotone)} of them"
            )
        monotone = list(settings.monotone) or [0] * num_numbers
        smallest = max(1, min(settings.rows_in_leaf, num_rows // 8))
        return {
            "objective": "binary",
            "metric": "None",
            "learning_rate": settings.learning_rate,
            "num_leaves": settings.leaves,
            "min_data_in_leaf": max(1, round(smallest * num_examples / num_rows)),
            "lambda_l2": settings.l2,
            "feature_fraction": settings.column_share if num_numbers + num_codes > 3 else 1.0,
            "monotone_constraints": [*monotone, *[0] * num_codes, -1],
            "monotone_constraints_method": "basic",
            "boost_from_average": False,
            "min_data_in_bin": 1,
            "feature_pre_filter": False,
            "seed": self.seed,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": self.threads,
            "verbose": -1,
        }

    def _booster(self, trained: Prepared, threads: int) -> lightgbm.Booster:
        parameters = {**(trained.data.params or {}), "num_threads": threads}
        return lightgbm.Booster(params=parameters, train_set=trained.data)

    def grow(
        self, trained: Prepared, rounds: int, held: Prepared | None = None
    ) -> tuple[lightgbm.Booster, int]:
        """Trees, and how many of them are best for the held-out rows, all without such rows."""
        booster = self._booster(trained, self.threads)
        if held is not None:
            booster.add_valid(held.data, "held")
        started = time.monotonic()
        best, best_score, grown, barren = 1, math.inf, 0, 0
        while grown < rounds and barren < _MOST_BARREN:
            # Where none of the columns that were drawn can be split, the next draw may do.
            barren = barren + 1 if booster.update() else 0
            if barren:
                continue
            grown = booster.num_trees()
            score = math.nan if held is None else _score(booster, held)
            if score < best_score:
                best, best_score = grown, score
            wanted = self.on_round is None or self.on_round(grown, score) is not True
            now = time.monotonic()
            self.seconds_a_round = (now - started) / grown
            if self.time_limit is not None and now - self.started > self.time_limit:
                self.out_of_time = True
            impatient = held is not None and grown - best >= self.settings.patience
            if impatient or self.out_of_time or not wanted:
                break
        return booster, grown if held is None else best

    def has_time_for(self, rounds: int) -> bool:
        """Whether as many rounds as that would end within the limit."""
        if self.time_limit is None:
            return True
        needed = 1.3 * rounds * self.seconds_a_round
        enough = time.monotonic() - self.started + needed < self.time_limit
        self.out_of_time |= not enough
        return enough

    def finished(
        self, widths: tuple[int, int], booster: lightgbm.Booster, base: Floats, rounds: int
    ) -> OrdinalTrees:
        """What is kept of a booster, of so many columns of numbers and of categories."""
        text = without_parameters(booster.model_to_string(num_iteration=rounds))
        return OrdinalTrees(text, base, *widths, out_of_time=self.out_of_time)


class _ExampleSequence(lightgbm.Sequence):
    """The examples as LightGBM reads them, a batch at a time."""

    batch_size = _BATCH

    def __init__(self, columns: Floats, examples: ThresholdPairs) -> None:
        self._columns, self._examples = columns, examples

    def __len__(self) -> int:
        return len(self._examples.row)

    def __getitem__(self, places: Any) -> Floats:
        rows, thresholds = self._examples.row[places], self._examples.threshold[places]
        return np.column_stack([self._columns[rows], thresholds])


def _score(booster: lightgbm.Booster, held: Prepared) -> float:
    """The ranked probability score of held-out rows."""

    def score(predicted: Any, _: lightgbm.Dataset) -> tuple[str, float, bool]:
        assert held.label is not None
        squares = held.weight * np.square(predicted - held.label)
        return "ranked probability score", float(squares.sum()) / held.num_rows, False

    return float(booster.eval_valid(score)[0][2])


# ---- rows ----------------------------------------------------------------------------------------


def _counting(rows: TreeRows, num_classes: int) -> TreeRows:
    """The rows with a weight above 0, in the types that are counted on."""
    ranks = np.asarray(rows.ranks, dtype=np.int64)
    if num_classes < 2 or (len(ranks) and not 0 <= ranks.min() <= ranks.max() < num_classes):
        raise ValueError(
            f"ranks must be 0..K-1 for K = {num_classes} classes, at least 2; got {ranks.min()} "
            f"to {ranks.max()}"
        )
    rows = rows._replace(
        numbers=np.asarray(rows.numbers, dtype=np.float64),
        codes=np.asarray(rows.codes, dtype=np.int64),
        ranks=ranks,
    )
    if rows.weight is None:
        return rows
    weight = np.asarray(rows.weight, dtype=np.float64)
    counts = weight > 0
    return TreeRows(rows.numbers[counts], rows.codes[counts], ranks[counts], weight[counts])


def _together(first: TreeRows, second: TreeRows) -> TreeRows:
    """The rows of both, one after the other."""
    weight = None
    if first.weight is not None or second.weight is not None:
        weight = np.concatenate(
            [
                np.ones(len(rows.ranks)) if rows.weight is None else rows.weight
                for rows in (first, second)
            ]
        )
    return TreeRows(
        np.concatenate([first.numbers, second.numbers]),
        np.concatenate([first.codes, second.codes]),
        np.concatenate([first.ranks, second.ranks]),
        weight,
    )


def _widths(rows: TreeRows) -> tuple[int, int]:
    """How many columns of numbers and of categories rows have."""
    return rows.numbers.shape[1], rows.codes.shape[1]


def side_by_side(numbers: Floats, codes: Integers) -> Floats:
    """Numbers and then codes, (n, p + q)."""
    return np.hstack([numbers, codes]).astype(np.float64, copy=False)


def base_logits(weights: NDArray[Any], num_rows: int) -> Floats:
    """The logit of the share above each threshold, (K-1,), falling, of classes that weigh (K,)."""
    counts = weights.astype(np.float64)
    counts *= num_rows / counts.sum()
    counts += _SMOOTHING / len(counts)
    above = counts[::-1].cumsum()[::-1][1:]
    return np.asarray(np.log(above / counts.cumsum()[:-1]))


def _shares(content: TreeText) -> Floats:
    gains = content.gains[:-1]
    total = gains.sum()
    return gains / total if total > 0 else gains


def _log_sigmoid(logits: Floats) -> Floats:
    return np.minimum(logits, 0) - np.log1p(np.exp(-np.abs(logits)))
