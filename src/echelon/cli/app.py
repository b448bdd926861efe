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
Data = Annotated[
    Path,
    typer.Argument(
        help="A CSV or Parquet file; or a folder of images, whose columns are image and class: the "
        "folder that each is in."
    ),
]
Model = Annotated[Path, typer.Argument(help="A model that `echelon fit` wrote.")]
Backbone = Annotated[
    str | None,
    typer.Option(
        help="mlp, tabm or linear; for texts lstm or hf:NAME; for images resnet or timm:NAME. "
        "Without it mlp, lstm or resnet, or what the recipe says."
    ),
]
Frozen = Annotated[
    bool,
    typer.Option("--frozen", help="Leave a pretrained text encoder as it is: train what follows."),
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
