"""The command ``report``: one page about runs."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from echelon.cli.options import AsJson, existing_folder_of_runs
from echelon.cli.writing import is_standard_output, require_folder, require_page_file


def report(
    folder: Annotated[
        Path,
        typer.Argument(
            callback=existing_folder_of_runs,
            help="The folder that `compare`, `grid`, `reproduce` or `evaluate --out` wrote.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page to write, an HTML file, or - for the standard output. Without it, that "
            "is report.html in the folder."
        ),
    ] = None,
    charts: Annotated[
        Path | None, typer.Option(help="A folder that every chart is written to as well.")
    ] = None,
    image: Annotated[
        str, typer.Option(help="The format of the charts in that folder: png or svg.")
    ] = "svg",
    as_json: AsJson = False,
) -> None:
    """Write one HTML page that shows what the runs found; it needs nothing else to be read.

    Example: echelon report runs --charts figures --image png
    """
    page = out or folder / "report.html"
    is_shown = is_standard_output(page)
    if is_shown and as_json:
        raise ValueError("--json and --out - cannot both have the standard output; leave one out")
    if out is not None:
        require_page_file(out)
    if charts is not None:
        require_folder(charts)
    from echelon.report import page_text, write_charts, write_page

    if is_shown:
        print(page_text(folder))
    else:
        write_page(folder, out)
    images = [] if charts is None else write_charts(folder, charts, image)
    if as_json:
        print(json.dumps({"page": str(page), "charts": [str(path) for path in images]}))
        return
    said = ([] if is_shown else [str(page)]) + (
        [f"{len(images)} charts in {charts}"] if images else []
    )
    if said:
        print(f"wrote {' and '.join(said)}", file=sys.stderr if is_shown else sys.stdout)
