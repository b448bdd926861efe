"""Search a grid of settings: every combination, scored on the validation part alone."""

import importlib
import itertools
import math
import sys
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from echelon.data.rows import Rows, divide
from echelon.evaluation import metrics
from echelon.experiments.contestants import (
    check_contestants,
    contestant_parameters,
    make_model,
    with_values,
)
from echelon.experiments.execute import Executor, Report, RunsFailed
from echelon.experiments.jobs import (
    MOST_RUNS,
    Job,
    check_settings,
    make_job,
    settings_key,
    using_threads,
)
from echelon.experiments.tasks import Task
from echelon.models.network import OrdinalClassifier
from echelon.runs import Run

_OF_THE_RUN = ("method", "classes", "random_state", "checkpoint_dir", "verbose")  # set by each run
_PROBES = 24
_PROBE_STEPS = 12
_PROBE_ROWS = 2000
_PROBE_SECONDS = 15  # slow networks: what a few runs tell is enough


@dataclass(frozen=True)
class Search:
    """What a configuration file of ``echelon grid`` says.

    Parameters
    ----------
    grid : mapping
        From a parameter of :class:`echelon.OrdinalClassifier` to the values to try. A dot goes
        into one that is itself a mapping: ``settings.learning_rate``.
    methods : sequence of str
        Every method gets every combination, and its own best one.
    data : str, optional
        A table as the command line takes it, or ``"fireman"``, which is generated; without a
        target, a folder with the CORN paper's partition of that table.
    target : str, optional
        The column that holds the labels.
    classes : sequence of str
        All labels, the lowest first; labels that are numbers need no such list.
    drop : sequence of str
        The columns to leave out.
    group : str, optional
        The column that names the group of each row; a group stays in one subset.
    group_pattern : str, optional
        A regular expression that takes the group of each row out of the name of its image.
    text : str, optional
        The column that holds texts.
    image : str, optional
        The column that holds paths of images.
    image_folder : str, optional
        The folder where relative paths of images start; without it, that of the table.
    metric : str
        The metric that chooses among combinations, on validation rows.
    seeds : int
        How many seeds every combination is tried with.
    test_seeds : int
        How many seeds the best combination of each method is scored with on test rows; 0 for none.
    test_share : float
        The share of the rows of a table that are for the test; divisions that come with the data
        stay as they are.
    validation_share : float
        The share of the other rows that are for validation; as above.
    recipe : str
        The named set of training choices, ``"default"`` or ``"paper"``.
    backbone : str, optional
        The network that reads the rows, instead of the recipe's.
    parameters : mapping
        Other parameters of the estimator, the same for all combinations.
    """

    grid: Mapping[str, Sequence[Any]]
    methods: Sequence[str] = ("ce", "ornn", "coral", "corn")
    data: str | None = None
    target: str | None = None
    classes: Sequence[Any] = ()
    drop: Sequence[str] = ()
    group: str | None = None
    group_pattern: str | None = None
    text: str | None = None
    image: str | None = None
    image_folder: str | None = None
    metric: str = "mae"
    seeds: int = 1
    test_seeds: int = 5
    test_share: float = 0.25
    validation_share: float = 0.1
    recipe: str = "default"
    backbone: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Search":
        """From a parsed file; unknown keys are refused, and so are axes without values."""
        known = [field_.name for field_ in fields(cls)]
        unknown = sorted(set(document) - set(known))
        if unknown:
            raise ValueError(
                f"the configuration has an unknown key {unknown[0]!r}; known are: "
                f"{', '.join(known)}"
            )
        if "grid" not in document:
            raise ValueError("the configuration needs a table [grid] with the values to try")
        # A dot without quotes, and a table of its own, make TOML put one mapping into another.
        search = cls(**{**document, "grid": _with_dots(document["grid"])})
        search.check()
        return search

    @classmethod
    def read(cls, path: str | Path) -> "Search":
        """From a TOML file."""
        return cls.of(read_toml(path))

    def document(self) -> dict[str, Any]:
        """What decides the choices, but for the methods and seeds, which may become more."""
        return {
            field_.name: getattr(self, field_.name)
            for field_ in fields(self)
            if field_.name not in ("methods", "seeds", "test_seeds")
        }

    def check(self) -> None:
        """Raise for what cannot be run."""
        self._check_types()
        check_contestants(self.methods, self.seeds)
        if self.test_seeds:
            check_contestants(self.methods, self.test_seeds)
        metrics.metric(self.metric)
        parameters = set(OrdinalClassifier().get_params()) - set(_OF_THE_RUN)
        for name, value in self.parameters.items():
            if name not in parameters:
                raise ValueError(
                    f"parameters.{name} is none that a file may set; those are: "
                    f"{', '.join(sorted(parameters))}"
                )
            if name in OrdinalClassifier.nested and not isinstance(value, Mapping):
                raise ValueError(f"parameters.{name} must be a table; got {value!r:.80}")
        for name, values in self.grid.items():
            first, _, rest = name.partition(".")
            if first not in parameters or (bool(rest) != (first in OrdinalClassifier.nested)):
                raise ValueError(
                    f"the grid names {name!r}, which is no parameter of OrdinalClassifier; inside "
                    f"{', '.join(OrdinalClassifier.nested)} write a dot: settings.learning_rate"
                )
            if not isinstance(values, (list, tuple)) or not values:
                raise ValueError(f"grid.{name} must be a list of values; got {values!r}")
        combinations = math.prod(len(values) for values in self.grid.values())
        if (runs := combinations * len(self.methods) * self.seeds) > MOST_RUNS:
            raise ValueError(
                f"the grid has {runs:,} runs, and the most is {MOST_RUNS:,}: try fewer values"
            )

    def _check_types(self) -> None:
        for name in ("methods", "classes", "drop"):
            values = getattr(self, name)
            kinds = (str, int, float) if name == "classes" else (str,)
            if not isinstance(values, (list, tuple)) or any(
                not isinstance(item, kinds) for item in values
            ):
                raise ValueError(f"{name} must be a list of names; got {values!r:.80}")
        for name in ("data", "target", "group", "group_pattern", "text", "image", "image_folder",
                     "backbone", "metric", "recipe"):  # fmt: skip
            value = getattr(self, name)
            is_optional = name not in ("metric", "recipe")
            if not isinstance(value, str) and not (is_optional and value is None):
                raise ValueError(f"{name} must be a text; got {value!r:.80}")
        for name in ("seeds", "test_seeds"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{name} must be an integer of at least 0; got {value!r:.80}")
        for name in ("test_share", "validation_share"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
                raise ValueError(f"{name} must be a number between 0 and 1; got {value!r:.80}")
        for name in ("grid", "parameters"):
            value = getattr(self, name)
            if not isinstance(value, Mapping):
                raise ValueError(f"{name} must be a table of TOML; got {value!r:.80}")
            _check_values(value, name)

    def combinations(self, task: Task) -> list[dict[str, Any]]:
        """Every combination of the grid, as parameters of the estimator."""
        backbone = {} if self.backbone is None else {"backbone": self.backbone}
        shared = {"recipe": self.recipe, **backbone, **task.columns_by_kind, **self.parameters}
        return [
            with_values(shared, dict(zip(self.grid, values, strict=True)))
            for values in itertools.product(*self.grid.values())
        ]

    def jobs(self, task: Task, threads: int = 1) -> list[Job]:
        """Every run of the search."""
        return [
            make_job(
                task,
                spec,
                command="grid",
                seed=seed,
                part="valid",
                parameters=contestant_parameters(spec, combination),
                threads=threads,
            )
            for spec in dict.fromkeys(self.methods)
            for combination in self.combinations(task)
            for seed in range(self.seeds)
        ]


@dataclass(frozen=True)
class Choice:
    """The best combination of a method, its mean score, and how many were tried."""

    method: str
    parameters: Mapping[str, Any]
    score: float
    tried: int


def search_grid(
    task: Task,
    search: Search,
    folder: str | Path,
    *,
    executor: Executor | None = None,
    threads: int = 1,
    on_run: Report | None = None,
) -> list[Choice]:
    """Run the grid on a task that has a validation part, and choose for each method."""
    jobs = search.jobs(task, threads)
    check_settings(jobs)
    runs = (executor or Executor()).run(jobs, folder, on_run=on_run)
    return choose(runs, search.metric)


def choose(runs: Sequence[Run], metric: str) -> list[Choice]:
    """The combination with the best mean score of each method; the first of equals."""
    by_method: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        same = by_method.setdefault(run.config.method, {})
        same.setdefault(repr(run.config.document()["parameters"]), []).append(run)
    row = metrics.metric(metric)
    choices = []
    for method, combinations in by_method.items():
        scores = {
            key: float(np.mean([run.metrics[metric] for run in runs_of_key]))
            for key, runs_of_key in combinations.items()
        }
        best = min(scores, key=lambda key: row.loss(scores[key]))
        parameters = combinations[best][0].config.parameters
        choices.append(Choice(method, parameters, scores[best], len(scores)))
    return choices


def final_jobs(
    task: Task, choices: Sequence[Choice], seeds: int, *, command: str, threads: int = 1
) -> list[Job]:
    """The best combination of each method with several seeds, on the test part."""
    return [
        make_job(
            task,
            choice.method,
            command=command,
            seed=seed,
            parameters=choice.parameters,
            threads=threads,
        )
        for choice in choices
        for seed in range(seeds)
    ]


def with_validation(task: Task, share: float) -> Task:
    """The same task with a validation part cut from its training rows, if it has none."""
    if task.validation is not None:
        return task
    rows = Rows.of(task.features, task.ranks, task.columns_by_kind, task.groups)
    held, rest = divide(rows, [share], task.split)
    numbers = task.numbers.get("train", np.arange(len(task.ranks)))
    return replace(
        task,
        features=task.features[rest].reset_index(drop=True),
        ranks=task.ranks[rest],
        groups=None if task.groups is None else task.groups[rest],
        validation=(task.features[held].reset_index(drop=True), task.ranks[held]),
        details={**task.details, "validation_share": share},
        numbers={**task.numbers, "train": numbers[rest], "valid": numbers[held]},
    )


def _with_dots(grid: Any) -> Any:
    """The axes of a grid by their names with dots, also of those that stand in tables inside it."""
    if not isinstance(grid, Mapping):
        return grid
    axes: dict[str, Any] = {}
    for name, value in grid.items():
        inner = _with_dots(value) if isinstance(value, Mapping) and value else None
        axes |= {name: value} if inner is None else {f"{name}.{key}": inner[key] for key in inner}
    return axes


def _check_values(value: Any, name: str) -> None:
    """Raise for what no setting is: dates, and numbers that are not finite."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _check_values(item, f"{name}.{key}")
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check_values(item, name)
    elif not isinstance(value, (str, int, float)) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise ValueError(f"{name} must be texts, finite numbers or true and false; got {value!r}")


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file; one that cannot be read raises an error that says why."""
    tomllib = _toml_reader()
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a readable TOML file: {error}") from None
    return document


def _toml_reader() -> Any:
    if sys.version_info >= (3, 11):
        return importlib.import_module("tomllib")
    return importlib.import_module("tomli")


# ---- how long it will take -----------------------------------------------------------------------


def estimate_seconds(jobs: Sequence[Job]) -> float:
    """How long the runs would take here, one after the other, from a few steps of some of them.

    The time of a step depends most on the batch size: up to 24 jobs, spread evenly over the batch
    sizes, are started for a few steps each until a quarter of a minute is over, and the others are
    taken to be like those of their size. A model that is not trained in steps takes what its limit
    allows, or what a fit to some of the rows takes for each of them.
    """
    sizes: dict[int, list[tuple[Job, int]]] = {}
    known = check_settings(jobs)
    total = 0.0
    fits: dict[Hashable, float] = {}
    for job in jobs:
        if job.config.role != "method":
            continue
        if (key := settings_key(job)) not in known:
            if key not in fits:
                fits[key] = _fit_seconds(job)
            total += fits[key]
            continue
        settings = known[key]
        steps = max(1, len(job.task.ranks) // settings.batch_size) * settings.max_epochs
        sizes.setdefault(settings.batch_size, []).append((job, steps))
    each = max(1, _PROBES // max(1, len(sizes)))
    end = time.monotonic() + _PROBE_SECONDS
    if sizes:
        _step_seconds(next(iter(sizes.values()))[0][0], next(iter(sizes)))  # imports, first touches
    for batch_size, members in sizes.items():
        places = np.unique(
            np.linspace(0, len(members) - 1, min(each, len(members))).round().astype(int)
        )
        taken: list[float] = []
        for place in places:
            if taken and time.monotonic() > end:
                break
            taken.append(_step_seconds(members[place][0], batch_size))
        total += float(np.mean(taken)) * sum(steps for _, steps in members)
    return total


def _fit_seconds(job: Job) -> float:
    """Of a model that is not trained in steps."""
    task = job.task
    rows = min(len(task.ranks), _PROBE_ROWS)
    labels = task.labels.from_ranks(task.ranks[:rows])
    model = make_model(job.config.parameters, classes=task.labels.classes.tolist(), random_state=0)
    limit = model.get_params(deep=False).get("time_limit")
    if limit is not None:
        return float(limit)
    with using_threads(job.config.threads):
        start = time.perf_counter()
        model.fit(task.features.iloc[:rows], labels)
        return (time.perf_counter() - start) * len(task.ranks) / rows


def _step_seconds(job: Job, batch_size: int) -> float:
    """Of a training step: two fits on a few batches, one twice as long as the other."""
    task, rows = job.task, min(len(job.task.ranks), _PROBE_STEPS * batch_size)
    features, ranks = task.features.iloc[:rows], task.ranks[:rows]
    labels = task.labels.from_ranks(ranks)
    taken = []
    for epochs in (1, 3):
        chosen = {"settings.max_epochs": epochs, "classes": task.labels.classes.tolist()}
        model = _estimator(job, chosen)
        with using_threads(job.config.threads):
            start = time.perf_counter()
            try:
                model.fit(features, labels, X_val=features.iloc[:2], y_val=labels[:2])
            except (TypeError, AttributeError, KeyError, IndexError) as error:
                reason = f"{type(error).__name__}: {error}"
                raise RunsFailed(f"a trial of {job.name} failed ({reason})") from None
            taken.append(time.perf_counter() - start)
    return max(taken[1] - taken[0], 1e-9) / (2 * max(1, rows // batch_size))


def _estimator(job: Job, chosen: Mapping[str, Any]) -> Any:
    return make_model(with_values(job.config.parameters, {**chosen, "random_state": 0}))
