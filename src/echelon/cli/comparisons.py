"""The commands about several runs of one's own data: ``compare``, ``grid`` and ``report``."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.app import AsJson, Backbone, Frozen, ImageColumn, ImageFolder, TextColumn, app
from echelon.cli.launching import (
    Cluster,
    Devices,
    DryRun,
    Threads,
    Workers,
    going_on,
    say_time,
    share_devices,
)
from echelon.cli.reading import (
    backbone_options,
    image_column,
    read_rows,
    split_names,
)
from echelon.cli.writing import is_standard_output, require_folder, require_page_file
from echelon.processes import is_first_process

_MOST_SPLITS = 1000
SHOWN = ("mae", "rmse", "accuracy", "quadratic_weighted_kappa", "ranked_probability_score")


@app.command()
def compare(
    data: Annotated[
        str,
        typer.Argument(
            help="A CSV or Parquet file; a folder of images, whose columns are image and class: "
            "the folder that each is in; or fireman: generated."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder for the runs.")],
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    methods: Annotated[
        str, typer.Option(help="With commas; options after colons: ce,sord:temperature=2.")
    ] = "ce,ornn,coral,corn",
    seeds: Annotated[int, typer.Option(help="How many runs of each method.")] = 5,
    splits: Annotated[int, typer.Option(help="How many random divisions of the table.")] = 1,
    classes: Annotated[
        str | None, typer.Option(help="All labels, the lowest first, with commas: low,mid,high.")
    ] = None,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, with commas.")] = None,
    group: Annotated[
        str | None, typer.Option(help="A column of groups that stay on one side of a split.")
    ] = None,
    test_share: Annotated[float, typer.Option(help="Of the rows, to test on.")] = 0.25,
    backbone: Backbone = None,
    frozen: Frozen = False,
    text: TextColumn = None,
    image: ImageColumn = None,
    image_folder: ImageFolder = None,
    recipe: Annotated[str, typer.Option(help="default or paper.")] = "default",
    max_epochs: Annotated[int | None, typer.Option(help="Instead of the recipe's.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
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
    share_devices(devices)
    from echelon.experiments import Executor, compare_methods, comparison_jobs, generated_task
    from echelon.experiments.contestants import check_contestants
    from echelon.training.progress import run_bar

    names = split_names(methods)
    check_contestants(names, seeds)
    if not 1 <= splits <= _MOST_SPLITS:
        raise ValueError(f"splits must be at least 1 and at most {_MOST_SPLITS:,}; got {splits}")
    if not dry_run:
        require_folder(out)
    if data == "fireman" and not Path(data).exists():
        tasks = [generated_task(data_seed=number) for number in range(splits)]
    else:
        tasks = read_tasks(
            Path(data), target, splits, classes=split_names(classes), drop=split_names(drop),
            group=group, test_share=test_share, text=text, image=image, image_folder=image_folder,
        )  # fmt: skip
    parameters = {
        "backbone": backbone, "recipe": recipe, "max_epochs": max_epochs, "device": device,
        "text": text, "image": image, "backbone_options": backbone_options(backbone, frozen),
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


def show_comparison(runs: Sequence[Any], out: Path, as_json: bool) -> None:
    """What the runs found, in words or as one document."""
    from echelon.report.content import Comparison

    found = Comparison.of(runs)
    if as_json:
        print(json.dumps(found.document()))
        return
    config = found.main_run.config
    counts = ", ".join(f"{number:,} {part}" for part, number in config.rows.items())
    print(f"{config.data}: {counts} rows")
    print(found.text(SHOWN))
    for sentence in found.sentences():
        print(sentence)
    print(f"`echelon report {out}` makes a page of this")


def read_tasks(
    path: Path,
    target: str | None,
    splits: int = 1,
    *,
    classes: Sequence[Any] = (),
    drop: Sequence[str] = (),
    group: str | None = None,
    test_share: float = 0.25,
    text: str | None = None,
    image: str | None = None,
    image_folder: Path | None = None,
) -> list[Any]:
    """A table of the user's, divided at random as often as asked."""
    from echelon.data.labels import typed_labels
    from echelon.experiments import table_task

    if target is None:
        raise ValueError("--target is needed: the column to predict")
    image = image_column(path, image, image_folder)
    special = [name for name in (target, group) if name is not None]
    frame = read_rows(path, [*special, *drop], text, image, image_folder)
    labels, named = typed_labels(frame[target], list(map(str, classes)) if classes else None)
    return [
        table_task(
            path.name,
            frame.drop(columns=list({*special, *drop})),
            labels,
            classes=named,
            groups=None if group is None else frame[group].to_numpy(),
            test_share=test_share,
            split_seed=number,
            text=text,
            image=image,
        )
        for number in range(splits)
    ]


@app.command()
def grid(
    config: Annotated[Path, typer.Argument(help="A TOML file: data, methods and a table [grid].")],
    out: Annotated[Path, typer.Option(help="The folder for the runs.")],
    data: Annotated[
        Path | None, typer.Option(help="Instead of the file's: a table, or a Fireman partition.")
    ] = None,
    workers: Workers = None,
    threads: Threads = 1,
    cluster: Cluster = None,
    devices: Devices = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Try every combination of settings; choose on validation rows, then test the best.

    The runs of the search go to the folder's `search`, those of the best combination of each
    method, with several seeds on the test rows, to the folder itself.

    Example: echelon grid experiments/paper-mlp-grid.toml --out grid --dry-run
    """
    share_devices(devices)
    from echelon.experiments import Executor, Search, search_grid
    from echelon.experiments.comparing import claim
    from echelon.experiments.jobs import baseline_jobs
    from echelon.experiments.searching import final_jobs, with_validation
    from echelon.training.progress import run_bar

    search = Search.read(config)
    if not dry_run:
        require_folder(out)
    task = with_validation(_searched_task(search, data), search.validation_share)
    jobs = search.jobs(task, threads)
    if dry_run:
        say_time(jobs, out / "search", workers, as_json)
        return
    executor = Executor(workers, cluster)
    with going_on(), run_bar(len(jobs), shown=is_first_process() and not as_json) as report:
        choices = search_grid(
            task, search, out / "search", executor=executor, threads=threads, on_run=report
        )
    if not as_json:
        for one in choices:
            print(
                f"{one.method}: validation {search.metric} {one.score:.4f}, the best of "
                f"{one.tried:,}, with {_plain(one.parameters)}"
            )
    if search.test_seeds == 0:
        if as_json:
            print(json.dumps({"choices": [_choice(one) for one in choices]}))
        return
    jobs = baseline_jobs(task, command="grid", parameters={}, threads=threads)
    jobs += final_jobs(task, choices, search.test_seeds, command="grid", threads=threads)
    claim(jobs, out, search.document())
    with going_on(), run_bar(len(jobs), shown=is_first_process() and not as_json) as report:
        runs = executor.run(jobs, out, on_run=report)
    if as_json:
        from echelon.report.content import Comparison

        document = Comparison.of(runs).document()
        print(json.dumps({"choices": [_choice(one) for one in choices], **document}))
        return
    show_comparison(runs, out, as_json=False)


def _choice(one: Any) -> dict[str, Any]:
    return {
        "method": one.method, "parameters": dict(one.parameters), "score": one.score,
        "tried": one.tried,
    }  # fmt: skip


def _plain(parameters: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items() if name != "method")


def _searched_task(search: Any, data: Path | None) -> Any:
    from echelon.experiments import fireman_task, generated_task

    place = str(data) if data is not None else search.data
    if place is None:
        raise ValueError("the configuration names no data: write data = ..., or give --data")
    is_fireman = search.target is None
    if place == "fireman" and not Path(place).exists():
        return generated_task()
    if is_fireman:
        return fireman_task(place)
    return read_tasks(
        Path(place), search.target, classes=search.classes, drop=search.drop, group=search.group,
        test_share=search.test_share, text=search.text, image=search.image,
        image_folder=None if search.image_folder is None else Path(search.image_folder),
    )[0]  # fmt: skip


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="What `compare` or `evaluate --out` wrote.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page to write, an HTML file, or - for the standard output; report.html in "
            "the folder without it."
        ),
    ] = None,
    charts: Annotated[
        Path | None, typer.Option(help="Also write every chart to this folder.")
    ] = None,
    image: Annotated[str, typer.Option(help="png or svg, for --charts.")] = "svg",
    as_json: AsJson = False,
) -> None:
    """Write one HTML page that shows what the runs found; it needs nothing else to be read.

    Example: echelon report runs --charts figures --image png
    """
    from echelon.report import page_text, write_charts, write_page

    page = out or folder / "report.html"
    is_shown = is_standard_output(page)
    if is_shown and as_json:
        raise ValueError("--json and --out - cannot both have the standard output; leave one out")
    if out is not None:
        require_page_file(out)
    if charts is not None:
        require_folder(charts)
    if is_shown:
        print(page_text(folder))
    else:
        write_page(folder, out)
    images = [] if charts is None else write_charts(folder, charts, image)
    if as_json:
        print(json.dumps({"page": str(page), "charts": [str(one) for one in images]}))
        return
    said = ([] if is_shown else [str(page)]) + (
        [f"{len(images)} charts in {charts}"] if images else []
    )
    if said:
        print(f"wrote {' and '.join(said)}", file=sys.stderr if is_shown else sys.stdout)
