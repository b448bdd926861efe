"""The command line, ``echelon``.

Invariant: a command ends with 0 (done), 1 (failed) or 2 (wrong use or wrong input); an error is one
line on standard error, and a file is written wholly or not at all. With ``--json`` the only thing
on standard output is one document.
"""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

from echelon.cli import comparisons, models, reproductions  # noqa: F401 (they add their commands)
from echelon.cli.app import app
from echelon.cli.launching import is_first_process


def main() -> None:
    """Run a command; the entry point of the program."""
    warnings.showwarning = _show_warning
    if not is_first_process():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)
    try:
        with _ending_in_order():
            app(standalone_mode=True)
    except ValueError as error:
        _fail(str(error), 2)
    except (OSError, RuntimeError) as error:
        _fail(str(error), 1)
    except SystemExit as end:
        if not end.code:
            _leave_together()
        raise


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let SIGTERM end the program as an error does, so that nothing half written stays behind.

    A second one ends it at once. Of processes that wait for each other, as those of torchrun do,
    none could be ended so: they may wait where no signal is heard.
    """
    is_main = threading.current_thread() is threading.main_thread()
    is_alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
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
    """Leave without tearing down the connections of torchrun: who is last meets closed ones."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return
    from torch import distributed

    if distributed.is_initialized():
        distributed.barrier()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _fail(message: str, code: int) -> None:
    print(f"echelon: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"echelon: warning: {' '.join(str(message).split())}", file=sys.stderr)


if __name__ == "__main__":
    main()
