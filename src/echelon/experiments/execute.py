"""Execution: many jobs at once, on the cores of a machine or on a Ray cluster.

Invariant: a job's result depends on its configuration alone. Each runs in a process of its own with
the threads that its configuration names, and writes its folder whole; what was done before is kept.
So a command that was interrupted at any moment goes on when it is started again.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
_PATIENCE_SECONDS = 30.0
_RAY_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_DIAL_SECONDS = 5
_ANSWER_SECONDS = 20
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
    """

    workers: int | None = None
    cluster: str | None = None

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
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be at least 1; got {self.workers}")
        if self.cluster is not None:
            with _ray(self.cluster, self.workers, len(pending)) as pool:
                return _side_by_side(pending, folder, pool)
        workers = min(self.workers or _cores(), len(pending))
        if workers == 1:
            return _in_turn(pending, folder)
        with _loky(workers) as pool:
            return _side_by_side(pending, folder, pool)


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
    with _ray_on_loopback() if address == "local" else nullcontext():
        ray = require("ray", "Ray clusters")
        with _ray_pool(ray, address, workers, jobs) as pool:
            yield pool


@contextmanager
def _ray_on_loopback() -> Iterator[None]:
    """Let Ray on one machine listen on its loopback address, as it does on macOS and Windows.

    Its own parameter for the address is not enough: Ray replaces the loopback address by that of
    the machine unless this variable was set when it was imported, here and in its processes.
    """
    before = os.environ.get(_RAY_CLUSTERS)
    os.environ[_RAY_CLUSTERS] = "0"
    try:
        yield
    finally:
        os.environ.pop(_RAY_CLUSTERS)
        if before is not None:
            os.environ[_RAY_CLUSTERS] = before


@contextmanager
def _ray_pool(ray: Any, address: str, workers: int | None, jobs: int) -> Iterator[_Pool]:
    from joblib import parallel_config

    require("ray.util.joblib", "Ray clusters").register_ray()
    options: dict[str, Any] = {"log_to_driver": False}
    if address == "local":
        # Nobody but this machine has anything to do with it.
        options |= {
            "num_cpus": max(2, min(workers or _cores(), jobs)), "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
        }  # fmt: skip
    else:
        _look_for_cluster(address)
    try:
        ray.init(address=address, **options)
    except (ConnectionError, ValueError) as error:
        raise _no_cluster(address, str(error)) from None
    resources = ray.cluster_resources()
    pool = _Pool(min(workers or int(resources.get("CPU", 1)), jobs))
    try:
        with parallel_config("ray"):
            yield pool
    finally:
        ray.shutdown()
        if address == "local":
            _wait_for_end(pool.processes)


def _look_for_cluster(address: str) -> None:
    """Raise where nothing answers at an address; Ray itself would go on asking for minutes.

    A process of its own asks, so that it can be ended and what it logs is not seen.
    """
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isascii() and port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), _DIAL_SECONDS).close()
        except (OSError, OverflowError, UnicodeError) as error:
            raise _no_cluster(address, str(error)) from None
    asked = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False)"
    try:
        done = subprocess.run(
            [sys.executable, "-c", asked, address], timeout=_ANSWER_SECONDS,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _no_cluster(address, f"no answer in {_ANSWER_SECONDS} seconds") from None
    if done.returncode:
        raise _no_cluster(address, done.stderr.strip().rpartition("\n")[2])


def _no_cluster(address: str, reason: str) -> ValueError:
    return ValueError(
        f"there is no Ray cluster at {address!r} ({reason}); give the address that `ray start "
        f"--head` shows, such as 10.0.0.5:6379, or local to start one here"
    )


def _wait_for_end(processes: set[int]) -> None:
    """Ray's workers end by themselves soon after it is shut down; those that do not are ended."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while any(Path(f"/proc/{process}").exists() for process in processes):
        if time.monotonic() > deadline:
            for process in processes:
                with suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            return
        time.sleep(_POLL_SECONDS)


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
