"""The command ``drift``: what changed against the rows that a model was fitted on."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.evaluate import codes_of_labels
from echelon.cli.options import (
    AsJson,
    Data,
    Decimal,
    Encoding,
    ImageFolder,
    MissingCodes,
    Model,
    OnBroken,
    Sep,
    Sheet,
)
from echelon.cli.reading import DataDescription, require_column, require_images, require_known
from echelon.cli.showing import say, show_lines

CHANGED = 3  # how the command ends where something did
_SHOWN = 25


def drift(
    model: Model,
    data: Data,
    target: Annotated[
        str | None,
        typer.Option(
            help="The column that holds the true labels, where they came in. The mix of the "
            "classes, the scores and the coverage of intervals are then compared too."
        ),
    ] = None,
    level: Annotated[
        float,
        typer.Option(
            help="How often rows of the same distribution may raise an alarm, over all comparisons "
            "together."
        ),
    ] = 0.05,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder of a finished run of these data, as `echelon evaluate --out` writes "
            "it, to which drift.json is added for `echelon report`."
        ),
    ] = None,
    image_folder: ImageFolder = None,
    on_broken: OnBroken = "raise",
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    missing_codes: MissingCodes = None,
    as_json: AsJson = False,
) -> None:
    """Say what changed since a model was fitted: columns, categories, predictions and scores.

    It ends with 0 where nothing changed and with 3 where something did, so that a pipeline can
    stop; 1 and 2 are failures, as of every command. The file is read a part at a time.

    Example: echelon drift wine.echelon new.csv

    Example: echelon drift wine.echelon last-month.csv --target quality --json
    """
    if not 0 < level < 1:
        raise ValueError(f"--level must lie between 0 and 1, such as 0.05; got {level:g}")
    from echelon.runs import add_drift, is_done

    if out is not None and not is_done(out):
        raise ValueError(
            f"{out} is no finished run; name a folder that `echelon evaluate --out` wrote"
        )
    from echelon.data.columns import gathered_remarks
    from echelon.models.drifting import DriftCounts
    from echelon.models.loading import load

    fitted = load(model)
    described = DataDescription(
        data, target, image=fitted.image_column, image_folder=image_folder, on_broken=on_broken,
        sep=sep, decimal=decimal, encoding=encoding, sheet=sheet,
        missing_codes=codes_of_labels(fitted, target, missing_codes),
    )  # fmt: skip
    require_images(fitted, model, described)
    try:
        counts = DriftCounts(fitted)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{model} is damaged: its columns are not described ({error})") from None
    skipped = 0
    with gathered_remarks() as remarks:
        for chunk in described.chunks():
            frame, unread = described.readable(described.with_located_images(chunk))
            skipped += unread
            _count(counts, fitted, described, frame)
    remarks.say()
    compared = counts.compared(level)
    document = {"model": str(model), "data": described.name, "skipped": skipped}
    document |= compared.document()
    if out is not None:
        add_drift(out, document)
    if as_json:
        print(json.dumps(document))
    else:
        _show(compared, described.name)
        if out is not None:
            print(f"`echelon report {out}` makes a page of this")
    if compared.alarms:
        raise typer.Exit(CHANGED)


def _count(counts: Any, fitted: Any, described: DataDescription, frame: Any) -> None:
    """Count the rows of a chunk; those without a label have their columns counted alone."""
    if not len(frame):
        return
    target = described.target
    if target is None:
        counts.add(frame, None)
        return
    require_column(frame, target, described.name)
    from echelon.data.missing_codes import emptied

    cells = emptied(frame[target], tuple(described.missing_labels))
    labels = fitted.labels_.read_cells(cells).set_axis(frame.index)
    has_label = labels.notna().to_numpy()
    features = frame.drop(columns=[target])
    if has_label.any():
        known, where = fitted.classes_.tolist(), f"the column {target!r} of {described.name}"
        remedy = "fit a model that knows it"
        require_known(labels[has_label], known, where, "the classes of the model", remedy)
        counts.add(features[has_label], fitted.labels_.to_ranks(labels[has_label]))
    if not has_label.all():
        counts.add(features[~has_label], None)


def _show(compared: Any, name: str) -> None:
    before = "" if compared.rows_before is None else f" against {compared.rows_before:,} of the fit"
    say(f"{name}: {compared.rows:,} rows{before}, {len(compared.tests)} comparisons")
    rows = [test for test in compared.tests if "distance" in test.facts]
    width = max([6, *(min(24, len(test.name)) for test in rows)])
    print(f"  {'':<{width}}  {'missing':>15}  {'distance':>8}  {'noise':>6}  chance of it")
    for test in sorted(rows, key=lambda test: test.adjusted_p_value)[:_SHOWN]:
        title = test.name if len(test.name) <= width else f"{test.name[: width - 1]}…"
        print(
            f"  {title:<{width}}  {_missing(test.facts):>15}  {test.facts['distance']:>8.3f}  "
            f"{test.facts['noise']:>6.3f}  {test.adjusted_p_value:.3g}"
        )
    if len(rows) > _SHOWN:
        print(f"  and {len(rows) - _SHOWN} more; --json has all of them")
    for test in compared.tests:
        if test.what == "score":
            facts = test.facts
            show_lines(
                f"score of unseen rows, RPS: {facts['rps_before']:.4f} at the fit, "
                f"{facts['rps']:.4f} now (noise {facts['noise']:.4f}); MAE "
                f"{facts['mae_before']:.4f} and {facts['mae']:.4f}"
            )
        elif test.what == "coverage":
            facts = test.facts
            show_lines(f"intervals of {facts['coverage_before']:g} hold {facts['coverage']:.3f}")
    for sentence in compared.not_compared:
        show_lines(f"not compared: {sentence}")
    alarms = compared.alarms
    if not alarms:
        say(
            f"nothing changed: rows of the same distribution differ as much in more than "
            f"{100 * compared.level:g} of 100 tables"
        )
        return
    print(f"{len(alarms)} change{'s' * (len(alarms) > 1)}")
    for number, test in enumerate(alarms, 1):
        show_lines(f"{number}. {test.sentence}")


def _missing(facts: Any) -> str:
    if "missing" not in facts:
        return ""
    return f"{100 * facts['missing_before']:.3g} to {100 * facts['missing']:.3g} %"
