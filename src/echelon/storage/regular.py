"""Opening files that others made: a regular file, or an error at once.

A pipe that nobody writes to would keep its reader waiting for ever, and a device has no end. So a
path is looked at before it is opened, and once more when it is open, as it may have been replaced
in between.
"""

import io
import os
import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NotRegularError(OSError):
    """A path that names a folder, a pipe, a socket or a device where a file is meant."""


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a regular file for reading; links are followed.

    Parameters
    ----------
    path : path

    Raises
    ------
    NotRegularError
        For everything else that a path may name, at once.
    OSError
        As :func:`open` does, where there is no such file or it may not be read.

    Examples
    --------
    >>> open_regular(".")
    Traceback (most recent call last):
    ...
    echelon.storage.regular.NotRegularError: . is a folder, not a file
    """
    require_regular(path)
    # Without O_NONBLOCK, opening a pipe that took the place of the file would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    opened = open(descriptor, "rb")  # noqa: SIM115 (whoever asked closes it)
    try:
        _refuse_others(os.fstat(opened.fileno()), path)
    except NotRegularError:
        opened.close()
        raise
    return opened


def require_regular(path: str | os.PathLike[str]) -> None:
    """Raise where a path names no regular file, without opening it; see :func:`open_regular`."""
    _refuse_others(os.stat(path), path)


def _refuse_others(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((name for is_one, name in _KINDS if is_one(status.st_mode)), "something else")
    raise NotRegularError(f"{Path(path)} is {kind}, not a file")
