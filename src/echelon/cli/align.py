"""The command ``align``: faces moved and scaled so that their eyes lie at the same places."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from echelon.cli.options import AsJson, existing_file, existing_folder_of_images


def read_size(text: str) -> tuple[int, int]:
    """A width and a height, as in 200,240."""
    sides = text.split(",")
    if len(sides) != 2 or not all(side.strip().isdigit() for side in sides):
        raise ValueError(f"--size must be a width and a height, as in 200,240; got {text!r}")
    width, height = map(int, sides)
    if not (1 <= width <= _LARGEST and 1 <= height <= _LARGEST):
        raise ValueError(f"--size must lie between 1 and {_LARGEST:,} a side; got {text!r}")
    return width, height


_LARGEST = 4096
_MOST_WORKERS = 1024
_SHOWN = 3


def align(
    folder: Annotated[
        Path,
        typer.Argument(
            callback=existing_folder_of_images, help="The folder that holds the images of faces."
        ),
    ],
    predictor: Annotated[
        Path,
        typer.Option(
            callback=existing_file,
            help="The file of dlib's 68-point shape predictor. It is yours, and never downloaded.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="The folder for the aligned images. What it holds from an earlier turn is kept."
        ),
    ],
    centre: Annotated[
        str,
        typer.Option(
            help="What the mean face is placed by: eyes, where they are on average, as in the "
            "CORN paper's data, or nose, with its tip in the middle."
        ),
    ] = "eyes",
    size: Annotated[
        str, typer.Option(help="The width and height of the aligned images.")
    ] = "200,240",
    workers: Annotated[
        int | None,
        typer.Option(help="The number of processes. Without it, there is one for each core."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Align faces as the data of the CORN paper are aligned: by their eyes, without rotation.

    Images without a face are left out and listed in left_out.csv. It needs the extra faces.
    Interrupt it at any moment and start it again: it goes on.

    Example: echelon align photographs --predictor landmarks68.dat --out aligned
    """
    if workers is not None and not 1 <= workers <= _MOST_WORKERS:
        raise ValueError(
            f"--workers must be at least 1 and at most {_MOST_WORKERS:,}; got {workers}"
        )
    sides = read_size(size)
    if centre not in ("eyes", "nose"):
        raise ValueError(f"--centre must be eyes or nose; got {centre!r}")
    from echelon.data.faces import align as align_faces
    from echelon.data.faces import image_names
    from echelon.training.progress import step_bar

    number = 2 * len(image_names(folder))  # each is looked at, and then written
    with step_bar("faces", number, shown=not as_json) as report:
        result = align_faces(
            folder, out, predictor=predictor, centre="nose" if centre == "nose" else "eyes",
            size=sides, workers=workers or os.cpu_count() or 1, on_image=report,
        )  # fmt: skip
    if as_json:
        document = {
            "aligned": len(result.aligned), "left_out": result.left_out,
            "distance": result.target.distance, "midpoint": result.target.midpoint,
        }  # fmt: skip
        print(json.dumps(document))
        return
    print(f"wrote {len(result.aligned):,} aligned images to {out}")
    if result.left_out:
        some = ", ".join(list(result.left_out)[:_SHOWN])
        more = ", .." if len(result.left_out) > _SHOWN else ""
        print(
            f"  left out {len(result.left_out):,}, listed in {out / 'left_out.csv'}: {some}{more}"
        )
