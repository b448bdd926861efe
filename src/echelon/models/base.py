"""What all fitted models share: labels, columns, weights, decisions, calibration, intervals, files.

A model knows how to fit rows and how to give curves for rows, and nothing else. What a user's
table and labels mean, which rows are held out, what becomes of a curve: all of that is written
here, once, on the curve. Nothing outside a model's own file asks which kind of model it has.
"""

import copy
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from echelon.curve import DECISIONS, CalibrationMap, RankCurve
from echelon.data.columns import gathered_remarks
from echelon.data.labels import Labels
from echelon.data.rows import Rows, class_weights, divide, row_weights, without_broken
from echelon.data.summary import summarise_columns
from echelon.data.tables import RawTable, TableSchema
from echelon.evaluation import calibration as calibrating
from echelon.evaluation import conformal
from echelon.evaluation.arguments import as_weight
from echelon.evaluation.conformal import ConformalRows
from echelon.evaluation.cutpoints import fit_cutpoints
from echelon.models.document import Described, write_model
from echelon.models.table import MODELS

Decision = str | ArrayLike | None
OnUndefined = Literal["raise", "missing"]


class CurveClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator whose model gives a curve for every row.

    A subclass has the parameters `classes`, `decision`, `class_weight`, `validation_fraction`,
    `random_state` and `verbose`, whatever else it needs, and these methods:

    - :meth:`fit_rows` fits the training rows;
    - :meth:`curves_of_rows` gives the curves of rows that were read by the schema;
    - :meth:`describe_model` and :meth:`rebuild_model` turn what was fitted into data and back.

    Attributes
    ----------
    classes_ : array, shape (K,)
        The labels in rank order.
    cutpoints_ : array, shape (K-1,), or None
        Where the decision "kappa" cuts the expected rank.
    calibration_ : CalibrationMap or None
        What mends the probabilities, after :meth:`calibrate`.
    history_ : list of dict
        Scores of each step of a fit that has steps.
    num_rows_ : int or None
        How many rows it was fitted on, validation rows among them; None where a file does not say.
    columns_ : list of dict
        A summary of each training column: kind, missing share, quantiles, frequent categories.
    skipped_ : dict from row to reason
    fitted_parameters_ : dict
        The parameters that the model was fitted with. They, and not those that were set since, are
        saved with it; only the decision can be changed after fitting.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    kind: ClassVar[str]  # its row in MODELS, and what a file names it
    # Parameters that belong to where a model was fitted, not to what it is; they are not saved.
    of_the_machine: ClassVar[tuple[str, ...]] = (
        "checkpoint_dir", "device", "random_state", "time_limit", "verbose", "workers",
    )  # fmt: skip
    classes: Any
    decision: Decision
    class_weight: Any
    validation_fraction: float
    random_state: Any
    verbose: int
    labels_: Labels
    schema_: TableSchema
    calibration_: CalibrationMap | None
    cutpoints_: NDArray[np.float64] | None
    conformal_: ConformalRows | None
    calibration_summary_: dict[str, dict[str, float]] | None
    fitted_parameters_: dict[str, Any]

    # ---- what a model must say ---------------------------------------------------------------

    @abstractmethod
    def fit_rows(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> None:
        """Fit training rows; `validation` may choose among what was tried, and is None without."""

    @abstractmethod
    def curves_of_rows(self, table: RawTable) -> Iterator[RankCurve]:
        """The curves of rows, before any calibration, one chunk after the other."""

    def describe_model(self) -> Described:
        """What was fitted, as data that :meth:`rebuild_model` takes."""
        raise ValueError(f"{type(self).__name__} cannot be saved")

    def rebuild_model(self, described: Described) -> None:
        """Become what was described; nothing of it is trusted."""
        raise ValueError(f"{type(self).__name__} cannot be loaded")

    def fit_again(self, rows: Rows, labels: Labels, seed: int) -> None:
        """Fit anew on all rows with what the validation rows chose, where a model does that."""

    def read_schema(self, X: Any) -> TableSchema:  # noqa: N803
        """What the columns of training rows are."""
        return TableSchema.of(X)

    def default_decision(self) -> str:
        """What decides where the parameter `decision` does not."""
        return "median"

    def farthest_column(self, table: RawTable, row: int) -> str | None:
        """The column that may be why a row has no distribution, and what it holds."""
        return None

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
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
        X_val: Any = None,  # noqa: N803
        y_val: Any = None,
    ) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Numbers, booleans, dates, strings and categories; missing values are fine. What a cell
            means is told in :mod:`echelon.data.cells`.
        y : array-like, shape (n,)
        sample_weight : array-like, shape (n,), optional
        groups : array-like, shape (n,), optional
            Rows of one group stay on one side of the division into training and validation rows.
        X_val, y_val : optional
            Validation rows of your own.
        """
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        if y_val is not None and X_val is None:
            raise ValueError("y_val holds the labels of X_val, which is None; pass both or neither")
        given = self._given_parameters()
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
        on_broken: Any = getattr(self, "on_broken", "raise")
        whole, skipped = without_broken(whole, on_broken)
        held = None
        if X_val is not None:
            held = self._given_validation(schema, labels, X_val, y_val, per_class, on_broken)
            if whole.weight is not None and held.weight is None:
                held = replace(held, weight=np.ones(len(held)))
        self.fit_read(whole, held, labels, seed)
        self.skipped_ = skipped
        self.fitted_parameters_ = given
        return self

    def fit_read(self, rows: Rows, validation: Rows | None, labels: Labels, seed: int) -> Any:
        """Fit rows that were read; some are held out where no validation rows are given.

        This is what :meth:`fit` does after reading, and what a blend does with its members.
        """
        training, held = rows, validation
        if validation is None and self.validation_fraction:
            training, held = divide(rows, self.validation_fraction, seed)
        if training.weight is not None and not training.weight.any():
            raise ValueError("all training rows have a weight of 0: there is nothing to learn from")
        given = self._given_parameters()
        self.history_: list[dict[str, float]] = []
        self.fit_rows(training, held, labels, seed)
        cutpoints = self.cutpoints_of(held)
        if validation is None and held is not None:
            self.fit_again(rows, labels, seed)
        self.labels_, self.skipped_ = labels, {}
        self.columns_ = summarise_columns(rows.schema, rows.table)
        self.num_rows_: int | None = len(rows)
        self.cutpoints_, self.conformal_ = cutpoints, None
        self.calibration_, self.calibration_summary_ = None, None
        self.fitted_parameters_ = given
        self.take_schema(rows.schema)
        return self

    def cutpoints_of(self, validation: Rows | None) -> NDArray[np.float64] | None:
        """Where the decision "kappa" cuts, tuned on rows that the fit did not see."""
        if validation is None:
            return None
        curve = RankCurve.concatenate(list(self.curves_of_rows(validation.table)))
        probabilities = curve.probabilities.double().cpu().numpy()
        return tune_cutpoints(validation.ranks, probabilities, validation.weight)

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
        on_broken: Any,
    ) -> Rows:
        """Validation rows that were given, each of the weight of its class."""
        if y_val is None:
            raise ValueError(
                "y_val must hold the labels of X_val, and is None; pass both or neither"
            )
        table, ranks = schema.read(X_val), labels.to_ranks(y_val)
        require_same_length(len(table), len(ranks), "y_val")
        rows = Rows(schema, table, ranks, row_weights(None, class_weight, ranks))
        return without_broken(rows, on_broken)[0]

    def take_schema(self, schema: TableSchema) -> None:
        """Take over what the columns are, and what scikit-learn wants to know of them."""
        self.schema_ = schema
        self.classes_ = self.labels_.classes
        self.n_features_in_ = len(schema.columns)
        if schema.named:
            self.feature_names_in_ = np.array([c.name for c in schema.columns], dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    # ---- predicting --------------------------------------------------------------------------

    def curve(self, X: Any) -> RankCurve:  # noqa: N803
        """The whole distribution over ranks of each row."""
        return RankCurve.concatenate(list(self._curves(X)))

    def _curves(self, X: Any) -> Iterator[RankCurve]:  # noqa: N803
        check_is_fitted(self, "labels_")
        calibration = self.calibration_
        for curve in self._raw_curves(X):
            yield curve if calibration is None else curve.calibrated(calibration)

    def _raw_curves(self, X: Any) -> Iterator[RankCurve]:  # noqa: N803
        return self.curves_of_rows(self.schema_.read(X))

    def predict(
        self,
        X: Any,  # noqa: N803
        decision: Decision = None,
        *,
        on_undefined: OnUndefined = "raise",
    ) -> NDArray[Any]:
        """The label of each row, (n,), by the model's decision or by another one.

        Parameters
        ----------
        X
            Rows, as for ``fit``.
        decision : {"median", "mean", "mode", "kappa"} or array of shape (K, K), optional
            Instead of the model's own.
        on_undefined : {"raise", "missing"}
            What becomes of a row for which the model gives no probabilities but NaN, as it may
            where numbers are too large for it: an error that names the row, or the label None.
        """
        if on_undefined not in ("raise", "missing"):
            raise ValueError(f"on_undefined must be 'raise' or 'missing'; got {on_undefined!r}")
        labels: list[NDArray[Any]] = []
        start = 0
        for curve in self._curves(X):
            if on_undefined == "raise":
                self.refuse_undefined(curve, X, start)
            labels.append(self.label(curve, decision))
            start += len(labels[-1])
        return np.concatenate(labels)

    def refuse_undefined(
        self,
        curve: RankCurve,
        X: Any,  # noqa: N803
        start: int = 0,
        first_row: int = 0,
    ) -> None:
        """Raise where a row has no distribution, and name it and the column that stands out in it.

        Parameters
        ----------
        curve : RankCurve
        X
            Rows, of which those from `start` on belong to the curve.
        start : int
        first_row : int
            What the first of the rows is called.
        """
        undefined = np.flatnonzero(~curve.is_defined.cpu().numpy())
        if not len(undefined):
            return
        row = start + int(undefined[0])
        column = self.farthest_column(self.schema_.read(X), row)
        more = f", and {len(undefined) - 1} others" if len(undefined) > 1 else ""
        raise ValueError(
            f"row {first_row + row} cannot be predicted{more}: the model gives no "
            f"probabilities for it, but NaN"
            + (f"; look at its column {column}" if column else "")
            + ". Leave the cell empty, or let such rows have no label: on_undefined='missing' in "
            "Python, --on-broken skip on the command line"
        )

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """P(y = k) of each row, (n, K), in the order of `classes_`."""
        return self.curve(X).probabilities.double().cpu().numpy()

    def predict_exceedance(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """P(y > k) of each row, (n, K-1), never rising along a row."""
        return self.curve(X).exceedance.double().cpu().numpy()

    def label(self, curve: RankCurve, decision: Decision = None) -> NDArray[Any]:
        """The label that a decision picks from each curve, (n,); None for one that is undefined."""
        ranks = curve.label(self.decision_rule(decision), missing=-1).cpu().numpy()
        labels = self.labels_.from_ranks(ranks.clip(min=0))
        if (ranks < 0).any():
            labels = labels.astype(object)
            labels[ranks < 0] = None
        return labels

    def decision_rule(self, decision: Decision = None) -> str | Tensor:
        """What a decision is for the curve: its name, a matrix of costs, or cut-points.

        Without one it is that of the parameter, or else of the recipe.
        """
        if decision is None:
            decision = self.decision if self.decision is not None else self.default_decision()
        if not isinstance(decision, str):
            return torch.as_tensor(np.asarray(decision, dtype=np.float64))
        if decision != "kappa":
            return decision
        if self.cutpoints_ is None:
            raise ValueError(
                "the decision 'kappa' needs cut-points, which are tuned on validation rows, and "
                "this model was fitted without any; fit one that has some (in Python, with "
                "validation_fraction above 0), or take another decision"
            )
        return torch.from_numpy(self.cutpoints_)

    # ---- calibration -------------------------------------------------------------------------

    def calibrate(
        self,
        X: Any,  # noqa: N803
        y: Any,
        kind: calibrating.Kind = "temperature",
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Mend the probabilities on rows that the model was not fitted on.

        The map becomes part of the model: predictions, saved files and ONNX graphs apply it.
        `calibration_summary_` has the scores before and after. Intervals must be made anew.

        Parameters
        ----------
        X, y
            Rows and labels, as for ``fit``.
        kind : {"temperature", "isotonic"}
            One number for all distributions; or an increasing map for each threshold, which can
            mend more and needs more rows, some thousands.
        sample_weight : array-like, shape (n,), optional
        """
        check_is_fitted(self, "labels_")
        ranks = self._ranks(X, y)
        curve = RankCurve.concatenate(list(self._raw_curves(X)))
        probabilities = curve.probabilities.double().cpu().numpy()
        fit = calibrating.fit_calibration(ranks, probabilities, kind, sample_weight=sample_weight)
        summary = calibrating.calibration_summary(
            ranks, probabilities, kind, sample_weight=sample_weight
        )
        mapped = calibrating.apply_calibration(probabilities, fit)
        # In one step, as others may be predicting with the model.
        self.__dict__.update(
            calibration_=CalibrationMap(
                *(
                    torch.as_tensor(fit._asdict()[name], dtype=torch.float64)
                    for name in CalibrationMap._fields
                )
            ),
            calibration_summary_=summary,
            cutpoints_=tune_cutpoints(ranks, mapped, sample_weight),
            conformal_=None,
        )
        return self

    # ---- intervals ---------------------------------------------------------------------------

    def conformalize(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Prepare :meth:`predict_interval` with rows that were used for nothing else.

        Parameters
        ----------
        X, y
            Rows and labels, as for ``fit``; some hundreds or more, drawn as those to be predicted.
        sample_weight : array-like, shape (n,), optional
            How many rows each stands for, where they were not drawn as those to be predicted.
        """
        check_is_fitted(self, "labels_")
        ranks = self._ranks(X, y)
        weight = np.ones(len(ranks))
        if sample_weight is not None:
            weight = as_weight(sample_weight, length=len(ranks))
        scores = conformal.calibration_scores(ranks, self.predict_proba(X))
        self.conformal_ = ConformalRows(scores, ranks, weight)
        return self

    def predict_interval(
        self,
        X: Any,  # noqa: N803
        coverage: float = 0.9,
        *,
        per_class: bool = False,
    ) -> NDArray[Any]:
        """The lowest and the highest label of each row's interval, (n, 2).

        Of many rows, at least the share `coverage` have their true label within it, if they are
        drawn like those of :meth:`conformalize`.

        Parameters
        ----------
        X
            Rows.
        coverage : float
        per_class : bool
            Hold the coverage within every true class, at the price of wider intervals.
        """
        check_is_fitted(self, "labels_")
        curve = self.curve(X)
        self.refuse_undefined(curve, X)
        probabilities = curve.probabilities.double().cpu().numpy()
        ranks = self.interval_ranks(probabilities, coverage, per_class=per_class)
        ends = [self.labels_.from_ranks(ranks[:, side]) for side in (0, 1)]
        return np.stack(ends, axis=1)

    def interval_ranks(
        self, probabilities: NDArray[np.float64], coverage: float, *, per_class: bool = False
    ) -> NDArray[np.int64]:
        """The intervals of probabilities (n, K) of this model, as ranks (n, 2)."""
        conformal.require_coverage(coverage)
        if self.conformal_ is None:
            raise ValueError(
                "intervals need rows that were used for nothing else: call conformalize(X, y) "
                "first, or fit with `echelon fit --conformal 0.15`"
            )
        scores, ranks, weight = self.conformal_
        num_classes = self.labels_.num_classes
        counts = np.bincount(ranks, minlength=num_classes) if per_class else np.array([len(ranks)])
        needed = conformal.required_rows(coverage)
        if counts.min() < needed:
            warnings.warn(
                f"a coverage of {coverage} needs {needed} calibration rows"
                f"{' of every class' if per_class else ''}; there are {counts.min()}, so intervals "
                f"are as wide as that leaves them",
                stacklevel=3,
            )
        if per_class:
            limits = conformal.class_thresholds(
                scores, ranks, coverage, num_classes, sample_weight=weight
            )
            return conformal.intervals(probabilities, limits)
        limit = conformal.threshold(scores, coverage, sample_weight=weight)
        return conformal.intervals(probabilities, limit)

    def _ranks(self, X: Any, y: Any) -> NDArray[np.int64]:  # noqa: N803
        ranks = self.labels_.to_ranks(y)
        require_same_length(len(X), len(ranks), "y")
        if len(ranks) == 0:
            raise ValueError("there are no rows")
        return ranks

    # ---- columns -----------------------------------------------------------------------------

    @property
    def text_column(self) -> str | None:
        """The column that holds texts, of a fitted model."""
        return next((column.name for column in self.schema_.of_kind("text")), None)

    @property
    def image_column(self) -> str | None:
        """The column that holds images, of a fitted model."""
        return next((column.name for column in self.schema_.of_kind("image")), None)

    # ---- files -------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model to a file that can be opened safely anywhere, with :func:`echelon.load`.

        One safetensors file with everything from the raw columns to the labels in it.
        """
        check_is_fitted(self, "labels_")
        self.check_decision()
        write_model(self, path)

    def export_onnx(self, path: str | Path) -> None:
        """Write one ONNX graph from raw columns to exceedance, probabilities and label.

        Every column is an input: a vector of doubles or of strings, the token ids of a text (-1
        behind its end), the pixels of an image. The file is checked against the model with
        onnxruntime before it is kept. Needs the extra `onnx`.
        """
        check_is_fitted(self, "labels_")
        if not MODELS[self.kind].exports:
            known = ", ".join(name for name, row in MODELS.items() if row.exports)
            raise ValueError(
                f"{type(self).__name__} has no ONNX graph; models that have one are: {known}"
            )
        from echelon.models.onnx import export_onnx

        export_onnx(self, path)


def tune_cutpoints(
    ranks: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Cut-points for the decision ``"kappa"`` from predictions of rows that were held out."""
    num_classes = probabilities.shape[1]
    expected = probabilities @ np.arange(num_classes)
    return fit_cutpoints(ranks, expected, num_classes, smooth=True, sample_weight=sample_weight)


def check_decision(decision: Decision, num_classes: int) -> None:
    """Raise, before a long fit, for a decision that could not be taken after it."""
    if decision is None:
        return
    if isinstance(decision, str):
        known_names = (*DECISIONS, "kappa")
        if decision not in known_names:
            known = ", ".join(map(repr, known_names))
            raise ValueError(
                f"decision must be one of {known}, or a matrix of costs; got {decision!r}"
            )
        return
    costs = torch.as_tensor(np.asarray(decision, dtype=np.float64))
    RankCurve(torch.zeros(1, num_classes)).decide(costs)


def require_same_length(rows: int, labels: int, name: str) -> None:
    """Raise where a table and its labels do not belong together."""
    if rows != labels:
        raise ValueError(
            f"X has {rows} rows and {name} {labels} labels: inconsistent numbers of samples"
        )
