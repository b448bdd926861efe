"""The processes that share one piece of work: how many, which is this, and with whom it ends.

They are started by torchrun, or by ``--devices`` on one machine. The latter find each other through
a file, so that nothing listens for them on any address but the loopback one.
"""

import os
import socket
from collections.abc import Callable

RENDEZVOUS = "ECHELON_RENDEZVOUS"  # the file through which processes of one machine meet
LAUNCHER = "ECHELON_LAUNCHER"  # the number of the process that started them
_LOOPBACK = ("lo", "lo0")


def world_size() -> int:
    """How many processes share the work.

    Examples
    --------
    >>> world_size()
    1
    """
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_launched() -> bool:
    """Whether torchrun or ``--devices`` started this process, be it alone or one of several.

    Examples
    --------
    >>> is_launched()
    False
    """
    return "WORLD_SIZE" in os.environ


def local_world_size() -> int:
    """How many of the processes are on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", str(world_size())))


def rank() -> int:
    """Which of them this is."""
    return int(os.environ.get("RANK", "0"))


def is_first_process() -> bool:
    """Whether this process speaks and writes for all."""
    return rank() == 0


def together(
    number: int,
    count: int,
    rendezvous: str,
    *,
    local: tuple[int, int] | None = None,
    is_one_machine: bool = True,
) -> dict[str, str]:
    """What the environment says to the process of a number, of so many.

    `local` is the number of the process, and how many there are, on its own machine, where others
    are elsewhere. Only on one machine may tensors stay on the loopback interface.
    """
    local_number, local_count = (number, count) if local is None else local
    told = {
        "RANK": number, "LOCAL_RANK": local_number, "WORLD_SIZE": count,
        "LOCAL_WORLD_SIZE": local_count, RENDEZVOUS: rendezvous, LAUNCHER: os.getpid(),
    }  # fmt: skip
    has_names = is_one_machine and hasattr(socket, "if_nameindex")
    names = {name for _, name in socket.if_nameindex()} if has_names else ()
    for name in (loopback for loopback in _LOOPBACK if loopback in names):
        # What carries the tensors would otherwise listen on the address of the machine's name.
        told |= {"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": name}
    return {name: str(value) for name, value in told.items()}


def leaver(parent: int) -> Callable[[], None]:
    """A function that makes the process that calls it end when its parent does.

    It needs nothing of echelon, so that a new process can call it before it imports anything.
    """

    def leave() -> None:
        import os
        import threading
        import time

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(0.5)
            os._exit(1)

        if os.name == "nt":  # where the number of the parent stays after its end
            return
        if os.getppid() != parent:
            os._exit(1)
        threading.Thread(target=watch, daemon=True).start()

    return leave


def leave_with(parent: int) -> None:
    """End this process when its parent does: an orphan would go on for nobody.

    Where the parent is gone already, it ends at once.
    """
    leaver(parent)()
