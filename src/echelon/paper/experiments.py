"""The experiments of the CORN paper: its data, its settings or a search for them, five seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from echelon.experiments.comparing import claim
from echelon.experiments.contestants import (
    check_contestants,
    contestant_parameters,
    make_model,
    model_of,
)
from echelon.experiments.execute import Executor, Report
from echelon.experiments.jobs import (
    Job,
    baseline_jobs,
    check_settings,
    make_job,
)
from echelon.experiments.searching import Choice, Search, final_jobs, search_grid, with_validation
from echelon.experiments.tasks import Task
from echelon.models.table import MODELS
from echelon.networks.table import FROZEN
from echelon.paper.sets import SETS, Request, SetRow
from echelon.runs import Run

BATCHES = ("published", "shuffled")
SUBSETS = ("paper", "published")
DIVISIONS = ("one", "seeds")


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments, or the same protocol on data that need no file.

    Parameters
    ----------
    dataset : str
        One of :data:`echelon.paper.sets.SETS`: those of the paper, images that are freely had, and
        what needs no file, which is generated or comes with scikit-learn.
    data : path, optional
        The published partition, or a file to make one of. Without it generated data stand in for
        the paper's: Friedman's function, reviews from a grammar, or images of discs.
    images : path, optional
        The folder of the images; without it, that of the data.
    category : str, optional
        Of AES.
    backbone : str, optional
        Instead of the paper's network.
    backbone_options : mapping, optional
        Such as ``{"frozen": True}`` or ``{"weights": "vgg16_bn.safetensors"}``.
    recipe : {"paper", "default"}
        How the networks are trained: as the paper does it, or as echelon does.
    batches : {"published", "shuffled"}
        For recipe ``"paper"`` on Fireman: the class-balanced batches in one fixed order of the
        published code, or shuffled ones, as the paper says.
    subsets : {"paper", "published"}
        The subsets as the paper says it, or as the published runs on faces have them: validation
        and test swapped.
    divisions : {"one", "seeds"}
        One division of a table for all seeds, or one for each of them, as the published runs on
        texts have it.
    persons : bool
        Whether all images of a person stay in one subset, of MORPH-2.
    methods : sequence of str
        Those of the data set without it.
    seeds : int
    search : Search, optional
        A grid to choose each method's settings from, on the validation part; without it those of
        the paper's table are taken.
    max_epochs : int, optional
        Instead of the recipe's.
    threads : int
        Of each run.
    """

    dataset: str = "fireman"
    data: str | Path | None = None
    images: str | Path | None = None
    category: str | None = None
    backbone: str | None = None
    backbone_options: Mapping[str, Any] | None = None
    recipe: str = "paper"
    batches: str = "published"
    subsets: str = "paper"
    divisions: str = "one"
    persons: bool = False
    methods: Sequence[str] = ()
    seeds: int = 5
    search: Search | None = None
    max_epochs: int | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        if self.dataset not in SETS:
            raise ValueError(
                f"the experiments that can be run are {', '.join(SETS)}; got {self.dataset!r}"
            )
        for name, known in (("batches", BATCHES), ("subsets", SUBSETS), ("divisions", DIVISIONS)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}; got {getattr(self, name)!r}"
                )
        self._refuse_strange()
        if not self.methods:
            object.__setattr__(self, "methods", self.row.methods)
        check_contestants(self.methods, self.seeds)
        if self.search is not None and self.row.kind != "table":
            # a file that names no network of its own searches the experiment's
            mine, theirs = self.parameters, self.search.parameters
            settings = {**(mine["settings"] or {}), **(theirs.get("settings") or {})}
            given = {
                "settings": settings,
                **{k: mine.get(k) for k in ("backbone_options", "inputs")},
            }
            search = replace(
                self.search,
                backbone=self.search.backbone or mine["backbone"],
                parameters={
                    **{name: value for name, value in given.items() if value},
                    **{name: value for name, value in theirs.items() if name != "settings"},
                },
            )
            object.__setattr__(self, "search", search)

    def _refuse_strange(self) -> None:
        """Raise for what the data set does not have."""
        row = self.row
        if row.read is None and self.data is not None:
            raise ValueError(f"{self.dataset} needs no data; got {self.data}")
        swapped = ", ".join(name for name, each in SETS.items() if each.is_swapped)
        if self.subsets == "published" and not row.is_swapped:
            raise ValueError(
                f"only the published runs of {swapped} swap validation and test; got "
                f"{self.dataset}: leave out --subsets published"
            )
        if self.divisions == "seeds" and (row.kind != "text" or self.data is None):
            raise ValueError(
                f"a division for each seed is made of texts in a file; got {self.dataset}: give "
                f"the data, or leave out --divisions seeds"
            )
        if self.divisions == "seeds" and self.search is not None:
            raise ValueError(
                "a search chooses settings on one division; leave out --search or --divisions seeds"
            )
        if self.persons and (not row.has_persons or self.data is None):
            raise ValueError(
                f"the persons are known in the data of morph2 only; got {self.dataset}: give the "
                f"data, or leave out --persons"
            )
        if self.category is not None and not row.has_categories:
            raise ValueError(f"only aes has categories; got {self.dataset}: leave out --category")

    @property
    def row(self) -> SetRow:
        """What is known of the data set."""
        return SETS[self.dataset]

    @property
    def actual(self) -> str:
        """The data set that is read: what stands in for one whose data are not given."""
        return self.dataset if self.data is not None else self.row.stands_in or self.dataset

    def task(self, seed: int = 0) -> Task:
        """The data of the experiment, divided: once, or for a seed."""
        if self.data is None:
            return SETS[self.actual].task(None)
        place = Path(self.data)
        images = Path(self.images or (place if place.is_dir() else place.parent))
        request = Request(place, images, self.category, seed, self.persons)
        return self.row.task(request, swap=self.subsets == "published")

    def tasks(self) -> list[Task]:
        """The divisions of the data: one, or one for each seed."""
        return [self.task(s) for s in range(self.seeds if self.divisions == "seeds" else 1)]

    @property
    def parameters(self) -> dict[str, Any]:
        """Of the estimator, the same for all methods."""
        row = SETS[self.actual]
        is_paper = self.recipe == "paper"
        chosen = {
            "batches": self.batches if is_paper and row.kind == "table" else None,
            "max_epochs": self.max_epochs,
        }
        settings = {name: value for name, value in chosen.items() if value is not None}
        return {
            "recipe": self.recipe,
            "settings": settings or None,
            "backbone": self.backbone or row.backbone,
            "backbone_options": self.backbone_options,
            **({"inputs": row.inputs} if is_paper and row.inputs else {}),
        }

    def parameters_of(self, method: str) -> dict[str, Any]:
        """Of the estimator for a method: those of all, and what its published runs had."""
        parameters = self.parameters
        if self.recipe != "paper":
            return parameters
        published = SETS[self.actual].settings(method, self.category)
        settings = {**published, **(parameters["settings"] or {})}
        return {**parameters, "settings": settings or None}

    def jobs(
        self, tasks: Task | Sequence[Task], choices: Sequence[Choice] | None = None
    ) -> list[Job]:
        """Every run on the test subset, with the published settings or those that were chosen."""
        tasks = [tasks] if isinstance(tasks, Task) else tasks
        jobs = [
            job
            for task in tasks
            for job in baseline_jobs(
                task,
                command="reproduce",
                parameters=self.parameters if (self.backbone_options or {}).get(FROZEN) else {},
                threads=self.threads,
            )
        ]
        if choices is not None:
            return jobs + final_jobs(
                tasks[0], choices, self.seeds, command="reproduce", threads=self.threads
            )
        return jobs + [
            make_job(
                task,
                spec,
                command="reproduce",
                seed=seed,
                parameters=contestant_parameters(
                    spec, {**self.parameters_of(spec), **task.columns_by_kind}
                ),
                threads=self.threads,
            )
            for spec in dict.fromkeys(self.methods)
            for seed in range(self.seeds)
            for task in [tasks[seed % len(tasks)]]
        ]

    def run(
        self,
        folder: str | Path,
        *,
        executor: Executor | None = None,
        on_run: Report | None = None,
        tasks: Sequence[Task] | None = None,
    ) -> list[Run]:
        """Search where asked, then make all runs; what is done already is kept."""
        executor = executor or Executor()
        tasks = self.tasks() if tasks is None else tasks
        choices = None
        if self.search is not None:
            choices = search_grid(
                with_validation(tasks[0], self.search.validation_share),
                self.search,
                Path(folder) / "search",
                executor=executor,
                threads=self.threads,
                on_run=on_run,
            )
        jobs = self.jobs(tasks, choices)
        check_settings(jobs)
        searched = {} if self.search is None else {"search": self.search.document()}
        claim(jobs, folder, {**self.parameters, **searched})
        return executor.run(jobs, folder, on_run=on_run)

    def describe(self, task: Task, runs: Sequence[Run]) -> dict[str, Any]:
        """For the results: what it was, and the settings that every method was trained with."""
        settings = {}
        for run in runs:
            parameters = run.config.parameters
            is_network = MODELS[model_of(parameters)].has_method
            if run.config.role == "method" and run.config.seed == 0 and is_network:
                model = make_model(parameters)
                used = model.training_settings(task.features)
                spec = model.network_spec(task.features)
                hidden = spec.options_of("table").get("hidden")
                layers = f", {' x '.join(map(str, hidden))}" if hidden else ""
                if spec.parts != ("table",):
                    layers = f", {', '.join(_last_name(name) for name in spec.backbones.values())}"
                settings[run.config.method] = (
                    f"{used.learning_rate:g}, batches of {used.batch_size}{layers}"
                )
        name = f"recipe {self.recipe}"
        kind = self.row.kind
        if self.recipe == "paper" and kind == "table":
            name += f", {self.batches} batches"
        if self.backbone is not None:
            name += f", {_last_name(self.backbone)}"
        if (self.backbone_options or {}).get(FROZEN):
            name += ", frozen"
        if kind == "table" and self.data is None:
            name += ", generated data"
        if self.subsets == "published":
            name += ", validation and test swapped"
        if self.divisions == "seeds":
            name += ", a division for each seed"
        if self.persons:
            name += ", persons apart"
        if self.search is not None:
            name += ", searched"
        return {
            "dataset": f"aes-{self.category}"
            if self.actual == "aes" and self.category
            else self.actual,
            "name": name,
            "data": task.name,
            "backbone": None if self.backbone is None else _last_name(self.backbone),
            "recipe": self.recipe,
            "batches": self.batches if self.recipe == "paper" and kind == "table" else None,
            "seeds": self.seeds,
            "settings": settings,
            "seconds": sum(run.outcome.get("seconds", 0.0) for run in runs),
            "longest_run": _longest(runs, "seconds"),
            "longest_run_cpu": _longest(runs, "cpu_seconds"),
            "accuracy_by_mode": _by_mode(runs) if kind == "image" else {},
        }


def _longest(runs: Sequence[Run], clock: str) -> dict[str, float]:
    """Seconds of the longest run of each method, by a clock of the runs' outcomes."""
    longest: dict[str, float] = {}
    for run in runs:
        if run.config.role == "method" and clock in run.outcome:
            seconds = round(run.outcome[clock], 1)
            longest[run.config.method] = max(seconds, longest.get(run.config.method, 0.0))
    return longest


def _by_mode(runs: Sequence[Run]) -> dict[str, list[float]]:
    """How often the likeliest class of each method is right, in the order of its runs.

    Others report that of their networks, whatever decision a recipe has.
    """
    shares: dict[str, list[float]] = {}
    for run in runs:
        likeliest = run.predictions["probabilities"].argmax(1)
        share = float((likeliest == run.predictions["truth"]).mean())
        shares.setdefault(run.config.method, []).append(round(share, 6))
    return shares


def _last_name(backbone: str) -> str:
    """A backbone without the folders before its name.

    Examples
    --------
    >>> _last_name("hf:models/minilm/"), _last_name("timm:resnet34")
    ('minilm', 'timm:resnet34')
    """
    return backbone.rstrip("/").rpartition("/")[2].removeprefix("hf:")
