"""Progress bars on standard error: over the epochs of a fit, and over many runs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from echelon.terminal import drawing_stream

Report = Callable[[dict[str, float]], None]


@contextmanager
def epoch_bar(title: str, max_epochs: int, shown: bool) -> Iterator[Report | None]:
    """Something to call with each row of the history, or None where nothing is to be shown."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[scores]}"),
    )
    with Progress(*columns, console=Console(file=drawing_stream())) as progress:
        task = progress.add_task(title, total=max_epochs, scores="")

        def report(row: dict[str, float]) -> None:
            scores = [f"{name} {value:.4f}" for name, value in row.items() if name != "epoch"]
            progress.update(task, completed=row["epoch"], scores="  ".join(scores))

        yield report


@contextmanager
def fit_bar(total: int, shown: bool) -> Iterator[Callable[[int, str, float], None] | None]:
    """Something to call before each of several fits, or None where nothing is to be shown.

    It takes how many fits are done, what comes next, and the seconds that are probably left.
    """
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    class SecondsLeft(ProgressColumn):
        """Counts down between two reports."""

        def render(self, task: Task) -> Text:
            seconds = task.fields["end"] - time.monotonic()
            known = seconds < float("inf")
            return Text(f"{timedelta(seconds=max(0, round(seconds)))} left" if known else "")

    columns = (
        TextColumn("fits"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        SecondsLeft(),
        TextColumn("{task.description}", markup=False),
    )
    console = Console(file=drawing_stream())
    hidden = not console.is_terminal  # as for runs
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("", total=total, end=float("inf"))

        def report(done: int, name: str, seconds: float) -> None:
            progress.update(task, completed=done, description=name, end=time.monotonic() + seconds)

        yield report


@contextmanager
def work_bar(title: str, total: int, shown: bool) -> Iterator[Callable[[int, str], None] | None]:
    """Something to call with how much more is done and what it was for, or None without a bar."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(title),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    console = Console(file=drawing_stream())
    hidden = not console.is_terminal  # as for runs
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("", total=total)

        def report(more: int, what: str) -> None:
            progress.update(task, advance=more, description=what)

        yield report


@contextmanager
def run_bar(total: int, shown: bool) -> Iterator[Callable[[str, bool], None] | None]:
    """Something to call with the name of each run that is done and whether it is new, or None.

    The time left is that of the new runs: those kept from before took none.
    """
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("runs"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}", markup=False),
    )
    start = time.monotonic()
    done = new = 0
    console = Console(file=drawing_stream())
    # A file would keep an empty line of a bar that is wiped away.
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("", total=total, left="")

        def report(name: str, is_new: bool) -> None:
            nonlocal done, new
            done, new = done + 1, new + is_new
            left = ""
            if new:
                seconds = (time.monotonic() - start) / new * (total - done)
                left = f"about {timedelta(seconds=round(seconds))} left"
            progress.update(task, completed=done, description=name, left=left)

        yield report
