"""The command line, ``echelon``.

Invariant: a command ends with 0 (done), 1 (failed) or 2 (wrong use or wrong input); an error is one
line on standard error, and a file is written wholly or not at all. With ``--json`` the only thing
on standard output is one document.
"""

import sys
import warnings
from typing import TextIO

from echelon.cli import comparisons, models  # noqa: F401 (they add their commands)
from echelon.cli.app import app


def main() -> None:
    """Run a command; the entry point of the program."""
    warnings.showwarning = _show_warning
    try:
        app()
    except ValueError as error:
        _fail(str(error), 2)
    except OSError as error:
        _fail(str(error), 1)


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
