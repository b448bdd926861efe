"""The command line, ``echelon``.

Invariant: a command ends with 0 (done), 1 (failed) or 2 (wrong use or wrong input), and ``drift``
with 3 where it found something; an error is one line on standard error, and a file is written
wholly or not at all. With ``--json`` the only thing
on standard output is one document.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from echelon._version import __version__
from echelon.cli.align import align
from echelon.cli.check import check
from echelon.cli.compare import compare
from echelon.cli.drift import drift
from echelon.cli.evaluate import evaluate
from echelon.cli.explain import explain
from echelon.cli.export import export
from echelon.cli.fit import fit
from echelon.cli.grid import grid
from echelon.cli.info import info
from echelon.cli.methods import methods
from echelon.cli.predict import predict
from echelon.cli.report import report
from echelon.cli.reproduce import reproduce
from echelon.cli.serve import serve
from echelon.cli.tune import tune
from echelon.processes import LAUNCHER, is_first_process, leave_with, world_size
from echelon.terminal import one_line, speak_plainly

_TRACEBACK = "ECHELON_TRACEBACK"

app = typer.Typer(
    help="Ordinal regression: labels that have an order but no known distances.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _say_version(is_asked: bool) -> None:
    if is_asked:
        print(f"echelon {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_say_version,
            is_eager=True,
            help="Print the version of echelon, and end.",
        ),
    ] = False,
) -> None:
    pass


for _command in (
    check, fit, predict, evaluate, explain, drift, export, info, methods, compare, tune, grid,
    report, reproduce, serve, align,
):  # fmt: skip
    app.command()(_command)


def main() -> None:
    """Run a command; the entry point of the program."""
    if LAUNCHER in os.environ:
        leave_with(int(os.environ[LAUNCHER]))
    if not is_first_process():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)
    speak_plainly()
    try:
        with _ending_in_order():
            code = app(standalone_mode=False)
    except ValueError as error:
        _fail(error, 2)
    except (OSError, RuntimeError) as error:
        _fail(error, 1)
    except MemoryError as error:
        _fail(f"there is not enough memory for this: {error}; try fewer rows or workers", 1)
    except Exception as error:
        if hasattr(error, "format_message"):  # of the parser, for an option that it cannot read
            _refuse(error)
        if os.environ.get(_TRACEBACK):
            raise
        named = f"{type(error).__name__}: {error}"
        _fail(f"a fault of echelon itself ({named}); {_TRACEBACK}=1 shows where it arose", 1)
    if not code:
        _leave_together()
    sys.exit(code or 0)


def _refuse(error: Any) -> NoReturn:
    """End with what the parser says: one line, or the help where nothing was asked."""
    if len(sys.argv) < 2:
        error.show()
        sys.exit(error.exit_code)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "echelon"
    _fail(f"{error.format_message().rstrip('.')}; see `{command} --help`", error.exit_code)


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let SIGTERM end the program as an error does, so that nothing half written stays behind.

    A second one ends it at once. Of processes that wait for each other, as those of torchrun do,
    none could be ended so: they may wait where no signal is heard.
    """
    is_main = threading.current_thread() is threading.main_thread()
    is_alone = world_size() == 1
    if not is_main or not is_alone or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave_together() -> None:
    """Leave without tearing down the connections of processes: who is last meets closed ones."""
    if world_size() == 1:
        return
    from torch import distributed

    if distributed.is_initialized():
        distributed.barrier()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _fail(reason: Any, code: int) -> NoReturn:
    print(f"echelon: {one_line(reason) or type(reason).__name__}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
