"""The command ``evaluate``: predictions of a model beside the truth."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.options import AsJson, Data, Decision, ImageFolder, Model, OnBroken
from echelon.cli.reading import DataDescription, read_decision, require_images
from echelon.cli.showing import say, score_sentence, score_table
from echelon.cli.writing import require_run_folder


def evaluate(
    model: Model,
    data: Data,
    target: Annotated[str, typer.Option(help="The column that holds the true labels.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="A folder to write with metrics and predictions, of which `echelon report` makes "
            "a page."
        ),
    ] = None,
    decision: Decision = None,
    image_folder: ImageFolder = None,
    on_broken: OnBroken = "raise",
    as_json: AsJson = False,
) -> None:
    """Compare predictions with the truth.

    Example: echelon evaluate wine.echelon test.csv --target quality
    """
    if out is not None:
        require_run_folder(out)
    from echelon.models.loading import load
    from echelon.runs import write_run

    fitted = load(model)
    described = DataDescription(
        data, target, image=fitted.image_column, image_folder=image_folder, on_broken=on_broken
    )
    require_images(fitted, model, described)
    frame, skipped = described.readable(described.with_located_images(described.cells()))
    if not len(frame):
        raise ValueError(f"none of the {skipped:,} images can be read")
    run = evaluated_run(fitted, model, described, frame, skipped, decision)
    scores = run.metrics
    if out is not None:
        write_run(out, run)
    if as_json:
        print(json.dumps({"rows": len(frame), "skipped": skipped, "metrics": scores}))
        return
    from echelon.evaluation import metrics

    unread_note = f", {skipped:,} left out: their images cannot be read" if skipped else ""
    say(f"{len(frame):,} rows{unread_note}")
    constant = metrics.constant_scores(run.predictions["truth"], len(fitted.classes_))
    say(score_sentence(scores, constant))
    print()
    print(score_table(scores, constant))
    if out is not None:
        print()
        print(f"`echelon report {out}` makes a page of this")


def evaluated_run(
    fitted: Any,
    model: Path,
    described: DataDescription,
    frame: Any,
    skipped: int,
    decision: str | None,
) -> Any:
    """The run that says how a model predicts the rows of a table, with its scores."""
    import numpy as np

    from echelon.evaluation import metrics
    from echelon.runs import Run, RunConfig, column_cells, row_cells

    target = described.target
    truth = fitted.labels_.to_ranks(fitted.labels_.read_cells(frame[target]))
    curve = fitted.curve(frame.drop(columns=[target]))
    predicted = curve.label(fitted.decision_rule(read_decision(decision))).cpu().numpy()
    probabilities = curve.probabilities.double().cpu().numpy()
    config = RunConfig(
        command="evaluate",
        method=getattr(fitted, "method", fitted.kind),  # as `compare` names it
        data=str(described.path),
        classes=fitted.classes_.tolist(),
        rows={"test": len(frame), **({"skipped": skipped} if skipped else {})},
        details={"model": str(model), "target": target, "decision": decision},
    )
    arrays = {
        "row": frame.index.to_numpy(dtype=np.int64),
        "truth": truth,
        "prediction": predicted,
        "probabilities": probabilities.astype(np.float32),
        "crossings": curve.crossings().cpu().numpy(),
    }
    arrays |= row_cells(frame, fitted.text_column, fitted.image_column)
    apart = (fitted.text_column, fitted.image_column)
    arrays |= column_cells(frame.drop(columns=[target]), arrays, apart)
    # The page draws intervals of probabilities; of other scores it shows those of test rows.
    if fitted.conformal_ is not None and fitted.conformal_score_ == "probability":
        arrays["conformal_scores"] = fitted.conformal_.scores
    scores = metrics.all_scores(truth, predicted, probabilities)
    return Run(config, fitted.history_, scores, arrays, outcome=fitted.outcome())
