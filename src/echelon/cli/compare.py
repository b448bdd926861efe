"""The command ``compare``: methods and models on the same rows, with several seeds."""

from pathlib import Path
from typing import Annotated

import typer

from echelon.cli.launching import going_on, say_time, share_devices
from echelon.cli.options import (
    GENERATED,
    AsJson,
    Backbone,
    Classes,
    Cluster,
    DataOrGenerated,
    Decimal,
    Device,
    Devices,
    Drop,
    DryRun,
    Encoding,
    Frozen,
    Group,
    GroupPattern,
    ImageColumn,
    ImageFolder,
    KeepIds,
    MaxEpochs,
    MissingCodes,
    MissingTarget,
    Recipe,
    RunsFolder,
    Seeds,
    Sep,
    Sheet,
    TextColumn,
    Threads,
    Workers,
)
from echelon.cli.reading import DataDescription, backbone_options, read_classes, split_names
from echelon.cli.showing import show_comparison
from echelon.cli.writing import require_folder
from echelon.processes import is_first_process

_MOST_SPLITS = 1000


def compare(
    data: DataOrGenerated,
    out: RunsFolder,
    target: Annotated[
        str | None,
        typer.Option(
            help="The column that holds the labels to predict, of all data but generated ones."
        ),
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            help="What to compare, with commas between the names that `echelon methods` lists. A "
            "method may name its backbone, as in corn/tabm, and options stand after colons, as in "
            "sord:temperature=2."
        ),
    ] = "ce,ornn,coral,corn,auto",
    seeds: Seeds = 5,
    splits: Annotated[
        int,
        typer.Option(
            help="The number of random divisions of the table into training and test rows."
        ),
    ] = 1,
    classes: Classes = None,
    drop: Drop = None,
    group: Group = None,
    group_pattern: GroupPattern = None,
    test_share: Annotated[
        float, typer.Option(help="The share of the rows that the methods are tested on.")
    ] = 0.25,
    backbone: Backbone = None,
    frozen: Frozen = False,
    text: TextColumn = None,
    image: ImageColumn = None,
    image_folder: ImageFolder = None,
    missing_target: MissingTarget = "drop",
    keep_ids: KeepIds = False,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    missing_codes: MissingCodes = None,
    recipe: Recipe = "default",
    max_epochs: MaxEpochs = None,
    device: Device = "auto",
    workers: Workers = None,
    threads: Threads = 1,
    cluster: Cluster = None,
    devices: Devices = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Compare methods on one table: the same rows for all, several seeds, with baselines.

    Finished runs in the folder are kept: interrupt it at any moment and start it again. `echelon
    report DIR` makes a page of them.

    Example: echelon compare wine.csv --target quality --methods ce,coral,corn --out runs
    """
    if not 1 <= splits <= _MOST_SPLITS:
        raise ValueError(f"splits must be at least 1 and at most {_MOST_SPLITS:,}; got {splits}")
    if not dry_run:
        require_folder(out)
    share_devices(devices)
    from echelon.experiments import Executor, compare_methods, comparison_jobs
    from echelon.experiments.contestants import check_contestants
    from echelon.paper.tasks import generated_task
    from echelon.training.progress import run_bar

    names = split_names(methods)
    check_contestants(names, seeds)
    if data == [GENERATED] and not Path(GENERATED).exists():
        tasks = [generated_task(data_seed=number) for number in range(splits)]
        columns: dict[str, str | None] = {}
    else:
        described = DataDescription(
            [Path(path) for path in data], target, read_classes(classes), split_names(drop),
            group=group, text=text, image=image, image_folder=image_folder, sep=sep,
            decimal=decimal, encoding=encoding, missing_target=missing_target, keep_ids=keep_ids,
            sheet=sheet, missing_codes=split_names(missing_codes), group_pattern=group_pattern,
        )  # fmt: skip
        tasks = described.tasks(splits, test_share)
        columns = described.columns_by_kind
    parameters = {
        "backbone": backbone, "recipe": recipe, "device": device,
        "settings": None if max_epochs is None else {"max_epochs": max_epochs},
        "backbone_options": backbone_options(backbone, frozen), **columns,
    }  # fmt: skip
    jobs = comparison_jobs(tasks, names, seeds, parameters=parameters, threads=threads)
    if dry_run:
        say_time(jobs, out, workers, as_json)
        return
    with going_on(), run_bar(len(jobs), shown=is_first_process() and not as_json) as report:
        runs = compare_methods(
            tasks, names, seeds, out, parameters=parameters, threads=threads, on_run=report,
            executor=Executor(workers, cluster),
        )  # fmt: skip
    show_comparison(runs, out, as_json)
