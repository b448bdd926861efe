"""Where the work of a command runs: processes side by side, a cluster, or one run on several."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

Workers = Annotated[
    int | None, typer.Option(help="Runs at once; as many as there are cores without it.")
]
Threads = Annotated[int, typer.Option(help="Of each run. Another number rounds differently.")]
Cluster = Annotated[
    str | None,
    typer.Option(help="The address of a Ray cluster, or local to start one here (extra ray)."),
]
Devices = Annotated[
    int | None,
    typer.Option(help="Train each single run on so many devices, with a process for each."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say how many runs it is and how long they take here.")
]


def share_devices(devices: int | None) -> None:
    """Start this command again under torchrun with a process for each device, and end with it."""
    if devices is None or "WORLD_SIZE" in os.environ:  # already started so
        return
    if devices < 1:
        raise ValueError(f"devices must be at least 1; got {devices}")
    if devices == 1:
        return
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(devices), "-m", "echelon.cli.main", *sys.argv[1:]]
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    with subprocess.Popen(command, env=environment) as process:
        try:
            code = process.wait()
        except BaseException:  # torchrun ends its processes when it is asked to, not when killed
            process.terminate()
            raise
    raise typer.Exit(code)


def is_first_process() -> bool:
    """Whether this process speaks and writes for all that torchrun started."""
    return os.environ.get("RANK", "0") == "0"


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

    left = [one for one in jobs if not is_done(folder / one.name)]
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
