"""Locks between processes of a machine, which end with the process that holds them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold a lock on a file, which is made, while the block runs; wait for who holds it.

    It gives whether there is a lock: some systems and some shared folders have none, and then
    nobody waits.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError:
        yield False
        return
    try:
        yield _lock(descriptor)
    finally:
        os.close(descriptor)  # which lets go of the lock


def _lock(descriptor: int) -> bool:
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        return False
    return True
