"""The command ``predict``: labels and probabilities of every row of a file."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.options import (
    AsJson,
    Cluster,
    DataOrSentence,
    Decimal,
    Decision,
    Encoding,
    ImageFolder,
    Model,
    OnBroken,
    Sep,
    Sheet,
)
from echelon.cli.reading import (
    DataDescription,
    plain,
    read_decision,
    require_images,
)
from echelon.cli.scoring import OUTSIDE, Asked, Scorer
from echelon.cli.writing import (
    is_standard_output,
    is_table_folder,
    require_run_folder,
    require_table_file,
)


def predict(
    model: Model,
    data: DataOrSentence,
    out: Annotated[
        Path,
        typer.Option(
            help="The file to write: CSV, or by its ending .parquet, .xlsx or .jsonl. A dash, -, "
            "is the standard output. A folder that is there gets a Parquet file for each file of "
            "the data."
        ),
    ] = Path("-"),
    keep: Annotated[
        str | None,
        typer.Option(help="The columns of the data to repeat, with commas between them."),
    ] = None,
    risk: Annotated[
        list[str] | None,
        typer.Option(
            help='A probability to add as a column, such as "P(y<=Disagree)". It can be given '
            "several times."
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            help="The number of rows to write, those of the largest --risk first; without a risk, "
            "those of the highest expected class."
        ),
    ] = None,
    decision: Decision = None,
    image_folder: ImageFolder = None,
    on_broken: OnBroken = "raise",
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Add intervals that hold the true label with this probability, such as 0.8. The "
            "model must have been fitted with --conformal."
        ),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    formula_safe: Annotated[
        bool,
        typer.Option(
            "--formula-safe",
            help="Put an apostrophe before labels and file names that a spreadsheet would run as a "
            "formula, which are those that begin with = + - or @.",
        ),
    ] = False,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Predict label and probabilities of every row, a part of the file at a time.

    A model that was fitted with --conformal also gives the interval, lower to upper, for a
    coverage of 0.9 unless told otherwise. The column `outside` names the columns in which a row
    lies outside what the model was trained on. With --on-broken skip, rows that cannot be
    predicted, such as those whose images cannot be read, are empty in the output. With --cluster,
    the workers of a Ray cluster predict the files of the data side by side, and --out is a folder
    that gets a Parquet file for each of them.

    Example: echelon predict wine.echelon new.csv --out predictions.csv

    Example: echelon predict m.echelon new.csv --keep ID --risk "P(y<=Disagree)" --top 50

    Example: echelon predict wine.echelon parts/ --cluster local --out predictions

    Example: echelon predict reviews.echelon "The best course I ever took."
    """
    is_shown = is_standard_output(out)
    if is_shown and as_json:
        raise ValueError("--json and --out - cannot both have the standard output; leave one out")
    if top is not None and top < 1:
        raise ValueError(f"--top must be at least 1; got {top}")
    in_pieces = cluster is not None or is_table_folder(out)
    if in_pieces:
        _require_pieces(out, cluster, top)
    else:
        require_table_file(out, model, *data, decision)
    from echelon.data.columns import gathered_remarks
    from echelon.models.loading import load

    fitted = load(model)
    single = _single_row(fitted, data)
    described = DataDescription(
        [Path(path) for path in data] if single is None else Path(), image=fitted.image_column,
        image_folder=image_folder, on_broken=on_broken, sep=sep, decimal=decimal,
        encoding=encoding, sheet=sheet,
    )  # fmt: skip
    if single is None:
        require_images(fitted, model, described)
    asked = Asked(keep, risk or (), decision, coverage, formula_safe)
    scorer = Scorer(fitted, asked, described, is_single=single is not None)
    read_decision(decision)
    if in_pieces:
        _predict_pieces(model, described, asked, out, cluster, as_json)
        return
    chunks = described.chunks() if single is None else iter([single])
    with (
        gathered_remarks() as remarks,
        _rows_bar(shown=not as_json and single is None) as report,
    ):
        for rows in scorer.written(chunks, out, top=top):
            report(rows)
    remarks.say()
    written = scorer.rows if top is None else min(top, scorer.rows)
    counts = {"rows": written, "skipped": scorer.skipped, "read": scorer.rows}
    stream = sys.stderr if is_shown else sys.stdout
    _say(out, {**counts, "outside": scorer.outside}, as_json, stream, quiet=single is not None)


def _say(
    out: Path, counts: dict[str, int], as_json: bool, stream: Any, *, quiet: bool = False
) -> None:
    """Print what was written; where it is `quiet`, only what is odd about it."""
    if as_json:
        print(json.dumps({"predictions": str(out), **counts}))
        return
    rows, written, skipped = counts["read"], counts["rows"], counts["skipped"]
    unread_note = f", {skipped:,} of them empty: their images cannot be read" if skipped else ""
    of_all = f" of {rows:,}" if written < rows else ""
    files = f" in {counts['files']:,} files" if "files" in counts else ""
    if not quiet:
        print(f"wrote {out}: {written:,}{of_all} rows{files}{unread_note}", file=stream)
    if counts["outside"]:
        print(
            f"  {counts['outside']:,} of {rows:,} rows lie outside what the model was trained on; "
            f"the column {OUTSIDE} names where",
            file=stream,
        )


def _require_pieces(out: Path, cluster: str | None, top: int | None) -> None:
    """Raise where files of predictions could not be written to a folder, one for each file."""
    if top is not None:
        raise ValueError(
            f"--top {top} is of all rows together, and a folder gets a file of predictions for "
            f"each file; give --out FILE without --cluster, or leave out --top"
        )
    if is_standard_output(out) or out.suffix:
        raise ValueError(
            f"a cluster writes a file of predictions for each file; got --out {out}: name a folder"
        )
    require_run_folder(out)


def _predict_pieces(
    model: Path,
    described: DataDescription,
    asked: Asked,
    out: Path,
    cluster: str | None,
    as_json: bool,
) -> None:
    """A file of predictions for each file of the data, written here or by a cluster."""
    from echelon.cli.pieces import (
        PieceWork,
        finished,
        pieces_of,
        require_piece_folder,
        whole_paths,
    )
    from echelon.data.columns import gathered_remarks

    pieces = pieces_of(described)
    require_piece_folder(out, pieces)
    out.mkdir(parents=True, exist_ok=True)
    work = PieceWork(str(model.resolve()), whole_paths(described), asked, str(out.resolve()))
    counts = {"rows": 0, "skipped": 0, "read": 0, "outside": 0, "files": 0}
    with (
        gathered_remarks() as remarks,
        _rows_bar(shown=not as_json) as report,
        closing(finished(work, pieces, cluster)) as results,
    ):
        for done in results:
            added = {
                "rows": done.rows, "skipped": done.skipped, "read": done.rows,
                "outside": done.outside, "files": 1,
            }  # fmt: skip
            counts = {name: count + added[name] for name, count in counts.items()}
            report(counts["read"])
    remarks.say()
    _say(out, counts, as_json, sys.stdout)


def _single_row(fitted: Any, data: Sequence[str]) -> Any:
    """One row for a sentence or an image in the place of a file; None for anything else."""
    import pandas as pd

    from echelon.data.files import IMAGE_SUFFIXES

    names = [column.name for column in fitted.schema_.columns]
    if len(data) != 1:
        return None
    is_file = Path(data[0]).is_file()
    is_image = is_file and Path(data[0]).suffix.lower() in IMAGE_SUFFIXES
    is_sentence = " " in data[0].strip() and not Path(data[0]).exists()
    if not is_image and not is_sentence:
        return None
    column = fitted.image_column if is_image else fitted.text_column
    what = "an image" if is_image else "a sentence"
    if names != [column]:
        raise ValueError(
            f"{data[0]!r} is {what}, or no file, and the model reads "
            f"{'the columns ' + plain(names) if column is None or len(names) > 1 else names}: give "
            f"a table with its columns"
        )
    return pd.DataFrame({column: pd.Series([data[0]], dtype=object)})


def _rows_bar(shown: bool) -> Any:
    """A bar of the rows that are done, on a terminal; what it gives is called with their number."""
    from contextlib import contextmanager

    @contextmanager
    def bar() -> Iterator[Any]:
        from rich.console import Console

        from echelon.terminal import drawing_stream

        console = Console(file=drawing_stream())
        if not shown or not console.is_terminal:
            yield lambda rows: None
            return
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} rows"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("rows", total=None)
            yield lambda rows: progress.update(task, completed=rows)

    return bar()
