"""The command ``explain``: what matters to a model, which way, and why rows get what they get."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.evaluate import codes_of_labels, evaluated_run, labelled_rows
from echelon.cli.options import (
    AsJson,
    Data,
    Decimal,
    Encoding,
    ImageFolder,
    MissingCodes,
    MissingTarget,
    Model,
    OnBroken,
    Sep,
    Sheet,
)
from echelon.cli.reading import DataDescription, plain, require_images, split_names
from echelon.cli.writing import require_run_folder

_SHOWN = 3  # rows whose reasons are printed where none are named


def explain(
    model: Model,
    data: Data,
    target: Annotated[
        str | None,
        typer.Option(
            help="The column that holds the true labels. Without it, importance is what it would "
            "be if the model were right."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder of a finished run of this model and these data, to which "
            "explanation.json is added for `echelon report`. With --target, a folder that is not "
            "there yet becomes such a run."
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            help="The rows whose reasons are printed, by their numbers in the file from 0 on, with "
            "commas between them. Without it, they are the first three."
        ),
    ] = None,
    at_least: Annotated[
        str | None,
        typer.Option(
            help="The class that reasons are about: the chance of it or a higher one. Without it, "
            "each row has the class at which it differs most from others."
        ),
    ] = None,
    correlated: Annotated[
        float | None,
        typer.Option(
            help="The correlation from which on columns are shuffled together, such as 0.8."
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(help="How often each column is shuffled.")] = 5,
    image_folder: ImageFolder = None,
    on_broken: OnBroken = "raise",
    missing_target: MissingTarget = "drop",
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    missing_codes: MissingCodes = None,
    as_json: AsJson = False,
) -> None:
    """Say which columns matter to a model, which way, and why rows get what they get.

    It tells of the model and not of the world; give rows that the model was not fitted on.

    Example: echelon explain wine.echelon test.csv --target quality

    Example: echelon explain wine.echelon test.csv --target quality --out run && echelon report run
    """
    from echelon.runs import add_explanation, is_done, read_run, write_run

    is_finished = out is not None and is_done(out)
    if out is not None and not is_finished:
        if target is None:
            raise ValueError(
                f"{out} is no finished run; add --target to make it one, or name the folder that "
                f"`echelon evaluate --out` wrote"
            )
        require_run_folder(out)
    asked = _row_numbers(rows)
    from echelon.models.loading import load

    fitted = load(model)
    threshold = None if at_least is None else _threshold(fitted, at_least)
    described = DataDescription(
        data, target, image=fitted.image_column, image_folder=image_folder, on_broken=on_broken,
        sep=sep, decimal=decimal, encoding=encoding, missing_target=missing_target, sheet=sheet,
        missing_codes=codes_of_labels(fitted, target, missing_codes),
    )  # fmt: skip
    require_images(fitted, model, described)
    frame, skipped = described.readable(described.with_located_images(described.cells()))
    if not len(frame):
        raise ValueError(f"none of the {skipped:,} images can be read")
    labels, unlabelled = None, 0
    if target is not None:
        frame, labels, unlabelled = labelled_rows(fitted, described, frame)
    numbers = frame.index.to_numpy()
    places = _places(asked, numbers, described.name)
    shown = places if asked else list(range(min(_SHOWN, len(frame))))
    run: Any = None
    explained = shown
    if out is not None and is_finished:
        run = read_run(out)
        _require_same(run, fitted, frame, out)
    elif out is not None:
        run = evaluated_run(
            fitted, model, described, frame, labels,
            {"skipped": skipped, "unlabelled": unlabelled}, None,
        )  # fmt: skip
    if run is not None:
        explained = list(dict.fromkeys([*shown, *_explored(run)]))
    features = frame if target is None else frame.drop(columns=[target])
    explanation = fitted.explain(
        features, labels, rows=explained, correlated=correlated, repeats=repeats,
        verbose=0 if as_json else 1,
    ).with_rows_named(numbers)  # fmt: skip
    document = explanation.document(threshold)
    if out is not None:
        if not is_finished:
            write_run(out, run)
        add_explanation(out, document)
    if as_json:
        print(json.dumps(document))
        return
    print(replace(explanation, reasons=explanation.reasons[: len(shown)]).text(threshold=threshold))
    if out is not None:
        print(f"`echelon report {out}` makes a page of this")


def _row_numbers(rows: str | None) -> list[int]:
    names = split_names(rows)
    if not all(name.isdecimal() for name in names):
        raise ValueError(f"--rows must be numbers from 0 on, such as 0,5,12; got {rows!r}")
    return [int(name) for name in names]


def _places(asked: list[int], numbers: Any, data: str) -> list[int]:
    place_of = {int(number): place for place, number in enumerate(numbers)}
    for number in asked:
        if number not in place_of:
            raise ValueError(
                f"--rows names row {number}, which {data} does not have, or which has no label or "
                f"no image that can be read; its rows are 0 to {int(numbers[-1])}"
            )
    return [place_of[number] for number in asked]


def _threshold(fitted: Any, label: str) -> int:
    """The k of "this class or a higher one"."""
    known = [str(name) for name in fitted.classes_.tolist()]
    if label not in known[1:]:
        raise ValueError(
            f"--at-least must be a class above the lowest: one of {plain(known[1:])}; got {label!r}"
        )
    return known.index(label) - 1


def _require_same(run: Any, fitted: Any, frame: Any, out: Path) -> None:
    """Raise where a run is not of this model and these rows."""
    import numpy as np

    stored = run.predictions
    same_rows = "row" in stored and np.array_equal(stored["row"], frame.index.to_numpy())
    features = frame[[c for c in frame.columns if c in {x.name for x in fitted.schema_.columns}]]
    if (
        not same_rows
        or run.config.classes != fitted.classes_.tolist()
        or not np.allclose(stored["probabilities"], fitted.predict_proba(features), atol=1e-3)
    ):
        raise ValueError(
            f"{out} is a run of another model, or of other data; give those that it was made of, "
            f"or another folder with --out"
        )


def _explored(run: Any) -> list[int]:
    """The places of the rows that the page shows singly."""
    import numpy as np

    from echelon.evaluation.exploring import explored_orders

    stored = run.predictions
    orders = explored_orders(
        stored["truth"].astype(np.int64),
        stored["prediction"].astype(np.int64),
        stored["probabilities"].astype(np.float64),
    )
    return sorted({int(row) for order in orders.values() for row in order})
