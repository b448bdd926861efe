"""The command ``grid``: every combination of settings, chosen on validation rows."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.launching import going_on, say_time, share_devices
from echelon.cli.options import (
    GENERATED,
    AsJson,
    Cluster,
    Devices,
    DryRun,
    RunsFolder,
    Threads,
    Workers,
    existing_file,
)
from echelon.cli.reading import DataDescription
from echelon.cli.showing import show_comparison
from echelon.cli.writing import require_folder
from echelon.processes import is_first_process


def grid(
    config: Annotated[
        Path,
        typer.Argument(
            callback=existing_file,
            help="A TOML file that names data, methods and, in a table [grid], the values to try.",
        ),
    ],
    out: RunsFolder,
    data: Annotated[
        Path | None,
        typer.Option(help="A table, or a partition of Fireman, instead of the data of the file."),
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
    if not dry_run:
        require_folder(out)
    share_devices(devices)
    from echelon.experiments import Executor, Search, search_grid
    from echelon.experiments.comparing import claim
    from echelon.experiments.jobs import baseline_jobs
    from echelon.experiments.searching import final_jobs, with_validation
    from echelon.training.progress import run_bar

    search = Search.read(config)
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
        for choice in choices:
            print(
                f"{choice.method}: validation {search.metric} {choice.score:.4f}, the best of "
                f"{choice.tried:,}, with {_in_words(choice.parameters)}"
            )
    if search.test_seeds == 0:
        if as_json:
            print(json.dumps({"choices": [_document(choice) for choice in choices]}))
        return
    jobs = baseline_jobs(task, command="grid", parameters={}, threads=threads)
    jobs += final_jobs(task, choices, search.test_seeds, command="grid", threads=threads)
    claim(jobs, out, search.document())
    with going_on(), run_bar(len(jobs), shown=is_first_process() and not as_json) as report:
        runs = executor.run(jobs, out, on_run=report)
    if as_json:
        from echelon.runs import Comparison

        document = Comparison.of(runs).document()
        print(json.dumps({"choices": [_document(choice) for choice in choices], **document}))
        return
    show_comparison(runs, out, as_json=False)


def _document(choice: Any) -> dict[str, Any]:
    return {
        "method": choice.method, "parameters": dict(choice.parameters), "score": choice.score,
        "tried": choice.tried,
    }  # fmt: skip


def _in_words(parameters: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items() if name != "method")


def _searched_task(search: Any, data: Path | None) -> Any:
    from echelon.paper.tasks import fireman_task, generated_task

    place = str(data) if data is not None else search.data
    if place is None:
        raise ValueError("the configuration names no data: write data = ..., or give --data")
    if place == GENERATED and not Path(place).exists():
        return generated_task()
    if search.target is None:
        return fireman_task(place)
    described = DataDescription(
        Path(place), search.target, [*map(str, search.classes)], search.drop, group=search.group,
        text=search.text, image=search.image,
        image_folder=None if search.image_folder is None else Path(search.image_folder),
        group_pattern=search.group_pattern,
    )  # fmt: skip
    return described.tasks(1, search.test_share)[0]
