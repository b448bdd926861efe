"""The text and image data of the CORN paper, from the files as they were published.

Each reader gives the paper's protocol: ranks from 0, classes balanced where the paper did so, and
parts of 75, 5 and 20 % for training, validation and test. A partition that was published as three
files is read as it is. Texts that stand twice stay in one part.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.data.files import typed_table
from echelon.data.rows import Rows, divide

_SHARES = {"test": 0.20, "valid": 0.05}
_DIVIDED = (*_SHARES, "train")
_PARTS = ("train", "valid", "test")
AES_CATEGORIES = ("animals", "urban", "people", "nature")
_TRIPADVISOR_PER_CLASS = 1400


@dataclass(frozen=True)
class Partition:
    """A published data set in three parts.

    Attributes
    ----------
    name : str
    features : mapping from "train", "valid" and "test" to DataFrame
        One column: the text, or the whole path of the image.
    ranks : mapping from the same to array of int64
        0..K-1.
    classes : tuple
        What the ranks stand for, the lowest first.
    columns_by_kind : mapping
        The column of its kind, as parameters of :class:`echelon.OrdinalClassifier`.
    """

    name: str
    features: Mapping[str, pd.DataFrame]
    ranks: Mapping[str, NDArray[np.int64]]
    classes: tuple[Any, ...]
    columns_by_kind: Mapping[str, str] = field(default_factory=dict)

    def labels(self, part: str) -> NDArray[Any]:
        """The classes of the rows of a part, (n,)."""
        labels: NDArray[Any] = np.array(self.classes)[self.ranks[part]]
        return labels


def read_coursera(path: str | Path, *, seed: int = 0) -> Partition:
    """Course reviews with 1 to 5 stars.

    Parameters
    ----------
    path : str or Path
        The paper's balanced file (`TEXT_COLUMN_NAME`, `LABEL_COLUMN_NAME`), or the raw one (`Id`,
        `Review`, `Label`), which is balanced to its rarest class.
    seed : int
        Of the balancing and of the split.
    """
    frame = typed_table(path, apart=("TEXT_COLUMN_NAME", "Review"))
    if "TEXT_COLUMN_NAME" in frame:
        text, label, per_class = "TEXT_COLUMN_NAME", "LABEL_COLUMN_NAME", None
    else:
        text, label = "Review", "Label"
        _require(frame, path, text, label)
        per_class = int(frame[label].value_counts().min())
    return _reviews("coursera", frame, text, label, per_class, seed)


def read_tripadvisor(path: str | Path, *, seed: int = 0) -> Partition:
    """Hotel reviews with 1 to 5 stars, columns `Review` and `Rating`, balanced to 1,400 a class."""
    frame = typed_table(path, apart=("Review",))
    _require(frame, path, "Review", "Rating")
    return _reviews("tripadvisor", frame, "Review", "Rating", _TRIPADVISOR_PER_CLASS, seed)


def read_morph2(path: str | Path, images: str | Path, *, seed: int = 0) -> Partition:
    """Faces with ages 16 to 48, 33 ranks.

    Parameters
    ----------
    path : str or Path
        A CSV file whose first, unnamed column is the file name and whose `age` is the rank from 0;
        or a folder with such files for the three parts.
    images : str or Path
        The folder of the images.
    seed : int
        Of the split, where one file is given.
    """
    ages = tuple(range(16, 49))
    return _faces("morph2", path, Path(images), lambda f: _first_column(f, path), ages, seed)


def read_afad(path: str | Path, images: str | Path, *, seed: int = 0) -> Partition:
    """Faces with ages 18 to 30, 13 ranks.

    Parameters
    ----------
    path : str or Path
        A CSV file with `path`, as ``<age>/<111 or 112>/<file>``, and `age`, the rank from 0; or a
        folder with such files for the three parts.
    images, seed
        As for :func:`read_morph2`.
    """

    def names(frame: pd.DataFrame) -> "pd.Series[Any]":
        _require(frame, path, "path", "age")
        return frame["path"]

    return _faces("afad", path, Path(images), names, tuple(range(18, 31)), seed)


def read_aes(
    path: str | Path, images: str | Path, *, category: str | None = None, seed: int = 0
) -> Partition:
    """Photographs with beauty scores 1 to 5.

    Parameters
    ----------
    path : str or Path
        The published CSV (unnamed file name, `category`, `beauty_scores` as the rank from 0), a
        folder with such files for the three parts, or the raw table, separated by tabs
        (`#flickr_photo_id`, `category`, `beauty_scores` as ``3,3,3,3,4``): there the rank is the
        mean score, rounded.
    images : str or Path
    category : {"animals", "urban", "people", "nature"}, optional
        Only the images of one category.
    seed : int
    """
    if category is not None and category not in AES_CATEGORIES:
        raise ValueError(f"category must be one of {', '.join(AES_CATEGORIES)}; got {category!r}")

    def prepare(frame: pd.DataFrame) -> pd.DataFrame:
        _require(frame, path, "category", "beauty_scores")
        if "#flickr_photo_id" in frame:
            frame = frame.assign(
                file=frame["#flickr_photo_id"].astype(str) + ".jpg",
                beauty_scores=frame["beauty_scores"].map(_mean_score) - 1,
            )[["file", "category", "beauty_scores"]]
        return frame if category is None else frame[frame["category"] == category]

    name = "aes" if category is None else f"aes-{category}"
    return _images(
        name, _read_parts(path, prepare), Path(images), lambda f: _first_column(f, path),
        "beauty_scores", (1, 2, 3, 4, 5), seed,
    )  # fmt: skip


def read_class_folders(folder: str | Path, classes: tuple[str, ...], *, seed: int = 0) -> Partition:
    """Images in one folder for each class.

    Parameters
    ----------
    folder : str or Path
    classes : tuple of str
        The names of the folders, the lowest class first: an order is not guessed.
    seed : int
    """
    folder = Path(folder)
    entries = folder.iterdir() if folder.is_dir() else []
    folders = sorted(entry.name for entry in entries if entry.is_dir())
    if sorted(classes) != folders:
        raise ValueError(
            f"classes must be the folders in {folder}, in their order: {', '.join(folders)}; got "
            f"{', '.join(classes)}"
        )
    rows = [
        (f"{name}/{image.name}", rank)
        for rank, name in enumerate(classes)
        for image in sorted((folder / name).iterdir())
        if image.is_file() and not image.name.startswith(".")
    ]
    frame = pd.DataFrame(rows, columns=["file", "rank"])
    return _images(folder.name, {"all": frame}, folder, lambda f: f["file"], "rank", classes, seed)


def balance(
    ranks: NDArray[np.int64], per_class: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Rows, sorted, of which at most `per_class` have the same rank, drawn at random."""
    kept = [
        generator.permutation(np.flatnonzero(ranks == rank))[:per_class]
        for rank in np.unique(ranks)
    ]
    return np.sort(np.concatenate(kept))


def three_parts(rows: Rows, seed: int) -> dict[str, NDArray[np.int64]]:
    """Places of rows of "train", "valid" and "test": 75, 5 and 20 %, twins in one of them."""
    masks = divide(rows, [*_SHARES.values()], seed)
    return {part: np.flatnonzero(mask) for part, mask in zip(_DIVIDED, masks, strict=True)}


# ---- from frames to partitions -------------------------------------------------------------------


def _reviews(
    name: str, frame: pd.DataFrame, text: str, label: str, per_class: int | None, seed: int
) -> Partition:
    classes = (1, 2, 3, 4, 5)
    ranks = _checked_ranks(frame[label] - 1, len(classes), label)
    if per_class is not None:
        kept = balance(ranks, per_class, np.random.default_rng([seed, 1]))
        frame, ranks = frame.iloc[kept].reset_index(drop=True), ranks[kept]
    texts = frame[[text]]
    columns = {"text": text}
    rows = three_parts(Rows.of(texts, ranks, columns), seed)
    features = {part: texts.iloc[rows[part]].reset_index(drop=True) for part in _PARTS}
    return Partition(name, features, {p: ranks[rows[p]] for p in _PARTS}, classes, columns)


def _faces(
    name: str,
    path: str | Path,
    images: Path,
    names: "Callable[[pd.DataFrame], pd.Series[Any]]",
    ages: tuple[int, ...],
    seed: int,
) -> Partition:
    def prepare(frame: pd.DataFrame) -> pd.DataFrame:
        _require(frame, path, "age")
        return frame

    return _images(name, _read_parts(path, prepare), images, names, "age", ages, seed)


def _images(
    name: str,
    frames: Mapping[str, pd.DataFrame],
    images: Path,
    names: "Callable[[pd.DataFrame], pd.Series[Any]]",
    label: str,
    classes: tuple[Any, ...],
    seed: int,
) -> Partition:
    if not images.is_dir():
        raise ValueError(f"there is no folder of images {images}")
    features, ranks, columns = {}, {}, {"image": "path"}
    for part, frame in frames.items():
        features[part] = pd.DataFrame({"path": [str(images / file) for file in names(frame)]})
        ranks[part] = _checked_ranks(frame[label], len(classes), label)
    if list(frames) == ["all"]:
        whole, every = features["all"], ranks["all"]
        rows = three_parts(Rows.of(whole, every, columns), seed)
        features = {part: whole.iloc[rows[part]].reset_index(drop=True) for part in _PARTS}
        ranks = {part: every[rows[part]] for part in _PARTS}
    return Partition(name, features, ranks, classes, columns)


def _read_parts(
    path: str | Path, prepare: "Callable[[pd.DataFrame], pd.DataFrame]"
) -> dict[str, pd.DataFrame]:
    """One file as "all", or a folder's files, whose names end in the names of the parts."""
    path = Path(path)
    if not path.is_dir():
        return {"all": prepare(_read_any(path))}
    frames = {}
    for part in _PARTS:
        files = sorted(path.glob(f"*{part}*.csv"))
        if len(files) != 1:
            raise ValueError(
                f"{path} must hold one CSV file for each of {', '.join(_PARTS)}; for {part} it "
                f"holds {len(files)}"
            )
        frames[part] = prepare(_read_any(files[0]))
    return frames


def _read_any(path: Path) -> pd.DataFrame:
    """A CSV file, or one separated by tabs."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    with open(path, encoding="utf-8") as stream:
        header = stream.readline()
    return pd.read_csv(path, sep="\t") if "\t" in header else typed_table(path)


def _first_column(frame: pd.DataFrame, path: str | Path) -> "pd.Series[Any]":
    names: pd.Series[Any] = frame.iloc[:, 0]
    if not pd.api.types.is_string_dtype(names.dtype) and names.dtype != object:
        raise ValueError(f"the first column of {path} must hold file names; it holds numbers")
    return names


def _mean_score(scores: str) -> int:
    values = [float(score) for score in str(scores).split(",")]
    return int(np.floor(np.mean(values) + 0.5))  # a half goes up


def _checked_ranks(column: "pd.Series[Any]", num_classes: int, label: str) -> NDArray[np.int64]:
    ranks = column.to_numpy(dtype=np.int64)
    if len(ranks) == 0 or ranks.min() < 0 or ranks.max() >= num_classes:
        given = "no rows" if len(ranks) == 0 else f"{ranks.min()} to {ranks.max()}"
        raise ValueError(f"{label} must give ranks from 0 to {num_classes - 1}; these are {given}")
    return ranks


def _require(frame: pd.DataFrame, path: str | Path, *columns: str) -> None:
    missing = [name for name in columns if name not in frame]
    if missing:
        raise ValueError(
            f"{path} lacks the column {missing[0]!r}; it has: {', '.join(map(str, frame.columns))}"
        )
