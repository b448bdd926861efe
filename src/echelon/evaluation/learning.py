"""Whether a model learnt too much of its training rows, or too little, and why.

The evidence: its error on training rows beside that on test rows, the validation curve of its
training, and whether a simple model did better. What has no evidence is not spoken of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from echelon.evaluation import metrics
from echelon.evaluation.diagnostics import Diagnostic, State

_GAP = 0.15  # of the share of the spread that is explained, on training rows and on others
_RISE = 0.05  # of a validation score after its best, in shares of it
_STILL = 0.01  # what the last fifth of the training must have brought to be called improving
_ROWS_PER_COLUMN = 10  # below which a table is short of rows
_LITTLE = 0.05  # a share of the spread that is nearly nothing
_VALIDATION = "validation_"


@dataclass(frozen=True)
class FitRecord:
    """What is known of how a model was fitted.

    Parameters
    ----------
    history : sequence of mappings
        The scores of each step, with its number under ``"epoch"`` or ``"round"``.
    chosen : int, optional
        The number of the step that was kept.
    training : mapping
        Of the rows that it was fitted on: their number, `rows`; the number of `columns`; and the
        score on them, `ranked_probability_score`. What is not known is not there.
    better_simple : str, optional
        The simple model that is better on the test rows by more than noise.
    """

    history: Sequence[Mapping[str, float]] = ()
    chosen: int | None = None
    training: Mapping[str, float] = field(default_factory=dict)
    better_simple: str | None = None


@dataclass(frozen=True)
class ValidationCurve:
    """The validation score of each step as a loss, the word for a step, and its metric's title."""

    losses: Sequence[float]
    numbers: Sequence[int]
    step: str
    title: str

    @property
    def best(self) -> int:
        """The place of the lowest."""
        return int(np.argmin(self.losses))

    @property
    def rise(self) -> float:
        """How much the last is above the lowest, in shares of the lowest."""
        low = self.losses[self.best]
        return (self.losses[-1] - low) / max(abs(low), 1e-12)

    @property
    def is_still_falling(self) -> bool:
        """Whether the last step is the best, and the last fifth of the steps brought something."""
        if len(self.losses) < 3 or self.best != len(self.losses) - 1:
            return False
        before = self.losses[-1 - max(1, len(self.losses) // 5)]
        return before - self.losses[-1] > _STILL * max(abs(before), 1e-12)


def validation_curve(history: Sequence[Mapping[str, float]]) -> ValidationCurve | None:
    """The validation scores of a history; None where it has none.

    Examples
    --------
    >>> rows = [{"epoch": 1, "validation_mae": 0.5}, {"epoch": 2, "validation_mae": 0.4}]
    >>> validation_curve(rows).losses
    [0.5, 0.4]
    """
    for name in metrics.METRICS:
        for key in (f"{_VALIDATION}{name}", name):
            rows = [row for row in history if row.get(key) is not None]
            if rows and len(rows) == len(history):
                row = metrics.METRICS[name]
                step = "epoch" if "epoch" in rows[0] else "round"
                return ValidationCurve(
                    [row.loss(float(epoch[key])) for epoch in rows],
                    [int(epoch.get(step, i + 1)) for i, epoch in enumerate(rows)],
                    step,
                    row.title,
                )
    return None


def diagnose_fit(truth: ArrayLike, probabilities: ArrayLike, record: FitRecord) -> list[Diagnostic]:
    """What can be said of overfitting and of underfitting, each with its likely cause.

    Parameters
    ----------
    truth : array-like of int, shape (n,)
        Ranks of test rows.
    probabilities : array-like, shape (n, K)
        Of those rows.
    record : FitRecord

    Examples
    --------
    >>> falling = [{"epoch": e, "validation_mae": 1 / e} for e in range(1, 9)]
    >>> p = [[0.9, 0.1], [0.2, 0.8]]
    >>> [(one.code, one.state) for one in diagnose_fit([0, 1], p, FitRecord(falling, 8))]
    [('overfitting', 'fine'), ('underfitting', 'notice')]
    """
    losses = metrics.ranked_probability_losses(truth, probabilities)[0]
    constant = metrics.constant_scores(truth, np.shape(probabilities)[-1])
    scale = constant["ranked_probability_score"]
    scores = _Scores(
        test=float(losses.mean()),
        training=record.training.get("ranked_probability_score"),
        scale=scale,
        noise=2 * float(losses.std() / np.sqrt(len(losses))) / scale if scale > 0 else np.inf,
    )
    curve = validation_curve(record.history)
    findings = (_overfitting(scores, curve, record), _underfitting(scores, curve, record))
    return [finding for finding in findings if finding is not None]


@dataclass(frozen=True)
class _Scores:
    test: float
    training: float | None
    scale: float  # what a constant has
    noise: float  # two standard errors of the explained share

    def explained(self, score: float) -> float:
        """The share of a constant's score that a model takes away."""
        return 1 - score / self.scale if self.scale > 0 else 0.0

    @property
    def gap(self) -> float:
        return (
            0.0
            if self.training is None
            else (self.explained(self.training) - self.explained(self.test))
        )

    @property
    def has_gap(self) -> bool:
        return self.gap > _GAP + self.noise

    @property
    def words(self) -> str:
        return f"RPS {self.training:.3f} on training rows and {self.test:.3f} on test rows"


def _finding(kind: str, state: State, message: str, scores: _Scores) -> Diagnostic:
    figures = {"test": scores.test, "training": scores.training, "constant": scores.scale}
    return Diagnostic(kind, kind.capitalize(), state, message, figures)


def _overfitting(
    scores: _Scores, curve: ValidationCurve | None, record: FitRecord
) -> Diagnostic | None:
    simple = record.better_simple
    unstopped = curve is not None and record.chosen is None and curve.rise > _RISE
    if scores.has_gap and (simple is not None or unstopped):
        beside = "" if simple is None else f", and {simple}, a simpler model, predicts better"
        return _finding(
            "overfitting", "problem",
            f"The model knows its training rows by heart: {scores.words}{beside}. "
            f"{_cause_of_overfitting(curve, record)}", scores,
        )  # fmt: skip
    if unstopped:
        assert curve is not None
        best = curve.numbers[curve.best]
        return _finding(
            "overfitting", "notice",
            f"After {curve.step} {best} the validation {curve.title} became {curve.rise:.0%} "
            f"worse, and training went on. {_cause_of_overfitting(curve, record)}", scores,
        )  # fmt: skip
    if scores.has_gap:
        return _finding(
            "overfitting", "fine",
            f"{scores.words[0].upper()}{scores.words[1:]}: a gap, as flexible models have one, and "
            f"no simpler model was better.", scores,
        )  # fmt: skip
    if curve is not None and curve.rise > _RISE:
        return _finding(
            "overfitting", "fine",
            f"After {curve.step} {curve.numbers[curve.best]} the validation {curve.title} became "
            f"up to {_worst_rise(curve):.0%} worse. That {curve.step} was kept, so it did no harm.",
            scores,
        )  # fmt: skip
    if scores.training is not None:
        return _finding(
            "overfitting", "fine",
            f"{scores.words[0].upper()}{scores.words[1:]}: it predicts new rows about as well as "
            f"those that it learnt from.", scores,
        )  # fmt: skip
    if curve is not None:
        return _finding(
            "overfitting", "fine",
            f"The validation {curve.title} did not become worse as the training went on.", scores,
        )  # fmt: skip
    return None


def _worst_rise(curve: ValidationCurve) -> float:
    low = curve.losses[curve.best]
    return (max(curve.losses[curve.best :]) - low) / max(abs(low), 1e-12)


def _cause_of_overfitting(curve: ValidationCurve | None, record: FitRecord) -> str:
    if curve is not None and record.chosen is None and curve.rise > _RISE:
        return (
            f"The cause is training for too long: let validation rows choose the {curve.step} "
            f"(validation_fraction above 0), or stop after {curve.numbers[curve.best]}."
        )
    rows, columns = record.training.get("rows"), record.training.get("columns")
    if rows and columns and rows < _ROWS_PER_COLUMN * columns:
        return (
            f"The cause is a short table, {int(rows):,} rows for {int(columns):,} columns: leave "
            f"out columns, collect rows, or take the simpler model."
        )
    return (
        "The cause is a model too flexible for these rows: take the simpler one, make this one "
        "smaller, or collect more rows."
    )


def _underfitting(
    scores: _Scores, curve: ValidationCurve | None, record: FitRecord
) -> Diagnostic | None:
    simple = record.better_simple
    if curve is not None and curve.is_still_falling:
        beside = "" if simple is None else f", and {simple}, a simple model, predicts better"
        return _finding(
            "underfitting", "notice" if simple is None else "problem",
            f"The validation {curve.title} was still improving in the last {curve.step}, "
            f"{curve.numbers[-1]}{beside}. The cause is training that ended too early: give it "
            f"more {curve.step}s, or more time.", scores,
        )  # fmt: skip
    if simple is not None and not scores.has_gap:
        where = "" if scores.training is None else f" ({scores.words})"
        return _finding(
            "underfitting", "problem",
            f"{simple}, a simple model, predicts better{where}, so there is more to learn than "
            f"this model learnt. The cause is likely in its training: try the default recipe, "
            f"another learning rate, less regularisation, or take {simple}.", scores,
        )  # fmt: skip
    explained = scores.explained(scores.test)
    if explained < _LITTLE:
        of_training = (
            "" if scores.training is None
            else f", and of the training rows {scores.explained(scores.training):.0%}"
        )  # fmt: skip
        return _finding(
            "underfitting", "notice",
            f"It explains {max(explained, 0):.0%} of the spread of the test rows{of_training}. The "
            f"cause is likely in the columns, which say little about the target: look for others.",
            scores,
        )  # fmt: skip
    if curve is not None:
        return _finding(
            "underfitting", "fine",
            f"Training went on until the validation {curve.title} improved no more; the best was "
            f"{curve.step} {curve.numbers[curve.best]} of {curve.numbers[-1]}.", scores,
        )  # fmt: skip
    if scores.training is not None:
        return _finding(
            "underfitting", "fine",
            f"It explains {scores.explained(scores.training):.0%} of the spread of its training "
            f"rows, and no simple model was better.", scores,
        )  # fmt: skip
    return None
