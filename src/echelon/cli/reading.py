"""From what stands on the command line to tables and values, with errors that name both."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHUNK_ROWS = 100_000


def parts(path: Path) -> Iterator[Any]:
    """The rows of a file as frames of limited size, their cells as they stand in the file."""
    from echelon.data.files import read_chunks

    return read_chunks(path, CHUNK_ROWS)


def require_column(frame: Any, name: str, path: Path) -> None:
    """Raise where a file lacks a column, and say which it has."""
    if name not in frame.columns:
        raise ValueError(f"{path} has no column {name!r}; it has: {plain(list(frame.columns))}")


def split_names(text: str | None) -> list[str]:
    """Names that stand with commas between them."""
    return [] if text is None else [part.strip() for part in text.split(",") if part.strip()]


def backbone_options(backbone: str | None, frozen: bool) -> dict[str, Any] | None:
    """What the estimator takes for --frozen."""
    if not frozen:
        return None
    if backbone is None or not backbone.startswith("hf:"):
        raise ValueError(
            f"--frozen is for pretrained text encoders, --backbone hf:NAME; got {backbone!r}"
        )
    return {"frozen": True}


def remove_checkpoints(folder: Path) -> None:
    """Remove what --resume kept, once the model is written."""
    for place in (folder / "refit", folder):
        (place / "checkpoint.safetensors").unlink(missing_ok=True)
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()


def plain(values: list[Any]) -> str:
    """Values for a sentence, not too many of them."""
    shown = ", ".join(map(str, values[:20]))
    return shown if len(values) <= 20 else f"{shown}, ... ({len(values)} in all)"


def read_decision(text: str | None) -> Any:
    """A decision by its name, or a matrix of costs from a CSV file without a header."""
    from echelon.curve import DECISIONS

    if text is None or text in (*DECISIONS, "kappa"):
        return text
    path = Path(text)
    if not path.is_file():
        raise ValueError(
            f"--decision must be one of {', '.join((*DECISIONS, 'kappa'))}, or a CSV file with a "
            f"matrix of costs, a line for each true class; got {text!r}"
        )
    import pandas as pd

    try:
        return pd.read_csv(path, header=None, dtype=float).to_numpy()
    except Exception as error:
        raise ValueError(f"{path} is not a matrix of costs: {error}") from None


def image_column(data: Path, named: str | None, folder: Path | None = None) -> str | None:
    """The column that holds images: the one that was named, or that of a folder of images."""
    column = "image" if named is None and data.is_dir() else named
    if folder is not None and column is None:
        raise ValueError(
            f"--image-folder says where the images of a column are, and none was named; add "
            f"--image COLUMN, or leave out --image-folder {folder}"
        )
    return column


def require_images(fitted: Any, model: Path, data: Path, folder: Path | None) -> None:
    """Raise where images are given to a model that takes none."""
    if fitted.image_column is None and (data.is_dir() or folder is not None):
        what = f"{data} is a folder of them" if data.is_dir() else f"--image-folder is {folder}"
        raise ValueError(
            f"{model} was fitted without images, and {what}; give a table with its columns: "
            f"{plain([column.name for column in fitted.schema_.columns])}"
        )


def read_rows(
    path: Path, apart: list[str], text: str | None, image: str | None, image_folder: Path | None
) -> Any:
    """A table with whole paths of its images, and numbers and dates in the columns of such.

    `apart` are the columns that are no features; their cells stay as they stand in the file.
    """
    from echelon.data.columns import settled
    from echelon.data.files import read_table

    media = [name for name in (text, image) if name is not None]
    frame = read_table(path)
    for name in (*apart, *media):
        require_column(frame, name, path)
    for name in media:
        if name in apart:
            raise ValueError(f"the column {name!r} cannot be both a text or image and left out")
    frame = settled(frame, apart=[*apart, *media])
    return locate_images(frame, image, path, image_folder)


def read_weights(frame: Any, name: str | None) -> Any:
    """The weights of the rows, (n,), or None without a column of them."""
    if name is None:
        return None
    from echelon.data.columns import Column, Remarks, numbers_of

    remarks = Remarks()
    weights = numbers_of(frame[name], Column(name), remarks)
    if remarks.unread:
        raise ValueError(f"weights must be numbers: {remarks.sentence()}")
    return weights


def locate_images(frame: Any, column: str | None, data: Path, folder: Path | None) -> Any:
    """The table with whole paths in its image column.

    Relative ones are looked for in the folder, which is that of the table unless another is given;
    where the data are a folder of images, it is that one.
    """
    if column is None or column not in frame.columns:
        return frame
    place = folder or (data if data.is_dir() else data.parent)
    if not place.is_dir():
        raise ValueError(f"there is no folder of images {place}")
    found = frame[column].map(
        lambda path: str(place / str(path)) if str(path).strip() else None, na_action="ignore"
    )
    return frame.assign(**{column: found})


def without_broken_images(frame: Any, column: str | None, on_broken: str) -> tuple[Any, int]:
    """The rows whose images can be read, and how many others there are."""
    import numpy as np

    from echelon.data.kinds.image import find_broken

    if on_broken not in ("raise", "skip"):
        raise ValueError(f"--on-broken must be raise or skip; got {on_broken!r}")
    if on_broken == "raise" or column is None or column not in frame.columns:
        return frame, 0  # that a column is missing is said where it is needed
    broken = find_broken(frame[column].to_numpy(dtype=object))
    kept = np.ones(len(frame), dtype=bool)
    kept[list(broken)] = False
    return frame[kept], len(broken)


def held_out_rows(
    features: Any,
    target: Any,
    classes: Any,
    shares: list[float],
    groups: Any,
    seed: int,
    *,
    text: str | None = None,
    image: str | None = None,
) -> list[Any]:
    """Masks of rows for each share and, last, for the rest; groups and twins stay together."""
    import numpy as np

    from echelon.data.columns import gathered_remarks
    from echelon.data.labels import Labels
    from echelon.data.splits import hold_out
    from echelon.data.tables import TableSchema

    if any(not 0 < share < 1 for share in shares) or sum(shares) >= 1:
        raise ValueError(f"held-out shares must lie between 0 and 1 and leave rows; got {shares}")
    ranks = Labels.of(target, classes).to_ranks(target)
    with gathered_remarks():  # the fit says them
        table = TableSchema.of(features, text=text, image=image).read(features)
    generator = np.random.default_rng([seed, len(ranks)])
    rest = np.ones(len(ranks), dtype=bool)
    masks = []
    for share in shares:
        inside = np.flatnonzero(rest)
        some = hold_out(
            table.rows(inside), ranks[inside], share * len(ranks) / len(inside),
            groups=None if groups is None else np.asarray(groups)[inside], generator=generator,
        )  # fmt: skip
        mask = np.zeros(len(ranks), dtype=bool)
        mask[inside[some]] = True
        masks.append(mask)
        rest &= ~mask
    return [*masks, rest]
