"""A Ray cluster to work on: one at an address, or one on this machine that ends with the work.

Invariant: nobody but this machine can reach a cluster that is started here, it has no dashboard,
and none of its processes is left when the block ends.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from echelon.extras import require

LOCAL = "local"  # instead of an address: a cluster on this machine

_POLL_SECONDS = 0.25
_PATIENCE_SECONDS = 30.0
_RAY_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_DIAL_SECONDS = 5
_ANSWER_SECONDS = 20


@dataclass(frozen=True)
class Cluster:
    """A cluster that this process is connected to.

    Parameters
    ----------
    ray : module
    cpus : int
        Of all its machines.
    processes : set of int
        Whoever learns the number of a worker process puts it here. Those of a cluster on this
        machine are waited for at its end.
    """

    ray: Any
    cpus: int
    processes: set[int] = field(default_factory=set)


@contextmanager
def connected(address: str, cpus: int) -> Iterator[Cluster]:
    """Connect to a cluster, or start one on this machine and shut it down when the block ends.

    Parameters
    ----------
    address : str
        As `ray start --head` shows it, or ``"local"``.
    cpus : int
        The processes at once of a cluster that is started here.
    """
    is_local = address == LOCAL
    # Ray tells of dead workers on the standard output, which belongs to what a command prints.
    with redirect_stdout(sys.stderr), _ray_on_loopback() if is_local else nullcontext():
        ray = require("ray", "Ray clusters")
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if is_local:
            # Nobody but this machine has anything to do with it.
            options |= {
                "num_cpus": cpus, "include_dashboard": False, "_node_ip_address": "127.0.0.1",
            }  # fmt: skip
        else:
            _look_for_cluster(address)
        try:
            ray.init(address=address, **options)
        except (ConnectionError, ValueError) as error:
            raise _no_cluster(address, str(error)) from None
        cluster = Cluster(ray, int(ray.cluster_resources().get("CPU", 1)))
        try:
            yield cluster
        finally:
            ray.shutdown()
            if is_local:
                _wait_for_end(cluster.processes)


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
