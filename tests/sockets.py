"""Which addresses the processes of a test listen on, for tests that nothing is open to others."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LISTENING = "0A"


def _family() -> set[str]:
    """The numbers of this process and of all that come from it."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[place.parent.name] = place.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
    found, more = set(), {str(os.getpid())}
    while more:
        found |= more
        more = {child for child, parent in parents.items() if parent in more} - found
    return found


def _now() -> set[str]:
    sockets = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING:
                sockets[f"socket:[{fields[9]}]"] = fields[1]
    found = set()
    for process in _family():
        for opened in Path(f"/proc/{process}/fd").glob("*"):
            try:
                found.add(sockets.get(os.readlink(opened), ""))
            except OSError:
                continue
    return found - {""}


@contextmanager
def listening() -> Iterator[set[str]]:
    """Collect the addresses, `IP:PORT` in hexadecimal digits, that are new meanwhile."""
    before, seen, stop = _now(), set(), threading.Event()

    def watch() -> None:
        while not stop.wait(0.1):
            seen.update(_now() - before)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        stop.set()
        watcher.join()


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address."""
    place = address.partition(":")[0]
    if len(place) == 8:
        return place.endswith("7F")
    return place in ("00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
