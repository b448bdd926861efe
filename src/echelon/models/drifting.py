"""What changed since a model was fitted: its columns, its predictions, its labels, its worth.

Everything is compared by counts and sums, which add up over the chunks of a file, with what the
file of the model holds of its training rows. All tests together raise a false alarm as often as the
level says.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.curve import RankCurve
from echelon.data.columns import as_array
from echelon.data.counting import ColumnCounts, add_counts, column_counts
from echelon.data.schema import TableSchema
from echelon.evaluation import metrics
from echelon.evaluation.drift import (
    adjusted,
    beyond_p_value,
    count_change,
    coverage_p_value,
    worse_p_value,
)

_RANGE = 0.1  # the weight of the test of a range, beside 1 of every other
_COVERAGE = 0.9
_UNSEEN_CELLS = 50  # categories that no training row had and that are looked at singly
_SHOWN = 3
_DIGITS = 6


@dataclass(frozen=True)
class DriftTest:
    """One comparison with the training rows.

    Attributes
    ----------
    name : str
        The column, or ``"predicted classes"``, ``"classes"``, ``"score"``, ``"coverage"``.
    what : str
        What is compared: ``"distribution"``, ``"range"``, ``"score"`` or ``"coverage"``.
    p_value, adjusted_p_value : float
        How often chance alone gives as much, in this test, and in any of all.
    weight : float
        Its share of the level.
    facts : mapping
        What was measured, as values of JSON.
    sentence : str
        What there is to say if it raises an alarm.
    """

    name: str
    what: str
    p_value: float
    weight: float
    facts: Mapping[str, Any]
    sentence: str
    adjusted_p_value: float = 1.0


@dataclass(frozen=True)
class Drift:
    """What a comparison with the training rows found.

    Attributes
    ----------
    rows : int
        How many new rows there are.
    rows_before : int or None
        How many rows the model was fitted on.
    level : float
        The rate of false alarms, over all tests together.
    tests : list of DriftTest
        All comparisons that were made.
    not_compared : list of str
        What could not be compared, and why.
    """

    rows: int
    rows_before: int | None
    level: float
    tests: list[DriftTest]
    not_compared: list[str] = field(default_factory=list)

    @property
    def alarms(self) -> list[DriftTest]:
        """The tests that found a change, the least likely first."""
        raised = [test for test in self.tests if test.adjusted_p_value <= self.level]
        return sorted(raised, key=lambda test: test.adjusted_p_value)

    def document(self) -> dict[str, Any]:
        """Everything as values of JSON."""
        return {
            "rows": self.rows,
            "rows_before": self.rows_before,
            "level": self.level,
            "alarm": bool(self.alarms),
            "tests": [
                {
                    "name": test.name, "what": test.what, **test.facts,
                    "p_value": _rounded(test.p_value),
                    "adjusted_p_value": _rounded(test.adjusted_p_value),
                    "alarm": test.adjusted_p_value <= self.level,
                    "sentence": test.sentence,
                }
                for test in self.tests
            ],
            "not_compared": self.not_compared,
        }  # fmt: skip


class DriftCounts:
    """The counts of new rows, chunk by chunk, beside those of the training rows of a model.

    Parameters
    ----------
    model : CurveClassifier
        A fitted one.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.rows = model, 0
        self.columns = column_counts(model.schema_, model.columns_)
        count = model.labels_.num_classes
        self.predicted = np.zeros(count, dtype=np.int64)
        self.labels = np.zeros(count, dtype=np.int64)
        self.judged = self.covered = 0  # labelled rows that have a distribution
        self.loss = self.loss_squared = self.error = self.hits = 0.0

    def add(self, rows: Any, ranks: NDArray[np.int64] | None) -> None:
        """Count rows, a frame or an array, and their true ranks where they are known."""
        model = self.model
        table = model.schema_.read(rows)
        add_counts(self.columns, model.schema_, _named(rows, model.schema_), table)
        self.rows += len(table)
        curve = RankCurve.concatenate(list(model.curves_of_rows(table)))
        defined = curve.is_defined.cpu().numpy()
        raw = curve.probabilities.double().cpu().numpy()[defined]
        predicted = medians(raw)
        self.predicted += np.bincount(predicted, minlength=len(self.predicted))
        if ranks is None or not defined.any():
            return
        truth = ranks[defined]
        self.judged += len(truth)
        self.labels += np.bincount(ranks, minlength=len(self.labels))
        losses, _ = metrics.ranked_probability_losses(truth, raw)
        self.loss += float(losses.sum())
        self.loss_squared += float((losses**2).sum())
        self.error += float(np.abs(truth - predicted).sum())
        self.hits += float((truth == predicted).sum())
        if model.conformal_ is not None:
            if model.calibration_ is not None:
                curve = curve.calibrated(model.calibration_)
            mended = curve.probabilities.double().cpu().numpy()[defined]
            ends = model.interval_ranks(mended, _COVERAGE)
            self.covered += int(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).sum())

    def compared(self, level: float = 0.05) -> Drift:
        """All comparisons that can be made, with the level shared among them."""
        if not self.rows:
            raise ValueError("there are no rows to compare with the training rows")
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1; got {level:g}")
        tests, lacking = self._column_tests()
        for more, why in (self._class_tests(), self._worth_tests()):
            tests += more
            lacking += why
        levels = adjusted([test.p_value for test in tests], [test.weight for test in tests])
        named = [
            DriftTest(test.name, test.what, test.p_value, test.weight, test.facts, test.sentence,
                      value)
            for test, value in zip(tests, levels, strict=True)
        ]  # fmt: skip
        return Drift(self.rows, self.model.num_rows_, level, named, lacking)

    # ---- columns -----------------------------------------------------------------------------

    def _column_tests(self) -> tuple[list[DriftTest], list[str]]:
        tests, lacking = [], []
        for column in self.model.schema_.columns:
            counts = self.columns.get(column.name)
            if counts is None:
                lacking.append(
                    f"{column.name}: the model holds no counts of this {column.kind} column"
                )
                continue
            if counts.is_ordered:
                tests += [_number_test(counts), *_range_test(counts)]
            else:
                tests.append(_category_test(counts))
        return tests, lacking

    # ---- classes -----------------------------------------------------------------------------

    def _class_tests(self) -> tuple[list[DriftTest], list[str]]:
        reference, tests, lacking = self.model.reference_ or {}, [], []
        classes = [str(label) for label in self.model.classes_.tolist()]
        for name, key, now in (
            ("predicted classes", "predicted", self.predicted),
            ("classes", "classes", self.labels),
        ):
            before = reference.get(key)
            if key == "classes" and not self.labels.any():
                continue
            if before is None or not sum(before):
                which = " of rows that its fit had not seen" if key == "predicted" else ""
                lacking.append(f"{name}: the model holds no counts{which}")
                continue
            if now.any():
                tests.append(_class_test(name, classes, np.array(before), now))
        return tests, lacking

    # ---- scores and coverage -----------------------------------------------------------------

    def _worth_tests(self) -> tuple[list[DriftTest], list[str]]:
        judged = self.judged
        if not judged:
            return [], []
        tests, lacking = [], []
        scores = self.model.scores_
        mean = self.loss / judged
        spread = math.sqrt(max(self.loss_squared / judged - mean**2, 0.0))
        if scores is None or "rps" not in scores:
            lacking.append("score: the model holds no scores of rows that its fit had not seen")
        else:
            error = spread * math.sqrt(1 / judged + 1 / scores["rows"])
            facts = {
                "rps_before": _rounded(scores["rps"]), "rps": _rounded(mean),
                "noise": _rounded(1.645 * error),
                "mae_before": _rounded(scores["mae"]), "mae": _rounded(self.error / judged),
                "accuracy_before": _rounded(scores["accuracy"]),
                "accuracy": _rounded(self.hits / judged),
            }  # fmt: skip
            sentence = (
                f"predictions are worse: the ranked probability score rose from "
                f"{scores['rps']:.4f} to {mean:.4f}, and chance alone makes it "
                f"{1.645 * error:.4f} larger in 5 of 100 tables"
            )
            value = worse_p_value(mean, spread, judged, scores["rps"], int(scores["rows"]))
            tests.append(DriftTest("score", "score", value, 1.0, facts, sentence))
        kept = self.model.conformal_
        if kept is not None:
            # rows that stand for several, or for less than one, say less about a threshold
            effective = int(kept.weight.sum() ** 2 / (kept.weight**2).sum())
            value = coverage_p_value(self.covered, judged, _COVERAGE, effective)
            share = self.covered / judged
            facts = {"coverage_before": _COVERAGE, "coverage": _rounded(share)}
            sentence = (
                f"intervals of a coverage of {_COVERAGE:g} hold the truth of "
                f"{100 * share:.1f} % of the rows"
            )
            tests.append(DriftTest("coverage", "coverage", value, 1.0, facts, sentence))
        return tests, lacking


def _named(rows: Any, schema: TableSchema) -> pd.DataFrame:
    """Rows that the schema has read, as a frame with the names of its columns."""
    names = [column.name for column in schema.columns]
    frame: pd.DataFrame
    if isinstance(rows, pd.DataFrame):
        frame = rows.rename(columns=str) if schema.named else rows.set_axis(names, axis=1)
        return frame
    cells = rows if isinstance(rows, pd.Series) or len(names) == 1 else as_array(rows)
    frame = pd.DataFrame(cells).set_axis(names, axis=1)
    return frame


def reference_counts(
    class_counts: NDArray[np.int64], unseen: NDArray[np.float64] | None
) -> dict[str, list[int]]:
    """What later rows are compared with: training classes, and predictions of unseen rows.

    Parameters
    ----------
    class_counts : array, shape (K,)
        Training rows of each class.
    unseen : array, shape (m, K), or None
        The probabilities that the model gave rows that its fit had not seen, uncalibrated.
    """
    counts = {"classes": class_counts.tolist()}
    if unseen is not None:
        counts["predicted"] = np.bincount(medians(unseen), minlength=len(class_counts)).tolist()
    return counts


def medians(probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """The median rank of each distribution, (n,).

    Examples
    --------
    >>> medians(np.array([[0.2, 0.7, 0.1], [0.6, 0.2, 0.2]])).tolist()
    [1, 0]
    """
    highest = probabilities.shape[1] - 1
    places: NDArray[np.int64] = (probabilities.cumsum(axis=1) < 0.5).sum(axis=1)
    return places.clip(max=highest)


# ---- single tests --------------------------------------------------------------------------------


def _number_test(counts: ColumnCounts) -> DriftTest:
    before, now = np.append(counts.before, 0), np.append(counts.now, counts.above)
    change = count_change(before, now, missing=(counts.missing_before, counts.missing))
    facts = _column_facts(counts, change)
    if change.place < 0 or not counts.before.any():
        sentence = _missing_sentence(counts)
    else:
        edge = _written(counts, counts.edges[min(change.place, len(counts.edges) - 1)])
        place = min(change.place, len(counts.edges) - 1)
        shares = [100 * part[: place + 1].sum() / max(part.sum(), 1) for part in (before, now)]
        sentence = (
            f"{counts.name}: values lie elsewhere: {shares[1]:.1f} % at or below {edge}, where "
            f"training had {shares[0]:.1f} %"
        )
    return DriftTest(counts.name, "distribution", change.p_value, 1.0, facts, sentence)


def _range_test(counts: ColumnCounts) -> list[DriftTest]:
    present = int(counts.now.sum()) + counts.above
    before = int(counts.before.sum())
    if not present or not before:
        return []
    value = beyond_p_value(counts.below, counts.above, before, present)
    lowest, highest = (_written(counts, counts.edges[i]) for i in (0, -1))
    sentence = (
        f"{counts.name}: {counts.below:,} rows lie below {lowest} and {counts.above:,} above "
        f"{highest}, between which all of training lay"
    )
    facts = {
        "kind": counts.kind, "range_before": [lowest, highest], "below": counts.below,
        "above": counts.above,
    }  # fmt: skip
    return [DriftTest(counts.name, "range", value, _RANGE, facts, sentence)]


def _category_test(counts: ColumnCounts) -> DriftTest:
    frequent = counts.unseen.most_common(_UNSEEN_CELLS)
    others = counts.unseen.total() - sum(rows for _, rows in frequent)
    fresh = [rows for _, rows in frequent] + ([others] if others else [])
    before = np.append(counts.before, np.zeros(len(fresh), dtype=np.int64))
    now = np.append(counts.now, np.array(fresh, dtype=np.int64))
    change = count_change(
        before, now, missing=(counts.missing_before, counts.missing), ordered=False
    )
    facts = {**_column_facts(counts, change), "unseen": dict(counts.unseen.most_common(20))}
    known = len(counts.before)
    if change.place < 0:
        sentence = _missing_sentence(counts)
    elif change.place >= known:
        shown = ", ".join(f"{name!r} ({rows:,})" for name, rows in frequent[:_SHOWN])
        sentence = (
            f"{counts.name}: {counts.unseen.total():,} rows hold categories that training had not: "
            f"{shown}"
        )
    else:
        shares = [100 * part[change.place] / max(part.sum(), 1) for part in (before, now)]
        sentence = (
            f"{counts.name}: {shares[1]:.1f} % are {counts.categories[change.place]!r}, where "
            f"training had {shares[0]:.1f} %"
        )
    return DriftTest(counts.name, "distribution", change.p_value, 1.0, facts, sentence)


def _class_test(
    name: str, classes: list[str], before: NDArray[np.int64], now: NDArray[np.int64]
) -> DriftTest:
    change = count_change(before, now)
    shares = [part / part.sum() for part in (before, now)]
    facts = {
        "distance": _rounded(change.distance),
        "noise": _rounded(change.noise),
        "shares_before": dict(zip(classes, np.round(shares[0], _DIGITS).tolist(), strict=True)),
        "shares": dict(zip(classes, np.round(shares[1], _DIGITS).tolist(), strict=True)),
    }
    place = max(0, min(change.place, len(classes) - 2))
    low = [100 * share[: place + 1].sum() for share in shares]
    sentence = (
        f"{name}: {low[1]:.1f} % are {classes[place]}{' or lower' if place else ''}, where it was "
        f"{low[0]:.1f} %"
    )
    return DriftTest(name, "distribution", change.p_value, 1.0, facts, sentence)


def _column_facts(counts: ColumnCounts, change: Any) -> dict[str, Any]:
    return {
        "kind": counts.kind,
        "missing_before": _rounded(counts.missing_before / max(counts.rows_before, 1)),
        "missing": _rounded(counts.missing / max(counts.rows, 1)),
        "distance": _rounded(change.distance),
        "noise": _rounded(change.noise),
    }


def _missing_sentence(counts: ColumnCounts) -> str:
    before = 100 * counts.missing_before / max(counts.rows_before, 1)
    return (
        f"{counts.name}: {100 * counts.missing / max(counts.rows, 1):.1f} % are missing, where "
        f"training had {before:.1f} %"
    )


def _written(counts: ColumnCounts, value: float) -> Any:
    if counts.kind != "date":
        return float(f"{value:.{_DIGITS}g}")
    return str(np.datetime64("1970-01-01") + np.timedelta64(round(value), "D"))


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
