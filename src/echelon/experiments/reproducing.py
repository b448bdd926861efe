"""The experiments of the CORN paper: its data, its settings or a search for them, five seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echelon.data.published import (
    read_aes,
    read_afad,
    read_coursera,
    read_morph2,
    read_tripadvisor,
)
from echelon.estimators import OrdinalClassifier
from echelon.experiments.comparing import refuse_strangers
from echelon.experiments.execute import Executor, Report
from echelon.experiments.jobs import Job, baseline_jobs, check_methods, job, method_parameters
from echelon.experiments.searching import Choice, Search, final_jobs, search_grid, with_validation
from echelon.experiments.tasks import (
    Task,
    fireman_task,
    generated_pictures,
    generated_reviews,
    generated_task,
    partition_task,
)
from echelon.runs import Run

# What an experiment's rows hold, and the network that the paper reads them with.
DATASETS: Mapping[str, tuple[str, str | None]] = {
    "fireman": ("table", None),
    "coursera": ("text", "lstm"),
    "tripadvisor": ("text", "lstm"),
    "morph2": ("image", "timm:resnet34"),
    "afad": ("image", "timm:resnet34"),
    "aes": ("image", "timm:vgg16"),
}
WITHOUT_SUBSETS, PUBLISHED_MASK = "corn_without_subsets", "corn_without_subsets:mask=published"
MAIN_METHODS = ("ce", "ornn", "coral", "corn")
METHODS = (*MAIN_METHODS, WITHOUT_SUBSETS, PUBLISHED_MASK)
BATCHES = ("published", "shuffled")


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments.

    Parameters
    ----------
    dataset : {"fireman", "coursera", "tripadvisor", "morph2", "afad", "aes"}
    data : path, optional
        The published partition, or a file to make one of; generated data without it: Friedman's
        function, reviews from a grammar, or pictures of discs.
    images : path, optional
        The folder of the images; without it, that of the data.
    category : str, optional
        Of AES.
    backbone : str, optional
        Instead of the paper's network.
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
        check_methods(self.methods, self.seeds)

    def task(self) -> Task:
        """The data of the experiment, divided."""
        kind = DATASETS[self.dataset][0]
        if self.data is None:
            if kind == "table":
                return generated_task()
            return generated_reviews() if kind == "text" else generated_pictures()
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
        kind, backbone = DATASETS[self.dataset]
        is_paper_table = self.recipe == "paper" and kind == "table"
        if kind == "image" and self.data is None:
            backbone = "resnet"  # the pictures are small
        return {
            "recipe": self.recipe,
            "settings": {"batches": self.batches} if is_paper_table else None,
            "max_epochs": self.max_epochs,
            "backbone": self.backbone or backbone,
        }

    def jobs(self, task: Task, choices: Sequence[Choice] | None = None) -> list[Job]:
        """Every run on the test part, with the settings of the paper or those that were chosen."""
        columns = {"text": task.text, "image": task.image}
        jobs = baseline_jobs(task, command="reproduce", parameters={}, threads=self.threads)
        if choices is not None:
            return jobs + final_jobs(
                task, choices, self.seeds, command="reproduce", threads=self.threads
            )
        return jobs + [
            job(
                task,
                spec,
                command="reproduce",
                seed=seed,
                parameters=method_parameters(spec, {**self.parameters, **columns}),
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
        refuse_strangers(jobs, folder)
        return executor.run(jobs, folder, on_run=on_run)

    def describe(self, task: Task, runs: Sequence[Run]) -> dict[str, Any]:
        """For the results: what it was, and the settings that every method was trained with."""
        settings = {}
        for run in runs:
            if run.config.role == "method" and run.config.seed == 0:
                model = OrdinalClassifier(**run.config.parameters)
                used = model.training_settings(task.features)
                hidden = used.backbone_options.get("hidden")
                layers = f", {' x '.join(map(str, hidden))}" if hidden else ""
                if not isinstance(used.backbone, str):
                    layers = f", {', '.join(used.backbone.values())}"
                settings[run.config.method] = (
                    f"{used.learning_rate:g}, batches of {used.batch_size}{layers}"
                )
        name = f"recipe {self.recipe}"
        kind = DATASETS[self.dataset][0]
        if self.recipe == "paper" and kind == "table":
            name += f", {self.batches} batches"
        if self.backbone is not None:
            name += f", {self.backbone.rpartition('/')[2]}"
        if self.search is not None:
            name += ", searched"
        return {
            "dataset": self.dataset if self.category is None else f"aes-{self.category}",
            "name": name,
            "data": task.name,
            "recipe": self.recipe,
            "batches": self.batches if self.recipe == "paper" and kind == "table" else None,
            "seeds": self.seeds,
            "settings": settings,
            "seconds": sum(run.outcome.get("seconds", 0.0) for run in runs),
        }
