"""The commands about one model: ``fit``, ``predict``, ``evaluate``, ``export`` and ``methods``."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.app import (
    AsJson,
    Backbone,
    Data,
    Decision,
    Frozen,
    ImageColumn,
    ImageFolder,
    Model,
    OnBroken,
    TextColumn,
    app,
)
from echelon.cli.launching import Devices, share_devices
from echelon.cli.reading import (
    backbone_options,
    held_out_rows,
    image_column,
    locate_images,
    parts,
    plain,
    read_decision,
    read_rows,
    read_weights,
    remove_checkpoints,
    require_column,
    require_images,
    split_names,
    without_broken_images,
)
from echelon.cli.writing import (
    is_standard_output,
    refuse_inputs,
    require_graph_file,
    require_model_file,
    require_run_folder,
    require_table_file,
    save_model,
    written_table,
)
from echelon.processes import is_first_process


@app.command()
def fit(
    data: Data,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    out: Annotated[Path, typer.Option(help="Where to write the model.")],
    classes: Annotated[
        str | None, typer.Option(help="All labels, the lowest first, with commas: low,mid,high.")
    ] = None,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, with commas.")] = None,
    weight: Annotated[str | None, typer.Option(help="A column of row weights.")] = None,
    group: Annotated[
        str | None, typer.Option(help="A column of groups that stay on one side of a split.")
    ] = None,
    method: Annotated[str, typer.Option(help="A name that `echelon methods` lists.")] = "corn",
    backbone: Backbone = None,
    frozen: Frozen = False,
    text: TextColumn = None,
    image: ImageColumn = None,
    image_folder: ImageFolder = None,
    on_broken: OnBroken = "raise",
    recipe: Annotated[str, typer.Option(help="default or paper.")] = "default",
    decision: Decision = None,
    class_weight: Annotated[
        str | None, typer.Option(help="balanced: every class counts alike.")
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(help="temperature or isotonic: mend the probabilities on 10 % of the rows."),
    ] = None,
    conformal: Annotated[
        float | None,
        typer.Option(help="Share of the rows to keep for prediction intervals, such as 0.15."),
    ] = None,
    max_epochs: Annotated[int | None, typer.Option(help="Instead of the recipe's.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep checkpoints, and go on from one that is there.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    devices: Devices = None,
    as_json: AsJson = False,
) -> None:
    """Fit a model on a table, with texts and images in it or without.

    Every part of the rows has a network of its own: --backbone names one, the others are mlp, lstm
    and resnet.

    Example: echelon fit wine.csv --target quality --out wine.echelon

    Example: echelon fit reviews.csv --target Rating --text Review --backbone lstm --out m.echelon
    """
    share_devices(devices)
    from echelon.data.labels import Labels, typed_labels
    from echelon.evaluation.calibration import require_kind
    from echelon.models.network import OrdinalClassifier
    from echelon.training.devices import check_device

    check_device(device)
    require_model_file(out, data, image_folder, decision)
    if calibrate is not None:
        require_kind(calibrate)
    dropped = split_names(drop)
    special = [name for name in (target, weight, group) if name is not None]
    image = image_column(data, image, image_folder)
    frame = read_rows(data, [*special, *dropped], text, image, image_folder)
    if image is not None:
        refuse_inputs(out, frame[image])
    frame, skipped = without_broken_images(frame, image, on_broken)
    if not len(frame):
        raise ValueError(f"none of the {skipped:,} images can be read")
    features = frame.drop(columns=list({*special, *dropped}))
    labels, given = typed_labels(frame[target], split_names(classes) if classes else None)
    # Of all rows, as a class may be among the held-out ones alone.
    known = Labels.of(labels, given).classes.tolist()
    kept = {
        name: share
        for name, share in (("calibrate", 0.1 if calibrate else None), ("conformal", conformal))
        if share is not None
    }
    groups = None if group is None else frame[group].to_numpy()
    masks = held_out_rows(
        features, labels, known, list(kept.values()), groups, seed, text=text, image=image
    )
    rows, held = masks[-1], dict(zip(kept, masks[:-1], strict=True))
    checkpoints = out.with_name(f"{out.name}.checkpoints")
    model = OrdinalClassifier(
        method=method,
        backbone=backbone,
        backbone_options=backbone_options(backbone, frozen),
        text=text,
        image=image,
        classes=known,
        recipe=recipe,
        decision=read_decision(decision),
        class_weight=class_weight,
        max_epochs=max_epochs,
        random_state=seed,
        device=device,
        checkpoint_dir=checkpoints if resume else None,
        verbose=0 if as_json or not is_first_process() else 1,
    )
    weights = read_weights(frame, weight)

    def weights_of(mask: Any) -> Any:
        return None if weights is None else weights[mask]

    model.fit(
        features[rows],
        labels[rows],
        sample_weight=weights_of(rows),
        groups=None if groups is None else groups[rows],
    )
    for name, mask in held.items():
        kept_rows = features[mask], labels[mask]
        if name == "calibrate":
            model.calibrate(*kept_rows, kind=calibrate, sample_weight=weights_of(mask))  # type: ignore[arg-type]
        else:
            model.conformalize(*kept_rows, sample_weight=weights_of(mask))
    if is_first_process():
        save_model(model, out, checkpoints if checkpoints.is_dir() else None)
        if resume:
            remove_checkpoints(checkpoints)
    summary = {
        "model": str(out),
        "rows": len(frame),
        "skipped": skipped,
        "classes": model.classes_.tolist(),
        "best_epoch": model.best_epoch_,
        "history": model.history_,
        "held_out": {name: int(mask.sum()) for name, mask in held.items()},
        "calibration": model.calibration_summary_,
    }
    if as_json:
        print(json.dumps(summary))
    else:
        print(f"wrote {out}: {len(frame):,} rows, classes {plain(model.classes_.tolist())}")
        if skipped:
            print(f"  {skipped:,} rows left out, as their images cannot be read")
        if summary["calibration"] is not None:
            before, after = (summary["calibration"][when] for when in ("before", "after"))
            for name, value in before.items():
                print(f"  {name} before calibration {value:.4f}, after {after[name]:.4f}")
        if "conformal" in held:
            print(f"  {int(held['conformal'].sum()):,} rows kept for prediction intervals")


@app.command()
def predict(
    model: Model,
    data: Data,
    out: Annotated[
        Path,
        typer.Option(
            help="The file to write: CSV, or Parquet where it ends in .parquet; - is the standard "
            "output."
        ),
    ],
    decision: Decision = None,
    image_folder: ImageFolder = None,
    on_broken: OnBroken = "raise",
    coverage: Annotated[
        float | None,
        typer.Option(help="Add intervals that contain the truth with this probability."),
    ] = None,
    formula_safe: Annotated[
        bool,
        typer.Option(
            "--formula-safe",
            help="Put an apostrophe before labels and file names that a spreadsheet would run as a "
            "formula: those that begin with = + - @.",
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
    import pandas as pd

    from echelon.data.columns import gathered_remarks
    from echelon.models.loading import load

    is_shown = is_standard_output(out)
    if is_shown and as_json:
        raise ValueError("--json and --out - cannot both have the standard output; leave one out")
    require_table_file(out, model, data, decision)
    fitted = load(model)
    require_images(fitted, model, data, image_folder)
    columns = [f"probability_{label}" for label in fitted.classes_.tolist()]
    chosen = read_decision(decision)
    if coverage is None and fitted.conformal_ is not None:
        coverage = 0.9
    image = fitted.image_column
    given = ["prediction", *(("lower", "upper") if coverage is not None else ())]
    names = [*([image] if image is not None and data.is_dir() else []), *given, *columns]
    rows = skipped = 0
    types = _column_types(fitted, given)
    with (
        gathered_remarks() as remarks,
        written_table(out, names, types, short=columns, safe=formula_safe) as write,
    ):
        for one in parts(data):
            part = one.reset_index(drop=True)  # a Parquet file may bring rows of one name
            located = locate_images(part, image, data, image_folder)
            if image is not None and image in located:
                refuse_inputs(out, located[image])
            readable, unread = without_broken_images(located, image, on_broken)
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
                table = table.astype(dict.fromkeys(given, object)).reindex(part.index)
            if data.is_dir():
                table.insert(0, image, part[image])
            skipped += unread
            write(table)
            rows += len(part)
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


@app.command()
def evaluate(
    model: Model,
    data: Data,
    target: Annotated[str, typer.Option(help="The column with the true labels.")],
    out: Annotated[
        Path | None, typer.Option(help="Write a run folder with metrics and predictions.")
    ] = None,
    decision: Decision = None,
    image_folder: ImageFolder = None,
    on_broken: OnBroken = "raise",
    as_json: AsJson = False,
) -> None:
    """Compare predictions with the truth.

    Example: echelon evaluate wine.echelon test.csv --target quality
    """
    import numpy as np

    from echelon.data.files import read_table
    from echelon.evaluation import metrics
    from echelon.models.loading import load
    from echelon.runs import Run, RunConfig, row_cells, write_run

    if out is not None:
        require_run_folder(out)
    fitted = load(model)
    require_images(fitted, model, data, image_folder)
    frame = read_table(data).reset_index(drop=True)
    require_column(frame, target, data)
    frame = locate_images(frame, fitted.image_column, data, image_folder)
    frame, skipped = without_broken_images(frame, fitted.image_column, on_broken)
    if not len(frame):
        raise ValueError(f"none of the {skipped:,} images can be read")
    truth = fitted.labels_.to_ranks(fitted.labels_.read_cells(frame[target]))
    curve = fitted.curve(frame.drop(columns=[target]))
    predicted = curve.label(fitted.decision_rule(read_decision(decision))).cpu().numpy()
    probabilities = curve.probabilities.double().cpu().numpy()
    scores = metrics.all_scores(truth, predicted, probabilities)
    if out is not None:
        config = RunConfig(
            command="evaluate",
            method=fitted.method,
            data=str(data),
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
        if fitted.conformal_ is not None:
            arrays["conformal_scores"] = fitted.conformal_.scores
        write_run(out, Run(config, fitted.history_, scores, arrays))
    if as_json:
        print(json.dumps({"rows": len(frame), "skipped": skipped, "metrics": scores}))
        return
    unread_note = f", {skipped:,} left out: their images cannot be read" if skipped else ""
    print(f"{len(frame):,} rows{unread_note}")
    for name, value in scores.items():
        print(f"{name:<28}{value:8.4f}")


@app.command()
def export(
    model: Model,
    onnx: Annotated[Path, typer.Option(help="The ONNX file to write.")],
    as_json: AsJson = False,
) -> None:
    """Write a model as one ONNX graph from raw columns to probabilities and label.

    Example: echelon export wine.echelon --onnx wine.onnx
    """
    from echelon.models.loading import load

    require_graph_file(onnx, model)
    load(model).export_onnx(onnx)
    print(json.dumps({"onnx": str(onnx)}) if as_json else f"wrote {onnx}")


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods and their options.

    Example: echelon methods
    """
    from echelon.methods import METHODS

    if as_json:
        rows = [
            {"name": spec.name, "summary": spec.summary, "options": spec.options}
            for spec in METHODS.values()
        ]
        print(json.dumps(rows))
        return
    for spec in METHODS.values():
        options = ", ".join(f"{name}={value!r}" for name, value in spec.options.items())
        print(f"{spec.name:<22}{spec.summary}" + (f" [{options}]" if options else ""))
