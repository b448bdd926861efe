"""The command ``tune``: settings searched on validation rows, and scored where nobody looked."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.launching import going_on
from echelon.cli.options import (
    AsJson,
    Classes,
    Cluster,
    Data,
    Decimal,
    Drop,
    Encoding,
    Group,
    ImageColumn,
    ImageFolder,
    KeepIds,
    MissingCodes,
    MissingTarget,
    Sep,
    Sheet,
    Target,
    TextColumn,
    Threads,
    Workers,
    existing_file,
    model_to_fit,
)
from echelon.cli.reading import DataDescription, read_classes, split_names
from echelon.cli.showing import say
from echelon.cli.writing import require_folder, save_model
from echelon.processes import is_first_process

_MODEL, _DOCUMENT = "model.echelon", "tuning.json"


def tune(
    data: Data,
    target: Target,
    out: Annotated[
        Path,
        typer.Option(
            help="The folder for the trials, the model and tuning.json. Trials that it holds are "
            "kept, so that the same command goes on where it was, also with more --trials."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            callback=model_to_fit,
            show_default="boosting, or network where there are texts or images",
            help="The model to tune, a name that `echelon methods` lists. What is not to be "
            "searched stands after colons, as in network:method=coral:backbone=mlp.",
        ),
    ] = None,
    trials: Annotated[
        int, typer.Option(help="The number of trials; the first is the default of the model.")
    ] = 30,
    metric: Annotated[
        str, typer.Option(help="The metric that chooses among the trials on the validation rows.")
    ] = "ranked_probability_score",
    space: Annotated[
        Path | None,
        typer.Option(
            callback=existing_file,
            help="A TOML file that says what to search, instead of what the model proposes. Each "
            "name has a list of values, or a table with low, high and, if need be, log and whole.",
        ),
    ] = None,
    divisions: Annotated[
        int,
        typer.Option(
            help="The number of random divisions into training and validation rows that each trial "
            "is scored on. More make the choice surer, and take as many times."
        ),
    ] = 1,
    test_share: Annotated[
        float, typer.Option(help="The share of the rows that no trial sees, or 0 for no test.")
    ] = 0.25,
    validation_share: Annotated[
        float, typer.Option(help="The share of the other rows on which the trials are compared.")
    ] = 0.2,
    time_limit: Annotated[
        float | None, typer.Option(help="The seconds after which no more trials begin.")
    ] = None,
    no_prune: Annotated[
        bool,
        typer.Option(
            "--no-prune",
            help="Keep every network in training to its end, instead of ending one that falls "
            "behind the median of those before it.",
        ),
    ] = False,
    at_once: Annotated[
        int,
        typer.Option(
            help="The number of trials that are proposed from the same knowledge, and can run side "
            "by side."
        ),
    ] = 4,
    seed: Annotated[
        int, typer.Option(help="The seed of the divisions, the proposals and every fit.")
    ] = 0,
    classes: Classes = None,
    drop: Drop = None,
    group: Group = None,
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
    workers: Workers = None,
    threads: Threads = 1,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Search the settings of a model, and say how good the best ones are on unseen rows.

    A share of the rows is kept for the test. The trials are compared on other rows; then the best
    settings and the default are fitted anew and scored on the test rows, which no trial has seen.
    Interrupt it at any moment and start it again: no trial is repeated. It needs the extra tune.

    Example: echelon tune wine.csv --target quality --out tuned

    Example: echelon tune wine.csv --target quality --model network --trials 50 --out tuned
    """
    require_folder(out)
    from echelon.experiments import Executor
    from echelon.experiments.contestants import contestant_parameters, model_parameters
    from echelon.experiments.searching import read_toml
    from echelon.experiments.tuned import DEFAULT_MODELS, divide_task, make_tuning, run_tuning
    from echelon.extras import require
    from echelon.storage.atomic import write_text
    from echelon.training.progress import run_bar

    require("optuna", "searches by `tune`")
    described = DataDescription(
        data, target, read_classes(classes), split_names(drop), group=group, text=text,
        image=image, image_folder=image_folder, sep=sep, decimal=decimal, encoding=encoding,
        missing_target=missing_target, keep_ids=keep_ids, sheet=sheet,
        missing_codes=split_names(missing_codes),
    )  # fmt: skip
    given_space = None if space is None else read_toml(space)
    columns = {kind: name for kind, name in described.columns_by_kind.items() if name is not None}
    spec = model or DEFAULT_MODELS[bool(columns)]
    model_parameters(spec)  # what a name is not enough for is said before the data are read
    rows = described.labelled(described.table())
    task, has_test = divide_task(
        described.name, rows.features.reset_index(drop=True), rows.labels, classes=rows.named,
        groups=rows.groups, test_share=test_share, seed=seed, columns_by_kind=columns,
    )  # fmt: skip
    tuning = make_tuning(
        task, contestant_parameters(spec, columns), given_space, metric=metric, trials=trials,
        seed=seed, at_once=at_once, prune=not no_prune, divisions=divisions,
        validation_share=validation_share, time_limit=time_limit, threads=threads,
    )  # fmt: skip
    shown = is_first_process() and not as_json
    with going_on(), run_bar(trials * divisions, shown=shown) as report:
        tuned = run_tuning(
            task, tuning, out, has_test=has_test, executor=Executor(workers, cluster),
            on_run=report,
        )  # fmt: skip
    tuned.model.about_ = {"data": described.name, "target": target, "tuned": tuned.spec}
    save_model(tuned.model, out / _MODEL, None)
    document = {"data": described.name, "target": target, "rows": task.rows, **tuned.document()}
    write_text(out / _DOCUMENT, json.dumps(document, indent=2, allow_nan=False) + "\n")
    if as_json:
        print(json.dumps(document))
        return
    _show(tuned, task, out, f"echelon fit {data[0]} --target {target} --model '{tuned.spec}'")


def _show(tuned: Any, task: Any, out: Path, again: str) -> None:
    """Print what was tried and what came of it."""
    states = tuned.trials_["state"].value_counts()
    counts = ", ".join(f"{states[state]:,} {state}" for state in states.index if state != "done")
    say(
        f"{task.name}: {len(task.ranks):,} rows for the search, {len(task.test_ranks):,} for the "
        f"test; {len(tuned.trials_):,} trials{f', of which {counts}' if counts else ''}"
    )
    print(f"{tuned.metric:<26}{'validation':>12}{'test':>12}")
    for name in ("default", "best"):
        test = "-" if tuned.test_ is None else f"{tuned.test_[name][tuned.metric]:.4f}"
        print(f"  {name:<24}{tuned.validation_[name]:>12.4f}{test:>12}")
    if not tuned.best_:
        say("No trial is better than the default on the validation rows.")
    else:
        settings = ", ".join(f"{name}={value}" for name, value in tuned.best_.items())
        say(f"The best settings: {settings}.")
    if tuned.test_ is not None:
        say("The validation rows have chosen, and flatter the best; no trial saw the test rows.")
    print(f"wrote {out / _MODEL} and {out / _DOCUMENT}; on all rows, with the same settings:")
    print(f"  {again} --out MODEL")
