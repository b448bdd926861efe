"""The program that the commands belong to, and what several of them take."""

from pathlib import Path
from typing import Annotated

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
Backbone = Annotated[
    str,
    typer.Option(
        help="mlp, tabm or linear; lstm or hf:NAME for texts; resnet or timm:NAME for images."
    ),
]
TextColumn = Annotated[str | None, typer.Option(help="The column that holds texts.")]
ImageColumn = Annotated[str | None, typer.Option(help="The column that holds paths of images.")]
ImageFolder = Annotated[
    Path | None,
    typer.Option(help="Where relative paths of images start; without it, beside the table."),
]
OnBroken = Annotated[
    str, typer.Option(help="raise, or skip: leave rows out whose images cannot be read.")
]
Decision = Annotated[
    str | None,
    typer.Option(help="median, mean, mode, kappa, or a CSV file with a matrix of costs."),
]
