"""The command ``predict``: labels and probabilities of every row of a file."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.options import (
    AsJson,
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
    split_names,
)
from echelon.cli.risks import read_risk
from echelon.cli.writing import (
    is_standard_output,
    refuse_inputs,
    require_table_file,
    written_table,
)

_COVERAGE = 0.9  # of intervals, where a model has them and nothing else was asked
_OUTSIDE = "outside"
_SCORE = "\0score"  # a column that no file can have


def predict(
    model: Model,
    data: DataOrSentence,
    out: Annotated[
        Path,
        typer.Option(
            help="The file to write: CSV, or by its ending .parquet, .xlsx or .jsonl. A dash, -, "
            "is the standard output."
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
    as_json: AsJson = False,
) -> None:
    """Predict label and probabilities of every row, a part of the file at a time.

    A model that was fitted with --conformal also gives the interval, lower to upper, for a
    coverage of 0.9 unless told otherwise. The column `outside` names the columns in which a row
    lies outside what the model was trained on. With --on-broken skip, rows that cannot be
    predicted, such as those whose images cannot be read, are empty in the output.

    Example: echelon predict wine.echelon new.csv --out predictions.csv

    Example: echelon predict m.echelon new.csv --keep ID --risk "P(y<=Disagree)" --top 50

    Example: echelon predict reviews.echelon "The best course I ever took."
    """
    is_shown = is_standard_output(out)
    if is_shown and as_json:
        raise ValueError("--json and --out - cannot both have the standard output; leave one out")
    if top is not None and top < 1:
        raise ValueError(f"--top must be at least 1; got {top}")
    require_table_file(out, model, *data, decision)
    import pandas as pd

    from echelon.data.columns import gathered_remarks
    from echelon.models.loading import load

    fitted = load(model)
    image = fitted.image_column
    single = _single_row(fitted, data)
    described = DataDescription(
        [Path(path) for path in data] if single is None else Path(), image=image,
        image_folder=image_folder, on_broken=on_broken, sep=sep, decimal=decimal,
        encoding=encoding, sheet=sheet,
    )  # fmt: skip
    is_folder = single is None and described.is_image_folder
    if single is None:
        require_images(fitted, model, described)
    classes = fitted.classes_.tolist()
    columns = [f"probability_{label}" for label in classes]
    risks = [read_risk(text, classes) for text in risk or ()]
    kept = split_names(keep)
    chosen = read_decision(decision)
    if coverage is None and fitted.conformal_ is not None:
        coverage = _COVERAGE
    given = ["prediction", *(("lower", "upper") if coverage is not None else ())]
    results = [*given, *(measure.name for measure in risks), *columns, _OUTSIDE]
    first = [*([image] if is_folder and image not in kept else []), *kept]
    _refuse_same(kept, results)
    rows = skipped = outside = 0
    types = _column_types(fitted, [*given], [*first, _OUTSIDE])
    short = [*columns, *(measure.name for measure in risks)]
    best: Any = None
    chunks = described.chunks() if single is None else iter([single])
    with (
        gathered_remarks() as remarks,
        written_table(out, [*first, *results], types, short=short, safe=formula_safe) as write,
        _rows_bar(shown=not as_json and single is None) as report,
    ):
        for frame in chunks:
            chunk = frame.reset_index(drop=True)  # a Parquet file may bring rows of one name
            for name in kept:
                if name not in chunk.columns:
                    raise ValueError(
                        f"--keep names the column {name!r}, and {described.name} has: "
                        f"{plain(list(chunk.columns))}"
                    )
            located = chunk if single is not None else described.with_located_images(chunk)
            if single is None:
                refuse_inputs(out, described.images(located))
            readable, unread = (located, 0) if single is not None else described.readable(located)
            table = pd.DataFrame(columns=results)
            if len(readable):
                curve = fitted.curve(readable)
                if on_broken == "raise":
                    fitted.refuse_undefined(curve, readable, first_row=rows + 1)
                probabilities = curve.probabilities.double().cpu().numpy()
                table = pd.DataFrame(probabilities, columns=columns, index=readable.index)
                for place, measure in enumerate(risks):
                    table.insert(place, measure.name, measure.of(probabilities))
                table.insert(0, "prediction", fitted.label(curve, chosen))
                table[_OUTSIDE] = _outside(fitted, readable)
                outside += int((table[_OUTSIDE] != "").sum())
            if len(readable) and coverage is not None:
                ends = fitted.interval_ranks(probabilities, coverage)
                for i, name in enumerate(("lower", "upper")):
                    table.insert(1 + i, name, fitted.labels_.from_ranks(ends[:, i]))
                    table[name] = table[name].where(table["prediction"].notna(), None)
            if unread:  # as objects, labels that are whole numbers stay such beside empty cells
                table = table.astype(dict.fromkeys(given, object)).reindex(chunk.index)
            for place, name in enumerate(first):
                table.insert(place, name, _repeated(chunk[name]))
            skipped += unread
            if top is None:
                write(table)
            else:
                best = _highest(best, table, risks[0].name if risks else columns, top)
            rows += len(chunk)
            report(rows)
        if best is not None:
            write(best.drop(columns=_SCORE))
    remarks.say()
    written = rows if top is None else min(top, rows)
    if as_json:
        document = {"predictions": str(out), "rows": written, "skipped": skipped, "read": rows}
        print(json.dumps({**document, "outside": outside}))
        return
    unread_note = f", {skipped:,} of them empty: their images cannot be read" if skipped else ""
    of_all = f" of {rows:,}" if written < rows else ""
    said = f"wrote {out}: {written:,}{of_all} rows{unread_note}"
    stream = sys.stderr if is_shown else sys.stdout
    if single is None:
        print(said, file=stream)
    if outside:
        print(
            f"  {outside:,} of {rows:,} rows lie outside what the model was trained on; the column "
            f"{_OUTSIDE} names where",
            file=stream,
        )


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


def _outside(fitted: Any, frame: Any) -> Any:
    """The columns in which rows lie outside what the model was trained on."""
    from echelon.data.columns import gathered_remarks
    from echelon.data.outside import outside_columns

    try:
        with gathered_remarks():  # the prediction has said them
            table = fitted.schema_.read(frame)
        return outside_columns(fitted.schema_, fitted.columns_, frame, table)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"the model is damaged: its columns are not described ({error})") from None


def _refuse_same(kept: Sequence[str], results: Sequence[str]) -> None:
    for name in kept:
        if name in results:
            raise ValueError(
                f"--keep names the column {name!r}, which is also the name of a result; rename it"
            )


def _repeated(column: Any) -> Any:
    """A column of the data as text, empty where missing."""
    from echelon.data.cells import is_missing

    return [
        None if not isinstance(cell, str) and is_missing(cell) else str(cell) for cell in column
    ]


def _highest(best: Any, table: Any, by: str | list[str], top: int) -> Any:
    """The rows of the largest risk so far; without a risk, of the highest expected class."""
    import numpy as np
    import pandas as pd

    if isinstance(by, str):
        score = table[by]
    else:
        score = pd.Series(table[by].to_numpy(dtype=float) @ np.arange(len(by)), index=table.index)
    table = table.assign(**{_SCORE: score})
    both = table if best is None or not len(best) else pd.concat([best, table], ignore_index=True)
    return both.sort_values(_SCORE, ascending=False, kind="stable").head(top)


def _column_types(fitted: Any, labels: list[str], texts: list[str]) -> dict[str, str]:
    """What Parquet calls the types of the columns that hold no probabilities."""
    kind = {"b": "bool", "i": "int64", "u": "uint64", "f": "float64"}
    label_type = kind.get(fitted.classes_.dtype.kind, "string")
    return {**dict.fromkeys(labels, label_type), **dict.fromkeys(texts, "string")}


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
