"""Attacks, tried one by one in processes that are watched.

A case prepares files, and then either runs a command or calls a function. What must come out is a
result, or a refusal: one line and exit code 1 or 2 from a command, a ValueError with a sentence
from a function. Everything else is a failure, and its outcome says which:

- traceback: another exception, or another exit code;
- noise: a refusal of more than one line;
- wrong: a result that is none, such as probabilities that are not a number;
- hang: no end within 30 seconds;
- memory: more than 1 GiB above what the process held before;
- network: a connection was tried, or the server on the loopback address saw one;
- code: another program, a pickled name, a question to run code, or code beside the files;
- touched: a file was written, moved or removed that was not named as output;
- died: the process ended by itself;
- broken: the case itself is wrong.

One process imports everything once and makes the files that the cases start from. It forks a child
for the cases, and another where one hangs, grows or dies, so that a failure costs nothing.
"""

import errno
import faulthandler
import io
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS = 30
_STARTING_SECONDS = 120  # where processes start that import everything anew
BYTES = 2**30
HELD = ("result", "refused")
_BACKSTOP = 16 * 2**30  # of memory, where the look at it comes too late
_SHOWN = 10  # failures that a test names
_PROGRAMS = ("ldconfig", "uname")  # that Python itself runs to learn where it is


@dataclass(frozen=True)
class Place:
    """Where one case happens: files that are given, and the only folder that may be written to."""

    given: Path
    out: Path
    address: str  # of the server that must not be asked


@dataclass(frozen=True)
class Case:
    """One attack: either a command or a function is tried after the files have been made."""

    name: str
    prepare: Callable[[Place], Any] = lambda place: None
    command: Callable[[Place], Sequence[str]] | None = None
    call: Callable[[Place], Any] | None = None
    check: Callable[[Place, Any], str | None] | None = None  # what is wrong with a result
    starts: bool = False  # whether processes of echelon's own are what was asked for
    always: bool = False  # whether it is part of the quick form
    makes: bool = False  # whether it makes the given files itself, as it tries several
    named: Callable[[Place], Path | None] = lambda place: None  # an output outside the folder
    whole: bool = False  # whether nothing is wrong with it, so that a refusal is a failure


@dataclass(frozen=True)
class Category:
    """Cases of one kind; `least` is how many the long form must have."""

    name: str
    least: int
    quick: int
    cases: Callable[[Path], list[Case]]

    def chosen(self, material: Path, form: str) -> list[Case]:
        """All cases, or those that are always tried and a sample of the others."""
        found = self.cases(material)
        if form == "long":
            return found
        kept = [case for case in found if case.always]
        others = [case for case in found if not case.always]
        number = max(0, min(len(others), self.quick - len(kept)))
        return kept + random.Random(13).sample(others, number)


@dataclass
class Outcomes:
    """What came of the cases of a category."""

    category: str
    counts: Counter = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, found: dict[str, Any]) -> None:
        self.counts[found["outcome"]] += 1
        if found["outcome"] not in HELD:
            self.failures.append(found)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def row(self) -> str:
        """A line of the table that is printed."""
        others = {name: n for name, n in sorted(self.counts.items()) if name not in HELD}
        failed = ", ".join(f"{n:,} {name}" for name, n in others.items()) or "none"
        held = "".join(f"{self.counts[name]:>9,}" for name in HELD)
        return f"{self.category:<16}{self.total:>7,}{held}  {failed:<24}{self.seconds:>6.0f} s"

    @staticmethod
    def head() -> str:
        return f"{'attacks':<16}{'cases':>7}{'results':>9}{'refused':>9}  failures"

    def complaint(self) -> str:
        """The first failures by name, each with its last line."""
        lines = [f"{len(self.failures):,} of {self.total:,} attacks did not hold:"]
        for one in self.failures[:_SHOWN]:
            lines.append(f"  {one['outcome']}: {one['name']}: {one['detail']}")
        return "\n".join(lines)


# ---- the side of the tests -----------------------------------------------------------------------


class Attacker:
    """The process that tries attacks, seen from a test."""

    def __init__(self, scratch: Path, form: str) -> None:
        home = scratch / "home"
        home.mkdir(parents=True)
        self.server = _Server()
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("HF_")
        }
        environment |= {
            "HOME": str(home),
            "TMPDIR": str(home),
            "XDG_CACHE_HOME": str(home),
            # Whoever asks the hub asks the server that must not be asked.
            "HF_ENDPOINT": self.server.address,
            "http_proxy": self.server.address,
            "https_proxy": self.server.address,
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        arguments = ["-m", "tests.attacks.harness", str(scratch), form, self.server.address]
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip

    def attack(self, category: str) -> Outcomes:
        """Try the cases of a category."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(category + "\n")
        self.process.stdin.flush()
        outcomes, began = Outcomes(category), time.monotonic()
        for line in self.process.stdout:
            found = json.loads(line)
            if found.get("end"):
                outcomes.seconds = time.monotonic() - began
                return outcomes
            if self.server.seen:
                found |= {"outcome": "network", "detail": f"asked for {self.server.seen.pop()}"}
            outcomes.add(found)
        raise RuntimeError(f"the process that attacks ended with {self.process.wait()}")

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
        self.server.close()


class _Server:
    """A server on the loopback address that must see nothing."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.seen: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(1)
                try:
                    self.seen.append(connection.recv(200).decode("latin-1").split("\r")[0])
                    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                except OSError as error:
                    self.seen.append(str(error))

    def close(self) -> None:
        self.socket.close()


# ---- the process that attacks --------------------------------------------------------------------


def main() -> None:
    """Read names of categories from standard input; write a line of JSON for each case."""
    from tests.attacks import material
    from tests.attacks.categories import CATEGORIES, PROOFS

    scratch, form, address = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever else speaks, speaks beside the answers
    material.import_everything()
    tempfile.gettempdir()  # whose first call tries whether it can write
    made = scratch / "material"
    _in_child(lambda: material.make(made))
    for line in sys.stdin:
        category = {**CATEGORIES, PROOFS.name: PROOFS}[line.strip()]
        cases = category.chosen(made, form)
        for found in _try_all(cases, scratch / "cases", address):
            answers.write(json.dumps(found) + "\n")
        answers.write(json.dumps({"end": True}) + "\n")


def _in_child(work: Callable[[], None]) -> None:
    """In a process of its own, as a process that has trained should not be forked."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise RuntimeError("the files that the attacks start from could not be made")


def _try_all(cases: Sequence[Case], folder: Path, address: str) -> Iterable[dict[str, Any]]:
    begin = 0
    while begin < len(cases):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        stacks = folder.with_name("stacks.txt")
        stacks.write_text("")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _work(cases, begin, folder, address, writer, stacks)
        os.close(writer)
        for found in _watched(child, reader, stacks, cases):
            found["name"] = cases[found["case"]].name
            begin = found["case"] + 1
            yield found
        os.close(reader)
        _signal(child, signal.SIGKILL, group=True)  # what the cases themselves have started


def _watched(
    child: int, reader: int, stacks: Path, cases: Sequence[Case]
) -> Iterable[dict[str, Any]]:
    """The answers of a child until it has none left, or until one does not come."""
    running, began, before, buffer = -1, time.monotonic(), 0, b""

    def ended(outcome: str, detail: str = "") -> dict[str, Any]:
        return {"case": running, "outcome": outcome, "detail": detail or _last_stack(stacks)}

    while True:
        if select.select([reader], [], [], 0.05)[0]:
            received = os.read(reader, 65536)
            if not received:
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                if running >= 0:
                    yield ended("died", f"exit status {status}; {_last_stack(stacks)}")
                return
            *lines, buffer = (buffer + received).split(b"\n")
            for line in lines:
                found = json.loads(line)
                if "start" in found:
                    running, began, before = found["start"], time.monotonic(), found["held"]
                else:
                    running = -1
                    yield found
        elif running >= 0:
            limit = _STARTING_SECONDS if cases[running].starts else SECONDS
            too_long = time.monotonic() - began > limit
            if too_long or _held(child) - before > BYTES * 1.2:
                _signal(child, signal.SIGUSR1)  # to show where it is
                time.sleep(0.3)
                found = ended("hang" if too_long else "memory")
                _signal(child, signal.SIGKILL, group=True)
                os.waitpid(child, 0)
                yield found
                return


def _signal(child: int, number: int, group: bool = False) -> None:
    with suppress(ProcessLookupError, PermissionError):
        (os.killpg if group else os.kill)(child, number)


def _held(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096
    except (OSError, IndexError):
        return 0


def _last_stack(stacks: Path) -> str:
    """Where the process was: the innermost frame, and the innermost one of echelon."""
    frames = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', stacks.read_text())
    where = [f"{Path(file).name}:{line} {name}" for file, line, name in frames]
    own = [w for w, (file, _, _) in zip(where, frames, strict=True) if "/echelon/" in file]
    return "; ".join(dict.fromkeys(where[:1] + own[:1])) or "nobody knows where"


# ---- the child that runs the cases ---------------------------------------------------------------


def _work(
    cases: Sequence[Case], begin: int, folder: Path, address: str, writer: int, stacks: Path
) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (_BACKSTOP, _BACKSTOP))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    dump = open(stacks, "w")  # noqa: SIM115 (until the process ends)
    faulthandler.enable(dump)
    faulthandler.register(signal.SIGUSR1, dump, all_threads=False)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    watch = Watch()

    def say(**words: Any) -> None:
        os.write(writer, json.dumps(words).encode() + b"\n")

    for number in range(begin, len(cases)):
        place = Place(folder / "given", folder / "out", address)
        place.given.mkdir(parents=True)
        place.out.mkdir()
        case = cases[number]
        try:
            with redirect_stdout(io.StringIO()):
                case.prepare(place)
            os.chdir(place.out)
            say(start=number, held=_held(os.getpid()))
            began = time.monotonic()
            outcome, detail = _tried(case, place, watch)
            seconds = round(time.monotonic() - began, 3)
            say(case=number, outcome=outcome, detail=detail, seconds=seconds)
            os.chdir(folder.parent)
            shutil.rmtree(folder, onerror=_removed_all_the_same)
        except BaseException as error:
            say(case=number, outcome="broken", detail=_describe(error))
            break
    os._exit(0)


def _removed_all_the_same(function: Any, path: str, error: Any) -> None:
    os.chmod(os.path.dirname(path), 0o700)
    if error[1].errno not in (errno.ENOENT,):
        os.unlink(path)


def _tried(case: Case, place: Place, watch: "Watch") -> tuple[str, str]:
    before = _snapshot(place.given)
    held = _reset_peak()
    with watch.over(place, case):
        outcome, detail, value = _run(case, place)
    grown = _peak() - held
    if outcome == "result" and case.check is not None:
        wrong = case.check(place, value)
        if wrong:
            outcome, detail = "wrong", wrong
    if outcome == "refused" and case.whole:
        outcome = "wrong"
    if grown > BYTES:
        outcome, detail = "memory", f"{grown / 2**30:.1f} GiB; {outcome}: {detail}"
    if watch.seen:
        outcome, detail = watch.seen[0][0], f"{watch.seen[0][1]}; {outcome}: {detail}"
    changed = _changed(before, _snapshot(place.given), case.named(place), place.given)
    if changed and not case.makes:
        outcome, detail = "touched", f"{changed}; {outcome}: {detail}"
    return outcome, detail[:600]


def _run(case: Case, place: Place) -> tuple[str, str, Any]:
    try:
        if case.call is not None:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                return "result", "", case.call(place)
        assert case.command is not None
        code, output, errors = run_command(case.command(place))
    except BaseException as error:
        if case.call is not None and is_refusal(error):
            return "refused", str(error), None
        return "traceback", _describe(error), None
    return ("result", "", output) if code == 0 else (*_read_refusal(code, errors), None)


def run_command(arguments: Sequence[str]) -> tuple[Any, str, str]:
    """Run a command of echelon in this process: its exit code, its output and its errors."""
    from echelon.cli.main import main

    output, errors = io.StringIO(), io.StringIO()
    previous, sys.argv = sys.argv, ["echelon", *arguments]
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            main()
    except SystemExit as end:
        return end.code or 0, output.getvalue(), errors.getvalue()
    finally:
        sys.argv = previous
    return 0, output.getvalue(), errors.getvalue()


def is_refusal(error: BaseException) -> bool:
    """Whether an exception is one that echelon raised with a sentence."""
    own = type(error) is ValueError or type(error).__module__.startswith("echelon")
    return own and isinstance(error, Exception) and len(str(error).split()) > 2


def _read_refusal(code: Any, errors: str) -> tuple[str, str]:
    lines = [line for line in errors.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith("echelon: warning: ")]
    last = said[-1] if said else ""
    if code not in (1, 2) or "Traceback" in errors or "a fault of echelon itself" in errors:
        return "traceback", f"exit code {code}: {last}"
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", errors):
        return "noise", f"control characters: {last!r}"
    # Wrong options are reported by the parser: how to use the command, and then the error.
    is_usage = bool(said) and said[0].startswith("Usage: ") and last.startswith("Error: ")
    if is_usage or (len(said) == 1 and last.startswith("echelon: ") and len(last) > 20):
        return "refused", last
    return "noise", f"{len(said)} lines: {' | '.join(said[:3])}"


def _describe(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/echelon/" in frame.filename]
    places = [frames[-1], *own[-1:]] if frames else []
    where = dict.fromkeys(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in places)
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text} [{'; '.join(where)}]"


# ---- what is watched -----------------------------------------------------------------------------


class Watch:
    """Sees what a case does beyond computing, through the audit events of Python."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.place: Place | None = None
        self.starts = self.makes = False
        self.named: Path | None = None
        sys.addaudithook(self._hear)

    def over(self, place: Place, case: Case) -> "Watch":
        self.seen, self.starts, self.makes = [], case.starts, case.makes
        self.named, self._next = case.named(place), place
        return self

    def __enter__(self) -> None:
        self.place = self._next

    def __exit__(self, *_: Any) -> None:
        self.place = None

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        place = self.place
        if place is None:
            return
        found = None
        if event in ("socket.connect", "socket.bind", "socket.sendto"):
            if isinstance(arguments[1], tuple) and not self.starts:
                found = ("network", f"{event} {arguments[1]}")
        elif event in ("socket.getaddrinfo", "socket.gethostbyname", "urllib.Request"):
            if not self.starts:
                found = ("network", f"{event} {arguments[0]}")
        elif event in _STARTING:
            program = str(arguments[0])
            own = (*_PROGRAMS, *((sys.executable, "pgrep") if self.starts else ()))
            if not program.endswith(own):  # pgrep is how joblib finds its own workers
                found = ("code", f"{event} {arguments[:2]}")
        elif event == "pickle.find_class" and not self.starts:
            found = ("code", f"pickled name {arguments}")
        elif event == "builtins.input":
            found = ("code", f"asks {arguments}")
        elif event == "open":
            found = self._opened(place, *arguments)
        elif event in _CHANGING and not self.starts:
            paths = [one for one in _paths(arguments, _CHANGING[event]) if _is_path(one)]
            if event == "os.mkdir":  # of one that is there: it was only asked for
                paths = [one for one in paths if not os.path.isdir(one)]
            outside = [str(one) for one in paths if not self._is_free(one, place)]
            if outside:
                found = ("touched", f"{event} {outside[0]}")
        elif event == "ctypes.dlopen" and arguments[0] and _lies_in(arguments[0], place.given):
            found = ("code", f"loads {arguments[0]}")
        if found is not None:
            self.seen.append((found[0], found[1][:300]))

    def _opened(self, place: Place, path: Any, mode: Any, flags: Any) -> tuple[str, str] | None:
        if not _is_path(path):
            return None
        writing = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if not writing:
            is_code = os.fsdecode(path).endswith((".py", ".so")) and _lies_in(path, place.given)
            return ("code", f"reads {os.fsdecode(path)}") if is_code else None
        if self.starts or self._is_free(path, place):
            return None
        return "touched", f"writes {os.fsdecode(path)}"

    def _is_free(self, path: Any, place: Place) -> bool:
        """Whether something may be written there."""
        if os.fsdecode(path) in ("/dev/null", "/dev/tty"):
            return True
        # Beside an output is where it is made before it takes its place.
        if self.named is not None and _lies_in(path, self.named.parent):
            return True
        return _lies_in(path, place.out) or (self.makes and _lies_in(path, place.given))


_STARTING = (
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile",
    "pty.spawn",
)  # fmt: skip
_CHANGING = {  # events, and which of their arguments are paths that change
    "os.remove": (0,), "os.rename": (0, 1), "os.rmdir": (0,), "os.mkdir": (0,), "os.chmod": (0,),
    "os.truncate": (0,), "os.chown": (0,), "os.link": (1,), "os.symlink": (1,),
    "shutil.rmtree": (0,), "shutil.move": (0, 1),
}  # fmt: skip


def _paths(arguments: tuple[Any, ...], places: tuple[int, ...]) -> list[Any]:
    """The paths of an event, whole where they start from an open folder."""
    found, folder = [arguments[place] for place in places], arguments[-1]
    if not isinstance(folder, int) or folder < 0:
        return found
    try:
        start = os.readlink(f"/proc/self/fd/{folder}")
    except OSError:
        return found
    return [os.path.join(start, os.fsdecode(one)) for one in found if _is_path(one)]


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, bytes, os.PathLike))


def _lies_in(path: Any, folder: Path) -> bool:
    whole = os.path.abspath(os.fsdecode(path))
    return whole == str(folder) or whole.startswith(f"{folder}{os.sep}")


def _snapshot(folder: Path) -> dict[str, tuple[Any, ...]]:
    """What stands in a folder: kinds, sizes, times, and where links lead."""
    found: dict[str, tuple[Any, ...]] = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(parent, name)
            status = os.lstat(path)
            kind = stat.S_IFMT(status.st_mode)
            told: tuple[Any, ...] = (kind, stat.S_IMODE(status.st_mode), status.st_ino)
            if not stat.S_ISDIR(kind):
                told += (status.st_size, status.st_mtime_ns)
            found[os.path.relpath(path, folder)] = told
    return found


def _changed(
    before: dict[str, Any], after: dict[str, Any], named: Path | None, folder: Path
) -> str:
    """What is not as it was, apart from what was named as output."""
    for name in sorted(before.keys() | after.keys()):
        if named is not None and _lies_in(folder / name, named):
            continue
        if before.get(name) != after.get(name):
            how = "is gone" if name not in after else "is new" if name not in before else "changed"
            return f"{name} {how}"
    return ""


def _reset_peak() -> int:
    """Let the peak of this process begin anew; its memory now, in bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _peak()
    return _held(os.getpid())


def _peak() -> int:
    text = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    main()
