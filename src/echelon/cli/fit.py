"""The command ``fit``: a model from a table, with texts and images in it or without."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.clustered import share_cluster
from echelon.cli.launching import share_devices
from echelon.cli.options import (
    AsJson,
    Backbone,
    Classes,
    Cluster,
    Data,
    Decimal,
    Decision,
    Device,
    Devices,
    Drop,
    Encoding,
    Frozen,
    Group,
    GroupPattern,
    ImageColumn,
    ImageFolder,
    KeepIds,
    MaxEpochs,
    MissingCodes,
    MissingTarget,
    OnBroken,
    Recipe,
    Sep,
    Sheet,
    Target,
    TextColumn,
    model_to_fit,
)
from echelon.cli.reading import (
    DataDescription,
    backbone_options,
    plain,
    read_classes,
    read_decision,
    split_names,
    split_pairs,
)
from echelon.cli.showing import show_summary
from echelon.cli.streaming import open_rows
from echelon.cli.writing import refuse_inputs, require_model_file, save_model
from echelon.models.table import MODELS
from echelon.processes import is_first_process, is_launched

# What is fitted where no model is named: the first that has all the options that were given.
DEFAULT_MODELS = ("auto", "network")
_CALIBRATION_SHARE = 0.1


def fit(
    data: Data,
    target: Target,
    out: Annotated[Path, typer.Option(help="The file to write the model to.")],
    classes: Classes = None,
    drop: Drop = None,
    weight: Annotated[
        str | None, typer.Option(help="The column that holds the weights of the rows.")
    ] = None,
    group: Group = None,
    group_pattern: GroupPattern = None,
    model: Annotated[
        str | None,
        typer.Option(
            callback=model_to_fit,
            show_default="auto",
            help="The model to fit, a name that `echelon methods` lists. Options of its own stand "
            "after colons, as in cumulative_link:link=probit. Where only options of networks are "
            "given, as --method or --backbone, it is a network.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            show_default="60 for auto",
            help="The seconds that the fit may take, of the models auto and network.",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            show_default="corn",
            help="The method that trains a network, a name that `echelon methods` lists, with "
            "options after colons, as in margin:penalty=logistic.",
        ),
    ] = None,
    formula: Annotated[
        str | None,
        typer.Option(
            help="The terms of the model cumulative_link, as in 'quality ~ alcohol + C(kind)'. "
            "This needs the extra formula."
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            help="What the categories of columns are compared with by the model cumulative_link, "
            "as in sex=m,kind=red."
        ),
    ] = None,
    nonproportional: Annotated[
        str | None,
        typer.Option(
            help="The columns with a coefficient for each threshold in the model cumulative_link "
            "(partial proportional odds), with commas between them."
        ),
    ] = None,
    summary: Annotated[
        bool,
        typer.Option(
            "--summary",
            help="Print the statistics of the model cumulative_link: coefficients with errors and "
            "intervals, tests of proportional odds, marginal effects. With --group errors are "
            "clustered.",
        ),
    ] = False,
    backbone: Backbone = None,
    frozen: Frozen = False,
    text: TextColumn = None,
    image: ImageColumn = None,
    image_folder: ImageFolder = None,
    on_broken: OnBroken = "raise",
    missing_target: MissingTarget = "drop",
    keep_ids: KeepIds = False,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    missing_codes: MissingCodes = None,
    recipe: Recipe = None,
    decision: Decision = None,
    class_weight: Annotated[
        str | None,
        typer.Option(help="How much the classes count: balanced lets every class count alike."),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            help="How to mend the probabilities on a tenth of the rows, which are kept for that: "
            "temperature or isotonic. What mends them is kept only where it helps on rows that it "
            "was not fitted on."
        ),
    ] = None,
    conformal: Annotated[
        float | None,
        typer.Option(help="The share of the rows to keep for prediction intervals, such as 0.15."),
    ] = None,
    conformal_score: Annotated[
        str,
        typer.Option(
            help="What prediction intervals are made of: probability, rps (the ranked probability "
            "score) or window (the mass of windows that grow from the mode)."
        ),
    ] = "probability",
    max_epochs: MaxEpochs = None,
    seed: Annotated[int, typer.Option(help="The seed of everything that is random.")] = 0,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Keep checkpoints, and go on from one that is there."),
    ] = False,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Leave the rows in their files, and read them in chunks while the model learns: "
            "network, boosting and cumulative_link do so; others read all rows, and say what "
            "memory that takes. This needs the extra parquet.",
        ),
    ] = False,
    device: Device = None,
    devices: Devices = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Fit a model on a table, with texts and images in it or without.

    The model `auto` fits several models within --time-limit and blends them by how well they
    predict rows they have not seen; Ctrl-C ends it with what there is by then.

    The model `network` reads texts, images and the other columns with a network each: --backbone
    names one, the others are mlp, lstm and resnet.

    Example: echelon fit wine.csv --target quality --out wine.echelon

    Example: echelon fit wine.csv --target quality --model cumulative_link --out wine.echelon

    Example: echelon fit pain.csv --target pain --model cumulative_link --summary --out pain.echelon

    Example: echelon fit reviews.csv --target Rating --text Review --backbone lstm --out m.echelon

    Example: echelon fit 'visits/*.parquet' --target severity --stream --out visits.echelon

    With --cluster the workers of a Ray cluster, --devices of them, train one network; all of them
    must see the data and the output under the same names.

    Example: echelon fit visits --target severity --cluster local --devices 2 --out v.echelon
    """
    require_model_file(out, *data, image_folder, decision)
    share_cluster(cluster, devices, out)
    share_devices(devices)
    from echelon.evaluation.calibration import require_kind
    from echelon.evaluation.conformal import require_score
    from echelon.training.devices import check_device

    if device is not None:
        check_device(device)
    if calibrate is not None:
        require_kind(calibrate)
    require_score(conformal_score)
    described = DataDescription(
        data, target, read_classes(classes), split_names(drop), weight, group, text, image,
        image_folder, on_broken, sep, decimal, encoding, missing_target, keep_ids, sheet,
        split_names(missing_codes), group_pattern,
    )  # fmt: skip
    rows: Any
    if stream:
        refuse_inputs(out, described.paths)
        rows = open_rows(described)
    else:
        table = described.table()
        refuse_inputs(out, described.images(table))
        rows = described.labelled(table)
    kept = {"calibrate": _CALIBRATION_SHARE if calibrate else None, "conformal": conformal}
    shares = {name: share for name, share in kept.items() if share is not None}
    *masks, rest = rows.held_out([*shares.values()], seed, described.columns_by_kind)
    checkpoints = out.with_name(f"{out.name}.checkpoints")
    method, method_options = _split_method(method)
    fitted = _make_model(
        model,
        {
            "--method": ("method", method),
            "--method with options": ("method_options", method_options),
            "--backbone": ("backbone", backbone),
            "--frozen": ("backbone_options", backbone_options(backbone, frozen)),
            **{f"--{kind}": (kind, name) for kind, name in described.columns_by_kind.items()},
            "--formula": ("formula", _require_target(formula, target)),
            "--reference": ("reference", split_pairs(reference, "--reference")),
            "--nonproportional": ("nonproportional", split_names(nonproportional) or None),
            "--summary": ("tests", summary or None),
            "--recipe": ("recipe", recipe),
            "--decision": ("decision", read_decision(decision)),
            "--class-weight": ("class_weight", class_weight),
            "--max-epochs": ("settings.max_epochs", max_epochs),
            "--time-limit": ("time_limit", time_limit),
            # On a cluster a worker may die, and the others begin anew from a checkpoint.
            "--resume": ("checkpoint_dir", checkpoints if resume or cluster else None),
            "--device": ("device", device),
            # Each of the processes has a device, so it is a matter of the same parameter.
            "--devices": ("device", None if devices is None else device or "auto"),
            "--cluster": ("device", None if cluster is None else device or "auto"),
        },
        classes=rows.classes,
        random_state=seed,
        verbose=0 if as_json or not is_first_process() else 1,
        must_stream=stream,
    )
    training = rows.select(rest)
    is_told = not as_json and is_first_process() and not stream
    is_watched = sys.stdout.isatty()
    if is_told and is_watched:
        show_summary(described)
    fitted.fit(*training.arguments)
    if is_told and not is_watched:  # where nobody waits, nothing is printed before a failure
        show_summary(described)
    held = {name: rows.select(mask).in_memory for name, mask in zip(shares, masks, strict=True)}
    for name, some in held.items():
        if name == "calibrate":
            fitted.calibrate(
                some.features, some.labels, kind=calibrate, sample_weight=some.weights,
                keep="better",
            )  # fmt: skip
        else:
            fitted.conformalize(
                some.features, some.labels, score=conformal_score, sample_weight=some.weights
            )
    fitted.about_ = {"data": described.name, "target": target}
    if described.missing_labels:
        fitted.about_["missing_labels"] = ",".join(described.missing_labels)
    if is_first_process():
        save_model(fitted, out, checkpoints if checkpoints.is_dir() else None)
        if resume or cluster:
            _remove_checkpoints(checkpoints)
    _show(
        {
            "model": str(out),
            "kind": fitted.kind,
            "rows": len(rows),
            "skipped": rows.skipped,
            "unlabelled": rows.unlabelled,
            "left_out": rows.left_out if stream else described.left_out_,
            "classes": fitted.classes_.tolist(),
            "best_epoch": fitted.outcome().get("best_epoch"),
            "leaderboard": fitted.outcome().get("leaderboard"),
            "out_of_time": fitted.outcome().get("out_of_time", False),
            "history": fitted.history_,
            "held_out": {name: len(some) for name, some in held.items()},
            "calibration": fitted.calibration_summary_,
            "is_calibrated": fitted.calibration_ is not None,
            "kappa": None if fitted.kappa_ is None else fitted.kappa_._asdict(),
            **({"summary": fitted.summary().document()} if summary else {}),
        },
        as_json,
    )
    if summary and not as_json:
        print(f"\n{fitted.summary().text()}")


def _require_target(formula: str | None, target: str) -> str | None:
    """The formula, whose target, if it has one, must be the one that was named."""
    if formula is None:
        return None
    from echelon.models.formula import read_formula

    left = formula.partition("~")[0].strip().strip("`") if "~" in formula else ""
    if left and left != target:
        raise ValueError(
            f"--formula is about {left!r} and --target is {target!r}; name the same column, or "
            f"write the formula without a target, as in '~ age + C(sex)'"
        )
    # what it stands for is not known yet; what cannot be read is said before the data are
    read_formula(formula, columns=("any",))
    return formula


def _split_method(spec: str | None) -> tuple[str | None, dict[str, Any] | None]:
    """The name of a method and its options, as in margin:penalty=logistic."""
    from echelon.experiments.contestants import contestant_parameters
    from echelon.methods import METHODS

    if spec is None or spec.partition(":")[0] not in METHODS:
        return spec, None  # the model names what it knows
    parameters = contestant_parameters(spec, {})
    return parameters["method"], parameters.get("method_options")


def _make_model(
    spec: str | None,
    options: Mapping[str, tuple[str, Any]],
    *,
    must_stream: bool = False,
    **parameters: Any,
) -> Any:
    """The unfitted model of a name, with the options that were given; it must have them all.

    `options` has the name of a parameter and its value for each option; None is one not given. A
    dot goes into a parameter that is a mapping. Where no model is named and it must stream, it is
    one that does.
    """
    from echelon.experiments.contestants import contestant_parameters, make_model, with_values

    if spec is None:
        wanted = {
            parameter.partition(".")[0]
            for parameter, value in options.values()
            if value is not None
        }
        *others, last = DEFAULT_MODELS
        if is_launched():  # several processes fit one network, and nothing else
            others = []
        if must_stream:
            others = [name for name in others if MODELS[name].streams]
        spec = next((name for name in others if wanted <= _parameters(name)), last)
    name = spec.partition(":")[0]
    known = _parameters(name)
    for option, (parameter, value) in options.items():
        if value is not None and parameter.partition(".")[0] not in known:
            taken = [
                other
                for other, (keyword, _) in options.items()
                if keyword.partition(".")[0] in known
            ]
            raise ValueError(
                f"the model {name} has no {option}; of the options that not all models have it has "
                f"{', '.join(taken) or 'none'}: leave out {option}, or choose another --model"
            )
    given = {parameter: value for parameter, value in options.values() if value is not None}
    return make_model({**with_values(contestant_parameters(spec, {}), given), **parameters})


def _parameters(name: str) -> set[str]:
    """The parameters of a model by its name."""
    from echelon.models.table import model_class

    return set(model_class(name)().get_params(deep=False))


def _show(summary: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(summary))
        return
    print(
        f"wrote {summary['model']}: {summary['kind']}, {summary['rows']:,} rows, classes "
        f"{plain(summary['classes'])}"
    )
    if summary["out_of_time"]:
        print("  the time limit decided which fits were made: --time-limit gives more, or less")
    if summary["unlabelled"]:
        print(f"  {summary['unlabelled']:,} rows left out, as they have no label")
    if summary["skipped"]:
        print(f"  {summary['skipped']:,} rows left out, as their images cannot be read")
    if summary["calibration"] is not None:
        for line in _calibration_lines(summary["calibration"], summary["is_calibrated"]):
            print(f"  {line}")
    if summary["kappa"] is not None:
        print(
            "  kappa {kappa:.3f} on unseen rows, {low:.3f} to {high:.3f}".format(**summary["kappa"])
        )
    if "conformal" in summary["held_out"]:
        print(f"  {summary['held_out']['conformal']:,} rows kept for prediction intervals")


def _calibration_lines(scores: Mapping[str, Mapping[str, float]], is_kept: bool) -> list[str]:
    """What a trial of calibration found, and whether its map was kept."""
    from echelon.evaluation.metrics import METRICS

    words = {"calibration_error": "calibration error"}
    words |= {name: row.title for name, row in METRICS.items()}
    verdict = (
        "calibrated: on rows of its own, the map helps (less is better)"
        if is_kept
        else "not calibrated: on rows of its own, the map does not help clearly, so it is\n"
        "  left out (less is better)"
    )
    changes = [
        f"  {words[name]:<18} {value:.4f} without the map, {scores['after'][name]:.4f} with it"
        for name, value in scores["before"].items()
    ]
    return [verdict, *changes]


def _remove_checkpoints(folder: Path) -> None:
    """Remove what --resume kept, once the model is written."""
    for place in (folder / "refit", folder):
        (place / "checkpoint.safetensors").unlink(missing_ok=True)
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
