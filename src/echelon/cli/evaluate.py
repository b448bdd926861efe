"""The command ``evaluate``: predictions of a model beside the truth."""

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.options import (
    AsJson,
    Cluster,
    Data,
    Decimal,
    Decision,
    Encoding,
    ImageFolder,
    MissingCodes,
    MissingTarget,
    Model,
    OnBroken,
    Sep,
    Sheet,
)
from echelon.cli.reading import (
    DataDescription,
    read_decision,
    require_images,
    require_known,
    split_names,
)
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
    missing_target: MissingTarget = "drop",
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    missing_codes: MissingCodes = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Compare predictions with the truth.

    With --cluster, the workers of a Ray cluster look at the files of the data side by side, a part
    of each at a time, and the scores are those of all rows together.

    Example: echelon evaluate wine.echelon test.csv --target quality

    Example: echelon evaluate wine.echelon parts/ --target quality --cluster local
    """
    if out is not None and cluster is not None:
        raise ValueError(
            f"--out {out} holds every row, and a cluster gives nothing but scores; leave out "
            f"--cluster, or --out, and predict with --cluster for the rows"
        )
    if out is not None:
        require_run_folder(out)
    from echelon.models.loading import load
    from echelon.runs import write_run

    fitted = load(model)
    described = DataDescription(
        data, target, image=fitted.image_column, image_folder=image_folder, on_broken=on_broken,
        sep=sep, decimal=decimal, encoding=encoding, missing_target=missing_target, sheet=sheet,
        missing_codes=codes_of_labels(fitted, target, missing_codes),
    )  # fmt: skip
    require_images(fitted, model, described)
    if cluster is not None:
        _evaluate_pieces(fitted, model, described, decision, cluster, as_json)
        return
    frame, skipped = described.readable(described.with_located_images(described.cells()))
    if not len(frame):
        raise ValueError(f"none of the {skipped:,} images can be read")
    frame, labels, unlabelled = labelled_rows(fitted, described, frame)
    left_out = {"skipped": skipped, "unlabelled": unlabelled}
    run = evaluated_run(fitted, model, described, frame, labels, left_out, decision)
    scores = run.metrics
    if out is not None:
        write_run(out, run)
    from echelon.evaluation import metrics

    constant = metrics.constant_scores(run.predictions["truth"], len(fitted.classes_))
    _say(len(frame), left_out, scores, constant, as_json)
    if out is not None and not as_json:
        print()
        print(f"`echelon report {out}` makes a page of this")


def _say(
    rows: int,
    left_out: Mapping[str, int],
    scores: Mapping[str, float],
    constant: Mapping[str, float],
    as_json: bool,
) -> None:
    """Print scores beside those of a constant, or as a document."""
    if as_json:
        print(json.dumps({"rows": rows, **left_out, "metrics": scores}))
        return
    skipped, unlabelled = left_out["skipped"], left_out["unlabelled"]
    note = f", {skipped:,} left out: their images cannot be read" if skipped else ""
    if unlabelled:
        note += f", {unlabelled:,} left out: they have no label"
    say(f"{rows:,} rows{note}")
    say(score_sentence(scores, constant))
    print()
    print(score_table(scores, constant))


def _evaluate_pieces(
    fitted: Any,
    model: Path,
    described: DataDescription,
    decision: str | None,
    cluster: str,
    as_json: bool,
) -> None:
    """Scores of all rows, each file of which is looked at by some worker of a cluster."""
    import numpy as np

    from echelon.cli.pieces import PieceWork, finished, pieces_of, whole_paths
    from echelon.cli.scoring import Asked
    from echelon.data.columns import gathered_remarks
    from echelon.evaluation.running import RunningScores

    pieces = pieces_of(described)
    work = PieceWork(str(model.resolve()), whole_paths(described), Asked(decision=decision))
    num_classes = len(fitted.classes_)
    running = RunningScores(num_classes)
    rows, left_out = 0, {"skipped": 0, "unlabelled": 0}
    with gathered_remarks() as remarks, closing(finished(work, pieces, cluster)) as results:
        for done in results:
            running += RunningScores.from_state(done.state, num_classes)
            rows += done.rows
            left_out["skipped"] += done.skipped
            left_out["unlabelled"] += done.unlabelled
    remarks.say()
    if not rows:
        raise ValueError(
            f"no row of {described.name} can be read and has a label in the column "
            f"{described.target!r}; name data that have some"
        )
    counts = running.confusion_matrix.sum(1)
    shares = counts / counts.sum()
    middle = int((shares.cumsum()[:-1] < 0.5).sum())
    constant = RunningScores(num_classes)
    constant.update(
        np.arange(num_classes),
        prediction=np.full(num_classes, middle),
        probabilities=np.tile(shares, (num_classes, 1)),
        sample_weight=counts,
    )
    _say(rows, left_out, running.compute(), constant.compute(), as_json)


def compared_rows(
    fitted: Any, described: DataDescription, frame: Any, decision: str | None
) -> tuple[Any, Any, Any, int]:
    """True and predicted ranks (n,) and probabilities (n, K) of the rows of a chunk with a label.

    Last, how many have none.
    """
    from echelon.cli.reading import require_column

    target = str(described.target)
    require_column(frame, target, described.name)
    labels = fitted.labels_.read_cells(frame[target]).set_axis(frame.index)
    if labels.isna().all() and described.missing_target != "error":
        return [], [], [], len(frame)
    frame, labels, unlabelled = labelled_rows(fitted, described, frame)
    truth = fitted.labels_.to_ranks(labels)
    curve = fitted.curve(frame.drop(columns=[target]))
    predicted = curve.label(fitted.decision_rule(read_decision(decision))).cpu().numpy()
    return truth, predicted, curve.probabilities.double().cpu().numpy(), unlabelled


def codes_of_labels(fitted: Any, target: str | None, said: str | None) -> list[str]:
    """What stands for no answer: what was said, or else of labels what the fit was told.

    The model itself knows the codes of its columns.
    """
    if said is not None:
        return split_names(said)
    kept = split_names(fitted.about_.get("missing_labels"))
    return [f"{target}={code}" for code in kept] if target is not None else []


def labelled_rows(fitted: Any, described: DataDescription, frame: Any) -> tuple[Any, Any, int]:
    """The rows that have a label, their labels as the model has them, and how many have none."""
    labels = fitted.labels_.read_cells(frame[described.target]).set_axis(frame.index)
    frame, labels, unlabelled = described.with_labels(frame, labels)
    known = fitted.classes_.tolist()
    where = f"the column {described.target!r} of {described.name}"
    remedy = "evaluate a model that was fitted with it"
    require_known(labels, known, where, "the classes of the model", remedy)
    return frame, labels, unlabelled


def evaluated_run(
    fitted: Any,
    model: Path,
    described: DataDescription,
    frame: Any,
    labels: Any,
    left_out: Mapping[str, int],
    decision: str | None,
) -> Any:
    """The run that says how a model predicts labelled rows of a table, with its scores.

    `left_out` has the reasons why rows of the table are not among them, and how many they are.
    """
    import numpy as np

    from echelon.evaluation import metrics
    from echelon.runs import Run, RunConfig, column_cells, row_cells

    target = described.target
    truth = fitted.labels_.to_ranks(labels)
    curve = fitted.curve(frame.drop(columns=[target]))
    predicted = curve.label(fitted.decision_rule(read_decision(decision))).cpu().numpy()
    probabilities = curve.probabilities.double().cpu().numpy()
    config = RunConfig(
        command="evaluate",
        method=getattr(fitted, "method", fitted.kind),  # as `compare` names it
        data=described.name,
        classes=fitted.classes_.tolist(),
        rows={"test": len(frame), **{why: count for why, count in left_out.items() if count}},
        details={"model": str(model), "target": target, "decision": decision},
    )
    arrays = {
        "row": frame.index.to_numpy(dtype=np.int64),
        "truth": truth,
        "prediction": predicted,
        "probabilities": probabilities.astype(np.float32),
        "crossings": curve.crossings().cpu().numpy(),
    }
    arrays |= row_cells(frame, fitted.columns_by_kind)
    apart = (fitted.text_column, fitted.image_column)
    arrays |= column_cells(frame.drop(columns=[target]), arrays, apart)
    # The page draws intervals of probabilities; of other scores it shows those of test rows.
    if fitted.conformal_ is not None and fitted.conformal_score_ == "probability":
        arrays["conformal_scores"] = fitted.conformal_.scores
    scores = metrics.all_scores(truth, predicted, probabilities)
    return Run(config, fitted.history_, scores, arrays, outcome=fitted.outcome())
