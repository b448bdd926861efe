"""Search the settings of a model: chosen on validation rows, reported on rows that no trial saw.

A trial is a run (or one for each division) in a folder of its own, as those of a comparison are. It
is told apart by its number, and its settings are a function of the seed and of the trials before
it, so that a search that was killed goes on where it was and repeats nothing.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from echelon.evaluation import metrics
from echelon.experiments.contestants import make_model, model_of, with_values
from echelon.experiments.execute import Executor, Report
from echelon.experiments.jobs import (
    Job,
    Result,
    check_settings,
    constant_result,
    fit_task,
    make_job,
)
from echelon.experiments.proposing import Trial, Watcher, propose
from echelon.experiments.searching import with_validation
from echelon.experiments.tasks import Task
from echelon.extras import require
from echelon.runs import OtherFormatError, Run, claim_folder, read_run
from echelon.spaces import Dimension, space_document

COMMAND = "tune"
MOST_TRIALS = 10_000
_FAILURES = (ValueError, RuntimeError, ArithmeticError)


@dataclass(frozen=True)
class Tuning:
    """What a search is asked for; everything here but `trials` and `time_limit` decides its trials.

    Parameters
    ----------
    parameters : mapping
        Those of the model that are not searched, as contestants of comparisons have them.
    space : mapping from name to Between or OneOf
    metric : str
        One of ``echelon.evaluation.metrics.METRICS``, which chooses on the validation rows.
    trials : int
        How many there are, with the default among them.
    seed : int
        Of the divisions, of the proposals and of every fit.
    at_once : int
        How many trials are proposed from the same knowledge, and can run side by side.
    prune : bool
        Whether a trial that is behind the middle of those before it ends early, epoch by epoch.
    divisions : int
        On how many random divisions into training and validation rows each trial is scored.
    validation_share : float
        The share of the rows that are not for the test.
    time_limit : float, optional
        Seconds after which no more trials begin.
    threads : int
        Those of each run.
    """

    parameters: Mapping[str, Any]
    space: Mapping[str, Dimension]
    metric: str = "ranked_probability_score"
    trials: int = 30
    seed: int = 0
    at_once: int = 4
    prune: bool = True
    divisions: int = 1
    validation_share: float = 0.2
    time_limit: float | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        metrics.metric(self.metric)
        for name, most in (("trials", MOST_TRIALS), ("at_once", 1024), ("divisions", 1000)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise ValueError(f"{name} must be a whole number from 1 to {most:,}; got {value!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(f"the seed must be a whole number of at least 0; got {self.seed!r}")
        if not 0 < self.validation_share < 1:
            raise ValueError(
                f"validation_share must lie between 0 and 1; got {self.validation_share!r}"
            )
        if not self.space:
            raise ValueError(
                f"there is nothing to search of {model_of(self.parameters)}: what could be is "
                f"given; leave some of it out, or give a space"
            )
        self._check_names()

    def _check_names(self) -> None:
        made = type(make_model(self.parameters))
        known = make_model(self.parameters).get_params(deep=False)
        for name in self.space:
            first, dot, _ = name.partition(".")
            if first not in known or bool(dot) != (first in made.nested):
                listed = ", ".join(
                    f"{choice}.NAME" if choice in made.nested else choice for choice in known
                )
                raise ValueError(
                    f"the space names {name!r}, which is no parameter of "
                    f"{model_of(self.parameters)}; these are: {listed}"
                )

    def document(self) -> dict[str, Any]:
        """What must be the same where a search goes on."""
        return {
            "parameters": dict(self.parameters),
            "space": space_document(self.space),
            "metric": self.metric,
            "seed": self.seed,
            "at_once": self.at_once,
            "prune": self.prune,
            "threads": self.threads,
        }

    @property
    def digest(self) -> str:
        """A hash of the same, which tells the trials of searches apart."""
        text = json.dumps(self.document(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class TrialJob(Job):
    """A run of a trial; `rivals` are the losses of trials that went to their end, step by step."""

    rivals: Sequence[Mapping[int, float]] = field(default=(), repr=False)

    def result(self) -> Result:
        """What the model says of the validation rows; where its fit fails, what a constant says."""
        watcher = Watcher(self.rivals)
        try:
            result = fit_task(self.task, self.config, watcher)
        except _FAILURES as error:
            if not self.config.details["trial"]:  # the default: nothing else would go well
                raise
            reason = f"{type(error).__name__}: {error}"
            return replace(constant_result(self.task, self.config.part), outcome={"failed": reason})
        told = {"steps": [*watcher.steps.items()], "pruned": watcher.is_pruned}
        return replace(result, outcome={**result.outcome, **told})


def search(
    task: Task,
    tuning: Tuning,
    folder: str | Path,
    *,
    executor: Executor | None = None,
    on_run: Report | None = None,
) -> list[Trial]:
    """Make the trials of a search; those that the folder holds are kept.

    Parameters
    ----------
    task : Task
        Its test rows are not looked at; validation rows are divided from its training rows.
    tuning : Tuning
    folder : path
        Holds a folder for each run.
    executor : Executor, optional
        Where the runs are made: on all cores without it.
    on_run : callable, optional
        Called with the name of each run that is done, and whether it is new.
    """
    require("optuna", "searches by `tune`")
    begun = time.monotonic()
    tasks = [
        with_validation(replace(task, split=number), tuning.validation_share)
        for number in range(tuning.divisions)
    ]
    check_settings([_job(tasks[0], tuning, 0, {}, ())])
    claim_folder(
        folder,
        {
            "command": COMMAND,
            "data": task.name,
            "fingerprints": [each.fingerprint for each in tasks],
            "classes": task.labels.classes.tolist(),
            **tuning.document(),
        },
    )
    stored = _stored_values(Path(folder), tuning.digest)
    trials: list[Trial] = []
    executor = executor or Executor()
    with executor.opened(tuning.at_once * tuning.divisions) as opened:
        while len(trials) < tuning.trials:
            is_late = tuning.time_limit is not None and (
                time.monotonic() - begun > tuning.time_limit
            )
            if trials and is_late:
                break
            numbers = range(len(trials), min(len(trials) + tuning.at_once, tuning.trials))
            proposals = _proposals(tuning, trials, numbers, stored)
            batch = [
                [
                    _job(each, tuning, number, values, _rivals(tuning, trials, division))
                    for division, each in enumerate(tasks)
                ]
                for number, values in proposals.items()
            ]
            opened.run([job for jobs in batch for job in jobs], folder, on_run=on_run)
            for (number, values), jobs in zip(proposals.items(), batch, strict=True):
                runs = [read_run(Path(folder) / job.name) for job in jobs]
                trials.append(_ended(number, values, runs, tuning.metric))
            if len(proposals) < len(numbers):  # everything was tried
                break
    return trials


def best_trial(trials: Sequence[Trial]) -> Trial:
    """The trial with the best score of those that went to their end; the first of equals."""
    ended = [trial for trial in trials if trial.state == "done" and trial.loss is not None]
    return min(ended, key=lambda trial: trial.loss if trial.loss is not None else np.inf)


def _proposals(
    tuning: Tuning,
    trials: Sequence[Trial],
    numbers: range,
    stored: Mapping[int, Mapping[str, Any]],
) -> dict[int, Mapping[str, Any]]:
    """What the trials of some numbers try, fewer where no others are left; 0 is the default.

    They are proposed in the order of their numbers, so that a search that is asked for more trials
    later begins with the same. What a number has tried before stays its own, should another version
    of Optuna propose something else.
    """
    is_first = numbers.start == 0
    count = len(numbers) - is_first
    values = propose(tuning.space, trials, count, [tuning.seed, numbers.start]) if count else []
    proposed = dict(zip(numbers, [{}, *values] if is_first else values, strict=False))
    return {number: stored.get(number, tried) for number, tried in proposed.items()}


def _stored_values(folder: Path, digest: str) -> dict[int, Mapping[str, Any]]:
    """What the finished trials of a search have tried, by their numbers."""
    stored: dict[int, Mapping[str, Any]] = {}
    for place in sorted(folder.glob("[!.]*/DONE")):
        try:
            details = read_run(place.parent).config.details
        except OtherFormatError:
            raise
        except ValueError:  # damaged: it is set aside where it is needed
            continue
        if details.get("search") == digest:
            stored[details["trial"]] = details["values"]
    return stored


def _rivals(tuning: Tuning, trials: Sequence[Trial], division: int) -> list[Mapping[int, float]]:
    """The losses of finished trials on a division, for those to come."""
    if not tuning.prune:
        return []
    return [
        trial.steps[division]
        for trial in trials
        if trial.state == "done" and trial.steps and trial.steps[division]
    ]


def _job(
    task: Task,
    tuning: Tuning,
    number: int,
    values: Mapping[str, Any],
    rivals: Sequence[Mapping[int, float]],
) -> TrialJob:
    told = {"search": tuning.digest, "trial": number, "values": dict(values)}
    job = make_job(
        replace(task, details={**task.details, **told}),
        model_of(tuning.parameters),
        command=COMMAND,
        seed=tuning.seed,
        part="valid",
        parameters=with_values(tuning.parameters, values),
        threads=tuning.threads,
    )
    return TrialJob(job.config, job.task, rivals)


def _ended(number: int, values: Mapping[str, Any], runs: Sequence[Run], metric: str) -> Trial:
    seconds = float(sum(run.outcome.get("seconds", 0.0) for run in runs))
    reasons = [str(run.outcome["failed"]) for run in runs if "failed" in run.outcome]
    if reasons:
        return Trial(number, values, "failed", None, None, seconds, reason=reasons[0])
    state: Literal["done", "pruned"] = (
        "pruned" if any(run.outcome.get("pruned") for run in runs) else "done"
    )
    score = float(np.mean([run.metrics[metric] for run in runs]))
    loss = metrics.metric(metric).loss(score)
    if not np.isfinite(loss):
        return Trial(number, values, "failed", None, None, seconds, reason="its score is undefined")
    steps = tuple({int(k): float(v) for k, v in run.outcome.get("steps", [])} for run in runs)
    return Trial(number, values, state, score, loss, seconds, steps)
