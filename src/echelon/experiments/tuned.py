"""``echelon.tune``: from a table and a model's name to the tuned model and what is known of it."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from echelon.data.kinds.base import CELL_KINDS
from echelon.evaluation import metrics
from echelon.experiments.contestants import (
    contestant_spec,
    make_model,
    model_of,
    model_parameters,
    with_values,
)
from echelon.experiments.execute import Executor, Report
from echelon.experiments.jobs import using_threads
from echelon.experiments.proposing import Trial, make_study
from echelon.experiments.tasks import Task, table_task
from echelon.experiments.tuning import Tuning, best_trial, search
from echelon.extras import require
from echelon.models.table import MODELS
from echelon.spaces import Space, read_space

# What is tuned where no model is named: the first that reads all the columns.
DEFAULT_MODELS = ("boosting", "network")
_TRIALS = "trials"  # the folder of their runs
_LOOKED_AT = 64  # rows, to know what the columns are


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search.

    Parameters
    ----------
    model : CurveClassifier
        Fitted with the best settings on all rows but those of the test.
    best_ : dict
        The best settings, by the names of the space; empty where the default is the best.
    parameters_ : dict
        All parameters of the model that are not left at their defaults, these settings included.
    trials_ : DataFrame
        A row for each trial: its number, state, score, seconds and what was tried.
    metric : str
        The metric that chose the best trial.
    validation_ : dict
        The scores of the ``"default"`` and of the ``"best"`` settings on the validation rows, which
        have chosen: the latter is too good to be true.
    test_ : dict from str to dict, or None
        All metrics of both on the test rows, which no trial has seen; None without such rows.
    space : mapping
        What was searched, by name.
    _trials : sequence of Trial
        The trials as they were run.

    Examples
    --------
    >>> import echelon
    >>> data = echelon.data.make_friedman(200, num_classes=3)
    >>> tuned = echelon.tune(data.features, data.ranks, "cumulative_link", trials=2, workers=1)
    >>> sorted(tuned.test_), len(tuned.trials_)
    (['best', 'default'], 2)
    """

    model: Any
    best_: dict[str, Any]
    parameters_: dict[str, Any]
    trials_: pd.DataFrame = field(repr=False)
    metric: str
    validation_: dict[str, float]
    test_: dict[str, dict[str, float]] | None
    space: Space = field(repr=False)
    _trials: Sequence[Trial] = field(default=(), repr=False)

    def study(self) -> Any:
        """The trials as a study of Optuna, in memory, for its charts and importances.

        Its values are to be made small: of a metric that is better when higher, they are negative.
        """
        return make_study(self.space, self._trials)

    @property
    def spec(self) -> str:
        """The tuned model as ``--model`` of `echelon fit` takes it."""
        return contestant_spec(self.parameters_)

    def document(self) -> dict[str, Any]:
        """All but the model, as values of JSON."""
        return {
            "model": model_of(self.parameters_),
            "metric": self.metric,
            "spec": self.spec,
            "best": self.best_,
            "parameters": self.parameters_,
            "validation": self.validation_,
            "test": self.test_,
            "trials": [
                {
                    "trial": trial.number, "state": trial.state, "score": trial.score,
                    "seconds": round(trial.seconds, 3), "values": dict(trial.values),
                    **({"reason": trial.reason} if trial.reason else {}),
                }
                for trial in self._trials
            ],
        }  # fmt: skip


def tune(
    X: Any,  # noqa: N803
    y: Any,
    model: Any = None,
    *,
    space: Mapping[str, Any] | None = None,
    trials: int = 30,
    metric: str = "ranked_probability_score",
    classes: Sequence[Any] | None = None,
    groups: Any = None,
    test_share: float = 0.25,
    validation_share: float = 0.2,
    divisions: int = 1,
    prune: bool = True,
    time_limit: float | None = None,
    at_once: int = 4,
    workers: int | None = None,
    cluster: str | None = None,
    threads: int = 1,
    folder: str | Path | None = None,
    random_state: int = 0,
) -> Tuned:
    """Search the settings of a model with Optuna, and say how good the best ones really are.

    A share of the rows is kept for the test and given to no trial. Of the others, some are
    validation rows, on which trials are compared; the first trial is the default. The best settings
    are then fitted on all rows but those of the test, and scored on these, beside the default.
    Needs the extra `tune`.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
        The rows, as every model takes them.
    y : array-like, shape (n,)
        The labels of the rows.
    model : str or model, optional
        A name of ``echelon.MODELS``, with what is not to be searched after colons as in
        ``"boosting:leaves=31"``, a method as in ``"corn/mlp"``, or an unfitted model. Without it,
        boosted trees.
    space : mapping, optional
        What to search instead of what the model proposes: a list of values, or
        ``{"low": 0.01, "high": 0.2, "log": True}``, for each name. A dot goes into a parameter that
        is a mapping: ``"settings.learning_rate"``.
    trials : int
        How many, with the default among them; fewer where the space holds no more.
    metric : str
        One of ``echelon.evaluation.metrics.METRICS``, which chooses on the validation rows.
    classes : sequence, optional
        All labels, the lowest first. Needed for strings.
    groups : array-like, shape (n,), optional
        Rows of one group stay on one side of every division.
    test_share : float
        The share of the rows that no trial sees; 0 for none, and then there is no honest score.
    validation_share : float
        The share of the other rows on which trials are compared.
    divisions : int
        On how many random divisions into training and validation rows each trial is scored; the
        mean counts. More make the choice surer, which small tables need, and take as many times.
    prune : bool
        Whether the training of a network ends early that is behind the median of the trials before
        it. Other models have no epochs that could be compared.
    time_limit : float, optional
        Seconds after which no more trials begin.
    at_once : int
        How many trials are proposed from the same knowledge, and can run side by side. It is not
        taken from the machine, as it decides what is proposed.
    workers : int, optional
        Processes at once: as many as there are cores without it, and no more than `at_once` times
        `divisions`.
    cluster : str, optional
        The address of a Ray cluster to run on, or ``"local"``. Needs the extra `ray`.
    threads : int
        The number of threads that each fit uses.
    folder : path, optional
        Where the trials are kept, so that the same search goes on there after an interruption, or
        with more trials. Without it they are forgotten.
    random_state : int
        The seed of the divisions, of the proposals and of every fit.

    Examples
    --------
    >>> from echelon.data import make_friedman
    >>> data = make_friedman(300, num_classes=3)
    >>> tuned = tune(data.features, data.ranks, "cumulative_link", trials=3, workers=1)
    >>> tuned.trials_["state"].tolist()
    ['done', 'done', 'done']
    >>> tuned.validation_["best"] <= tuned.validation_["default"]
    True
    >>> tuned.model.predict_proba(data.features[:2]).shape
    (2, 3)
    """
    parameters = model_parameters(DEFAULT_MODELS[0] if model is None else model)
    frame = _as_frame(X)
    kinds = {kind: parameters[kind] for kind in CELL_KINDS if parameters.get(kind) is not None}
    task, test = divide_task(
        "the rows", frame, y, classes=classes, groups=groups, test_share=test_share,
        seed=random_state, columns_by_kind=kinds,
    )  # fmt: skip
    tuning = make_tuning(
        task, parameters, space, metric=metric, trials=trials, seed=random_state, prune=prune,
        at_once=at_once, divisions=divisions, validation_share=validation_share,
        time_limit=time_limit, threads=threads,
    )  # fmt: skip
    is_named = isinstance(X, pd.DataFrame)
    return run_tuning(
        task, tuning, folder, has_test=test, executor=Executor(workers, cluster), is_named=is_named
    )


def run_tuning(
    task: Task,
    tuning: Tuning,
    folder: str | Path | None = None,
    *,
    has_test: bool = True,
    executor: Executor | None = None,
    on_run: Report | None = None,
    is_named: bool = True,
) -> Tuned:
    """Search, fit the best settings, and score them where nothing was chosen.

    `has_test` says whether the task has test rows; `is_named` whether its columns have names that
    the user gave, which the model then asks for.
    """
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="echelon-tune-"))
        trials = search(task, tuning, Path(folder) / _TRIALS, executor=executor, on_run=on_run)
    best = best_trial(trials)
    parameters = with_values(tuning.parameters, best.values)
    model = _fitted(task, tuning, parameters, is_named)
    test = None
    if has_test:
        test = {"best": _scores(task, model, is_named)}
        default = model if not best.values else _fitted(task, tuning, tuning.parameters, is_named)
        test = {"default": _scores(task, default, is_named), **test}
    default_score, best_score = trials[0].score, best.score
    assert default_score is not None
    assert best_score is not None
    return Tuned(
        model=model,
        best_=dict(best.values),
        parameters_=parameters,
        trials_=_table(trials, tuning),
        metric=tuning.metric,
        validation_={"default": default_score, "best": best_score},
        test_=test,
        space=tuning.space,
        _trials=trials,
    )


def make_tuning(
    task: Task, parameters: Mapping[str, Any], space: Mapping[str, Any] | None, **options: Any
) -> Tuning:
    """What is searched of a model on a task: the space given, or what is worth it for such rows."""
    require("optuna", "searches by `tune`")
    row = MODELS[model_of(parameters)]
    if row.tables_only and task.media:
        raise ValueError(
            f"the model {row.name} reads numbers, dates and categories only; got the column "
            f"{task.media[0]!r} of another kind: tune the model network, or leave the column out"
        )
    if space is not None:
        return Tuning(parameters, read_space(space), **options)
    head = task.features.iloc[:_LOOKED_AT]
    proposed = make_model(parameters).search_space(head, len(task.ranks))
    free = {name: each for name, each in proposed.items() if not _is_given(parameters, name)}
    return Tuning(parameters, free, **options)


def divide_task(
    name: str,
    frame: pd.DataFrame,
    y: Any,
    *,
    classes: Sequence[Any] | None,
    groups: Any,
    test_share: float,
    seed: int,
    columns_by_kind: Mapping[str, str],
) -> tuple[Task, bool]:
    """The task of a search, and whether it has test rows."""
    if isinstance(test_share, bool) or not 0 <= test_share < 1:
        raise ValueError(f"test_share must be at least 0 and below 1; got {test_share!r}")
    task = table_task(
        name, frame, y, classes=classes, groups=groups, test_share=test_share or 0.5,
        split_seed=seed, columns_by_kind=columns_by_kind,
    )  # fmt: skip
    if test_share:
        return task, True
    ranks = task.labels.to_ranks(y)
    whole = replace(
        task, features=frame, ranks=ranks, groups=None if groups is None else np.asarray(groups),
        test_features=frame.iloc[:0], test_ranks=ranks[:0], details={"test_share": 0.0},
        numbers={"train": np.arange(len(ranks))},
    )  # fmt: skip
    return whole, False


def _is_given(parameters: Mapping[str, Any], name: str) -> bool:
    """Whether parameters have a value by a name with dots."""
    inner: Any = parameters
    for step in name.split("."):
        if not isinstance(inner, Mapping) or inner.get(step) is None:
            return False
        inner = inner[step]
    return True


def _as_frame(X: Any) -> pd.DataFrame:  # noqa: N803
    if isinstance(X, pd.DataFrame):
        numbered: pd.DataFrame = X.reset_index(drop=True)
        return numbered
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"X must be a DataFrame or an array of shape (n, columns); got {array.ndim} "
            f"dimensions: put texts or images into a column of a DataFrame, and name it, as in "
            f"OrdinalClassifier(text='review')"
        )
    named: pd.DataFrame = pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])])
    return named


def _fitted(task: Task, tuning: Tuning, parameters: Mapping[str, Any], is_named: bool) -> Any:
    """The model with some settings, on all rows but those of the test."""
    model = make_model(parameters, classes=task.labels.classes.tolist(), random_state=tuning.seed)
    with using_threads(tuning.threads):
        return model.fit(
            task.features if is_named else task.features.to_numpy(),
            task.labels.from_ranks(task.ranks),
            groups=task.groups,
        )


def _scores(task: Task, model: Any, is_named: bool) -> dict[str, float]:
    curve = model.curve(task.test_features if is_named else task.test_features.to_numpy())
    labels = curve.label(model.decision_rule()).cpu().numpy()
    probabilities = curve.probabilities.double().cpu().numpy()
    return metrics.all_scores(task.test_ranks, labels, probabilities)


def _table(trials: Sequence[Trial], tuning: Tuning) -> pd.DataFrame:
    table: pd.DataFrame = pd.DataFrame(
        [
            {
                "trial": trial.number, "state": trial.state,
                tuning.metric: np.nan if trial.score is None else trial.score,
                "seconds": trial.seconds,
                "steps": max((len(steps) for steps in trial.steps), default=0),
                **{name: trial.values.get(name) for name in tuning.space},
            }
            for trial in trials
        ]
    )  # fmt: skip
    return table
