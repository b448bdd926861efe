"""Where the work of a command runs: processes side by side, a cluster, or one run on several."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from echelon.processes import is_launched, together

_MOST_DEVICES = 64
_GRACE_SECONDS = 10.0  # that the others have to say what went wrong, and to end
_LOOK_SECONDS = 0.05


def share_devices(devices: int | None) -> None:
    """Start this command again with a process for each device, and end with them."""
    if devices is None or is_launched():
        return
    if not 1 <= devices <= _MOST_DEVICES:
        raise ValueError(
            f"--devices must be from 1 to {_MOST_DEVICES}, the devices of one machine; got "
            f"{devices}: for several machines start echelon under torchrun"
        )
    if devices == 1:
        return
    command = [sys.executable, "-m", "echelon.cli.main", *sys.argv[1:]]
    raise typer.Exit(_run_together(command, devices))


def _run_together(command: list[str], count: int) -> int:
    """Run a command in several processes that find each other; how the first that failed ended.

    All meet the same wrong input, so that one line is enough: only the first process is heard, and
    another one's last words where it fails alone.
    """
    with tempfile.TemporaryDirectory(prefix="echelon-") as folder:
        started: list[subprocess.Popen[bytes]] = []
        words = [Path(folder) / f"{number}.txt" for number in range(count)]
        try:
            for number in range(count):
                told = together(number, count, str(Path(folder) / "rendezvous"))
                environment = {"OMP_NUM_THREADS": "1", **os.environ, **told}
                with open(words[number], "wb") as heard:
                    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": heard}
                    streams = {} if number == 0 else quiet
                    started.append(subprocess.Popen(command, env=environment, **streams))
            code, speaker = _first_failure(started)
        finally:
            _end(started)
        if speaker and started[0].returncode <= 0:  # else it has spoken itself, if late
            last = words[speaker].read_text(errors="replace").strip().rpartition("\n")[2]
            print(last or f"echelon: process {speaker} ended with {code}", file=sys.stderr)
        return code if code >= 0 else 128 - code


def _first_failure(started: list["subprocess.Popen[bytes]"]) -> tuple[int, int]:
    """The code that the processes end with, and who must speak for them; 0 has spoken itself."""
    deadline = None
    while True:
        codes = [process.poll() for process in started]
        if codes[0]:
            return codes[0], 0
        if all(code == 0 for code in codes):
            return 0, 0
        failed = next((number for number, code in enumerate(codes) if code), None)
        if failed is not None:
            deadline = deadline or time.monotonic() + _GRACE_SECONDS
            if time.monotonic() > deadline:
                return codes[failed] or 1, failed
        time.sleep(_LOOK_SECONDS)


def _end(started: list["subprocess.Popen[bytes]"]) -> None:
    for process in started:
        if process.poll() is None:
            process.terminate()
    for process in started:
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def going_on() -> Iterator[None]:
    """Say after an interruption that nothing was lost."""
    try:
        yield
    except KeyboardInterrupt:
        print(
            "echelon: interrupted; finished runs are kept, and the same command goes on with the "
            "others",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None


def say_time(jobs: Any, folder: Any, workers: int | None, as_json: bool) -> None:
    """Print how many runs are left, and how long they will take on this machine."""
    from joblib import cpu_count

    from echelon.experiments import estimate_seconds
    from echelon.runs import is_done

    left = [job for job in jobs if not is_done(folder / job.name)]
    cores = min(cpu_count(), workers or cpu_count())
    seconds = estimate_seconds(left) / min(cores, max(1, len(left)))
    done = f", {len(jobs) - len(left):,} of them done" if len(left) < len(jobs) else ""
    text = f"{len(jobs):,} runs{done}; about {duration(seconds)} here, {cores} at once"
    print(json.dumps({"runs": len(jobs), "text": text}) if as_json else text)


def duration(seconds: float) -> str:
    """In words.

    Examples
    --------
    >>> duration(42), duration(600), duration(9000), duration(500_000)
    ('42 seconds', '10 minutes', '2.5 hours', '5.8 days')
    """
    for size, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {name}" if name != "minutes" else (
                f"{seconds / size:.0f} {name}"
            )  # fmt: skip
    return f"{seconds:.0f} seconds"
