"""Progress bars on standard error: over the epochs of a fit, and over many runs."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from echelon.evaluation.metrics import METRICS
from echelon.terminal import drawing_stream

_VALIDATION = "validation_"  # before the name of the metric, in a history
_BAR = 12  # characters, so that a line with its scores fits into 80

Report = Callable[[dict[str, float]], None]


def score_words(row: Mapping[str, float], best: float | None = None) -> str:
    """The scores of an epoch in a few words, with the best of the validation so far.

    Examples
    --------
    >>> score_words({"epoch": 3, "loss": 0.5, "validation_ranked_probability_score": 0.21}, 0.2)
    'loss 0.500  val RPS 0.210 (best 0.200)'
    """
    words = []
    for name, value in row.items():
        if name.startswith(_VALIDATION):
            title = METRICS[name.removeprefix(_VALIDATION)].title
            so_far = "" if best is None else f" (best {best:.3f})"
            words.append(f"val {title} {value:.3f}{so_far}")
        elif name != "epoch":
            words.append(f"{name} {value:.3f}")
    return "  ".join(words)


def validation_loss(row: Mapping[str, float]) -> float | None:
    """The score of the validation rows in a row of the history, the lower the better, if any.

    Examples
    --------
    >>> validation_loss({"epoch": 3, "loss": 0.5, "validation_accuracy": 0.25})
    -0.25
    """
    for name, value in row.items():
        if name.startswith(_VALIDATION):
            return METRICS[name.removeprefix(_VALIDATION)].loss(value)
    return None


@contextmanager
def epoch_bar(title: str, max_epochs: int, shown: bool) -> Iterator[Report | None]:
    """Something to call with each row of the history, or None where nothing is to be shown."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    class Left(ProgressColumn):
        """The time that is probably left, or the time that it took."""

        def render(self, task: Task) -> Text:
            if task.finished:
                return Text(f"{_clock(task.finished_time or 0)} taken")
            left = task.time_remaining
            return Text("" if left is None else f"{_clock(left)} left")

    # No column may wrap or be cut on a terminal of 80: the bar is what is left of it.
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=_BAR),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        Left(),
        TextColumn("{task.fields[scores]}", markup=False),
    )
    best: dict[str, float] = {}
    with Progress(*columns, console=Console(file=drawing_stream())) as progress:
        task = progress.add_task(title, total=max_epochs, scores="")

        def report(row: dict[str, float]) -> None:
            for name in row:
                if name.startswith(_VALIDATION):
                    loss = METRICS[name.removeprefix(_VALIDATION)].loss
                    best[name] = min(row[name], best.get(name, row[name]), key=loss)
            so_far = next(iter(best.values()), None)
            progress.update(task, completed=row["epoch"], scores=score_words(row, so_far))

        yield report


def _clock(seconds: float) -> str:
    """Seconds as a clock shows them: minutes and seconds, with hours where there are some.

    Examples
    --------
    >>> _clock(75.4), _clock(3700)
    ('1:15', '1:01:40')
    """
    whole = str(timedelta(seconds=max(0, round(seconds))))
    return whole.removeprefix("0:").removeprefix("0") if whole.startswith("0:") else whole


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
            return Text(f"{_clock(seconds)} left" if seconds < float("inf") else "")

    columns = (
        TextColumn("fits"),
        BarColumn(bar_width=_BAR),
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
        BarColumn(bar_width=_BAR),
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
                left = f"about {_clock(seconds)} left"
            progress.update(task, completed=done, description=name, left=left)

        yield report


@contextmanager
def step_bar(title: str, total: int, shown: bool) -> Iterator[Callable[[str], None]]:
    """Something to call with the name of each step that is done; a bar shows how many are."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(file=drawing_stream())
    if not shown or not console.is_terminal:
        yield lambda name: None
        return
    columns = (
        TextColumn(title),
        BarColumn(bar_width=_BAR),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda name: progress.advance(task)
