"""The command line: ``echelon fit``, ``predict``, ``evaluate``, ``export`` and ``methods``.

Invariant: a command ends with 0 (done), 1 (failed) or 2 (wrong use or wrong input); an error is one
line on standard error, and a file is written wholly or not at all. With ``--json`` the only thing
on standard output is one document.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="Ordinal regression: labels that have an order but no known distances.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Data = Annotated[Path, typer.Argument(help="A CSV or Parquet file.")]
Model = Annotated[Path, typer.Argument(help="A model that `echelon fit` wrote.")]

_CHUNK_ROWS = 100_000
_WHOLE_FILE = 50_000_000  # bytes up to which a CSV file is read at once, with all its checks


def main() -> None:
    """Run a command; the entry point of the program."""
    try:
        app()
    except ValueError as error:
        _fail(str(error), 2)
    except OSError as error:
        _fail(str(error), 1)


def _fail(message: str, code: int) -> None:
    print(f"echelon: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


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
    backbone: Annotated[str, typer.Option(help="mlp, tabm or linear.")] = "mlp",
    recipe: Annotated[str, typer.Option(help="default or paper.")] = "default",
    decision: Annotated[str | None, typer.Option(help="median, mean or mode.")] = None,
    max_epochs: Annotated[int | None, typer.Option(help="Instead of the recipe's.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep checkpoints, and go on from one that is there.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    as_json: AsJson = False,
) -> None:
    """Fit a model on a table.

    Example: echelon fit wine.csv --target quality --out wine.echelon
    """
    from echelon.data.tables import read_table
    from echelon.estimators import OrdinalClassifier

    if not out.parent.is_dir():
        raise ValueError(f"the folder {out.parent} does not exist")
    frame = read_table(data)
    dropped = _split(drop)
    special = [name for name in (target, weight, group) if name is not None]
    for name in (*special, *dropped):
        _require_column(frame, name, data)
    features = frame.drop(columns=list({*special, *dropped}))
    checkpoints = out.with_name(f"{out.name}.checkpoints")
    model = OrdinalClassifier(
        method=method,
        backbone=backbone,
        classes=_typed_classes(_split(classes), frame[target]) if classes else None,
        recipe=recipe,
        decision=decision,
        max_epochs=max_epochs,
        random_state=seed,
        device=device,
        checkpoint_dir=checkpoints if resume else None,
        verbose=0 if as_json else 1,
    )
    model.fit(
        features,
        frame[target],
        sample_weight=None if weight is None else frame[weight].to_numpy(),
        groups=None if group is None else frame[group].to_numpy(),
    )
    model.save(out)
    if resume:
        _remove_checkpoints(checkpoints)
    summary = {
        "model": str(out),
        "rows": len(frame),
        "classes": model.classes_.tolist(),
        "best_epoch": model.best_epoch_,
        "history": model.history_,
    }
    if as_json:
        print(json.dumps(summary))
    else:
        print(f"wrote {out}: {len(frame):,} rows, classes {_plain(model.classes_.tolist())}")


@app.command()
def predict(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help="The CSV file to write.")],
    as_json: AsJson = False,
) -> None:
    """Predict label and probabilities of every row, a part of the file at a time.

    Example: echelon predict wine.echelon new.csv --out predictions.csv
    """
    import pandas as pd

    from echelon.bundle import load

    fitted = load(model)
    columns = [f"probability_{label}" for label in fitted.classes_.tolist()]
    rows = 0
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        with open(partial, "w", newline="", encoding="utf-8") as stream:
            for part in _parts(data):
                curve = fitted.predict_curve(part)
                table = pd.DataFrame(curve.probabilities.cpu().numpy(), columns=columns)
                table.insert(0, "prediction", fitted.label(curve))
                table.to_csv(stream, index=False, header=rows == 0, float_format="%.6g")
                rows += len(part)
        os.replace(partial, out)
    finally:
        partial.unlink(missing_ok=True)
    if as_json:
        print(json.dumps({"predictions": str(out), "rows": rows}))
    else:
        print(f"wrote {out}: {rows:,} rows")


@app.command()
def evaluate(
    model: Model,
    data: Data,
    target: Annotated[str, typer.Option(help="The column with the true labels.")],
    out: Annotated[
        Path | None, typer.Option(help="Write a run folder with metrics and predictions.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare predictions with the truth.

    Example: echelon evaluate wine.echelon test.csv --target quality
    """
    from echelon.bundle import load
    from echelon.data.tables import read_table
    from echelon.evaluation import metrics
    from echelon.runs import write_run

    fitted = load(model)
    frame = read_table(data)
    _require_column(frame, target, data)
    truth = fitted.labels_.to_ranks(frame[target])
    curve = fitted.predict_curve(frame.drop(columns=[target]))
    predicted = fitted.labels_.to_ranks(fitted.label(curve))
    probabilities = curve.probabilities.cpu().numpy()
    scores = {}
    for name in sorted(metrics.OF_LABELS | metrics.OF_PROBABILITIES):
        prediction = probabilities if name in metrics.OF_PROBABILITIES else predicted
        scores[name] = getattr(metrics, name)(truth, prediction, num_classes=curve.num_classes)
    if out is not None:
        config = {
            "command": "evaluate",
            "model": str(model),
            "data": str(data),
            "target": target,
            "classes": fitted.classes_.tolist(),
        }
        arrays = {"truth": truth, "prediction": predicted, "probabilities": probabilities}
        write_run(out, config=config, history=fitted.history_, metrics=scores, predictions=arrays)
    if as_json:
        print(json.dumps({"rows": len(frame), "metrics": scores}))
        return
    print(f"{len(frame):,} rows")
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
    from echelon.bundle import load

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


# ---- reading and checking ------------------------------------------------------------------------


def _parts(path: Path) -> Iterator[Any]:
    """The rows of a file as frames of limited size."""
    import pandas as pd

    from echelon.data.tables import read_table, require_pyarrow

    if not path.is_file() or (not _is_parquet(path) and path.stat().st_size < _WHOLE_FILE):
        yield read_table(path)
        return
    if not _is_parquet(path):
        yield from pd.read_csv(path, chunksize=_CHUNK_ROWS, low_memory=False)
        return
    require_pyarrow()
    import pyarrow.parquet

    try:
        opened = pyarrow.parquet.ParquetFile(path)
    except Exception as error:
        raise ValueError(f"{path} is not a readable Parquet file: {error}") from None
    for batch in opened.iter_batches(_CHUNK_ROWS):
        yield batch.to_pandas()


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def _require_column(frame: Any, name: str, path: Path) -> None:
    if name not in frame.columns:
        raise ValueError(f"{path} has no column {name!r}; it has: {_plain(list(frame.columns))}")


def _split(text: str | None) -> list[str]:
    return [] if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _typed_classes(classes: list[str], column: Any) -> list[Any]:
    """Classes from the command line in the type that the column has."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(column.dtype):
        return [text.lower() in ("true", "1", "yes") for text in classes]
    try:
        if pd.api.types.is_integer_dtype(column.dtype):
            return [int(text) for text in classes]
        if pd.api.types.is_float_dtype(column.dtype):
            return [float(text) for text in classes]
    except ValueError:
        raise ValueError(
            f"--classes must be numbers, as the column {column.name!r} is; got {_plain(classes)}"
        ) from None
    return list(classes)


def _remove_checkpoints(folder: Path) -> None:
    for place in (folder / "refit", folder):
        (place / "checkpoint.safetensors").unlink(missing_ok=True)
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()


def _plain(values: list[Any]) -> str:
    shown = ", ".join(map(str, values[:20]))
    return shown if len(values) <= 20 else f"{shown}, ... ({len(values)} in all)"
