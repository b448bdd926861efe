"""The command ``predict``: labels and probabilities of every row of a file."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.options import AsJson, Data, Decision, ImageFolder, Model, OnBroken
from echelon.cli.reading import DataDescription, read_decision, require_images
from echelon.cli.writing import (
    is_standard_output,
    refuse_inputs,
    require_table_file,
    written_table,
)

_COVERAGE = 0.9  # of intervals, where a model has them and nothing else was asked


def predict(
    model: Model,
    data: Data,
    out: Annotated[
        Path,
        typer.Option(
            help="The file to write: Parquet where its name ends in .parquet, and CSV otherwise. A "
            "dash, -, is the standard output."
        ),
    ],
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
    coverage of 0.9 unless told otherwise. With --on-broken skip, rows that cannot be predicted,
    such as those whose images cannot be read, are empty in the output.

    Example: echelon predict wine.echelon new.csv --out predictions.csv

    Example: echelon predict wine.echelon new.csv --out - | head
    """
    is_shown = is_standard_output(out)
    if is_shown and as_json:
        raise ValueError("--json and --out - cannot both have the standard output; leave one out")
    require_table_file(out, model, data, decision)
    import pandas as pd

    from echelon.data.columns import gathered_remarks
    from echelon.models.loading import load

    fitted = load(model)
    image = fitted.image_column
    described = DataDescription(data, image=image, image_folder=image_folder, on_broken=on_broken)
    require_images(fitted, model, described)
    columns = [f"probability_{label}" for label in fitted.classes_.tolist()]
    chosen = read_decision(decision)
    if coverage is None and fitted.conformal_ is not None:
        coverage = _COVERAGE
    given = ["prediction", *(("lower", "upper") if coverage is not None else ())]
    names = [*([image] if image is not None and data.is_dir() else []), *given, *columns]
    rows = skipped = 0
    types = _column_types(fitted, given)
    with (
        gathered_remarks() as remarks,
        written_table(out, names, types, short=columns, safe=formula_safe) as write,
    ):
        for frame in described.chunks():
            chunk = frame.reset_index(drop=True)  # a Parquet file may bring rows of one name
            located = described.with_located_images(chunk)
            refuse_inputs(out, described.images(located))
            readable, unread = described.readable(located)
            table = pd.DataFrame(columns=given + columns)
            if len(readable):
                curve = fitted.curve(readable)
                if on_broken == "raise":
                    fitted.refuse_undefined(curve, readable, first_row=rows + 1)
                probabilities = curve.probabilities.double().cpu().numpy()
                table = pd.DataFrame(probabilities, columns=columns, index=readable.index)
                table.insert(0, "prediction", fitted.label(curve, chosen))
            if len(readable) and coverage is not None:
                ends = fitted.interval_ranks(probabilities, coverage)
                for i, name in enumerate(("lower", "upper")):
                    table.insert(1 + i, name, fitted.labels_.from_ranks(ends[:, i]))
                    table[name] = table[name].where(table["prediction"].notna(), None)
            if unread:  # as objects, labels that are whole numbers stay such beside empty cells
                table = table.astype(dict.fromkeys(given, object)).reindex(chunk.index)
            if data.is_dir():
                table.insert(0, image, chunk[image])
            skipped += unread
            write(table)
            rows += len(chunk)
    remarks.say()
    if as_json:
        print(json.dumps({"predictions": str(out), "rows": rows, "skipped": skipped}))
    else:
        unread_note = f", {skipped:,} of them empty: their images cannot be read" if skipped else ""
        said = f"wrote {out}: {rows:,} rows{unread_note}"
        print(said, file=sys.stderr if is_shown else sys.stdout)


def _column_types(fitted: Any, labels: list[str]) -> dict[str, str]:
    """What Parquet calls the types of the columns that hold no probabilities."""
    kind = {"b": "bool", "i": "int64", "u": "uint64", "f": "float64"}
    own = kind.get(fitted.classes_.dtype.kind, "string")
    return {**dict.fromkeys(labels, own), fitted.image_column: "string"}
