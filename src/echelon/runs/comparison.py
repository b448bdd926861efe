"""Methods by seeds: what runs say together, in tables, verdicts and sentences.

The command line and the page show the same words, which come from here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon.evaluation import metrics
from echelon.evaluation.comparison import (
    Difference,
    as_rows,
    compare,
    compare_splits,
    row_losses,
    summarise,
)
from echelon.evaluation.diagnostics import Diagnostic, diagnose
from echelon.evaluation.learning import FitRecord, diagnose_fit
from echelon.runs.folder import Run, mixture
from echelon.terminal import visible

_WIDTH = 80  # of a terminal


@dataclass(frozen=True)
class Comparison:
    """Runs by method: the floor and baselines first, then the best first.

    They are of the same test rows, or of several divisions of one table, each with all methods.
    """

    runs: dict[str, list[Run]]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> "Comparison":
        """Group runs by method; all of one division must be of the same test rows."""
        by_method: dict[str, list[Run]] = {}
        truths: dict[int, NDArray[Any]] = {}
        for run in sorted(runs, key=lambda run: (run.config.split, run.config.seed or 0)):
            for name in ("truth", "prediction", "probabilities"):
                if name not in run.predictions:
                    raise ValueError(f"a run has no {name} among its predictions; make it anew")
            if run.metrics.get("mae") is None:
                raise ValueError("a run has no mae among its metrics; make it anew")
            if not len(run.predictions["truth"]):
                raise ValueError("a run was tested on no rows; make it anew with some")
            truth = truths.setdefault(run.config.split, run.predictions["truth"])
            if not np.array_equal(run.predictions["truth"], truth):
                raise ValueError("the runs were not tested on the same rows: report them apart")
            by_method.setdefault(visible(run.config.method), []).append(run)
        if (reason := mixture([run.config for run in runs])) is not None:
            raise ValueError(f"the runs do not belong together: {reason}; report them apart")
        if "method" not in {run.config.role for run in runs}:
            raise ValueError(
                "only baselines have finished: run the same `echelon compare` again, which keeps "
                "them and goes on"
            )
        places = {"floor": 0, "baseline": 1, "method": 2}

        def place(name: str) -> tuple[int, float]:
            members = by_method[name]
            return places[members[0].config.role], _mean(members, "mae")

        return cls({name: by_method[name] for name in sorted(by_method, key=place)})

    # ---- who ---------------------------------------------------------------------------------

    def role(self, method: str) -> str:
        """``"floor"``, ``"baseline"`` or ``"method"``."""
        return self.runs[method][0].config.role

    @cached_property
    def methods(self) -> list[str]:
        """Those that compete, the best first."""
        return [name for name in self.runs if self.role(name) == "method"]

    @property
    def best(self) -> str:
        """The method with the lowest mean MAE."""
        return self.methods[0]

    @property
    def main_run(self) -> Run:
        """The run that the page looks at closely: the first of the best method."""
        return self.runs[self.best][0]

    @property
    def classes(self) -> list[str]:
        """The labels in rank order, as text."""
        probabilities = self.main_run.predictions["probabilities"]
        labels = self.main_run.config.classes or range(probabilities.shape[1])
        # A separator of lines within a label would end the expressions that charts sort by.
        return [visible(str(label)) for label in labels]

    @property
    def truth(self) -> NDArray[np.int64]:
        """The true ranks of the test rows."""
        ranks: NDArray[np.int64] = self.main_run.predictions["truth"].astype(np.int64)
        return ranks

    @cached_property
    def splits(self) -> list[int]:
        """The divisions of the table."""
        return sorted({run.config.split for runs in self.runs.values() for run in runs})

    # ---- what --------------------------------------------------------------------------------

    def mean(self, method: str, metric: str) -> float:
        """Of a method's runs."""
        return _mean(self.runs[method], metric)

    @cached_property
    def differences(self) -> list[Difference]:
        """Every two methods, and the best one against each baseline, by MAE."""
        pairs = [(a, b) for i, a in enumerate(self.methods) for b in self.methods[i + 1 :]]
        pairs += [(self.best, name) for name in self.runs if self.role(name) == "baseline"]
        if len(self.splits) > 1:
            return compare_splits(self._by_split(), self._test_share(), pairs=pairs)
        losses = {
            name: np.stack(
                [
                    row_losses("mae", run.predictions["truth"], run.predictions["prediction"])
                    for run in runs
                ]
            )
            for name, runs in self.runs.items()
            if self.role(name) != "floor"
        }
        return compare(losses, pairs=pairs, without_seeds=self._without_seeds())

    def _without_seeds(self) -> list[str]:
        """The baselines in which nothing is random."""
        return [
            name
            for name, runs in self.runs.items()
            if self.role(name) == "baseline" and all(run.config.seed is None for run in runs)
        ]

    def _by_split(self) -> dict[str, list[float]]:
        """Mean MAE of each method in each division."""
        means = {}
        for name, runs in self.runs.items():
            divisions = [[run for run in runs if run.config.split == n] for n in self.splits]
            if not all(divisions):
                raise ValueError(
                    f"{name} has not finished on every division of the table: run the same "
                    f"`echelon compare` again, which keeps what is done and goes on"
                )
            means[name] = [_mean(division, "mae") for division in divisions]
        return means

    def _test_share(self) -> float:
        rows = self.main_run.config.rows
        return rows["test"] / sum(rows.values())

    def sentences(self) -> list[str]:
        """The verdict on every pair."""
        return [f"{difference.sentence}." for difference in self.differences]

    def document(self) -> dict[str, Any]:
        """For programs."""
        every_run = [
            {
                "method": name,
                "seed": run.config.seed,
                "split": run.config.part,
                "division": run.config.split,
                **run.metrics,
            }
            for name, runs in self.runs.items()
            for run in runs
        ]
        summary = [
            vars(row)
            for metric in metrics.METRICS
            for row in summarise(
                {name: [_value(run, metric) for run in runs] for name, runs in self.runs.items()},
                metric,
            )
        ]
        document = {
            "runs": every_run,
            "summary": summary,
            "differences": as_rows(self.differences),
        }
        cleaned: dict[str, Any] = _without_nan(document)
        return cleaned

    @cached_property
    def ordered(self) -> list[str]:
        """All that were run, the lowest mean absolute error first."""
        return sorted(self.runs, key=lambda name: self.mean(name, "mae"))

    def best_in(self, metric: str) -> str | None:
        """Who has the best mean of a metric, but for the floor; None where none has one."""
        row = metrics.METRICS[metric]
        losses = {
            name: row.loss(self.mean(name, metric))
            for name in self.ordered
            if self.role(name) != "floor"
        }
        known = {name: loss for name, loss in losses.items() if np.isfinite(loss)}
        return min(known, key=known.__getitem__) if known else None

    def text(self) -> str:
        """A table of methods for a terminal of 80 columns, the best first."""
        shown = metrics.shown_metrics(wide=False)
        cells = {name: [self.cell(name, row.name, "±") for row in shown] for name in self.runs}
        each = 2 + max(len(cell) for row in cells.values() for cell in row)
        each = max(each, 2 + max(len(row.title) for row in shown))
        room = max(_WIDTH - each * len(shown), 0)
        width = min(room, max(len(name) for name in self.runs) + 2)
        lines = [" " * width + "".join(f"{metric.title:>{each}}" for metric in shown)]
        for name in self.ordered:
            called = f"{name} *" if name == self.best and len(self.methods) > 1 else name
            if len(called) > width:  # a long name has a line of its own
                lines.append(called)
                called = ""
            lines.append(f"{called:<{width}}{''.join(f'{cell:>{each}}' for cell in cells[name])}")
        if len(self.methods) > 1:
            lines.append("(* the method with the lowest mean absolute error)")
        if any(len(runs) > 1 for runs in self.runs.values()):
            lines.append("(mean over the runs of each method, ± their standard deviation)")
        return "\n".join(lines)

    def cell(self, method: str, metric: str, between: str = " ± ") -> str:
        """Mean ± SD of a method's runs."""
        values = [_value(run, metric) for run in self.runs[method]]
        if len(values) == 1:
            return f"{values[0]:.3f}"
        return f"{np.mean(values):.3f}{between}{np.std(values, ddof=1):.3f}"

    @cached_property
    def findings(self) -> list[Diagnostic]:
        """Diagnostics of the main run."""
        arrays = self.main_run.predictions
        findings = diagnose(
            self.truth,
            arrays["prediction"],
            arrays["probabilities"],
            crossings=arrays.get("crossings"),
            classes=self.classes,
        )
        # Curves of one run of several divisions say how it went, not how it compares.
        return findings + diagnose_fit(self.truth, arrays["probabilities"], self._record())

    def _record(self) -> FitRecord:
        run = self.main_run
        better = [
            name
            for name in self.simple_models
            if self._beside(name)[0] == "different"
            and self.mean(name, "mae") < self.mean(self.best, "mae")
        ]
        training = {k: v for k, v in run.outcome.get("training", {}).items() if v is not None}
        return FitRecord(run.history, chosen_step(run), training, better[0] if better else None)

    # ---- beside what -------------------------------------------------------------------------

    @cached_property
    def constant(self) -> tuple[str, float]:
        """What a constant is called here and its MAE: a baseline, or that of these very rows."""
        for name in self.ordered:
            if self.role(name) == "baseline" and _is_constant(self.runs[name][0]):
                return name, self.mean(name, "mae")
        return "constant", metrics.constant_scores(self.truth, len(self.classes))["mae"]

    @cached_property
    def simple_models(self) -> list[str]:
        """The baselines that are more than a constant, the best first."""
        return [
            name
            for name in self.ordered
            if self.role(name) == "baseline" and not _is_constant(self.runs[name][0])
        ]

    def _beside(self, name: str) -> tuple[str, str]:
        """The verdict on the best method beside a baseline, and its words in a sentence."""
        for difference in self.differences:
            if {difference.first, difference.second} == {self.best, name}:
                words = {"within noise": ", which is within noise"}
                return difference.verdict, words.get(difference.verdict, "")
        return "cannot tell", ""

    def crossings(self) -> list[dict[str, Any]]:
        """Share of rows whose raw curve contradicted itself, and by how much, for each method."""
        rows = []
        for name in self.methods:
            sizes = [run.predictions.get("crossings", np.zeros(1)) for run in self.runs[name]]
            rows.append(
                {
                    "method": name,
                    "share": float(np.mean([(size > 1e-6).mean() for size in sizes])),
                    "largest": float(max(size.max() for size in sizes)),
                }
            )
        return rows

    def lead(self) -> str:
        """How good the best method is, beside a constant and the best simple model."""
        where = f"{len(self.truth):,} test rows"
        if len(self.splits) > 1:
            where += f" in each of {len(self.splits)} divisions"
        error = self.mean(self.best, "mae")
        right, within = (self.mean(self.best, name) for name in ("accuracy", "accuracy_within"))
        who, it = f"On {where}, the model", "It"
        if len(self.methods) > 1:
            who = f"Of {len(self.methods)} methods, {self.best} does best on {where}: it"
        _, constant = self.constant
        beside = f"{_than(error, constant)} always guessing the same class ({constant:.3f})"
        if self.simple_models:
            name = self.simple_models[0]
            simple = self.mean(name, "mae")
            beside += (
                f", and {_than(error, simple)} the best simple model, {name} ({simple:.3f})"
                f"{self._beside(name)[1]}"
            )
        return (
            f"{who} is right in {_share(right)} of the rows and at most one class off in "
            f"{_share(within)}. {it} misses by {error:.3f} classes on average, {beside}."
        )

    def answer(self) -> list[str]:
        """What a reader in a hurry should know, in plain words; the first sentence is the lead."""
        best = self.best
        error = self.mean(best, "mae")
        sentences = [self.lead()]
        if len(self.methods) > 1:
            leads = [
                difference
                for difference in self.differences
                if best in (difference.first, difference.second)
                and self.role(difference.second) == "method"
            ]
            verdicts = {lead.verdict for lead in leads}
            if verdicts <= {"different"}:
                sentences.append("It is better than each of the others by more than noise.")
            elif "cannot tell" in verdicts:
                sentences.append(
                    "With one run of each, nobody can tell how much of that is luck: run several "
                    "seeds."
                )
            else:
                noise = [
                    lead.second if lead.first == best else lead.first
                    for lead in leads
                    if lead.verdict == "within noise"
                ]
                sentences.append(f"Its lead over {_listed(noise)} is within noise.")
        elif not self.simple_models:
            sentences.append(
                "No simple model was fitted beside it: `echelon compare` does that, on the same "
                "rows."
            )
        for name in self.runs:
            if self.role(name) == "floor":
                sentences.append(_beside_the_floor(best, error, self.mean(name, "mae")))
        troubles = [finding.title.lower() for finding in self.findings if finding.state != "fine"]
        if troubles:
            sentences.append(f"To look at: {_listed(troubles)}.")
        else:
            sentences.append("No diagnostic found anything wrong.")
        return sentences


def _beside_the_floor(method: str, error: float, floor: float) -> str:
    if error >= floor:
        above = f"{error / floor - 1:.1%} above that" if floor > 0 else "above that"
        return (
            f"The best possible predictor misses by {floor:.3f} on these rows; {method} is {above}."
        )
    return (
        f"The best possible predictor misses by {floor:.3f} on these rows. That {method} misses by "
        f"less is luck: over many rows nothing can."
    )


def chosen_step(run: Run) -> int | None:
    """The number of the epoch or the round that a run kept; None where nobody chose one."""
    for name in ("best_epoch", "trees"):
        if run.outcome.get(name) is not None:
            return int(run.outcome[name])
    return None


def _is_constant(run: Run) -> bool:
    probabilities = run.predictions["probabilities"]
    return bool((probabilities == probabilities[:1]).all())


def _share(value: float) -> str:
    """A share in percent, which is 100% or 0% only where it is all or nothing.

    Examples
    --------
    >>> _share(0.72), _share(0.996), _share(1.0)
    ('72%', 'more than 99%', '100%')
    """
    if value < 1 and f"{value:.0%}" == "100%":
        return "more than 99%"
    if value > 0 and f"{value:.0%}" == "0%":
        return "less than 1%"
    return f"{value:.0%}"


def _than(error: float, other: float) -> str:
    """How one error stands to another, to be followed by what the other is.

    Examples
    --------
    >>> _than(0.3, 0.4), _than(0.5, 0.4), _than(0.4, 0.4)
    ('25% less than', '25% more than', 'as much as')
    """
    if other == 0 or f"{error:.3f}" == f"{other:.3f}":
        return "as much as" if error == other or other > 0 else "more than"
    change = error / other - 1
    return f"{abs(change):.0%} {'less' if change < 0 else 'more'} than"


def _mean(runs: Sequence[Run], metric: str) -> float:
    return float(np.mean([_value(run, metric) for run in runs]))


def _value(run: Run, metric: str) -> float:
    value = run.metrics.get(metric)
    row, arrays = metrics.METRICS[metric], run.predictions
    if value is None and row.of_labels:  # a run from before there was such a metric
        value = row.function(arrays["truth"], arrays["prediction"])
    return float("nan") if value is None else float(value)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
