"""The command ``reproduce``: the experiments of the CORN paper, and its tables."""

import json
from pathlib import Path
from typing import Annotated

import typer

from echelon.cli.launching import going_on, say_time, share_devices
from echelon.cli.options import (
    AsJson,
    Cluster,
    Devices,
    DryRun,
    Frozen,
    MaxEpochs,
    Seeds,
    Threads,
    Workers,
    existing_data,
    existing_file,
    existing_folder_of_images,
)
from echelon.cli.reading import backbone_options, split_names
from echelon.cli.showing import show_comparison
from echelon.cli.writing import require_folder
from echelon.processes import is_first_process
from echelon.storage.atomic import write_text


def reproduce(
    dataset: Annotated[
        str,
        typer.Argument(
            help="The experiment: fireman, coursera, tripadvisor, morph2, afad, aes, or "
            "aes-resnet34 and aes-balanced, the paper's ablation; retina, knees or faces, images "
            "that are freely had; or reviews, discs or digits, which need no file."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="The folder for runs, results and tables. Finished runs that it holds are kept."
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            callback=existing_data,
            help="The published partition, or one table to divide. Without it, generated data "
            "stand in for the paper's.",
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            callback=existing_folder_of_images,
            help="The folder that holds the images. Without it, that is the folder of the data.",
        ),
    ] = None,
    category: Annotated[
        str | None,
        typer.Option(help="The category of the data set aes: nature, animals, urban or people."),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(help="The network to use instead of the paper's, such as hf:FOLDER."),
    ] = None,
    frozen: Frozen = False,
    weights: Annotated[
        Path | None,
        typer.Option(
            callback=existing_file,
            help="A file of weights that a timm network starts from, such as those of ImageNet.",
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="How to train: paper, as the paper does, or default, as echelon does. Without it, "
            "that is paper for fireman and default for the others."
        ),
    ] = None,
    batches: Annotated[
        str,
        typer.Option(
            help="The batches of the recipe paper: published, which are fixed and class-balanced, "
            "or shuffled."
        ),
    ] = "published",
    subsets: Annotated[
        str,
        typer.Option(
            help="The subsets of morph2 and afad: paper, as the paper says, or published, with "
            "validation and test swapped as in the published runs."
        ),
    ] = "paper",
    divisions: Annotated[
        str,
        typer.Option(
            help="The divisions of texts: one for all seeds, or seeds, one for each, as in the "
            "published runs."
        ),
    ] = "one",
    persons: Annotated[
        bool,
        typer.Option(
            "--persons",
            help="Keep all images of a person in one subset of morph2, which is then divided anew.",
        ),
    ] = False,
    methods: Annotated[
        str | None,
        typer.Option(
            help="What to compare, with commas between the names that `echelon methods` lists. "
            "Without it, that is what the paper compares."
        ),
    ] = None,
    seeds: Seeds = 5,
    search: Annotated[
        Path | None,
        typer.Option(
            callback=existing_file,
            help="A TOML file with a grid to choose the settings from. Without it, they are the "
            "paper's.",
        ),
    ] = None,
    max_epochs: MaxEpochs = None,
    workers: Workers = None,
    threads: Threads = 1,
    cluster: Cluster = None,
    devices: Devices = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Run an experiment of the CORN paper and put its tables beside the published figures.

    Finished runs are kept: interrupt it at any moment and start it again.

    Example: echelon reproduce fireman --recipe default --out fireman
    """
    if not dry_run:
        require_folder(out)
    share_devices(devices)
    from echelon.experiments import Executor, Search
    from echelon.paper.experiments import Experiment
    from echelon.paper.results import RESULT_FORMAT, Result
    from echelon.paper.sets import SETS
    from echelon.paper.tables import paper_tables, write_tables
    from echelon.runs import Comparison
    from echelon.training.progress import run_bar

    grid = None if search is None else Search.read(search)
    known = SETS.get(dataset)
    options = backbone_options(backbone, frozen) or {}
    if weights is not None:
        options["weights"] = str(weights)
    experiment = Experiment(
        dataset=dataset, data=data, images=images, category=category, backbone=backbone,
        backbone_options=options or None, recipe=recipe or (known.recipe if known else "default"),
        batches=batches, subsets=subsets, divisions=divisions, persons=persons,
        methods=split_names(methods), seeds=seeds, search=grid, max_epochs=max_epochs,
        threads=threads,
    )  # fmt: skip
    tasks = experiment.tasks()
    searched = experiment.search
    jobs = experiment.jobs(tasks) + ([] if searched is None else searched.jobs(tasks[0], threads))
    if dry_run:
        say_time(jobs, out, workers, as_json)
        return
    with going_on(), run_bar(len(jobs), shown=is_first_process() and not as_json) as report:
        runs = experiment.run(out, executor=Executor(workers, cluster), on_run=report, tasks=tasks)
    document = {
        "format": RESULT_FORMAT,
        "experiment": experiment.describe(tasks[0], runs),
        **Comparison.of(runs).document(),
    }
    if is_first_process():
        write_text(out / "results.json", json.dumps(document, indent=1) + "\n")
        write_tables(paper_tables([Result.of(document)]), out / "tables")
    if as_json:
        print(json.dumps(document))
        return
    show_comparison(runs, out, as_json=False)
    print(f"the paper's tables, beside the published figures, are in {out / 'tables'}")
