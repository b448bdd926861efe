"""What several commands take: each option once, with its help, and the checks of paths.

A path that is read is looked at while the command line is parsed, so that what is wrong with it is
said before anything heavy is imported.
"""

import errno
import glob
import os
import stat
from pathlib import Path
from typing import Annotated, Any

import typer

from echelon.models.table import MODELS
from echelon.storage.regular import NotRegularError, require_regular

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)

# ---- paths that are read -------------------------------------------------------------------------


def existing_file(path: Path | None) -> Path | None:
    """A file that is there; for anything else an error says what there is instead."""
    if path is not None:
        _require_file(path, "file", "name a file")
    return path


def existing_data(paths: Any) -> Any:
    """Files or folders that are there, patterns that match such, or the standard input."""
    for path in paths if isinstance(paths, (list, tuple)) else [paths] if paths else []:
        is_pattern = any(sign in str(path) for sign in "*?[") and not os.path.lexists(path)
        if str(path) == "-" or _is_folder(path):
            continue
        if not is_pattern:
            _require_file(path, "file", "name a file of a table, or a folder")
        elif not glob.glob(str(path), recursive=True):
            raise ValueError(f"no file matches {path}")
    return paths


def existing_model(path: Path) -> Path:
    """A file that may be a model."""
    _require_file(path, "model", "name a model that `save` or `echelon fit` wrote")
    return path


def existing_folder_of_images(path: Path | None) -> Path | None:
    """A folder that is there."""
    if path is not None and not _is_folder(path):
        raise ValueError(f"there is no folder of images {path}")
    return path


def existing_folder_of_runs(path: Path) -> Path:
    """A folder that is there, and may hold runs."""
    if not _is_folder(path):
        raise ValueError(
            f"{path} has no finished run, as it is no folder: give one that `echelon evaluate "
            f"--out`, `compare`, `grid` or `reproduce` wrote"
        )
    return path


def existing_or_generated(data: list[str]) -> list[str]:
    """Files or folders that are there, or the name of data that are generated."""
    if data != [GENERATED]:
        existing_data([Path(path) for path in data])
    return data


def existing_or_sentence(data: list[str]) -> list[str]:
    """Files or folders that are there, or a sentence, which has a space in it."""
    is_sentence = len(data) == 1 and " " in data[0].strip() and not os.path.lexists(data[0])
    if not is_sentence:
        existing_data([Path(path) for path in data])
    return data


def _require_file(path: Path, what: str, otherwise: str) -> None:
    try:
        require_regular(path)
    except NotRegularError as error:
        raise ValueError(f"{error}; {otherwise}") from None
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
        raise ValueError(f"there is no {what} {path}") from None


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:  # what is wrong with it is said where it is looked at as a file
        return False


def known_treatment(on_broken: str) -> str:
    """What becomes of images that cannot be read: one of two words."""
    if on_broken not in ("raise", "skip"):
        raise ValueError(f"--on-broken must be raise or skip; got {on_broken!r}")
    return on_broken


def model_to_fit(spec: str | None) -> str | None:
    """The name of a model that can be saved, with its options after colons."""
    if spec is None:
        return None
    name = spec.partition(":")[0]
    saved = ", ".join(row.name for row in MODELS.values() if row.saves)
    if name not in MODELS:
        raise ValueError(f"--model must be one of {saved}; got {name!r}: see `echelon methods`")
    if not MODELS[name].saves:
        raise ValueError(
            f"--model must be one that can be saved, which {name} cannot: take one of {saved}, or "
            f"try it with `echelon compare --methods {name}`"
        )
    return spec


# ---- which data ----------------------------------------------------------------------------------

GENERATED = "fireman"

_TABLES = (
    "A table: CSV, TSV, Excel, JSON lines, Feather or Parquet, packed or not; several files or a "
    "pattern in quotes, a folder of Parquet files, or - for the standard input"
)
_IMAGES = (
    "a folder of images in a folder for each class is read as a table with the columns image and "
    "class, and so is a MedMNIST file, .npz"
)
Data = Annotated[
    list[Path], typer.Argument(callback=existing_data, help=f"{_TABLES}. Also, {_IMAGES}.")
]
DataOrGenerated = Annotated[
    list[str],
    typer.Argument(
        callback=existing_or_generated,
        help=f"{_TABLES}; or fireman, which is generated. Also, {_IMAGES}.",
    ),
]
DataOrSentence = Annotated[
    list[str],
    typer.Argument(
        callback=existing_or_sentence,
        help=f"{_TABLES}. A model of texts also takes a sentence in quotes, and one of images an "
        f"image. Also, {_IMAGES}.",
    ),
]
Sep = Annotated[
    str | None,
    typer.Option(
        show_default="found by looking",
        help="What stands between the cells of a text file: a character such as ; or the word tab.",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        show_default="found by looking, column by column",
        help="The decimal sign of numbers: a point or a comma.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        show_default="found by looking",
        help="The encoding of a text file, such as utf-8, utf-16 or cp1252.",
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        show_default="the first that is not empty, or all",
        help="The sheet of an Excel file, by its name or by its number from 1 on; or the subset of "
        "a MedMNIST file, which is train, val or test, and all of them without it.",
    ),
]
MissingCodes = Annotated[
    str | None,
    typer.Option(
        help="The codes that stand for no answer, with commas between them: 99 in every column, or "
        "age=99 in one. Cells that hold one count as missing, also in rows that are predicted "
        "later."
    ),
]
KeepIds = Annotated[
    bool,
    typer.Option(
        "--keep-ids",
        help="Keep columns that look like ids or free text, as categories, instead of leaving them "
        "out.",
    ),
]


def known_remedy(missing_target: str) -> str:
    """What becomes of rows without a label: one of two words."""
    if missing_target not in ("drop", "error"):
        raise ValueError(f"--missing-target must be drop or error; got {missing_target!r}")
    return missing_target


MissingTarget = Annotated[
    str,
    typer.Option(
        callback=known_remedy,
        help="What to do about rows without a label: drop them and say how many, or end in an "
        "error.",
    ),
]
Target = Annotated[str, typer.Option(help="The column that holds the labels to predict.")]
Classes = Annotated[
    str | None,
    typer.Option(
        help="All labels, the lowest first, with commas between them, as in low,mid,high, or "
        "@FILE, a file with one a line. Case and outer spaces do not matter. Labels that are "
        "numbers need no such list."
    ),
]
Drop = Annotated[
    str | None, typer.Option(help="The columns to leave out, with commas between them.")
]
Group = Annotated[
    str | None,
    typer.Option(
        help="The column that names the group of each row. Rows of one group stay together "
        "whenever rows are divided."
    ),
]
GroupPattern = Annotated[
    str | None,
    typer.Option(
        help="A regular expression that takes the group of each row out of the name of its image, "
        "such as '^(\\d+)[LR]' for both knees of a patient."
    ),
]
TextColumn = Annotated[str | None, typer.Option(help="The column that holds texts.")]
ImageColumn = Annotated[str | None, typer.Option(help="The column that holds paths of images.")]
ImageFolder = Annotated[
    Path | None,
    typer.Option(
        callback=existing_folder_of_images,
        help="The folder where relative paths of images start. Without it, that is the folder of "
        "the table.",
    ),
]
OnBroken = Annotated[
    str,
    typer.Option(
        callback=known_treatment,
        help="What to do about images that cannot be read: raise an error, or skip their rows.",
    ),
]

# ---- models and how they are trained -------------------------------------------------------------

Model = Annotated[
    Path,
    typer.Argument(callback=existing_model, help="The model, a file that `echelon fit` wrote."),
]
Backbone = Annotated[
    str | None,
    typer.Option(
        help="The network that reads the rows: mlp, tabm or linear for tables, lstm or hf:NAME for "
        "texts, resnet or timm:NAME for images. Without it, the network is mlp, lstm or resnet, or "
        "what the recipe says."
    ),
]
Frozen = Annotated[
    bool,
    typer.Option(
        "--frozen",
        help="Leave a pretrained encoder of texts or images as it is, and train only what follows "
        "it. Every text or image is then encoded once, for all runs.",
    ),
]
Decision = Annotated[
    str | None,
    typer.Option(
        help="How probabilities become a label: median, mean, mode, kappa, or a CSV file with a "
        "matrix of costs, a line for each true class."
    ),
]
MaxEpochs = Annotated[
    int | None,
    typer.Option(help="The most epochs to train for, instead of as many as the recipe says."),
]
Device = Annotated[
    str | None,
    typer.Option(
        show_default="auto",
        help="The device to train on: auto, cpu, cuda, mps or another accelerator.",
    ),
]
Recipe = Annotated[
    str | None,
    typer.Option(
        show_default="default", help="The named set of training choices: default or paper."
    ),
]

# ---- where the work runs -------------------------------------------------------------------------

Seeds = Annotated[int, typer.Option(help="The number of runs of each method, each with a seed.")]
RunsFolder = Annotated[
    Path,
    typer.Option(
        help="The folder for the runs. Finished runs that it holds are kept and not run again."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(help="The number of runs at once. Without it, there is one for each core."),
]
Threads = Annotated[
    int,
    typer.Option(
        help="The number of threads that each run uses. Another number rounds differently."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="The address of a Ray cluster to run on, or local to start one on this machine. This "
        "needs the extra ray."
    ),
]
Devices = Annotated[
    int | None,
    typer.Option(
        help="The number of devices of this machine that each single fit is trained on, with a "
        "process for each of them."
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Run nothing: say how many runs there are and how long they would take here.",
    ),
]

# ---- what is printed -----------------------------------------------------------------------------

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else, for programs.")
]
