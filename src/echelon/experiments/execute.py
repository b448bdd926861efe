"""Execution: many jobs at once, on the cores of a machine or on a Ray cluster.

Invariant: a job's result depends on its configuration alone. Each runs in a process of its own with
the threads that its configuration names, and writes its folder whole; what was done before is kept.
So a command that was interrupted at any moment goes on when it is started again.
"""

import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from echelon.cluster import connected
from echelon.experiments.jobs import Job
from echelon.extras import require
from echelon.networks.encodings import encodings_in
from echelon.processes import is_first_process, leaver, world_size
from echelon.runs import OtherFormatError, Run, is_done, read_run, set_aside, write_run
from echelon.storage.atomic import sweep
from echelon.terminal import speak_plainly

ENCODINGS = "encodings"  # the folder, beside the runs, of what frozen encoders gave

Report = Callable[[str, bool], None]

_POLL_SECONDS = 0.25
_IDLE_SECONDS = 10


class RunsFailed(RuntimeError):  # noqa: N818 (it says what happened)
    """Some runs failed; the others are done and kept."""


@dataclass(frozen=True)
class Executor:
    """Where jobs run.

    Parameters
    ----------
    workers : int, optional
        Processes at once; the number of cores without it, those of this machine or of the
        cluster. 1 runs them here, one after the other.
    cluster : str, optional
        The address of a Ray cluster, or ``"local"`` for one that is started on this machine and
        shut down afterwards (extra `ray`).
    pool : optional
        Processes that are there already; :meth:`opened` gives them.
    """

    workers: int | None = None
    cluster: str | None = None
    pool: "_Pool | None" = field(default=None, repr=False)

    @contextmanager
    def opened(self, at_once: int) -> "Iterator[Executor]":
        """The same, with processes that stay from one call of :meth:`run` to the next.

        `at_once` is the most jobs that any of the calls has: there are no more processes.
        """
        self._check_workers()
        if world_size() > 1 or self.pool is not None:
            yield self
        elif self.cluster is not None:
            with _ray(self.cluster, self.workers, at_once) as pool:
                yield replace(self, pool=pool)
        elif (workers := min(self.workers or _cores(), at_once)) == 1:
            yield self
        else:
            with _loky(workers) as pool:
                yield replace(self, pool=pool)

    def run(
        self, jobs: Sequence[Job], folder: str | Path, *, on_run: Report | None = None
    ) -> list[Run]:
        """Make the runs that are not done yet, and return all of them in the order of the jobs.

        Parameters
        ----------
        jobs : sequence of Job
        folder : path
            Holds a folder for each run.
        on_run : callable, optional
            Called with the name of each run that is done and whether it is new, the kept ones
            first.
        """
        folder = Path(folder).resolve()  # workers may stand elsewhere
        folder.mkdir(parents=True, exist_ok=True)
        jobs = list({job.name: job for job in jobs}.values())
        pending = _pending(jobs, folder, on_run)
        failed: dict[str, str] = {}
        if pending:
            with _announce(pending, folder, on_run):
                failed = self._run(pending, folder)
        if failed:
            name, reason = next(iter(failed.items()))
            others = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
            raise RunsFailed(
                f"{len(failed)} of {len(jobs)} runs failed: {name} ({reason}){others}; the other "
                f"{len(jobs) - len(failed)} are done and kept in {folder}"
            )
        return [read_run(folder / job.name) for job in jobs]

    def _run(self, pending: Sequence[Job], folder: Path) -> dict[str, str]:
        if world_size() > 1:  # all processes share each run
            return _together(pending, folder)
        with self.opened(len(pending)) as executor:
            if executor.pool is None:
                return _in_turn(pending, folder)
            return _side_by_side(pending, folder, executor.pool)

    def _check_workers(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be at least 1; got {self.workers}")


@dataclass(frozen=True)
class _Pool:
    """So many processes at once; `processes` collects the numbers of those that worked."""

    workers: int
    processes: set[int] = field(default_factory=set)


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


def _pending(jobs: Sequence[Job], folder: Path, on_run: Report | None) -> list[Job]:
    """The jobs that are not done; damaged folders are moved out of the way."""
    is_first = is_first_process()
    if is_first:
        sweep(folder)
    pending = []
    for job in jobs:
        place = folder / job.name
        if is_done(place):
            try:
                read_run(place)
            except OtherFormatError:  # whole, and somebody's: it stays where it is
                raise
            except ValueError as error:
                if is_first:
                    print(f"echelon: {error}; set aside in {set_aside(place)}", file=sys.stderr)
            else:
                if on_run is not None:
                    on_run(job.name, False)
                continue
        elif place.exists() and is_first:
            set_aside(place)
        pending.append(job)
    return pending


# ---- ways to run ---------------------------------------------------------------------------------


def _attempt(job: Job, folder: Path) -> str | None:
    """Make and write a run; what went wrong, or None."""
    try:
        with encodings_in(folder / ENCODINGS):
            run = job.run()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    _write(folder / job.name, run)
    return None


def _write(place: Path, run: Run) -> None:
    try:
        write_run(place, run)
    except (OSError, ValueError):
        if not is_done(place):  # somebody else may have made the same run meanwhile
            raise


def _in_turn(jobs: Iterable[Job], folder: Path) -> dict[str, str]:
    tried = ((job.name, _attempt(job, folder)) for job in jobs)
    return {name: reason for name, reason in tried if reason is not None}


def _together(jobs: Sequence[Job], folder: Path) -> dict[str, str]:
    """Every process takes its share of every run; the first one writes."""
    is_first = is_first_process()
    failed = {}
    for job in jobs:
        try:
            with encodings_in(folder / ENCODINGS):
                run = job.run()
        except Exception as error:
            failed[job.name] = f"{type(error).__name__}: {error}"
            continue
        if is_first:
            _write(folder / job.name, run)
        while not is_done(folder / job.name):
            time.sleep(_POLL_SECONDS)
    return failed


def _side_by_side(jobs: Sequence[Job], folder: Path, pool: _Pool) -> dict[str, str]:
    """All jobs in a pool; after the death of a worker, its suspects one at a time."""
    failed: dict[str, str] = {}
    while waiting := [job for job in jobs if not _is_settled(job, folder, failed)]:
        started: list[Job] = []
        death = _hand_out(waiting, folder, pool, started, failed)
        if death is None:
            continue
        # Nobody knows which job took the worker down: each that was under way is tried once more,
        # alone, so that an innocent neighbour is not blamed.
        for suspect in [job for job in started if not _is_settled(job, folder, failed)]:
            if (again := _hand_out([suspect], folder, pool, [], failed)) is not None:
                failed[suspect.name] = f"its worker died twice: {again}"
    return failed


def _is_settled(job: Job, folder: Path, failed: dict[str, str]) -> bool:
    return job.name in failed or is_done(folder / job.name)


def _hand_out(
    jobs: Sequence[Job], folder: Path, pool: _Pool, started: list[Job], failed: dict[str, str]
) -> str | None:
    """Run jobs in the pool; how a worker died, or None. `started` collects those handed out."""
    from joblib import Parallel, delayed

    # Who sees it can write here; `sweep` knows the ending.
    token = folder / f".shared-{uuid.uuid4().hex}.{os.getpid()}.partial"

    def calls() -> Iterator[Any]:
        for job in jobs:
            started.append(job)
            yield delayed(_in_worker)(job, folder, token.name)

    token.touch()
    try:
        # joblib runs a single worker in this process, which a death would take down: at least two.
        # One job at a time to each, so that `started` has no job that nobody has looked at.
        parallel = Parallel(n_jobs=max(2, pool.workers), batch_size=1, pre_dispatch="n_jobs")
        for name, reason, run, process in parallel(calls()):
            pool.processes.add(process)
            if reason is not None:
                failed[name] = reason
            elif run is not None:
                _write(folder / name, run)
    except Exception as error:
        if not _is_death(error):
            raise
        return type(error).__name__
    finally:
        token.unlink(missing_ok=True)
    return None


def _is_death(error: Exception) -> bool:
    """Whether an error of the pool means that a process went away."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"BrokenProcessPool", "BrokenExecutor", "RayError"})


def _in_worker(job: Job, folder: Path, token: str) -> tuple[str, str | None, Run | None, int]:
    """In a worker: write the run where the folder can be reached, or send it back."""
    speak_plainly()
    if (folder / token).exists():
        return job.name, _attempt(job, folder), None, os.getpid()
    try:
        return job.name, None, job.run(), os.getpid()
    except Exception as error:
        return job.name, f"{type(error).__name__}: {error}", None, os.getpid()


# ---- pools ---------------------------------------------------------------------------------------


@contextmanager
def _loky(workers: int) -> Iterator[_Pool]:
    from joblib import parallel_config
    from joblib.externals.loky import get_reusable_executor

    try:
        # The first thing that a worker does, before it imports what its jobs need: it must not
        # outlive us.
        with parallel_config(
            "loky", inner_max_num_threads=1, idle_worker_timeout=_IDLE_SECONDS,
            initializer=leaver(os.getpid()),
        ):  # fmt: skip
            yield _Pool(workers)
    finally:
        # The one that joblib uses; without `reuse` this would make another, and wait for the first.
        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


@contextmanager
def _ray(address: str, workers: int | None, jobs: int) -> Iterator[_Pool]:
    from joblib import parallel_config

    with connected(address, max(2, min(workers or _cores(), jobs))) as cluster:
        require("ray.util.joblib", "Ray clusters").register_ray()
        with parallel_config("ray"):
            yield _Pool(min(workers or cluster.cpus, jobs), cluster.processes)


@contextmanager
def _announce(jobs: Sequence[Job], folder: Path, on_run: Report | None) -> Iterator[None]:
    """Report runs as their folders appear, whoever writes them."""
    if on_run is None:
        yield
        return
    stop = threading.Event()
    waiting = [job.name for job in jobs]

    def look() -> None:
        for name in [name for name in waiting if is_done(folder / name)]:
            waiting.remove(name)
            on_run(name, True)

    def watch() -> None:
        while not stop.wait(_POLL_SECONDS):
            look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
        look()
