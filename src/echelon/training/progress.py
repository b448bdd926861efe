"""A progress bar over epochs with the loss and the validation metric, on standard error."""

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
