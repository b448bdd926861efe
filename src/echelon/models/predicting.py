"""What a fitted model does with rows: curves, labels, calibration and intervals.

Everything here works on the curve, so it is the same for every model and every kind of input.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from echelon.curve import DECISIONS, CalibrationMap, RankCurve
from echelon.data.labels import Labels
from echelon.data.schema import RawTable, TableSchema
from echelon.evaluation import calibration as calibrating
from echelon.evaluation import conformal, metrics
from echelon.evaluation.arguments import as_weight
from echelon.evaluation.conformal import ConformalRows
from echelon.evaluation.cutpoints import TunedKappa, fit_cutpoints, tuned_kappa

if TYPE_CHECKING:
    from echelon.evaluation.explanation import Explanation, OwnContributions

Decision = str | ArrayLike | None
OnUndefined = Literal["raise", "missing"]


class CurvePredictor:
    """The predicting half of a model: whoever fits gives `curves_of_rows` and what was learnt."""

    decision: Decision
    labels_: Labels
    schema_: TableSchema
    calibration_: CalibrationMap | None
    cutpoints_: NDArray[np.float64] | None
    kappa_: TunedKappa | None = None
    conformal_: ConformalRows | None
    conformal_score_: str = "probability"
    calibration_summary_: dict[str, dict[str, float]] | None

    def curves_of_rows(self, table: RawTable) -> Iterator[RankCurve]:
        """The curves of rows, before any calibration, one chunk after the other."""
        raise NotImplementedError

    def default_decision(self) -> str:
        """What decides where the parameter `decision` does not."""
        return "median"

    def farthest_column(self, table: RawTable, row: int) -> str | None:
        """The column that may be why a row has no distribution, and what it holds."""
        return None

    def contributions_of_rows(self, table: RawTable) -> "OwnContributions | None":
        """Exact contributions on a scale on which this model adds up; None where it has none."""
        return None

    # ---- curves and labels -------------------------------------------------------------------

    def curve(self, X: Any) -> RankCurve:  # noqa: N803
        """The whole distribution over ranks of each row.

        Parameters
        ----------
        X
            Rows, as for ``fit``.
        """
        return RankCurve.concatenate(list(self._curves(X)))

    def curve_of_rows(self, table: RawTable) -> RankCurve:
        """What :meth:`curve` gives, for rows that :attr:`schema_` has read."""
        return RankCurve.concatenate(list(self._curves_of(table)))

    def _curves(self, X: Any) -> Iterator[RankCurve]:  # noqa: N803
        check_is_fitted(self, "labels_")
        yield from self._curves_of(self.schema_.read(X))

    def _curves_of(self, table: RawTable) -> Iterator[RankCurve]:
        calibration = self.calibration_
        for curve in self.curves_of_rows(table):
            yield curve if calibration is None else curve.calibrated(calibration)

    def raw_probabilities(self, table: RawTable) -> NDArray[np.float64]:
        """P(y = k) of rows that were read, (n, K), before any calibration."""
        curve = RankCurve.concatenate(list(self.curves_of_rows(table)))
        return curve.probabilities.double().cpu().numpy()

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
        """P(y = k) of each row, (n, K), in the order of `classes_`.

        Parameters
        ----------
        X
            Rows, as for ``fit``.
        """
        check_is_fitted(self, "labels_")
        table = self.schema_.read(X)
        return _filled(self._curves_of(table), len(table), self.labels_.num_classes)

    def predict_exceedance(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """P(y > k) of each row, (n, K-1), never rising along a row.

        Parameters
        ----------
        X
            Rows, as for ``fit``.
        """
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
        keep: Literal["always", "better"] = "always",
    ) -> Any:
        """Mend the probabilities on rows that the model was not fitted on.

        The map becomes part of the model: predictions, saved files and ONNX graphs apply it.
        `calibration_summary_` has the scores before and after, on rows that did not fit the map.
        Intervals must be made anew.

        Parameters
        ----------
        X, y
            Rows and labels, as for ``fit``.
        kind : {"temperature", "isotonic"}
            One number for all distributions; or an increasing map for each threshold, which can
            mend more and needs more rows, some thousands.
        sample_weight : array-like, shape (n,), optional
            What each row counts for; without it, each counts alike.
        keep : {"always", "better"}
            Keep the map in any case, or only where the scores of rows that it was not fitted on
            became better. A map that is left out leaves `calibration_` None.
        """
        check_is_fitted(self, "labels_")
        if keep not in ("always", "better"):
            raise ValueError(f"keep must be 'always' or 'better'; got {keep!r}")
        ranks = self._ranks(X, y)
        probabilities = self.raw_probabilities(self.schema_.read(X))
        fit = calibrating.fit_calibration(ranks, probabilities, kind, sample_weight=sample_weight)
        trial = calibrating.trial_of_calibration(
            ranks, probabilities, kind, sample_weight=sample_weight
        )
        is_kept = keep == "always" or trial.helps
        if is_kept:
            probabilities = calibrating.apply_calibration(probabilities, fit)
        mapped = Unseen(ranks, probabilities, sample_weight)
        fields = (np.asarray(getattr(fit, name), np.float64) for name in CalibrationMap._fields)
        # In one step, as others may be predicting with the model.
        self.__dict__.update(
            calibration_=CalibrationMap(*map(torch.from_numpy, fields)) if is_kept else None,
            calibration_summary_=trial.summary,
            cutpoints_=mapped.cutpoints(),
            kappa_=mapped.kappa_for(self.decision),
            conformal_=None,
        )
        return self

    # ---- intervals ---------------------------------------------------------------------------

    def conformalize(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        score: str = "probability",
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Prepare :meth:`predict_interval` with rows that were used for nothing else.

        Parameters
        ----------
        X, y
            Rows and labels, as for ``fit``; some hundreds or more, drawn as those to be predicted.
        score : {"probability", "rps", "window"}
            What makes a rank conform: its probability, the ranked probability score that it would
            have, or the mass of the window that reaches it; see
            :func:`echelon.evaluation.conformal.conformity`. All of them keep the coverage.
        sample_weight : array-like, shape (n,), optional
            How many rows each stands for, where they were not drawn as those to be predicted.
        """
        check_is_fitted(self, "labels_")
        conformal.require_score(score)
        ranks = self._ranks(X, y)
        weight = np.ones(len(ranks))
        if sample_weight is not None:
            weight = as_weight(sample_weight, length=len(ranks))
        scores = conformal.calibration_scores(ranks, self.predict_proba(X), score)
        self.conformal_ = ConformalRows(scores, ranks, weight)
        self.conformal_score_ = score
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
            The rows to predict.
        coverage : float
            The share of new rows whose interval shall hold the true class.
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
            return conformal.intervals(probabilities, limits, self.conformal_score_)
        limit = conformal.threshold(scores, coverage, sample_weight=weight)
        return conformal.intervals(probabilities, limit, self.conformal_score_)

    # ---- explanations ------------------------------------------------------------------------

    def explain(
        self,
        X: Any,  # noqa: N803
        y: Any = None,
        *,
        rows: Sequence[int] | None = None,
        correlated: float | None = None,
        repeats: int = 5,
        background: int = 16,
        most_rows: int | None = None,
        random_state: int = 0,
        verbose: int = 0,
    ) -> "Explanation":
        """What matters to the model, which way, and why some rows get what they get.

        It tells of the model, not of the world: give rows that it was not fitted on.

        Parameters
        ----------
        X
            Rows, as for ``fit``.
        y : array-like, shape (n,), optional
            Their labels. Without them, importance is measured as if the model was right.
        rows : sequence of int, optional
            The places of the rows that get reasons; the first five without it.
        correlated : float, optional
            Columns that are correlated so much, from 0 to 1, are shuffled together.
        repeats : int
            How often each column is shuffled.
        background : int
            How many of the rows the reasons compare a row with.
        most_rows : int, optional
            How many rows, drawn at random, importance is measured on; without it, so many that it
            stays quick.
        random_state : int
            The seed of everything that is drawn.
        verbose : int
            1 draws a progress bar.

        Returns
        -------
        echelon.evaluation.explanation.Explanation
        """
        check_is_fitted(self, "labels_")
        from echelon.models.explaining import explain_model

        ranks = None if y is None else self._ranks(X, y)
        table = self.schema_.read(X)
        self.refuse_undefined(self.curve(X), X)
        chosen = list(range(min(5, len(table)))) if rows is None else [int(row) for row in rows]
        explanation = explain_model(
            self, table, ranks, chosen, shown=bool(verbose), correlated=correlated,
            repeats=repeats, background=background, most_rows=most_rows, seed=random_state,
        )  # fmt: skip
        exact = self.contributions_of_rows(table.rows(chosen)) if chosen else None
        return replace(explanation, exact_contributions=exact)

    def contributions(self, X: Any) -> "OwnContributions | None":  # noqa: N803
        """Exact contributions of the columns on a scale on which the model adds up.

        A linear model adds up its score, boosted trees the log-odds of every P(y > k), both before
        any calibration. None for a model that has no such scale; :meth:`explain` gives
        contributions to the expected rank and to P(y > k) for every model.

        Parameters
        ----------
        X
            Rows, as for ``fit``.
        """
        check_is_fitted(self, "labels_")
        return self.contributions_of_rows(self.schema_.read(X))

    def _ranks(self, X: Any, y: Any) -> NDArray[np.int64]:  # noqa: N803
        ranks = self.labels_.to_ranks(y)
        require_same_length(len(X), len(ranks), "y")
        if len(ranks) == 0:
            raise ValueError("there are no rows")
        return ranks


def _filled(curves: Iterator[RankCurve], rows: int, num_classes: int) -> NDArray[np.float64]:
    """The probabilities of curves that come one after the other, (rows, K), in one array."""
    probabilities = np.empty((rows, num_classes))
    start = 0
    for curve in curves:  # each while it is still in the cache
        stop = start + len(curve.log_probabilities)
        probabilities[start:stop] = curve.probabilities.cpu().numpy()
        start = stop
    return probabilities


class Unseen(NamedTuple):
    """Rows that a fit did not see: their ranks, what the model says of them, their weights."""

    ranks: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    weight: ArrayLike | None = None

    def scores(self) -> dict[str, float]:
        """What the model is worth on these rows, with the median of each curve as its label."""
        highest = self.probabilities.shape[1] - 1
        predicted = (self.probabilities.cumsum(1) < 0.5).sum(1).clip(max=highest)
        rps = metrics.ranked_probability_score(
            self.ranks, self.probabilities, sample_weight=self.weight
        )
        return {
            "rows": float(len(self.ranks)),
            "accuracy": metrics.accuracy(self.ranks, predicted, sample_weight=self.weight),
            "mae": metrics.mae(self.ranks, predicted, sample_weight=self.weight),
            "rps": rps,
        }

    def cutpoints(self) -> NDArray[np.float64]:
        """Where the decision ``"kappa"`` cuts the expected rank, (K-1,)."""
        return fit_cutpoints(*self._ranks(), smooth=True, sample_weight=self.weight)

    def kappa_for(self, decision: Decision) -> TunedKappa | None:
        """The kappa that such cut-points have on other rows, where they are what decides."""
        if not isinstance(decision, str) or decision != "kappa":
            return None
        return tuned_kappa(*self._ranks(), sample_weight=self.weight)

    def _ranks(self) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
        num_classes = self.probabilities.shape[1]
        return self.ranks, self.probabilities @ np.arange(num_classes), num_classes


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
