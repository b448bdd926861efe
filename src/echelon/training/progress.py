"""Progress bars on standard error: over the epochs of a fit, and over many runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[scores]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=max_epochs, scores="")

        def report(row: dict[str, float]) -> None:
            scores = [f"{name} {value:.4f}" for name, value in row.items() if name != "epoch"]
            progress.update(task, completed=row["epoch"], scores="  ".join(scores))

        yield report


@contextmanager
def run_bar(total: int, shown: bool) -> Iterator[Callable[[str], None] | None]:
    """Something to call with the name of each run that ends, or None."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("runs", total=total)
        yield lambda name: progress.update(task, advance=1, description=name)
