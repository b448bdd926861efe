"""Files that others made: a regular one is opened, and everything else refused at once."""

import os
import socket
import sys
from pathlib import Path

import pytest

from echelon.storage import regular
from echelon.storage.regular import NotRegularError, open_regular, require_regular

unix = pytest.mark.skipif(os.name == "nt", reason="of POSIX")


def test_a_file_is_opened_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for name in ("file", "link"):
        with open_regular(tmp_path / name) as opened:
            assert opened.read() == b"content"


@unix
@pytest.mark.timeout(20)
def test_pipes_sockets_folders_and_devices_are_named(tmp_path: Path, monkeypatch) -> None:
    """A pipe that nobody writes to would keep its reader waiting."""
    monkeypatch.chdir(tmp_path)  # as the path of a socket must be short
    os.mkfifo("pipe")
    Path("folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        Path("link").symlink_to("pipe")
        for path, kind in (
            ("pipe", "a pipe"), ("link", "a pipe"), ("folder", "a folder"),
            ("socket", "a socket"), ("/dev/zero", "a device"),
        ):  # fmt: skip
            for ask in (open_regular, require_regular):
                with pytest.raises(NotRegularError, match=f"{path} is {kind}, not a file"):
                    ask(path)


@unix
@pytest.mark.timeout(20)
def test_a_pipe_that_takes_the_place_of_the_file_is_refused_and_closed(
    tmp_path: Path, monkeypatch
) -> None:
    path = tmp_path / "file"
    os.mkfifo(path)
    monkeypatch.setattr(regular, "require_regular", lambda path: None)  # it was a file then
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else None
    with pytest.raises(NotRegularError, match="is a pipe"):
        open_regular(path)
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_missing_file_is_the_error_that_open_gives(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nothing")
