"""The commands about several runs: ``compare`` and ``report``."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.cli.app import AsJson, app
from echelon.cli.reading import require_column, split_names, typed_classes

_SHOWN = ("mae", "rmse", "accuracy", "quadratic_weighted_kappa", "ranked_probability_score")


@app.command()
def compare(
    data: Annotated[str, typer.Argument(help="A CSV or Parquet file, or fireman: generated.")],
    out: Annotated[Path, typer.Option(help="The folder for the runs.")],
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    methods: Annotated[str, typer.Option(help="With commas.")] = "ce,ornn,coral,corn",
    seeds: Annotated[int, typer.Option(help="How many runs of each method.")] = 5,
    classes: Annotated[
        str | None, typer.Option(help="All labels, the lowest first, with commas: low,mid,high.")
    ] = None,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, with commas.")] = None,
    group: Annotated[
        str | None, typer.Option(help="A column of groups that stay on one side of a split.")
    ] = None,
    test_share: Annotated[float, typer.Option(help="Of the rows, to test on.")] = 0.25,
    backbone: Annotated[str, typer.Option(help="mlp, tabm or linear.")] = "mlp",
    recipe: Annotated[str, typer.Option(help="default or paper.")] = "default",
    max_epochs: Annotated[int | None, typer.Option(help="Instead of the recipe's.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    as_json: AsJson = False,
) -> None:
    """Compare methods on one table: the same split, several seeds, with baselines.

    Finished runs in the folder are kept. `echelon report DIR` makes a page of them.

    Example: echelon compare wine.csv --target quality --methods ce,coral,corn --out runs
    """
    from echelon.experiments import check_request, compare_methods, generated_task, table_task
    from echelon.report.content import Comparison
    from echelon.training.progress import run_bar

    names = split_names(methods)
    check_request(names, seeds)
    if data == "fireman" and not Path(data).is_file():
        task = generated_task()
    else:
        if target is None:
            raise ValueError("--target is needed: the column to predict")
        task = _table_task(table_task, Path(data), target, classes, drop, group, test_share)
    parameters = {
        "backbone": backbone, "recipe": recipe, "max_epochs": max_epochs, "device": device,
    }  # fmt: skip
    with run_bar(
        len(set(names)) * seeds + 2 + (task.floor is not None), shown=not as_json
    ) as report:
        runs = compare_methods(task, names, seeds, out, parameters=parameters, on_run=report)
    found = Comparison.of(runs)
    if as_json:
        print(json.dumps(found.document()))
        return
    print(f"{task.name}: {len(task.ranks):,} rows to learn from, {len(task.test_ranks):,} to test")
    print(found.text(_SHOWN))
    for sentence in found.sentences():
        print(sentence)
    print(f"`echelon report {out}` makes a page of this")


def _table_task(
    make: Any,
    path: Path,
    target: str,
    classes: str | None,
    drop: str | None,
    group: str | None,
    test_share: float,
) -> Any:
    from echelon.data.tables import read_table

    frame = read_table(path)
    dropped = split_names(drop)
    special = [name for name in (target, group) if name is not None]
    for name in (*special, *dropped):
        require_column(frame, name, path)
    return make(
        path.name,
        frame.drop(columns=list({*special, *dropped})),
        frame[target],
        classes=typed_classes(split_names(classes), frame[target]) if classes else None,
        groups=None if group is None else frame[group].to_numpy(),
        test_share=test_share,
    )


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="What `compare` or `evaluate --out` wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; report.html in the folder without it.")
    ] = None,
    charts: Annotated[
        Path | None, typer.Option(help="Also write every chart to this folder.")
    ] = None,
    image: Annotated[str, typer.Option(help="png or svg, for --charts.")] = "svg",
    as_json: AsJson = False,
) -> None:
    """Write one HTML page that shows what the runs found; it needs nothing else to be read.

    Example: echelon report runs --charts figures --image png
    """
    from echelon.report import write_charts, write_page

    page = write_page(folder, out)
    images = [] if charts is None else write_charts(folder, charts, image)
    if as_json:
        print(json.dumps({"page": str(page), "charts": [str(one) for one in images]}))
        return
    print(f"wrote {page}" + (f" and {len(images)} charts in {charts}" if images else ""))
