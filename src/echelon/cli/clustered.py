"""``fit --cluster``: the same command by the workers of a Ray cluster, which train one model.

Each worker runs the command as a process of ``--devices`` does. Ray Train starts them, and starts
them again from the last checkpoint when one has died. They find each other through a file, so the
data, the checkpoints and the output stand where all of them can read and write.
"""

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from echelon.processes import is_launched, together

_MOST_WORKERS = 4096
_MOST_FAILURES = 3  # of workers, each of which begins anew from the last checkpoint
_SETTINGS = {"RAY_TRAIN_V2_ENABLED": "1", "RAY_USAGE_STATS_ENABLED": "0"}


def share_cluster(address: str | None, workers: int | None, out: Path) -> None:
    """Run this command on a cluster, and end with it; nothing where no cluster is named."""
    if address is None or is_launched():
        return
    count = 1 if workers is None else workers
    if not 1 <= count <= _MOST_WORKERS:
        raise ValueError(
            f"--devices must be from 1 to {_MOST_WORKERS:,} with --cluster, a worker each; got "
            f"{count}"
        )
    sys.stdout.write(run_on_cluster(address, count, sys.argv[1:], out))
    raise typer.Exit(0)


def run_on_cluster(address: str, workers: int, arguments: Sequence[str], out: Path) -> str:
    """Run a command in the workers of a cluster; what the first of them prints.

    Parameters
    ----------
    address : str
        As ``ray start --head`` shows it, or ``"local"``.
    workers : int
    arguments : sequence of str
        Of the command.
    out : Path
        What the command writes; what the workers share stands beside it while they work.
    """
    from echelon.cluster import LOCAL, connected

    is_local = address == LOCAL
    with _shared_folder(out, is_local) as shared, _environment():
        for number in range(_MOST_FAILURES + 1):
            with connected(address, workers + 1) as cluster:
                use_gpu = cluster.ray.cluster_resources().get("GPU", 0) >= workers
                told: dict[str, Any] = {"arguments": list(arguments), "folder": os.getcwd()}
                told |= {"shared": str(shared), "is_local": is_local}
                try:
                    is_done = _train(told, workers, use_gpu, shared / f"ray-{number}")
                finally:  # those on this machine are waited for
                    if is_local:
                        cluster.processes.update(int(p.suffix[1:]) for p in shared.glob("worker.*"))
            if is_done:
                break
        else:
            raise RuntimeError(
                f"the workers of the cluster died {_MOST_FAILURES + 1} times before they began"
            )
        refused = shared / "refused.txt"
        if refused.exists():
            raise ValueError(refused.read_text(encoding="utf-8"))
        return (shared / "printed.txt").read_text(encoding="utf-8")


def _train(told: dict[str, Any], workers: int, use_gpu: bool, folder: Path) -> bool:
    """Let Ray Train run the workers; False where one died before its work, with which it ends.

    One that dies at its work is replaced by Ray Train itself. After the other kind, the connection
    is made anew, as what the workers had taken of the cluster is not given back before.
    """
    from ray.train import ControllerError, FailureConfig, RunConfig, ScalingConfig
    from ray.train import TrainingFailedError as TrainingFailed
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    trainer = DataParallelTrainer(
        _work,
        train_loop_config=told,
        scaling_config=ScalingConfig(num_workers=workers, use_gpu=use_gpu),
        run_config=RunConfig(
            name="fit",
            storage_path=str(folder),
            failure_config=FailureConfig(max_failures=_MOST_FAILURES),
        ),
    )
    try:
        trainer.fit()
    except ControllerError:
        return False
    except TrainingFailed as error:
        reason = " ".join(str(error).split())[:500]
        raise RuntimeError(f"the workers of the cluster failed: {reason}") from None
    return True


def _work(config: dict[str, Any]) -> None:
    """What each worker does: the command, as one of several processes."""
    import io
    from contextlib import redirect_stdout

    import ray.train
    from ray.train.collective import broadcast_from_rank_zero

    context = ray.train.get_context()
    number, count = context.get_world_rank(), context.get_world_size()
    shared = Path(config["shared"])
    (shared / f"worker.{os.getpid()}").touch()
    # Another one for every try, as a worker that died has left its own behind.
    token = broadcast_from_rank_zero(secrets.token_hex(8) if number == 0 else None)
    told = together(
        number,
        count,
        str(shared / f"rendezvous-{token}"),
        local=(context.get_local_rank(), context.get_local_world_size()),
        is_one_machine=config["is_local"],
    )
    os.environ.update({"OMP_NUM_THREADS": "1", **os.environ, **told})
    os.chdir(config["folder"])
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            from echelon.cli.main import app

            app(config["arguments"], standalone_mode=False)
    except ValueError as error:  # which every worker meets, and no other try mends
        if number == 0:
            (shared / "refused.txt").write_text(str(error), encoding="utf-8")
        return
    if number == 0:
        (shared / "printed.txt").write_text(printed.getvalue(), encoding="utf-8")
    from torch import distributed

    if distributed.is_initialized():
        distributed.barrier()
        distributed.destroy_process_group()


@contextmanager
def _shared_folder(out: Path, is_local: bool) -> Iterator[Path]:
    """A folder for what workers share; of other machines, beside the output."""
    parent = None if is_local else out.absolute().parent
    folder = Path(tempfile.mkdtemp(prefix="echelon-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _environment() -> Iterator[None]:
    """Variables that Ray and its workers see, put back afterwards."""
    before = {name: os.environ.get(name) for name in _SETTINGS}
    os.environ.update(_SETTINGS)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
