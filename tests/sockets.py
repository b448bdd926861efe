"""Which addresses this machine listens on, for tests that nothing is open to others."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LISTENING = "0A"


def _now() -> set[str]:
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING:
                found.add(fields[1])
    return found


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
    return place.endswith("7F") if len(place) == 8 else place in (
        "00000000000000000000000001000000", "0000000000000000FFFF00000100007F",
    )  # fmt: skip
