"""The one way in which echelon writes files and folders.

Invariant: whoever reads a file or a folder finds the old content or the new one, whole, whatever
happens to the writer. Content is written beside its place, to a partial file that no other thread
or process shares, and takes the place when it is on the disk. What a killed process left half
written is removed by the next one that writes there.

Three things are no files to be replaced: a link, whose target is; a device, a pipe or an open
descriptor (``/dev/null``, ``/dev/stdout``), which are written to as they are; and a folder, which
is refused where a file is meant.
"""

import errno
import hashlib
import io
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

_ENDING = ".partial"
# `.NAME.HOST-TOKEN.PROCESS.partial`; the middle may be lacking, where one process owns the name.
_PARTIAL = re.compile(
    r"\.(?P<name>.+?)(?:\.(?P<host>[0-9a-f]{8})-(?P<token>[0-9a-f]{12}))?\.(?P<process>\d+)\.partial"
)
_LONGEST_NAME = 180  # bytes of a file's name that stand in that of its partial file
_FORGOTTEN_SECONDS = 86_400.0
_PROBE = bytes(4096)  # an empty file can be made on a full disk
_LINKS = 40  # that are followed, as the kernel does
_host = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
_under_way: set[str] = set()  # names of the partial files of this process

_REASONS = {
    errno.ENOSPC: "no space is left on its disk; free some, or name another place",
    errno.EDQUOT: "your share of its disk is used up; free some, or name another place",
    errno.EROFS: "its file system is read-only; name another place",
    errno.EACCES: "writing there is not allowed; change the permissions, or name another place",
    errno.EPERM: "writing there is not allowed; change the permissions, or name another place",
    errno.ENAMETOOLONG: "its name is too long; give a shorter one",
    errno.ENOENT: "its folder does not exist; make it, or name another",
    errno.EPIPE: "whoever read it has stopped reading",
}


class WriteFailed(OSError):  # noqa: N818 (it says what happened)
    """Something could not be written; the message says what, why and what to try.

    Parameters
    ----------
    message : str
    number : int, optional
        The operating system's number of the error.

    Examples
    --------
    >>> str(WriteFailed.of("model.echelon", OSError(errno.ENOSPC, "No space left on device")))
    'could not write model.echelon: no space is left on its disk; free some, or name another place'
    """

    def __init__(self, message: str, number: int | None = None) -> None:
        super().__init__(message)
        self.errno = number

    @classmethod
    def of(cls, path: str | Path, error: OSError) -> "WriteFailed":
        """What an error means for whoever wanted to write to a path."""
        if isinstance(error, cls):
            return error
        plain = f"{error.strerror or error}; name another place"
        reason = _REASONS.get(error.errno or 0, plain)
        return cls(f"could not write {path}: {reason}", error.errno)


# ---- files ---------------------------------------------------------------------------------------


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A stream of bytes that becomes the content of a file when the block ends without an error.

    Parameters
    ----------
    path : path
        Its folder must be there. A new file has the permissions that the umask leaves; one that is
        replaced keeps its own, and its owner where that is allowed.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "numbers.bin"
    >>> with replacing(place) as stream:
    ...     _ = stream.write(b"12")
    >>> place.read_bytes()
    b'12'
    """
    if (raw := _opened_straight(path)) is not None:
        with _closing(io.BufferedWriter(raw)) as stream:
            yield stream
        return
    target, replaced = _target(path)
    with _partial(target) as place:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            # Nobody else may read it before it has the permissions of the file it replaces.
            descriptor = os.open(place, flags, 0o666 if replaced is None else 0o600)
        except OSError as error:
            raise WriteFailed.of(path, error) from None
        with _closing(io.BufferedWriter(_NamedFile(descriptor, path))) as stream:
            if replaced is not None:
                _take_permissions(descriptor, replaced)
            yield stream
            stream.flush()
            _sync(descriptor, path)
        _move(place, target, path)


@contextmanager
def replacing_text(path: str | Path) -> Iterator[TextIO]:
    """As :func:`replacing`, for text in UTF-8, whose lines end as they are written."""
    with replacing(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        try:
            yield text
            text.flush()
        finally:
            if not text.closed:
                with suppress(OSError):  # of the second attempt to write what was refused
                    text.detach()


def write_bytes(path: str | Path, content: bytes) -> None:
    """Make bytes the content of a file; see :func:`replacing`."""
    with replacing(path) as stream:
        stream.write(content)


def write_text(path: str | Path, text: str) -> None:
    """Make a text the content of a file; see :func:`replacing`."""
    write_bytes(path, text.encode("utf-8"))


def write_new(path: str | Path, content: bytes) -> bool:
    """Write a file where nothing is; whether that was so.

    Of several that come at the same moment one writes, and all others find its whole file (on a
    file system without links, it may still grow when they look).

    Parameters
    ----------
    path : path
        Its folder must be there.
    content : bytes

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "owner"
    >>> write_new(place, b"first"), write_new(place, b"second")
    (True, False)
    >>> place.read_bytes()
    b'first'
    """
    target = Path(path)
    try:
        with _partial(target) as place:
            _write_synced(place, content)
            try:
                os.link(place, target)  # fails where something is, and shows the whole file or none
            except FileExistsError:
                return False
            except OSError:  # a file system without links
                _write_synced(target, content)
    except FileExistsError:
        return False
    except OSError as error:
        raise WriteFailed.of(path, error) from None
    _sync_folder(target.parent)
    return True


def move(path: str | Path, place: str | Path) -> None:
    """Give a file or a folder another name on the same file system; a file of that name is lost.

    What the operating system says against it is raised as it is.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "run").mkdir()
    >>> move(folder / "run", folder / ".damaged-run")
    >>> [entry.name for entry in folder.iterdir()]
    ['.damaged-run']
    """
    os.replace(path, place)
    _sync_folder(Path(place).parent)


class _NamedFile(io.FileIO):
    """A file whose errors of writing are told from all others, and name the file."""

    def __init__(self, place: int | str, path: str | Path) -> None:
        self.path = path
        super().__init__(place, "w")

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError as error:
            raise WriteFailed.of(self.path, error) from None


@contextmanager
def _closing(stream: io.BufferedWriter) -> Iterator[BinaryIO]:
    try:
        yield cast(BinaryIO, stream)
    except BaseException:
        with suppress(OSError):  # closing writes what is left, and that would fail once more
            stream.close()
        raise
    stream.close()


def _opened_straight(path: str | Path) -> io.FileIO | None:
    """What is no regular file, opened for writing; None for what is one or is to become one."""
    if (descriptor := own_descriptor(path)) is not None:
        with suppress(AttributeError, ValueError, OSError):  # where there is none
            sys.stdout.flush()  # what was said before comes before
        try:
            return _NamedFile(os.dup(descriptor), path)
        except OSError as error:
            raise WriteFailed.of(path, error) from None
    if not is_stream(path):
        return None
    try:
        return _NamedFile(os.fspath(path), path)
    except OSError as error:
        raise WriteFailed.of(path, error) from None


def is_stream(path: str | Path) -> bool:
    """Whether a path names something that is written to as it is: a device, a pipe or a socket.

    Examples
    --------
    >>> is_stream(os.devnull), is_stream("no-such-file"), is_stream(".")
    (True, False, False)
    """
    if own_descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def own_descriptor(path: str | Path) -> int | None:
    """The open descriptor of this process that a path such as ``/dev/stdout`` stands for.

    A file behind it must not be replaced: what opened it, a shell for one, would never see that.

    Examples
    --------
    >>> own_descriptor("/dev/stdout"), own_descriptor("model.echelon")
    (1, None)
    """
    folders = ("/dev/fd", f"/proc/{os.getpid()}/fd")
    place = os.path.abspath(path)
    for _ in range(_LINKS):
        folder, name = os.path.split(place)
        if os.path.realpath(folder) in folders and name.isdigit():
            return int(name)
        try:
            place = os.path.normpath(os.path.join(os.path.realpath(folder), os.readlink(place)))
        except OSError:  # not a link
            return None
    return None


def _target(path: str | Path) -> tuple[Path, os.stat_result | None]:
    """The file that a path names, behind all links, and what it is now, if it is there."""
    target = Path(os.path.realpath(path))
    try:
        replaced = os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        return target, None
    except OSError as error:
        raise WriteFailed.of(path, error) from None
    if stat.S_ISDIR(replaced.st_mode):
        raise ValueError(f"could not write {path}: it is a folder; name a file")
    if not os.access(target, os.W_OK):
        raise WriteFailed.of(path, OSError(errno.EACCES, "write-protected"))
    return target, replaced


def _take_permissions(descriptor: int, replaced: os.stat_result) -> None:
    """Give a new file the owner, the group and the mode of the one that it replaces."""
    if os.name == "nt":
        return
    mode = stat.S_IMODE(replaced.st_mode) & 0o777
    made = os.fstat(descriptor)
    if made.st_gid != replaced.st_gid:
        try:
            os.fchown(descriptor, -1, replaced.st_gid)
        except OSError:  # another group may do no more than all others
            mode = mode & 0o707 | (mode & 0o007) << 3
    if made.st_uid != replaced.st_uid:
        with suppress(OSError):
            os.fchown(descriptor, replaced.st_uid, -1)
    with suppress(OSError):  # file systems without permissions
        os.fchmod(descriptor, mode)


# ---- folders -------------------------------------------------------------------------------------


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """A folder that appears at its place, with all that the block put into it, when the block ends.

    Parameters
    ----------
    path : path
        Where nothing may be, or an empty folder. The folders above it are made.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "run"
    >>> with new_folder(place) as partial:
    ...     _ = (partial / "DONE").write_text("{}")
    ...     place.exists()
    False
    >>> (place / "DONE").read_text()
    '{}'
    """
    target = Path(os.path.realpath(path))
    require_empty(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteFailed.of(path, error) from None
    with _partial(target) as place:
        try:
            place.mkdir()
            yield place
            for written in sorted(place.rglob("*")):
                if written.is_file():
                    with open(written, "rb+") as stream:
                        os.fsync(stream.fileno())
            _sync_folder(place)
            if target.exists():
                target.rmdir()
        except OSError as error:
            raise WriteFailed.of(path, error) from None
        _move(place, target, path)


def require_empty(path: str | Path) -> None:
    """Raise where a new folder cannot be, as something is there already.

    Examples
    --------
    >>> require_empty("no-such-folder")
    """
    place = Path(path)
    if place.is_dir():
        if any(place.iterdir()):
            raise ValueError(
                f"the folder {path} is not empty, and what it holds is never rewritten; name "
                f"another one"
            )
    elif place.exists():
        raise ValueError(f"could not write the folder {path}: it is a file; name a folder")


# ---- looking before the work ---------------------------------------------------------------------


def require_writable(path: str | Path) -> None:
    """Raise now what :func:`replacing` would raise for a file after the work.

    Examples
    --------
    >>> require_writable("no-such-folder/model.echelon")
    Traceback (most recent call last):
    ...
    ValueError: could not write no-such-folder/model.echelon: the folder no-such-folder does not
    exist; make it, or name another
    """
    if is_stream(path):
        return
    target, _ = _target(path)
    _require_folder(target.parent, path, Path(path).parent)
    _try_out(target, path)


def require_writable_folder(path: str | Path) -> None:
    """Raise now what would be raised when the first file is written to a folder.

    The folder, and those above it, need not be there; nothing is made.

    Examples
    --------
    >>> require_writable_folder("runs")
    """
    place = Path(os.path.realpath(path))
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise ValueError(f"could not write the folder {path}: {place} is a file; name a folder")
    _try_out(place / "probe", path)


def _require_folder(folder: Path, path: str | Path, named: Path) -> None:
    if folder.is_dir():
        return
    if folder.exists():
        raise ValueError(f"could not write {path}: {named} is a file, not a folder")
    raise ValueError(
        f"could not write {path}: the folder {named} does not exist; make it, or name another"
    )


def _try_out(target: Path, path: str | Path) -> None:
    with _partial(target) as place:
        try:
            _write_synced(place, _PROBE)
        except OSError as error:
            raise WriteFailed.of(path, error) from None


def _write_synced(place: Path, content: bytes) -> None:
    """Make a file that is on the disk when this returns; raises where something is."""
    with open(place, "xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


# ---- partial files -------------------------------------------------------------------------------


@contextmanager
def _partial(target: Path) -> Iterator[Path]:
    """A name beside the target that nobody else uses; what stands there in the end is removed."""
    _sweep(target.parent, _short(target.name))
    token = secrets.token_hex(6)
    name = f".{_short(target.name)}.{_host}-{token}.{os.getpid()}{_ENDING}"
    place = target.with_name(name)
    _under_way.add(name)
    try:
        yield place
    finally:
        _remove(place)
        _under_way.discard(name)


def _short(name: str) -> str:
    """The name of a file, or something that stands for it where it is very long."""
    encoded = os.fsencode(name)
    return name if len(encoded) <= _LONGEST_NAME else hashlib.sha256(encoded).hexdigest()


def _move(place: Path, target: Path, path: str | Path) -> None:
    try:
        move(place, target)
    except OSError as error:
        raise WriteFailed.of(path, error) from None


def _sync(descriptor: int, path: str | Path) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise WriteFailed.of(path, error) from None


def _sync_folder(folder: Path) -> None:
    """Let a change of names outlast a power failure, where the file system can."""
    if os.name == "nt":
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sweep(folder: str | Path) -> None:
    """Remove what processes that are gone left half written in a folder.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / ".model.4194305.partial").touch()  # above the largest number of a process
    >>> sweep(folder)
    >>> list(folder.iterdir())
    []
    """
    _sweep(Path(folder), None)


def _sweep(folder: Path, name: str | None) -> None:
    start = "." if name is None else f".{name}."
    try:
        with os.scandir(folder) as entries:
            left = [entry.name for entry in entries if entry.name.startswith(start)]
    except OSError:  # whoever writes there will say what is wrong with it
        return
    for entry in left:
        parts = _PARTIAL.fullmatch(entry)
        if parts and (name is None or parts["name"] == name) and _is_left(folder / entry, parts):
            _remove(folder / entry)


def _is_left(place: Path, parts: re.Match[str]) -> bool:
    """Whether the process that wrote a partial file is gone."""
    process = int(parts["process"])
    if parts["token"] is not None and parts["host"] != _host:
        # The numbers of processes mean nothing on another machine, or in another container.
        with suppress(OSError):
            return time.time() - place.stat().st_mtime > _FORGOTTEN_SECONDS
        return False
    if process == os.getpid() and parts["token"] is not None:
        return place.name not in _under_way  # of an earlier process of this number
    return not _is_alive(process)


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # where there is no signal that does nothing
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        with suppress(OSError):
            place.unlink()
