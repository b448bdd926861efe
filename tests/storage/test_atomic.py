"""Files and folders are written wholly or not at all, and nothing else is touched."""

import ast
import errno
import os
import pickle
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from echelon.storage import atomic
from echelon.storage.atomic import (
    WriteFailed,
    move,
    new_folder,
    replacing,
    replacing_text,
    require_writable,
    require_writable_folder,
    sweep,
    write_bytes,
    write_new,
    write_text,
)

DEAD = 2**22 + 1  # above the largest number of a process
unix = pytest.mark.skipif(os.name == "nt", reason="of POSIX")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


# ---- content -------------------------------------------------------------------------------------


def test_text_and_bytes(tmp_path: Path) -> None:
    with replacing_text(tmp_path / "text") as text:
        text.write("naïve\r\n")
    write_bytes(tmp_path / "bytes", b"\0\1")
    write_text(tmp_path / "bytes.txt", "é\n")
    assert (tmp_path / "text").read_bytes() == "naïve\r\n".encode()
    assert (tmp_path / "bytes").read_bytes() == b"\0\1"
    assert (tmp_path / "bytes.txt").read_text(encoding="utf-8") == "é\n"
    assert names(tmp_path) == ["bytes", "bytes.txt", "text"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("opened", [replacing, replacing_text])
def test_an_error_keeps_the_old_content(tmp_path: Path, error, opened) -> None:
    place = tmp_path / "file"
    place.write_text("old")

    def fail() -> None:
        with opened(place) as stream:
            stream.write(b"new" if opened is replacing else "new")
            stream.flush()
            assert place.read_text() == "old"
            raise error

    with pytest.raises(error):
        fail()
    assert place.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_threads_that_write_one_file_share_nothing(tmp_path: Path) -> None:
    place, failed = tmp_path / "file", []

    def write(letter: bytes) -> None:
        try:
            for _ in range(20):
                with replacing(place) as stream:
                    for _ in range(4):
                        stream.write(letter * 5000)
                        stream.flush()
        except Exception as error:
            failed.append(error)

    def read() -> None:
        while any(one.is_alive() for one in writers):
            if place.exists() and (len(found := place.read_bytes()), len(set(found))) != (20000, 1):
                failed.append(found[:9])

    writers = [threading.Thread(target=write, args=(bytes([65 + i]),)) for i in range(4)]
    reader = threading.Thread(target=read)
    for one in (*writers, reader):
        one.start()
    for one in (*writers, reader):
        one.join(60)
    assert not failed
    assert names(tmp_path) == ["file"]


# ---- what a killed process leaves ----------------------------------------------------------------

_UNDER_WAY = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("atomic", sys.argv[1])
atomic = importlib.util.module_from_spec(spec)
spec.loader.exec_module(atomic)
opened = atomic.new_folder if sys.argv[3] == "folder" else atomic.replacing
with opened(sys.argv[2]) as partial:
    if sys.argv[3] == "folder":
        (partial / "half").write_text("half")
    else:
        partial.write(b"half")
        partial.flush()
    print("ready", flush=True)
    time.sleep(60)
"""


def start(place: Path, kind: str = "file") -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", _UNDER_WAY, str(atomic.__file__), str(place), kind]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@unix
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_swept_by_the_next_one(tmp_path: Path, kind: str) -> None:
    (tmp_path / ".other.12-not-ours.partial").touch()
    with start(tmp_path / "out", kind) as process:
        if kind == "file":
            write_text(tmp_path / "out", "mine")  # beside one that is alive
            assert (tmp_path / "out").read_text() == "mine"
        else:
            require_writable(tmp_path / "out")
        assert len(names(tmp_path)) == (3 if kind == "file" else 2)
        process.kill()
    if kind == "file":
        assert (tmp_path / "out").read_text() == "mine"
        write_text(tmp_path / "out", "mine too")
    else:
        assert not (tmp_path / "out").exists()
        with new_folder(tmp_path / "out") as partial:
            (partial / "whole").touch()
    assert names(tmp_path) == [".other.12-not-ours.partial", "out"]


def test_only_what_is_surely_left_is_swept(tmp_path: Path) -> None:
    def made(host: str, process: int, seconds: float = 0.0, name: str = "out") -> str:
        place = tmp_path / f".{name}.{host}-{'0' * 12}.{process}.partial"
        place.touch()
        os.utime(place, (time.time() - seconds,) * 2)
        return place.name

    here, elsewhere = atomic._host, "01234567"
    made(here, DEAD)
    made(here, os.getpid())  # of an earlier process that had this number
    made(elsewhere, DEAD, seconds=2 * 86_400)
    kept = [made(elsewhere, DEAD + 1), made(here, os.getppid())]
    others = [made(here, DEAD, name="other"), made(here, DEAD, name="out.other")]
    write_text(tmp_path / "out", "new")
    assert set(names(tmp_path)) == {"out", *kept, *others}
    sweep(tmp_path)
    assert set(names(tmp_path)) == {"out", *kept}


# ---- what is no regular file ---------------------------------------------------------------------


@unix
def test_links_stay_links_and_their_files_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far/file")  # which is not there yet
    (tmp_path / "chain").symlink_to("link")
    for name, text in (("link", "one"), ("chain", "two")):
        require_writable(tmp_path / name)
        write_text(tmp_path / name, text)
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "far" / "file").read_text() == text
    assert names(tmp_path / "far") == ["file"]
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(WriteFailed, match=r"could not write .*round"):
        write_text(tmp_path / "round", "")


@unix
def test_devices_and_pipes_are_written_to_as_they_are(tmp_path: Path) -> None:
    require_writable(os.devnull)
    write_text(os.devnull, "nothing")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    require_writable(pipe)  # does not wait for a reader
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_text(pipe, "through")
    reader.join(30)
    assert found == [b"through"]
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


@unix
def test_an_open_descriptor_is_written_to_where_it_stands(tmp_path: Path) -> None:
    """A shell that opened the file for us would not see one that takes its place."""
    (tmp_path / "out").write_text("")
    with open(tmp_path / "out", "w") as stream:
        stream.write("before ")
        stream.flush()
        write_text(f"/dev/fd/{stream.fileno()}", "ours ")
        stream.write("after")
    assert (tmp_path / "out").read_text() == "before ours after"
    assert names(tmp_path) == ["out"]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    for attempt in (require_writable, lambda place: write_text(place, "")):
        with pytest.raises(ValueError, match="it is a folder; name a file"):
            attempt(tmp_path)


# ---- permissions ---------------------------------------------------------------------------------


@unix
@pytest.mark.usefixtures("umask")
def test_new_files_follow_the_umask_and_replaced_ones_keep_their_mode(tmp_path: Path) -> None:
    place = tmp_path / "file"
    write_text(place, "new")
    assert mode(place) == 0o640
    for kept in (0o600, 0o666, 0o640):
        place.chmod(kept)
        with replacing(place) as stream:
            stream.write(b"x")
            (partial,) = tmp_path.glob(".*.partial")
            assert mode(partial) == kept  # and never more
        assert mode(place) == kept
    with new_folder(tmp_path / "folder") as partial:
        (partial / "one").touch()
    assert mode(tmp_path / "folder") == 0o750


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_replaced_files_keep_their_owner(tmp_path: Path, monkeypatch) -> None:
    place = tmp_path / "file"
    place.touch(0o664)
    os.chown(place, 12345, 23456)
    place.chmod(0o664)
    write_text(place, "new")
    assert (place.stat().st_uid, place.stat().st_gid, mode(place)) == (12345, 23456, 0o664)

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "fchown", refused)
    write_text(place, "newer")
    assert mode(place) == 0o644  # what one group could do, another one may not


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("opened", [replacing, replacing_text])
def test_a_full_disk_is_one_sentence(opened) -> None:
    message = "could not write /dev/full: no space is left"
    with pytest.raises(WriteFailed, match=message) as caught, opened("/dev/full") as stream:
        stream.write(b"x" if opened is replacing else "x")
    assert caught.value.errno == errno.ENOSPC
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # from a worker


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "no space is left on its disk; free some"),
        (errno.EROFS, "its file system is read-only; name another place"),
        (errno.EACCES, "not allowed; change the permissions"),
        (errno.EIO, "Input/output error; name another place"),
    ],
)
@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_errors_of_the_disk_keep_the_old_file_and_say_what_to_do(
    tmp_path: Path, monkeypatch, number: int, message: str, call: str
) -> None:
    place = tmp_path / "file"
    place.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        with pytest.raises(WriteFailed, match=f"could not write {place}: .*{message}"):
            write_text(place, "new")
        if call != "replace":
            patched.setattr("builtins.open", fail)
            with pytest.raises(WriteFailed, match=message):
                require_writable(place)
            with pytest.raises(WriteFailed, match=message):
                require_writable_folder(tmp_path / "not" / "there")
    assert place.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_an_error_of_another_file_is_not_blamed_on_this_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"), replacing(tmp_path / "out"):
        (tmp_path / "missing").read_bytes()
    assert names(tmp_path) == []


def test_write_protected_files_stay(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(os, "access", lambda place, how: False)  # root may write anything
    with pytest.raises(WriteFailed, match="not allowed"):
        write_text(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "old"


def test_places_that_cannot_be_are_told_before(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"the folder .*no does not exist; make it"):
        require_writable(tmp_path / "no" / "file")
    with pytest.raises(ValueError, match="file is a file, not a folder"):
        require_writable(tmp_path / "file" / "model")
    with pytest.raises(ValueError, match="file is a file; name a folder"):
        require_writable_folder(tmp_path / "file" / "runs")
    require_writable_folder(tmp_path / "some" / "runs")
    assert names(tmp_path) == ["file"]
    with pytest.raises(WriteFailed, match="its folder does not exist"):
        write_text(tmp_path / "no" / "file", "")


@pytest.mark.parametrize("length", [180, 255])
def test_long_names(tmp_path: Path, length: int) -> None:
    write_text(tmp_path / ("n" * length), "text")
    assert (tmp_path / ("n" * length)).read_text() == "text"
    with pytest.raises(WriteFailed, match="too long"):
        write_text(tmp_path / ("n" * 256), "text")


# ---- folders -------------------------------------------------------------------------------------


def test_folders_appear_whole(tmp_path: Path) -> None:
    with new_folder(tmp_path / "a" / "run") as partial:
        (partial / "inner").mkdir()
        (partial / "inner" / "file").write_text("x")
        assert not (tmp_path / "a" / "run").exists()
    assert names(tmp_path / "a") == ["run"]
    with pytest.raises(ValueError, match="not empty"), new_folder(tmp_path / "a" / "run"):
        pass
    (tmp_path / "empty").mkdir()
    with new_folder(tmp_path / "empty") as partial:
        (partial / "file").touch()
    assert names(tmp_path / "empty") == ["file"]

    def interrupted() -> None:
        with new_folder(tmp_path / "b") as partial:
            (partial / "file").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == ["a", "empty"]


def test_a_folder_that_somebody_else_made_meanwhile_is_kept(tmp_path: Path) -> None:

    def late() -> None:
        with new_folder(tmp_path / "run"):
            (tmp_path / "run").mkdir()
            (tmp_path / "run" / "theirs").touch()

    with pytest.raises(WriteFailed, match="could not write"):
        late()
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == ["theirs"]


# ---- where nothing is, and out of the way --------------------------------------------------------


def test_of_many_writers_of_a_new_file_one_writes_and_all_find_it_whole(tmp_path: Path) -> None:
    place, seen = tmp_path / "owner", []

    def write(number: int) -> None:
        content = bytes([number]) * 200_000
        seen.append((write_new(place, content), number, place.read_bytes()))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [number for was_new, number, _ in seen if was_new]
    assert {content for _, _, content in seen} == {bytes([winner]) * 200_000}
    assert names(tmp_path) == ["owner"]


def test_a_new_file_is_written_where_there_are_no_links(tmp_path: Path, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert write_new(tmp_path / "owner", b"first")
    assert not write_new(tmp_path / "owner", b"second")
    assert (tmp_path / "owner").read_bytes() == b"first"
    assert names(tmp_path) == ["owner"]


def test_a_new_file_without_a_folder_is_an_error_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(WriteFailed, match="its folder does not exist; make it, or name another"):
        write_new(tmp_path / "no" / "owner", b"")


def test_files_and_folders_move_and_errors_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "DONE").touch()
    move(tmp_path / "run", tmp_path / "aside")
    assert names(tmp_path / "aside") == ["DONE"]
    write_text(tmp_path / "new", "new")
    write_text(tmp_path / "old", "old")
    move(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").read_text() == "new"
    with pytest.raises(FileNotFoundError):
        move(tmp_path / "new", tmp_path / "old")


def test_no_other_module_moves_files() -> None:
    """By syntax tree: whoever else did would have to know by itself what outlasts a failure."""
    movers = set()
    source = Path(atomic.__file__).parents[1]
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.replace", "os.rename"):
                movers.add(str(path.relative_to(source)))
    assert movers == {os.path.join("storage", "atomic.py")}
