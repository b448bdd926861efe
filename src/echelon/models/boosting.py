"""The model that is gradient-boosted trees, grown on all thresholds at once."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from echelon.curve import RankCurve
from echelon.data.calendar import PARTS
from echelon.data.labels import Labels
from echelon.data.rows import Rows
from echelon.data.schema import RawTable, TableSchema
from echelon.data.survey import Survey
from echelon.evaluation.explanation import OwnContributions
from echelon.models.base import CurveClassifier
from echelon.models.document import Described
from echelon.models.features import require_table
from echelon.models.graph import Graph
from echelon.models.predicting import Decision
from echelon.models.streamed_trees import fit_streamed_trees, stream_bytes
from echelon.models.tree_graph import add_log_probabilities, add_trees
from echelon.models.trees import OnRound, OrdinalTrees, TreeRows, TreeSettings, fit_trees
from echelon.spaces import Between, Space

_CHUNK = 65_536  # rows whose curves are computed at once
_AGAIN = 1.2  # times what trees took on most of the rows, that they may take on all of them


class OrdinalBoosting(CurveClassifier):
    """Ordinal regression with gradient-boosted trees, for tables.

    One ensemble learns P(y > k) for all thresholds k at once and may never rise with k, so that no
    curve contradicts itself. Missing cells and categories are taken as they are.

    Parameters
    ----------
    rounds : int, optional
        The number of trees; where rows are held out, the most there can be. Without it up to 1000,
        of which the held-out rows choose, or 100 without such rows.
    learning_rate : float
        The share of each tree that is added.
    leaves : int
        The most leaves of a tree.
    monotone : mapping from column to 1 or -1, optional
        Columns with which the rank may never fall, or never rise. Of a date that holds for its
        days and years; what its month and weekday do comes on top.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings; any other label then raises.
    decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
        How a distribution becomes a label; see :class:`echelon.OrdinalClassifier`.
    class_weight : mapping from label to weight, or "balanced", optional
        What the rows of each class count for; "balanced" lets every class count alike.
    validation_fraction : float
        Share of the rows that are held out to choose the number of trees, which are then grown on
        all rows; 0 for none.
    random_state : int, RandomState or None
        The seed of everything random in the fit; None draws another one every time.
    time_limit : float, optional
        Seconds after which no more trees are grown; where that is before all rows were learnt
        from, the held-out rows are left out.
    threads : int, optional
        The most threads that the fit uses, which changes nothing else; as many as torch has
        without it.
    settings : mapping, optional
        Further fields of :class:`echelon.models.trees.TreeSettings`.
    verbose : int
        Whether a fit shows its progress; this model has none to show.

    Attributes
    ----------
    trees_ : echelon.models.trees.OrdinalTrees
        The trees, which give the logit of P(y > k) from a row and the threshold k.
    num_trees_ : int
        How many trees there are.
    seconds_ : float
        What growing them took on the rows that were not held out.
    feature_importances_ : array, shape (columns,)
        The share of each column in what all splits have gained.

    Examples
    --------
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(400, num_classes=4)
    >>> model = OrdinalBoosting(random_state=0).fit(data.features, data.ranks)
    >>> model.predict_proba(data.features[:2]).shape
    (2, 4)
    """

    kind: ClassVar[str] = "boosting"
    of_the_machine: ClassVar[tuple[str, ...]] = ("random_state", "threads", "time_limit", "verbose")
    nested = ("settings",)
    space: ClassVar[Space] = {
        "learning_rate": Between(0.01, 0.2, log=True),
        "leaves": Between(4, 63, log=True, whole=True),
        "settings.rows_in_leaf": Between(5, 200, log=True, whole=True),
        "settings.l2": Between(0.001, 100, log=True),
        "settings.column_share": Between(0.3, 1.0),
    }

    def __init__(
        self,
        *,
        rounds: int | None = None,
        learning_rate: float = 0.1,
        leaves: int = 15,
        monotone: Mapping[str, int] | None = None,
        classes: Sequence[Any] | None = None,
        decision: Decision = None,
        class_weight: Mapping[Any, float] | str | None = None,
        validation_fraction: float = 0.15,
        random_state: Any = None,
        time_limit: float | None = None,
        threads: int | None = None,
        settings: Mapping[str, Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.rounds = rounds
        self.learning_rate = learning_rate
        self.leaves = leaves
        self.monotone = monotone
        self.classes = classes
        self.decision = decision
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.time_limit = time_limit
        self.threads = threads
        self.settings = settings
        self.verbose = verbose

    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Grow trees; the validation rows choose how many."""
        require_table(rows, self)
        settings = replace(self._settings(rows.schema), refit=0.0)
        history, note = _noted()
        begun = time.monotonic()
        self.trees_ = fit_trees(
            _tree_rows(rows),
            labels.num_classes,
            validation=None if validation is None else _tree_rows(validation),
            settings=settings,
            seed=seed,
            threads=self._threads(),
            time_limit=self.time_limit,
            on_round=note,
        )
        self.seconds_ = time.monotonic() - begun
        self.num_trees_, self.history_ = self.trees_.num_trees, history

    def fit_stream(self, known: Survey, seed: int) -> None:
        """Grow trees on rows that are read once, and of which a byte a value stays."""
        history, note = _noted()
        begun = time.monotonic()
        self.trees_ = fit_streamed_trees(
            known,
            settings=replace(self._settings(known.stream.schema), refit=0.0),
            seed=seed,
            threads=self._threads(),
            time_limit=self.time_limit,
            on_round=note,
        )
        self.seconds_ = time.monotonic() - begun
        self.num_trees_, self.history_ = self.trees_.num_trees, history

    def stream_bytes(self, known: Survey) -> int:
        """The examples as bins, with what LightGBM computes of each."""
        return stream_bytes(known)

    def fit_again(self, rows: Rows, labels: Labels, seed: int) -> None:
        """Grow as many trees on all rows as the held-out rows chose."""
        settings = self._settings(rows.schema)
        needed = (1 + _AGAIN) * self.seconds_
        is_short = self.time_limit is not None and needed > self.time_limit
        if not settings.refit or self.trees_.out_of_time or is_short or not self.num_trees_:
            return
        fixed = replace(settings, rounds=max(1, round(settings.refit * self.num_trees_)))
        self.trees_ = fit_trees(
            _tree_rows(rows), labels.num_classes, settings=fixed, seed=seed, threads=self._threads()
        )
        self.num_trees_ = self.trees_.num_trees

    def _threads(self) -> int:
        return torch.get_num_threads() if self.threads is None else self.threads

    def _settings(self, schema: TableSchema) -> TreeSettings:
        known = [field.name for field in fields(TreeSettings)]
        given = dict(self.settings or {})
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise ValueError(f"settings have no {unknown[0]!r}; they may have: {', '.join(known)}")
        return TreeSettings(
            **{
                "rounds": self.rounds,
                "learning_rate": self.learning_rate,
                "leaves": self.leaves,
                "monotone": self._signs(schema),
                **given,
            }
        )

    def _signs(self, schema: TableSchema) -> tuple[int, ...]:
        if not self.monotone:
            return ()
        measured = [column.name for column in schema.measured]
        for name, sign in self.monotone.items():
            if name not in measured:
                raise ValueError(
                    f"monotone names {name!r}, which is no column of numbers; these are: "
                    f"{', '.join(measured)}"
                )
            if sign not in (-1, 0, 1):
                raise ValueError(f"monotone must be 1, -1 or 0 for {name!r}; got {sign!r}")
        signs = [int(self.monotone.get(name, 0)) for name in measured]
        for date in schema.calendar:
            signs += [int(self.monotone.get(date.name, 0)) * (part == "year") for part in PARTS]
        return tuple(signs)

    def curves_of_rows(self, table: RawTable) -> Iterator[RankCurve]:
        """The curves of rows by the trees."""
        for start in range(0, max(len(table), 1), _CHUNK):
            chunk = table.rows(slice(start, start + _CHUNK))
            logs = self.trees_.log_probabilities(
                chunk.numbers.astype(np.float64), chunk.codes, threads=self._threads()
            )
            yield RankCurve(torch.from_numpy(logs))

    def contributions_of_rows(self, table: RawTable) -> OwnContributions:
        """What each column adds to the log-odds of every P(y > k), by the paths in the trees."""
        start, added = self.trees_.contributions(
            table.numbers.astype(np.float64), table.codes, threads=self._threads()
        )
        names = tuple(column.name for column in self.schema_.columns)
        by_column = np.zeros((len(added), len(names), added.shape[2]))
        for place, owner in enumerate(self._owners()):
            by_column[:, names.index(owner)] += added[:, place]
        return OwnContributions("the log-odds of P(y > k)", names, start, by_column)

    def _owners(self) -> list[str]:
        """The column that each of what the trees read comes from: of a date's year, the date."""
        return [*self.schema_.numeric_owners, *(column.name for column in self.schema_.categorical)]

    def add_to_graph(self, graph: Graph) -> str:
        """The trees as one operator, and the curve of their logits."""
        trees = self.trees_
        sizes = [len(column.categories) for column in self.schema_.categorical]
        logits = add_trees(graph, trees.read(), trees.base, sizes)
        return add_log_probabilities(graph, logits, trees.num_classes)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The share of each column, in their order, in what all splits have gained."""
        check_is_fitted(self, "labels_")
        names = [column.name for column in self.schema_.columns]
        importances = np.zeros(len(names))
        for share, owner in zip(self.trees_.importance, self._owners(), strict=True):
            importances[names.index(owner)] += share
        return importances

    def outcome(self) -> dict[str, Any]:
        """The number of trees."""
        return {"trees": self.num_trees_}

    def describe_model(self) -> Described:
        """The trees in LightGBM's own text."""
        return Described({"trees": self.trees_.describe(), "history": self.history_}, {})

    def rebuild_model(self, described: Described) -> None:
        """The trees that a file describes, which is not trusted."""
        trees = OrdinalTrees.rebuild(described.document["trees"])
        columns = len(self.schema_.numeric), len(self.schema_.categorical)
        if (trees.num_numbers, trees.num_codes) != columns or described.tensors:
            raise ValueError("its trees do not fit its columns")
        if trees.num_classes != self.labels_.num_classes:
            raise ValueError("its trees do not fit its classes")
        self.trees_, self.num_trees_ = trees, trees.num_trees


def _noted() -> tuple[list[dict[str, float]], OnRound]:
    """A history, and what adds the score of a round to it."""
    history: list[dict[str, float]] = []

    def note(number: int, score: float) -> None:
        if score == score:
            history.append({"round": number, "ranked_probability_score": score})

    return history, note


def _tree_rows(rows: Rows) -> TreeRows:
    table = rows.table
    return TreeRows(table.numbers.astype(np.float64), table.codes, rows.ranks, rows.weight)
