"""The command ``evaluate``: predictions of a model beside the truth."""

import json
from pathlib import Path
from typing import Annotated

import typer

from echelon.cli.options import (
    AsJson,
    Data,
    Decimal,
    Decision,
    Encoding,
    ImageFolder,
    MissingTarget,
    Model,
    OnBroken,
    Sep,
)
from echelon.cli.reading import DataDescription, read_decision, require_images, require_known
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
    missing_target: MissingTarget = "drop",
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Compare predictions with the truth.

    Example: echelon evaluate wine.echelon test.csv --target quality
    """
    if out is not None:
        require_run_folder(out)
    import numpy as np

    from echelon.evaluation import metrics
    from echelon.models.loading import load
    from echelon.runs import Run, RunConfig, row_cells, write_run

    fitted = load(model)
    described = DataDescription(
        data, target, image=fitted.image_column, image_folder=image_folder, on_broken=on_broken,
        sep=sep, decimal=decimal, encoding=encoding, missing_target=missing_target,
    )  # fmt: skip
    require_images(fitted, model, described)
    frame, skipped = described.readable(described.with_located_images(described.cells()))
    if not len(frame):
        raise ValueError(f"none of the {skipped:,} images can be read")
    labels = fitted.labels_.read_cells(frame[target]).set_axis(frame.index)
    frame, labels, unlabelled = described.with_labels(frame, labels)
    known = fitted.classes_.tolist()
    require_known(
        labels, known, f"the column {target!r} of {described.name}", "the classes of the model"
    )
    truth = fitted.labels_.to_ranks(labels)
    curve = fitted.curve(frame.drop(columns=[target]))
    predicted = curve.label(fitted.decision_rule(read_decision(decision))).cpu().numpy()
    probabilities = curve.probabilities.double().cpu().numpy()
    scores = metrics.all_scores(truth, predicted, probabilities)
    if out is not None:
        config = RunConfig(
            command="evaluate",
            method=getattr(fitted, "method", fitted.kind),  # as `compare` names it
            data=described.name,
            classes=fitted.classes_.tolist(),
            rows={
                "test": len(frame),
                **({"skipped": skipped} if skipped else {}),
                **({"unlabelled": unlabelled} if unlabelled else {}),
            },
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
        if fitted.conformal_ is not None:
            arrays["conformal_scores"] = fitted.conformal_.scores
        write_run(out, Run(config, fitted.history_, scores, arrays, outcome=fitted.outcome()))
    if as_json:
        counts = {"rows": len(frame), "skipped": skipped, "unlabelled": unlabelled}
        print(json.dumps({**counts, "metrics": scores}))
        return
    unread_note = f", {skipped:,} left out: their images cannot be read" if skipped else ""
    if unlabelled:
        unread_note += f", {unlabelled:,} left out: they have no label"
    print(f"{len(frame):,} rows{unread_note}")
    for name, value in scores.items():
        print(f"{name:<28}{value:8.4f}")
