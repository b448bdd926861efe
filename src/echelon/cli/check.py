"""The command ``check``: what a table holds, what a fit would do with it, what to look at."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.options import (
    AsJson,
    Classes,
    Data,
    Decimal,
    Drop,
    Encoding,
    Group,
    GroupPattern,
    ImageColumn,
    KeepIds,
    MissingCodes,
    Sep,
    Sheet,
    TextColumn,
    model_to_fit,
)
from echelon.cli.reading import DataDescription, read_classes, require_column, split_names
from echelon.cli.showing import show_check, show_lines

_LISTED = 20
_FOLDS = 5
_SHOWN_SHARE = 0.05  # of the rows that a JSON document lists


def check(
    data: Data,
    target: Annotated[
        str | None, typer.Option(help="The column that holds the labels to predict.")
    ] = None,
    classes: Classes = None,
    drop: Drop = None,
    group: Group = None,
    group_pattern: GroupPattern = None,
    text: TextColumn = None,
    image: ImageColumn = None,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels",
            help="Add rows whose labels are the least likely, by models that had not seen them.",
        ),
    ] = False,
    model: Annotated[
        str,
        typer.Option(callback=model_to_fit, help="The model that judges the labels, for --labels."),
    ] = "boosting",
    keep_ids: KeepIds = False,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    missing_codes: MissingCodes = None,
    as_json: AsJson = False,
) -> None:
    """Look at a table: each column, what a fit does with it, and what should be looked at.

    With --labels, it also lists the rows whose labels are the least likely, what they should
    perhaps be, and how many such rows chance alone would give.

    Example: echelon check survey.csv --target agree

    Example: echelon check survey.csv --target agree --classes @classes.txt --labels
    """
    if labels and target is None:
        raise ValueError("--labels needs --target: the column whose labels are judged")
    described = DataDescription(
        data, target, read_classes(classes), split_names(drop), group=group, text=text, image=image,
        sep=sep, decimal=decimal, encoding=encoding, keep_ids=keep_ids, sheet=sheet,
        missing_codes=split_names(missing_codes), group_pattern=group_pattern,
    )  # fmt: skip
    for name in (*described.apart, *(column for column in (text, image) if column is not None)):
        require_column(described.cells_, name, described.name)
    table_check = described.check()
    suspects = _suspects(described, model) if labels else None
    if as_json:
        document: dict[str, Any] = {"data": described.name, **dataclasses.asdict(table_check)}
        if suspects is not None:
            document["labels"] = suspects
        print(json.dumps(document))
        return
    looks = described.looks()
    show_check(table_check, described.name + (f" ({looks})" if looks else ""))
    if suspects is not None:
        _show_suspects(suspects)


def _suspects(described: DataDescription, spec: str) -> dict[str, Any]:
    """The rows whose labels are the least likely, by curves of models that have not seen them."""
    from echelon.data.columns import gathered_remarks
    from echelon.evaluation.suspects import UNLIKELY, find_suspects
    from echelon.experiments.contestants import contestant_parameters, make_model
    from echelon.models.cross_validation import cross_val_curve

    with gathered_remarks():  # they stand among the findings
        rows = described.labelled(described.table())
        known = rows.classes
        made = make_model({**contestant_parameters(spec, {}), "classes": known, "random_state": 0})
        for kind, name in described.columns_by_kind.items():
            if name is not None:
                made.set_params(**{kind: name})
        curve = cross_val_curve(made, rows.features, rows.labels, folds=_FOLDS, groups=rows.groups)
    from echelon.data.labels import as_ranks

    ranks = as_ranks(rows.labels, known)
    suspects = find_suspects(ranks, curve.probabilities.numpy())
    count = max(_LISTED, round(_SHOWN_SHARE * len(ranks)))
    listed = [int(row) for row in suspects.order[:count]]
    places = source_places(described.paths, described.reading, rows.features.index[listed])
    return {
        "rows": len(ranks),
        "below": UNLIKELY,
        "unlikely": suspects.unlikely,
        "by_chance": round(suspects.by_chance, 1),
        "at_most_by_chance": round(suspects.at_most),
        "beyond_chance": suspects.beyond_chance,
        "suspects": [
            {
                **place,
                "label": known[ranks[row]],
                "perhaps": known[int(suspects.likely[row])],
                "likelihood": float(f"{suspects.likelihood[row]:.3g}"),
            }
            for row, place in zip(listed, places, strict=True)
        ],
    }


def source_places(paths: list[Path], reading: Any, rows: Any) -> list[dict[str, Any]]:
    """Where rows of a table stand in its files: the row from 1, and in text files the line."""
    from echelon.data.files import lines_of, read_chunks, shown
    from echelon.data.formats import look_at

    starts = [0]
    for path in paths[:-1]:
        starts.append(starts[-1] + sum(map(len, read_chunks(path, reading=reading))))
    places: list[dict[str, Any]] = []
    by_file: dict[int, list[int]] = {}
    for row in map(int, rows):
        number = max(i for i, start in enumerate(starts) if start <= row)
        place: dict[str, Any] = {"file": shown(paths[number])} if len(paths) > 1 else {}
        places.append({**place, "row": row - starts[number] + 1})
        by_file.setdefault(number, []).append(len(places) - 1)
    for number, members in by_file.items():
        path = paths[number]
        if path.is_dir() or (look := look_at(path, reading)).format != "CSV":
            continue
        lines = lines_of(path, look, [places[i]["row"] for i in members])
        for i, line in zip(members, lines, strict=True):
            places[i]["line"] = line
    return places


def _show_suspects(suspects: dict[str, Any]) -> None:
    beyond = (
        f"about {suspects['beyond_chance']:,} more than chance explains"
        if suspects["beyond_chance"]
        else "no more than chance may give"
    )
    show_lines(
        f"labels that models which have not seen their row give less than "
        f"{100 * suspects['below']:g} %: {suspects['unlikely']:,} of {suspects['rows']:,} rows; "
        f"chance alone would give about {suspects['by_chance']:g}, at most "
        f"{suspects['at_most_by_chance']:,}: {beyond}",
        indent="",
    )
    print(f"  {'place':<22}  {'label':<18}  {'perhaps':<18}  likelihood")
    for suspect in suspects["suspects"][:_LISTED]:
        file = f"{Path(suspect['file']).name} " if "file" in suspect else ""
        place = file + (f"line {suspect['line']}" if "line" in suspect else f"row {suspect['row']}")
        print(
            f"  {place:<22}  {str(suspect['label'])[:18]:<18}  {str(suspect['perhaps'])[:18]:<18}  "
            f"{suspect['likelihood']:.3g}"
        )
