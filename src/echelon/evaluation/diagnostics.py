"""What may be wrong with a model, in plain words, from its predictions and the truth.

Each finding has a code that stays the same between versions, a state (fine, notice, problem) and a
sentence that says what to do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon.evaluation import metrics
from echelon.evaluation.arguments import read_probabilities
from echelon.evaluation.calibration import calibration_error

State = Literal["fine", "notice", "problem"]

_CROSSING = 1e-6  # rises of the raw curve below this are rounding
_FEW_ROWS = 5  # of a class, below which nothing is said about it
_NEGLECTED = 0.25  # predicted less often than this share of its rows
_SURE = 0.01  # a true label less probable than this is suspect
_SUSPECTS = 20  # that are listed


@dataclass(frozen=True)
class Diagnostic:
    """A finding: its stable code, a title, its state, what to do, and the figures behind it."""

    code: str
    title: str
    state: State
    message: str
    figures: dict[str, Any] = field(default_factory=dict)


def diagnose(
    truth: ArrayLike,
    prediction: ArrayLike,
    probabilities: ArrayLike,
    *,
    crossings: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
) -> list[Diagnostic]:
    """All findings, in a fixed order.

    Parameters
    ----------
    truth, prediction : array-like of int, shape (n,)
        Ranks.
    probabilities : array-like, shape (n, K)
    crossings : array-like, shape (n,), optional
        Of :meth:`echelon.RankCurve.crossings`; nothing is said of them without it.
    classes : sequence of K labels, optional
        To speak of them by name.

    Examples
    --------
    >>> found = diagnose([0, 1, 1], [0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.2, 0.8]])
    >>> [one.code for one in found][:2]
    ['better-than-constant', 'neglected-classes']
    """
    ranks, p, _ = read_probabilities(truth, probabilities, None, None, None)
    labels = np.asarray(prediction).astype(np.int64)
    names = [str(k) for k in (classes if classes is not None else range(p.shape[1]))]
    return [
        _better_than_constant(ranks, labels),
        *([] if crossings is None else [_rank_crossings(crossings)]),
        _neglected_classes(ranks, labels, names),
        _uneven_errors(ranks, labels, names),
        _calibration(ranks, p),
        _suspect_labels(ranks, p, names),
    ]


def suspect_rows(truth: ArrayLike, probabilities: ArrayLike) -> NDArray[np.int64]:
    """Rows whose true label the model holds for nearly impossible, the surest first.

    These are the rows to look at for wrong labels: the true rank, and everything beyond it on its
    side of the distribution, has a probability below 0.01.
    """
    ranks, p, _ = read_probabilities(truth, probabilities, None, None, None)
    upper_tail = p[:, ::-1].cumsum(axis=1)[:, ::-1]
    lower_tail = p.cumsum(axis=1)
    rows = np.arange(len(ranks))
    tail = np.minimum(upper_tail[rows, ranks], lower_tail[rows, ranks])
    suspects: NDArray[np.int64] = np.flatnonzero(tail < _SURE)
    return suspects[np.argsort(tail[suspects], kind="stable")]


# ---- one finding each ----------------------------------------------------------------------------


def _better_than_constant(ranks: NDArray[np.int64], labels: NDArray[np.int64]) -> Diagnostic:
    error = metrics.mae(ranks, labels)
    constant = metrics.mae(ranks, np.full(len(ranks), np.floor(np.median(ranks))))
    figures = {"mae": error, "constant": constant}
    title = "Gain over a constant"
    if constant == 0:
        return Diagnostic(
            "better-than-constant", title, "notice" if error > 0 else "fine",
            f"All rows are of one class, so there is no gain to speak of; the mean absolute error "
            f"is {error:.3f}.", figures,
        )  # fmt: skip
    if error < 0.95 * constant:
        gain = 1 - error / constant
        return Diagnostic(
            "better-than-constant", title, "fine",
            f"The mean absolute error is {error:.3f}, {gain:.0%} below that of always predicting "
            f"the middle class.", figures,
        )  # fmt: skip
    return Diagnostic(
        "better-than-constant", title, "problem",
        f"The mean absolute error is {error:.3f}; always predicting the middle class has "
        f"{constant:.3f}. The features say little about the target: check that they belong to the "
        f"rows, and look for better ones.", figures,
    )  # fmt: skip


def _rank_crossings(crossings: ArrayLike) -> Diagnostic:
    title = "Rank crossings"
    sizes = np.asarray(crossings, dtype=np.float64)
    share, largest = float((sizes > _CROSSING).mean()), float(sizes.max(initial=0.0))
    figures = {"share": share, "largest": largest}
    if share == 0:
        return Diagnostic(
            "rank-crossings", title, "fine",
            "P(y > k) never rises with k: the probabilities do not contradict each other.", figures,
        )  # fmt: skip
    state: State = "problem" if share > 0.05 and largest > 0.05 else "notice"
    return Diagnostic(
        "rank-crossings", title, state,
        f"In {share:.1%} of the rows the method's own P(y > k) rose with k, by up to "
        f"{largest:.3f}; they were sorted. A method that cannot contradict itself, such as corn, "
        f"needs no repair.", figures,
    )  # fmt: skip


def _neglected_classes(
    ranks: NDArray[np.int64], labels: NDArray[np.int64], names: list[str]
) -> Diagnostic:
    title = "Neglected classes"
    true_counts = np.bincount(ranks, minlength=len(names))
    predicted_counts = np.bincount(labels, minlength=len(names))
    counted = true_counts >= _FEW_ROWS
    neglected = [
        names[k] for k in np.flatnonzero(counted & (predicted_counts < _NEGLECTED * true_counts))
    ]
    never = [names[k] for k in np.flatnonzero(counted & (predicted_counts == 0))]
    figures = {"neglected": neglected, "never": never}
    if not neglected:
        return Diagnostic(
            "neglected-classes", title, "fine",
            "Every class is predicted about as often as it occurs.", figures,
        )  # fmt: skip
    named = ", ".join(neglected)
    what = "never predicted" if never == neglected else "hardly ever predicted"
    return Diagnostic(
        "neglected-classes", title, "problem" if never else "notice",
        f"Classes that occur but are {what}: {named}. If they matter, fit with "
        f'class_weight="balanced", decide by "kappa" or by costs, or join them with a '
        f"neighbour.", figures,
    )  # fmt: skip


def _uneven_errors(
    ranks: NDArray[np.int64], labels: NDArray[np.int64], names: list[str]
) -> Diagnostic:
    title = "Errors per class"
    errors = class_errors(ranks, labels, len(names))
    enough = np.bincount(ranks, minlength=len(names)) >= _FEW_ROWS
    shown = np.where(enough, errors, np.nan)
    figures = {"mae": {n: float(e) for n, e in zip(names, errors, strict=True) if np.isfinite(e)}}
    if np.isfinite(shown).sum() < 2:
        return Diagnostic(
            "uneven-errors", title, "fine",
            "Too few classes have enough rows to compare their errors.", figures,
        )  # fmt: skip
    worst, typical = int(np.nanargmax(shown)), float(np.nanmedian(shown))
    text = f"The worst class, {names[worst]}, has a mean absolute error of {shown[worst]:.3f}"
    if shown[worst] <= max(2.5 * typical, 0.25):
        return Diagnostic(
            "uneven-errors", title, "fine", f"{text}; the middle one has {typical:.3f}.", figures
        )
    return Diagnostic(
        "uneven-errors", title, "notice",
        f"{text}, the middle one {typical:.3f}. Errors of rare or extreme classes are easily "
        f"hidden in the average: weight the classes, or collect more rows of this one.", figures,
    )  # fmt: skip


def class_errors(
    truth: NDArray[np.int64], prediction: NDArray[np.int64], num_classes: int
) -> NDArray[np.float64]:
    """The MAE of each true class, (K,); NaN for a class without rows."""
    counts = np.bincount(truth, minlength=num_classes)
    sums = np.bincount(truth, weights=np.abs(truth - prediction), minlength=num_classes)
    with np.errstate(invalid="ignore"):
        errors: NDArray[np.float64] = sums / counts
    return errors


def _calibration(ranks: NDArray[np.int64], p: NDArray[np.float64]) -> Diagnostic:
    title = "Calibration"
    error = calibration_error(ranks, p)
    # What a perfect model shows on this many rows: bins of a tenth of them, at most 0.4 off.
    noise = 0.4 * np.sqrt(10 / len(ranks))
    figures = {"calibration_error": error, "noise": float(noise)}
    if error <= 0.01 + noise:
        return Diagnostic(
            "calibration", title, "fine",
            f"Events predicted with some probability come true about as often: on average "
            f"{error:.3f} off.", figures,
        )  # fmt: skip
    state: State = "problem" if error > 0.05 + noise else "notice"
    return Diagnostic(
        "calibration", title, state,
        f"P(y > k) is on average {error:.3f} off what happened. Mend it on held-out rows with "
        f"calibrate(X, y), or `echelon fit --calibrate temperature`.", figures,
    )  # fmt: skip


def _suspect_labels(
    ranks: NDArray[np.int64], p: NDArray[np.float64], names: list[str]
) -> Diagnostic:
    title = "Suspect labels"
    rows = suspect_rows(ranks, p)
    share = len(rows) / len(ranks)
    listed = [
        {"row": int(i), "label": names[ranks[i]], "probability": float(p[i, ranks[i]])}
        for i in rows[:_SUSPECTS]
    ]
    figures = {"rows": listed, "share": share}
    # An honest model is this surprised in two tails of 0.01 each at most.
    if share <= 2 * _SURE + 2 * np.sqrt(2 * _SURE / len(ranks)):
        text = f"{len(rows):,} rows" if len(rows) != 1 else "1 row"
        return Diagnostic(
            "suspect-labels", title, "fine",
            f"{text} have a label that the model holds for nearly impossible: no more than chance "
            f"brings.", figures,
        )  # fmt: skip
    return Diagnostic(
        "suspect-labels", title, "notice",
        f"In {len(rows):,} rows ({share:.1%}) the model is nearly sure that the label is wrong, "
        f"more than chance brings. Look at them first: the labels may be wrong, or the model too "
        f"sure.", figures,
    )  # fmt: skip
