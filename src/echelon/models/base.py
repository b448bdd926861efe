"""What all fitted models share: labels, columns, weights, decisions, calibration, intervals, files.

A model knows how to fit rows and how to give curves for rows, and nothing else. What a user's
table and labels mean, which rows are held out, what becomes of a curve: all of that is written
here, once, on the curve. Nothing outside a model's own file asks which kind of model it has.
"""

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from echelon.data.columns import gathered_remarks
from echelon.data.kinds.base import CELL_KINDS, Encoding
from echelon.data.labels import Labels
from echelon.data.rows import Rows, class_weights, hold_validation, row_weights, without_broken
from echelon.data.schema import RawTable, TableSchema
from echelon.data.source import Source
from echelon.data.stream import RowStream
from echelon.data.summary import summarise_columns
from echelon.evaluation.arguments import as_weight
from echelon.models.document import Described, write_model
from echelon.models.drifting import Drift, DriftCounts, reference_counts
from echelon.models.graph import Graph
from echelon.models.predicting import (
    CurvePredictor,
    Unseen,
    check_decision,
    require_same_length,
)
from echelon.models.streaming import fit_source
from echelon.models.table import MODELS
from echelon.spaces import Space

OnStep = Callable[[int, float], bool | None]

if TYPE_CHECKING:
    from echelon.data.survey import Survey


class CurveClassifier(CurvePredictor, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator whose model gives a curve for every row.

    A subclass has the parameters `classes`, `decision`, `class_weight`, `validation_fraction`,
    `random_state` and `verbose`, whatever else it needs, and these methods:

    - :meth:`fit_rows` fits the training rows;
    - :meth:`curves_of_rows` gives the curves of rows that were read by the schema;
    - :meth:`describe_model` and :meth:`rebuild_model` turn what was fitted into data and back;
    - :meth:`add_to_graph` adds what leads to its log-probabilities to an ONNX graph.

    Attributes
    ----------
    classes_ : array, shape (K,)
        The labels in rank order.
    cutpoints_ : array, shape (K-1,), or None
        Where the decision "kappa" cuts the expected rank.
    kappa_ : TunedKappa or None
        The kappa that these cut-points have on rows they were not tuned on, with its interval, of
        a model that was fitted with the decision "kappa".
    calibration_ : CalibrationMap or None
        What mends the probabilities, after :meth:`calibrate`.
    history_ : list of dict
        Scores of each step of a fit that has steps.
    num_rows_ : int or None
        How many rows it was fitted on, validation rows among them; None where a file does not say.
    columns_ : list of dict
        A summary of each training column: kind, missing share, quantiles, frequent categories.
    skipped_ : dict from row to reason
        The training rows whose images could not be read, and why.
    fitted_parameters_ : dict
        The parameters that the model was fitted with. They, and not those that were set since, are
        saved with it; only the decision can be changed after fitting.
    scores_ : dict from str to float, or None
        Scores on rows that the fit did not see: accuracy, MAE and RPS of the validation rows.
    reference_ : dict from str to list of int, or None
        What :meth:`drift` compares with: how many training rows had each class, and of how many
        rows that the fit did not see each was predicted, before any calibration.
    about_ : dict from str to str
        Where the model comes from, as whoever fitted it says: its data and its target.
    n_features_in_, feature_names_in_
        How many columns there are and what they are called, as in scikit-learn.
    """

    kind: ClassVar[str]  # its row in MODELS, and what a file names it
    # Parameters that belong to where a model was fitted, not to what it is; they are not saved. A
    # dot goes into one that is a mapping.
    of_the_machine: ClassVar[tuple[str, ...]] = (
        "checkpoint_dir", "device", "random_state", "time_limit", "verbose",
    )  # fmt: skip
    # Parameters that are mappings: the command line and grid files go into them with a dot.
    nested: ClassVar[tuple[str, ...]] = ()
    # What of its parameters is worth searching, by name; a dot goes into one that is a mapping.
    space: ClassVar[Space] = {}
    # Called with the number of each step of a fit that has comparable steps, as epochs are, and the
    # loss of the validation rows after it; True ends the fit with the best step so far. It belongs
    # to whoever watches a fit, and is neither a parameter nor saved.
    on_step: OnStep | None = None
    classes: Any
    class_weight: Any
    validation_fraction: float
    random_state: Any
    verbose: int
    fitted_parameters_: dict[str, Any]
    skipped_: dict[int, str]

    # ---- what a model must say ---------------------------------------------------------------

    @abstractmethod
    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Fit training rows; `validation` may choose among what was tried, and is None without."""

    def describe_model(self) -> Described:
        """What was fitted, as data that :meth:`rebuild_model` takes."""
        raise ValueError(f"{type(self).__name__} cannot be saved")

    def rebuild_model(self, described: Described) -> None:
        """Become what was described; nothing of it is trusted."""
        raise ValueError(f"{type(self).__name__} cannot be loaded")

    def add_to_graph(self, graph: Graph) -> str:
        """Add nodes from the columns of rows to log P(y = k), (rows, K), and give its name."""
        raise ValueError(f"{type(self).__name__} has no ONNX graph")

    @property
    def encodings(self) -> Mapping[str, Encoding]:
        """How the cells of other kinds than the table's become what a graph takes, by kind."""
        return {}

    def fit_again(self, rows: Rows, labels: Labels, seed: int) -> None:
        """Fit anew on all rows with what the held-out rows chose: here, nothing but cut-points."""
        self.fit_rows(rows, None, labels, seed)

    def fit_stream(self, known: "Survey", seed: int) -> None:
        """Fit the training rows of a surveyed source; of models whose row says that they stream."""
        raise NotImplementedError

    def cannot_stream(self) -> str | None:
        """Why a model that streams does not with its present parameters; None where it does."""
        return None

    def stream_bytes(self, known: "Survey") -> int:
        """What a fit of a source keeps in memory, beside what reading takes."""
        return 0

    def read_schema(self, X: Any) -> TableSchema:  # noqa: N803
        """What the columns of training rows are."""
        return TableSchema.of(X)

    def on_broken(self) -> Mapping[str, Any]:
        """What a fit does about cells that cannot be read, by kind; unless told, it raises."""
        return {}

    def search_space(self, X: Any, num_rows: int | None = None) -> Space:  # noqa: N803
        """What is worth searching for rows such as these, or for so many of them."""
        return self.space

    def outcome(self) -> dict[str, Any]:
        """What a run writes down of a fit beside its scores: values of JSON by name."""
        return {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    # ---- fitting -----------------------------------------------------------------------------

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
        X_val: Any = None,  # noqa: N803
        y_val: Any = None,
    ) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns), or Source
            Numbers, booleans, dates, strings and categories; missing values are fine. What a cell
            means is told in :mod:`echelon.data.cells`. A source that :func:`echelon.data.scan`
            gives has its labels, weights and groups in it, and is all that is passed.
        y : array-like, shape (n,)
            Labels; their order is that of `classes`, or that of numbers.
        sample_weight : array-like, shape (n,), optional
            What each row counts for; without it, each counts alike.
        groups : array-like, shape (n,), optional
            Rows of one group stay on one side of the division into training and validation rows.
        X_val, y_val : optional
            Validation rows of your own.
        """
        if isinstance(X, (Source, RowStream)):
            given = {"y": y, "sample_weight": sample_weight, "groups": groups, "X_val": X_val}
            return self._fit_source(X, given)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        if y_val is not None and X_val is None:
            raise ValueError("y_val holds the labels of X_val, which is None; pass both or neither")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        schema = self.read_schema(X)
        with gathered_remarks():  # the schema has said what became of odd cells
            table = schema.read(X)
        labels = Labels.of(y, self.classes)
        ranks = labels.to_ranks(y)
        require_same_length(len(table), len(ranks), "y")
        check_decision(self.decision, labels.num_classes)
        own_weight = None
        if sample_weight is not None:
            own_weight = as_weight(sample_weight, length=len(ranks))
        per_class = class_weights(self.class_weight, own_weight, ranks, labels)
        whole = Rows(
            schema,
            table,
            ranks,
            row_weights(own_weight, per_class, ranks),
            None if groups is None else np.asarray(groups),
        )
        whole, skipped = without_broken(whole, self.on_broken())
        held = None
        if X_val is not None:
            held = self._given_validation(schema, labels, X_val, y_val, per_class)
            if whole.weight is not None and held.weight is None:
                held = replace(held, weight=np.ones(len(held)))
        # Beside this model, so that a fit that fails, or is interrupted, leaves it as it was.
        fitted = copy.copy(self).fit_read(whole, held, labels, seed)
        fitted.skipped_ = skipped
        self.__dict__ = fitted.__dict__
        return self

    def fit_read(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> Any:
        """Fit rows that were read; some are held out where no validation rows are given.

        This is what :meth:`fit` does after reading, and what a blend does with its members.
        """
        training, held = rows, validation
        if validation is None and self.validation_fraction:
            training, held = hold_validation(rows, self.validation_fraction, seed)
        if training.weight is not None and not training.weight.any():
            raise ValueError("all training rows have a weight of 0: there is nothing to learn from")
        given = self._given_parameters()
        self.history_: list[dict[str, float]] = []
        self.fit_rows(training, held, labels, seed)
        unseen = self.unseen_predictions(held)
        if validation is None and held is not None:
            self.fit_again(rows, labels, seed)
        counts = np.bincount(rows.ranks, minlength=labels.num_classes)
        return self._finish(rows.schema, rows.table, counts, labels, unseen, given)

    def _fit_source(self, source: Source | RowStream, given: Mapping[str, Any]) -> Any:
        """Fit a source, beside this model, as `fit` does."""
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"a source has its labels, weights and groups in columns of its own, so {name} "
                    f"must be left out; name the columns with echelon.data.scan(...)"
                )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.__dict__ = fit_source(copy.copy(self), source, seed).__dict__
        return self

    def fit_streamed(self, known: "Survey", seed: int) -> Any:
        """Fit the rows of a source that was looked at; see :func:`fit_source`."""
        given = self._given_parameters()
        self.history_ = []
        self.fit_stream(known, seed)
        unseen = self.unseen_predictions(known.held)
        stream, counts = known.stream, known.class_counts
        if known.held is not None:
            counts = counts + np.bincount(known.held.ranks, minlength=len(counts))
        return self._finish(stream.schema, known.table, counts, stream.labels, unseen, given)

    def _finish(
        self,
        schema: TableSchema,
        table: RawTable,
        class_counts: NDArray[np.int64],
        labels: Labels,
        unseen: Unseen | None,
        given: dict[str, Any],
    ) -> Any:
        """Take over what all models have after a fit; `table` holds what the columns hold."""
        self.labels_, self.skipped_ = labels, {}
        self.columns_ = summarise_columns(schema, table)
        self.num_rows_: int | None = int(class_counts.sum())
        self.reference_: dict[str, list[int]] | None = reference_counts(
            class_counts, None if unseen is None else unseen.probabilities
        )
        self.scores_ = None if unseen is None else unseen.scores()
        self.about_: dict[str, str] = {}
        self.cutpoints_ = None if unseen is None else unseen.cutpoints()
        self.kappa_ = None if unseen is None else unseen.kappa_for(self.decision)
        self.conformal_ = None
        self.calibration_, self.calibration_summary_ = None, None
        self.fitted_parameters_ = given
        self.take_schema(schema)
        return self

    def unseen_predictions(self, validation: Rows | None) -> Unseen | None:
        """What the model says of rows that its fit did not see; None where there are none."""
        if validation is None:
            return None
        return Unseen(validation.ranks, self.raw_probabilities(validation.table), validation.weight)

    def check_decision(self) -> None:
        """Raise for a decision that this fitted model could not take."""
        check_decision(self.decision, self.labels_.num_classes)

    def _given_parameters(self) -> dict[str, Any]:
        """The parameters as they are now, whatever is set or changed in place afterwards."""
        return {
            name: value
            if hasattr(value, "state_dict")
            else copy.deepcopy(value)  # a network is large
            for name, value in self.get_params(deep=False).items()
        }

    def _given_validation(
        self,
        schema: TableSchema,
        labels: Labels,
        X_val: Any,  # noqa: N803
        y_val: Any,
        class_weight: NDArray[np.float64] | None,
    ) -> Rows:
        """Validation rows that were given, each of the weight of its class."""
        if y_val is None:
            raise ValueError(
                "y_val must hold the labels of X_val, and is None; pass both or neither"
            )
        table, ranks = schema.read(X_val), labels.to_ranks(y_val)
        require_same_length(len(table), len(ranks), "y_val")
        rows = Rows(schema, table, ranks, row_weights(None, class_weight, ranks))
        return without_broken(rows, self.on_broken())[0]

    def take_schema(self, schema: TableSchema) -> None:
        """Take over what the columns are, and what scikit-learn wants to know of them."""
        self.schema_ = schema
        self.classes_ = self.labels_.classes
        self.n_features_in_ = len(schema.columns)
        if schema.named:
            self.feature_names_in_ = np.array([c.name for c in schema.columns], dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    # ---- columns -----------------------------------------------------------------------------

    @property
    def columns_by_kind(self) -> dict[str, str]:
        """The columns that hold more than numbers and categories, of a fitted model."""
        return {
            column.kind: column.name for column in self.schema_.columns if column.kind in CELL_KINDS
        }

    @property
    def text_column(self) -> str | None:
        """The column that holds texts, of a fitted model."""
        return next((column.name for column in self.schema_.of_kind("text")), None)

    @property
    def image_column(self) -> str | None:
        """The column that holds images, of a fitted model."""
        return next((column.name for column in self.schema_.of_kind("image")), None)

    # ---- later rows --------------------------------------------------------------------------

    def drift(self, X: Any, y: Any = None, *, level: float = 0.05) -> Drift:  # noqa: N803
        """Compare later rows with those that the model was fitted on.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows, as for ``fit``.
        y : array-like, shape (n,), optional
            Their labels, where they are known by now.
        level : float
            How often rows of the same distribution raise an alarm, over all comparisons together.

        Returns
        -------
        echelon.models.drifting.Drift
        """
        check_is_fitted(self, "labels_")
        counts = DriftCounts(self)
        counts.add(X, None if y is None else self._ranks(X, y))
        return counts.compared(level)

    # ---- files -------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model to a file that can be opened safely anywhere, with :func:`echelon.load`.

        One safetensors file with everything from the raw columns to the labels in it.

        Parameters
        ----------
        path : str or Path
            The file to write; one that is there is replaced, once the new one is whole.
        """
        check_is_fitted(self, "labels_")
        self.check_decision()
        write_model(self, path)

    def export_onnx(self, path: str | Path) -> None:
        """Write one ONNX graph from raw columns to exceedance, probabilities and label.

        Every column is an input: a vector of doubles or of strings, the token ids of a text (-1
        behind its end), the pixels of an image. The file is checked against the model with
        onnxruntime before it is kept. Needs the extra `onnx`.

        Parameters
        ----------
        path : str or Path
            The file to write; one that is there is replaced, once the new one is whole.
        """
        check_is_fitted(self, "labels_")
        if not MODELS[self.kind].exports:
            known = ", ".join(name for name, row in MODELS.items() if row.exports)
            raise ValueError(
                f"{type(self).__name__} has no ONNX graph; models that have one are: {known}"
            )
        from echelon.models.onnx import export_onnx

        export_onnx(self, path)
