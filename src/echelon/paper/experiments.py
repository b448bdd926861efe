"""The experiments of the CORN paper: its data, its settings or a search for them, five seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from echelon.experiments.comparing import claim
from echelon.experiments.contestants import check_contestants, contestant_parameters
from echelon.experiments.execute import Executor, Report
from echelon.experiments.jobs import (
    Job,
    baseline_jobs,
    check_settings,
    make_job,
)
from echelon.experiments.searching import Choice, Search, final_jobs, search_grid, with_validation
from echelon.experiments.tasks import Task
from echelon.models.network import OrdinalClassifier
from echelon.paper.data import (
    read_aes,
    read_afad,
    read_coursera,
    read_morph2,
    read_tripadvisor,
)
from echelon.paper.tasks import (
    digits_task,
    fireman_task,
    generated_discs,
    generated_reviews,
    generated_task,
    partition_task,
)
from echelon.runs import Run

# What an experiment's rows hold, and the network that the paper reads them with.
PUBLISHED: Mapping[str, tuple[str, str | None]] = {
    "fireman": ("table", None),
    "coursera": ("text", "lstm"),
    "tripadvisor": ("text", "lstm"),
    "morph2": ("image", "timm:resnet34"),
    "afad": ("image", "timm:resnet34"),
    "aes": ("image", "timm:vgg16"),
}
# The same for data that need no file: the paper's protocol where its own data cannot be had.
EMBEDDED: Mapping[str, tuple[str, str | None]] = {
    "reviews": ("text", "lstm"),
    "discs": ("image", "resnet"),
    "digits": ("image", "resnet"),
}
DATASETS = {**PUBLISHED, **EMBEDDED}
_STANDS_IN = {"text": "reviews", "image": "discs"}
WITHOUT_SUBSETS, PUBLISHED_MASK = "corn_without_subsets", "corn_without_subsets:mask=published"
MAIN_METHODS = ("ce", "ornn", "coral", "corn")
METHODS = (*MAIN_METHODS, WITHOUT_SUBSETS, PUBLISHED_MASK)
BATCHES = ("published", "shuffled")


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments, or the same protocol on data that need no file.

    Parameters
    ----------
    dataset : {"fireman", "coursera", "tripadvisor", "morph2", "afad", "aes"}
        Or ``"reviews"`` and ``"discs"``, which are generated, and scikit-learn's ``"digits"``.
    data : path, optional
        The published partition, or a file to make one of; generated data without it: Friedman's
        function, reviews from a grammar, or images of discs.
    images : path, optional
        The folder of the images; without it, that of the data.
    category : str, optional
        Of AES.
    backbone : str, optional
        Instead of the paper's network.
    backbone_options : mapping, optional
        Such as ``{"frozen": True}``.
    recipe : {"paper", "default"}
        How the networks are trained: as the paper does it, or as echelon does.
    batches : {"published", "shuffled"}
        For recipe ``"paper"`` on Fireman: the class-balanced batches in one fixed order of the
        published code, or shuffled ones, as the paper says.
    methods : sequence of str
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
    methods: Sequence[str] = METHODS
    seeds: int = 5
    search: Search | None = None
    max_epochs: int | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        if self.dataset not in DATASETS:
            raise ValueError(
                f"the experiments that can be run are {', '.join(DATASETS)}; got {self.dataset!r}"
            )
        if self.batches not in BATCHES:
            raise ValueError(f"batches must be one of {', '.join(BATCHES)}; got {self.batches!r}")
        if self.dataset in EMBEDDED and self.data is not None:
            raise ValueError(f"{self.dataset} needs no data; got {self.data}")
        check_contestants(self.methods, self.seeds)
        if self.search is not None and DATASETS[self.dataset][0] != "table":
            # a file that names no network of its own searches the experiment's
            mine, theirs = self.parameters, self.search.parameters
            settings = {**(mine["settings"] or {}), **(theirs.get("settings") or {})}
            given = {"settings": settings, "backbone_options": mine["backbone_options"]}
            search = replace(
                self.search,
                backbone=self.search.backbone or mine["backbone"],
                parameters={
                    **{name: value for name, value in given.items() if value},
                    **{name: value for name, value in theirs.items() if name != "settings"},
                },
            )
            object.__setattr__(self, "search", search)

    @property
    def actual(self) -> str:
        """The data set that is read: what stands in for one whose data are not given."""
        kind = DATASETS[self.dataset][0]
        if self.data is not None or self.dataset in EMBEDDED:
            return self.dataset
        return _STANDS_IN.get(kind, self.dataset)

    def task(self) -> Task:
        """The data of the experiment, divided."""
        kind = DATASETS[self.dataset][0]
        if self.data is None:
            made: dict[str, Callable[[], Task]] = {
                "fireman": generated_task,
                "reviews": generated_reviews,
                "discs": generated_discs,
                "digits": digits_task,
            }
            return made[self.actual]()
        if kind == "table":
            return fireman_task(self.data)
        if kind == "text":
            reader = read_coursera if self.dataset == "coursera" else read_tripadvisor
            return partition_task(reader(self.data))
        place = Path(self.data)
        images = self.images or (place if place.is_dir() else place.parent)
        if self.dataset == "aes":
            return partition_task(read_aes(place, images, category=self.category))
        faces = read_morph2 if self.dataset == "morph2" else read_afad
        return partition_task(faces(place, images))

    @property
    def parameters(self) -> dict[str, Any]:
        """Of the estimator, the same for all methods."""
        kind, backbone = DATASETS[self.actual]
        is_paper_table = self.recipe == "paper" and kind == "table"
        chosen = {
            "batches": self.batches if is_paper_table else None,
            "max_epochs": self.max_epochs,
        }
        settings = {name: value for name, value in chosen.items() if value is not None}
        return {
            "recipe": self.recipe,
            "settings": settings or None,
            "backbone": self.backbone or backbone,
            "backbone_options": self.backbone_options,
        }

    def jobs(self, task: Task, choices: Sequence[Choice] | None = None) -> list[Job]:
        """Every run on the test part, with the settings of the paper or those that were chosen."""
        jobs = baseline_jobs(task, command="reproduce", parameters={}, threads=self.threads)
        if choices is not None:
            return jobs + final_jobs(
                task, choices, self.seeds, command="reproduce", threads=self.threads
            )
        return jobs + [
            make_job(
                task,
                spec,
                command="reproduce",
                seed=seed,
                parameters=contestant_parameters(spec, {**self.parameters, **task.columns_by_kind}),
                threads=self.threads,
            )
            for spec in dict.fromkeys(self.methods)
            for seed in range(self.seeds)
        ]

    def run(
        self,
        folder: str | Path,
        *,
        executor: Executor | None = None,
        on_run: Report | None = None,
        task: Task | None = None,
    ) -> list[Run]:
        """Search where asked, then make all runs; what is done already is kept."""
        executor = executor or Executor()
        task = self.task() if task is None else task
        choices = None
        if self.search is not None:
            choices = search_grid(
                with_validation(task, self.search.validation_share),
                self.search,
                Path(folder) / "search",
                executor=executor,
                threads=self.threads,
                on_run=on_run,
            )
        jobs = self.jobs(task, choices)
        check_settings(jobs)
        searched = {} if self.search is None else {"search": self.search.document()}
        claim(jobs, folder, {**self.parameters, **searched})
        return executor.run(jobs, folder, on_run=on_run)

    def describe(self, task: Task, runs: Sequence[Run]) -> dict[str, Any]:
        """For the results: what it was, and the settings that every method was trained with."""
        settings = {}
        for run in runs:
            if run.config.role == "method" and run.config.seed == 0:
                model = OrdinalClassifier(**run.config.parameters)
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
        kind = DATASETS[self.dataset][0]
        if self.recipe == "paper" and kind == "table":
            name += f", {self.batches} batches"
        if self.backbone is not None:
            name += f", {_last_name(self.backbone)}"
        if (self.backbone_options or {}).get("frozen"):
            name += ", frozen"
        if kind == "table" and self.data is None:
            name += ", generated data"
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
            "longest_run": _longest(runs),
        }


def _longest(runs: Sequence[Run]) -> dict[str, float]:
    """Seconds of the longest run of each method."""
    longest: dict[str, float] = {}
    for run in runs:
        if run.config.role == "method":
            seconds = round(run.outcome.get("seconds", 0.0), 1)
            longest[run.config.method] = max(seconds, longest.get(run.config.method, 0.0))
    return longest


def _last_name(backbone: str) -> str:
    """A backbone without the folders before its name.

    Examples
    --------
    >>> _last_name("hf:models/minilm/"), _last_name("timm:resnet34")
    ('minilm', 'timm:resnet34')
    """
    return backbone.rstrip("/").rpartition("/")[2].removeprefix("hf:")
