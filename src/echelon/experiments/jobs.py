"""Jobs: one run of a contestant on a task, as a function of its configuration alone."""

import time
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from echelon.curve import RankCurve
from echelon.data.kinds.text import TEXT, split_words
from echelon.evaluation import metrics
from echelon.experiments.contestants import contestant_parameters, make_model, model_of
from echelon.experiments.tasks import Task
from echelon.models.base import OnStep
from echelon.models.table import MODELS
from echelon.networks.table import FROZEN
from echelon.processes import world_size
from echelon.runs import Run, RunConfig, column_cells, row_cells
from echelon.training.devices import check_device
from echelon.training.recipes import Settings

CONSTANT, LINEAR, WORDS, FLOOR = "constant", "cumulative link", "bag of words", "best possible"
ENCODED = "linear on encodings"
MOST_RUNS, MOST_THREADS = 100_000, 1024
_TRAINING_ROWS = 1000  # of which as many are predicted as well
_LOOKED_AT = 64  # rows, to know what the columns are
_ENCODED_C = (1e-4, 1e-3, 1e-2, 1e-1)  # the same, of which the validation rows choose one
_WORDS_C = 4.0  # inverse strength of the penalty, chosen on validation rows of Coursera


@dataclass(frozen=True)
class Job:
    """A run that is to be made."""

    config: RunConfig
    task: Task = field(repr=False)

    @property
    def name(self) -> str:
        """Of the run's folder."""
        return self.config.name

    def run(self) -> Run:
        """Make the run, with the number of threads that its configuration says."""
        start, start_of_work = time.perf_counter(), time.process_time()
        with using_threads(self.config.threads):
            result = self.result()
        truth = _truth(self.task, self.config.part)
        scored = _scored_rows(self.task, self.config.part)
        arrays: dict[str, NDArray[Any]] = {
            "row": self.task.numbers.get(self.config.part, np.arange(len(truth))),
            "truth": truth,
            "prediction": result.prediction,
            "probabilities": result.probabilities.astype(np.float32),
            "crossings": result.crossings.astype(np.float32),
            **row_cells(scored, self.task.columns_by_kind),
        }
        return Run(
            config=self.config,
            history=result.history,
            metrics=metrics.all_scores(truth, result.prediction, result.probabilities),
            predictions={**arrays, **column_cells(scored, arrays, self.task.media)},
            outcome={
                **result.outcome,
                "seconds": time.perf_counter() - start,
                # Of the processor: what a run costs, also where others shared the machine with it.
                "cpu_seconds": time.process_time() - start_of_work,
            },
        )

    def result(self) -> "Result":
        """What the contestant says of the rows that are scored."""
        if self.config.method == FLOOR:
            assert self.task.floor is not None
            return _of_probabilities(self.task.floor)
        if self.config.method == CONSTANT:
            return constant_result(self.task, self.config.part)
        if self.config.method == WORDS:
            return _bag_of_words(self.task, self.config.part)
        if self.config.method == ENCODED:
            return _on_encodings(self.task, self.config)
        return fit_task(self.task, self.config)


def make_job(
    task: Task,
    method: str,
    *,
    command: str,
    parameters: Mapping[str, Any],
    seed: int | None = None,
    role: str = "method",
    part: str = "test",
    threads: int = 1,
) -> Job:
    """A job of a contestant as the command line names it, as in ``sord:temperature=2``."""
    if not 1 <= threads <= MOST_THREADS:
        raise ValueError(f"threads must be at least 1 and at most {MOST_THREADS:,}; got {threads}")
    processes = world_size()
    config = RunConfig(
        method=method,
        data=task.name,
        command=command,
        role=role,
        seed=seed,
        part=part,
        split=task.split,
        fingerprint=task.fingerprint,
        classes=task.labels.classes.tolist(),
        rows=task.rows,
        parameters={name: value for name, value in parameters.items() if value is not None},
        threads=threads,
        details={**task.details, "processes": processes} if processes > 1 else task.details,
    )
    return Job(config, task)


def baseline_jobs(
    task: Task, *, command: str, parameters: Mapping[str, Any], threads: int = 1
) -> list[Job]:
    """What every comparison holds unasked, so that a gain can be seen as one.

    Nothing is random in them, so that each is run once.
    """
    asked: dict[str, dict[str, Any]] = {CONSTANT: {}}
    if set(task.features.columns) - set(task.media):
        asked[LINEAR] = contestant_parameters("cumulative_link", parameters)
    if TEXT.name in task.columns_by_kind:
        asked[WORDS] = {}
    if (parameters.get("backbone_options") or {}).get(FROZEN):
        kept = ("backbone", "backbone_options", "inputs", "recipe", "device")
        chosen = {name: parameters[name] for name in kept if name in parameters}
        asked[ENCODED] = {**chosen, **task.columns_by_kind}
    jobs = [
        make_job(task, name, command=command, role="baseline", parameters=chosen, threads=threads)
        for name, chosen in asked.items()
    ]
    if task.floor is not None:
        floor = make_job(task, FLOOR, command=command, role="floor", parameters={}, threads=threads)
        jobs.insert(0, floor)
    return jobs


def check_settings(jobs: Sequence[Job]) -> dict[Hashable, Settings]:
    """The settings that the networks of jobs are trained with; wrong ones raise before any run."""
    settings: dict[Hashable, Settings] = {}
    for device in {job.config.parameters.get("device", "auto") for job in jobs}:
        check_device(device)
    for job in jobs:
        if not MODELS[model_of(job.config.parameters)].has_method:
            continue
        if job.config.role == "method" and (key := settings_key(job)) not in settings:
            model = make_model(job.config.parameters)
            settings[key] = model.training_settings(
                job.task.features.iloc[:_LOOKED_AT], len(job.task.ranks)
            )
    return settings


def settings_key(job: Job) -> Hashable:
    """The same for jobs whose networks are trained with the same settings."""
    return repr(job.config.parameters), len(job.task.ranks)


# ---- one run -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """What a contestant says of n rows: probabilities (n, K), ranks (n,), crossings (n,)."""

    probabilities: NDArray[np.float64]
    prediction: NDArray[np.int64]
    crossings: NDArray[np.float64]
    history: list[dict[str, float]] = field(default_factory=list)
    outcome: dict[str, Any] = field(default_factory=dict)


@contextmanager
def using_threads(number: int | None) -> Iterator[None]:
    """Compute with so many threads, and then with as many as before."""
    before = torch.get_num_threads()
    if number is not None:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _scored_rows(task: Task, part: str) -> pd.DataFrame:
    if part == "test":
        return task.test_features
    assert task.validation is not None
    return task.validation[0]


def _truth(task: Task, part: str) -> NDArray[np.int64]:
    if part == "test":
        return task.test_ranks
    assert task.validation is not None
    return task.validation[1]


def fit_task(task: Task, config: RunConfig, on_step: OnStep | None = None) -> Result:
    """Fit the model of a configuration, and predict the rows that it names.

    `on_step` watches the steps of the fit, and may end it.
    """
    model = make_model(
        config.parameters,
        classes=task.labels.classes.tolist(),
        random_state=config.seed or 0,
    )
    model.on_step = on_step
    reads_all = not MODELS[model_of(config.parameters)].tables_only

    def seen(frame: pd.DataFrame) -> pd.DataFrame:
        return frame if reads_all else frame.drop(columns=task.media)

    validation: dict[str, Any] = {} if task.validation is None else {
        "X_val": seen(task.validation[0]), "y_val": task.labels.from_ranks(task.validation[1]),
    }  # fmt: skip
    model.fit(
        seen(task.features), task.labels.from_ranks(task.ranks), groups=task.groups, **validation
    )
    curve = model.curve(seen(_scored_rows(task, config.part)))
    return Result(
        curve.probabilities.double().cpu().numpy(),
        curve.label(model.decision_rule()).cpu().numpy(),
        curve.crossings().cpu().numpy(),
        model.history_,
        {**model.outcome(), "training": _on_training_rows(model, seen(task.features), task.ranks)},
    )


def _on_training_rows(
    model: Any, features: pd.DataFrame, ranks: NDArray[np.int64]
) -> dict[str, float]:
    """How well a model predicts rows that it learnt from: that tells overfitting."""
    places = np.unique(np.linspace(0, len(ranks) - 1, _TRAINING_ROWS).astype(np.int64))
    probabilities = model.curve(features.iloc[places]).probabilities.double().cpu().numpy()
    score = metrics.ranked_probability_score(ranks[places], probabilities)
    size = {"rows": len(ranks), "columns": features.shape[1]}
    return {**size, "ranked_probability_score": score}


def constant_result(task: Task, part: str) -> Result:
    """The shares of the classes in the training rows, for every row."""
    counts = np.bincount(task.ranks, minlength=task.labels.num_classes)
    return _of_probabilities(np.tile(counts / counts.sum(), (len(_truth(task, part)), 1)))


def _bag_of_words(task: Task, part: str) -> Result:
    """A logistic regression on the words and pairs of words of the texts (TF-IDF), and no more."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, scored = (
        [_words_and_pairs(text) for text in frame[task.columns_by_kind[TEXT.name]]]
        for frame in (task.features, _scored_rows(task, part))
    )
    counts = Counter(word for words in texts for word in set(words))
    if max(counts.values(), default=0) < 2 or len(np.unique(task.ranks)) < 2:
        return constant_result(task, part)  # there is nothing to learn from
    words = TfidfVectorizer(analyzer=_as_it_is, min_df=2, sublinear_tf=True)
    model = make_pipeline(words, LogisticRegression(C=_WORDS_C, max_iter=1000))
    known = model.fit(texts, task.ranks).predict_proba(scored)
    probabilities = np.zeros((len(known), task.labels.num_classes))
    probabilities[:, model.classes_] = known
    return _of_probabilities(probabilities)


def _on_encodings(task: Task, config: RunConfig) -> Result:
    """A logistic regression on what the frozen encoder gives, and no more.

    The strength of its penalty is chosen on the validation rows, where there are such.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_model(config.parameters, random_state=0)
    frames = [task.features, _scored_rows(task, config.part)]
    if task.validation is not None:
        frames.append(task.validation[0])
    encoded, scored, *held = model.frozen_features(*frames)

    def fitted(strength: float) -> Any:
        regression = LogisticRegression(C=strength, max_iter=300, tol=1e-3)
        return make_pipeline(StandardScaler(), regression).fit(encoded, task.ranks)

    def predicted(made: Any, rows: NDArray[Any]) -> NDArray[np.float64]:
        probabilities = np.zeros((len(rows), task.labels.num_classes))
        probabilities[:, made.classes_] = made.predict_proba(rows)
        return probabilities

    models = [fitted(strength) for strength in (_ENCODED_C if held else _ENCODED_C[1:2])]
    if held:
        assert task.validation is not None
        ranks = task.validation[1]
        scores = [
            metrics.ranked_probability_score(ranks, predicted(made, held[0])) for made in models
        ]
        models = [models[int(np.argmin(scores))]]
    return _of_probabilities(predicted(models[0], scored))


def _words_and_pairs(text: Any) -> list[str]:
    words = split_words(text)
    return words + [f"{a} {b}" for a, b in pairwise(words)]


def _as_it_is(words: list[str]) -> list[str]:
    return words


def _of_probabilities(probabilities: NDArray[np.float64]) -> Result:
    curve = RankCurve(torch.from_numpy(probabilities).log())
    return Result(probabilities, curve.median().numpy(), np.zeros(len(probabilities)))
