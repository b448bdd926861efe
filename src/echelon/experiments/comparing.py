"""Compare methods on one table: the same divisions for all, several seeds each, with baselines.

A constant (the shares of the classes in training) and a linear cumulative model stand in every
comparison unasked, so that a gain can be seen as one; on generated data also the best possible
predictor.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from echelon.data.kinds.base import CELL_KINDS, KINDS, TABLE
from echelon.experiments.contestants import check_contestants, contestant_parameters
from echelon.experiments.execute import Executor, Report
from echelon.experiments.jobs import (
    MOST_RUNS,
    Job,
    baseline_jobs,
    check_settings,
    make_job,
)
from echelon.experiments.tasks import Task
from echelon.runs import OtherFormatError, Run, RunConfig, claim_folder, mixture, read_runs


def comparison_jobs(
    tasks: Sequence[Task],
    methods: Sequence[str],
    seeds: int,
    *,
    parameters: Mapping[str, Any] | None = None,
    threads: int = 1,
) -> list[Job]:
    """Every method with every seed on every division of the table, and the baselines.

    Parameters
    ----------
    tasks : sequence of Task
    methods : sequence of str
        Names of ``echelon.METHODS``, with options after colons: ``sord:temperature=2``.
    seeds : int
        How many: 0, 1, .. seeds-1.
    parameters : mapping, optional
        Of :class:`echelon.OrdinalClassifier`, the same for all methods. Without a backbone all
        of them have the same: ``"mlp"`` on tables.
    threads : int
        Of each run.
    """
    check_contestants(methods, seeds)
    if (runs := len(tasks) * len(methods) * seeds) > MOST_RUNS:
        raise ValueError(
            f"that is {runs:,} runs, and the most is {MOST_RUNS:,}: try fewer seeds or divisions"
        )
    given = _with_one_backbone(parameters or {})
    jobs = []
    for task in tasks:
        jobs += baseline_jobs(task, command="compare", parameters=given, threads=threads)
        for spec in dict.fromkeys(methods):
            chosen = contestant_parameters(spec, given)
            jobs += [
                make_job(
                    task, spec, command="compare", seed=seed, parameters=chosen, threads=threads
                )
                for seed in range(seeds)
            ]
    return jobs


def _with_one_backbone(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, with a backbone that all methods can have.

    Left to itself, a method takes what suits the number of rows and its own way of training.
    """
    is_named = parameters.get("backbone") is not None
    has_cells = any(parameters.get(kind) is not None for kind in CELL_KINDS)
    if is_named or has_cells or parameters.get("recipe", "default") != "default":
        return dict(parameters)
    return {**parameters, "backbone": KINDS[TABLE].backbone}


def compare_methods(
    tasks: Task | Sequence[Task],
    methods: Sequence[str],
    seeds: int,
    folder: str | Path,
    *,
    parameters: Mapping[str, Any] | None = None,
    threads: int = 1,
    executor: Executor | None = None,
    on_run: Report | None = None,
) -> list[Run]:
    """Fit every method with every seed on every task, and write each result to a folder.

    Parameters
    ----------
    tasks : Task or sequence of Task
        One, or several divisions of the same table.
    methods, seeds, parameters, threads
        As in :func:`comparison_jobs`.
    folder : path
        Where the run folders go; finished runs that are there are kept and not run again.
    executor : Executor, optional
        Where they run: on all cores without it.
    on_run : callable, optional
        Called with the name of each run that is done, and whether it is new.
    """
    tasks = [tasks] if isinstance(tasks, Task) else list(tasks)
    jobs = comparison_jobs(tasks, methods, seeds, parameters=parameters, threads=threads)
    check_settings(jobs)
    claim(jobs, folder, parameters or {})
    return (executor or Executor()).run(jobs, folder, on_run=on_run)


def claim(jobs: Sequence[Job], folder: str | Path, parameters: Mapping[str, Any]) -> None:
    """Take a folder for jobs, or raise where it holds what cannot stand in one table with them.

    Methods, seeds and divisions may be added to those that are there; `parameters`, the data, the
    classes and the threads must be the same, finished runs or none.
    """
    _refuse_strangers(jobs, folder)
    config = jobs[0].config
    claim_folder(
        folder,
        {
            "command": config.command,
            "data": config.data,
            "divisions": {str(job.config.split): job.config.fingerprint for job in jobs},
            "classes": config.classes,
            "details": {k: v for k, v in config.details.items() if k != "data_seed"},
            "parameters": {k: v for k, v in parameters.items() if v is not None},
            "threads": config.threads,
        },
    )


def _refuse_strangers(jobs: Sequence[Job], folder: str | Path) -> None:
    try:
        finished = read_runs(folder)
    except OtherFormatError:
        raise
    except ValueError:  # nothing there, or damaged: the latter is seen to run by run
        return
    asked = {_key(job.config): job.config for job in jobs}
    data = {job.config.split: job.config.fingerprint for job in jobs}
    for run in finished:
        config = run.config
        if data.get(config.split, config.fingerprint) != config.fingerprint:
            raise ValueError(
                f"{folder} holds runs on other rows ({config.data}); choose another folder"
            )
        wanted = asked.get(_key(config))
        if wanted is None or wanted.name == config.name:
            continue
        before, now = config.document(), wanted.document()
        name = next(key for key in now if before[key] != now[key])
        raise ValueError(
            f"{folder} holds a finished run of {config.method} with {name} = {before[name]!r} "
            f"instead of {now[name]!r}; choose another folder"
        )
    both = {config.name: config for config in [*(run.config for run in finished), *asked.values()]}
    if (reason := mixture(list(both.values()))) is not None:
        raise ValueError(f"{folder} would hold a mixture: {reason}; choose another folder")


def _key(config: RunConfig) -> tuple[Any, ...]:
    return config.method, config.seed, config.split, config.part
