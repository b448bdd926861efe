"""Readers of image data: those of the CORN paper, and others that are freely had.

The paper's sets come as published, in one list or in one for each subset, or as raw lists, whose
`age` is in years: those are cut to the paper's ages and balanced within each subset. Nothing is
fetched; every reader takes the paths of files that the user has.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from echelon.data.files import IMAGE_SUFFIXES, typed_table
from echelon.data.groups import groups_of_names
from echelon.data.kinds.image import IMAGE
from echelon.data.medmnist import read_medmnist
from echelon.paper.data import (
    SUBSETS,
    Partition,
    checked_ranks,
    divided,
    require_columns,
)

AES_CATEGORIES = ("animals", "urban", "people", "nature")
AES_MIDDLE = (2, 3, 4)  # the classes of the balanced set: 1 and 5 are too rare to balance to
FACES_AGES = tuple(range(21, 61))
KNEE_PATIENTS = r"^(\d+)[LR]"  # the two knees of a patient are 9003175L and 9003175R

_MORPH2_AGES, _AFAD_AGES = tuple(range(16, 49)), tuple(range(18, 31))
_PATH = "path"


def read_morph2(
    path: str | Path, images: str | Path, *, seed: int = 0, persons: bool = False
) -> Partition:
    """Faces with ages 16 to 48, 33 ranks.

    Parameters
    ----------
    path : str or Path
        A CSV file whose first, unnamed column is the file name and whose `age` is the rank from 0,
        or the age in years in a raw list; or a folder with such files for the three subsets.
    images : str or Path
        The folder of the images.
    seed : int
        Of the division, where there is one to make.
    persons : bool
        Whether all images of a person (`id_num`) stay in one subset. The published partition, in
        which four of five persons of the test subset are also in training, is then divided anew.
    """

    def prepare(frame: pd.DataFrame) -> pd.DataFrame:
        require_columns(frame, path, "age", *(["id_num"] if persons else []))
        return frame

    frames = _read_subsets(path, prepare)
    if persons:
        frames = {"all": pd.concat(list(frames.values()), ignore_index=True)}
    return _aged(
        "morph2", frames, images, lambda f: _first_column(f, path), _MORPH2_AGES, seed,
        person="id_num" if persons else None,
    )  # fmt: skip


def read_afad(path: str | Path, images: str | Path, *, seed: int = 0) -> Partition:
    """Faces with ages 18 to 30, 13 ranks.

    Parameters
    ----------
    path : str or Path
        A CSV file with `path`, as ``<age>/<111 or 112>/<file>``, and `age`, the rank from 0, or
        the age in years in a raw list; or a folder with such files for the three subsets.
    images, seed
        As for :func:`read_morph2`.
    """

    def prepare(frame: pd.DataFrame) -> pd.DataFrame:
        require_columns(frame, path, "path", "age")
        return frame

    frames = _read_subsets(path, prepare)
    return _aged("afad", frames, images, lambda f: f["path"], _AFAD_AGES, seed)


def read_faces(path: str | Path, images: str | Path, *, seed: int = 0) -> Partition:
    """Faces with ages 21 to 60, 40 ranks, divided and then balanced as the paper's are.

    Parameters
    ----------
    path : str or Path
        A CSV file with `file` and `age`, in years, or its folder.
    images : str or Path
        The folder of the images, or one that holds them in a folder `files`.
    seed : int
    """
    path, images = Path(path), Path(images)
    place = path / "faces.csv" if path.is_dir() else path
    folder = images / "files" if (images / "files").is_dir() else images
    frame = _read_any(place)
    require_columns(frame, place, "file", "age")
    return _aged("faces", {"all": frame}, folder, lambda f: f["file"], FACES_AGES, seed, raw=True)


def read_aes(
    path: str | Path,
    images: str | Path,
    *,
    category: str | None = None,
    seed: int = 0,
    balanced: bool = False,
) -> Partition:
    """Photographs with beauty scores 1 to 5.

    Parameters
    ----------
    path : str or Path
        The published CSV (unnamed file name, `category`, `beauty_scores` as the rank from 0), a
        folder with such files for the three subsets, or the raw table, separated by tabs
        (`#flickr_photo_id`, `category`, `beauty_scores` as ``3,3,3,3,4``): there the rank is the
        mean score, rounded.
    images : str or Path
    category : {"animals", "urban", "people", "nature"}, optional
        Only the images of one category.
    seed : int
    balanced : bool
        Only the scores 2 to 4, as many of each, within each subset: that the published ablation
        ran on three balanced classes is known, and that they are these is our reading.
    """
    if category is not None and category not in AES_CATEGORIES:
        raise ValueError(f"category must be one of {', '.join(AES_CATEGORIES)}; got {category!r}")
    classes = AES_MIDDLE if balanced else (1, 2, 3, 4, 5)

    def prepare(frame: pd.DataFrame) -> pd.DataFrame:
        require_columns(frame, path, "category", "beauty_scores")
        if "#flickr_photo_id" in frame:
            frame = frame.assign(
                file=frame["#flickr_photo_id"].astype(str) + ".jpg",
                beauty_scores=frame["beauty_scores"].map(_mean_score) - 1,
            )[["file", "category", "beauty_scores"]]
        if category is not None:
            frame = frame[frame["category"] == category]
        if balanced:
            frame = frame[frame["beauty_scores"].isin([score - 1 for score in classes])]
            frame = frame.assign(beauty_scores=frame["beauty_scores"] - (classes[0] - 1))
        return frame

    name = "aes" if category is None else f"aes-{category}"
    partition = _images(
        f"{name}-balanced" if balanced else name, _read_subsets(path, prepare), Path(images),
        lambda f: _first_column(f, path), "beauty_scores", classes, seed,
    )  # fmt: skip
    return partition.balanced(seed) if balanced else partition


def read_class_folders(
    folder: str | Path, classes: tuple[str, ...], *, seed: int = 0, group_pattern: str | None = None
) -> Partition:
    """Images in one folder for each class, in one or in each of three subsets.

    Parameters
    ----------
    folder : str or Path
        Holds the folders of the classes; or the folders train, valid (or val) and test, each with
        those of the classes.
    classes : tuple of str
        The names of the folders, the lowest class first: an order is not guessed.
    seed : int
        Of the division, where the folder has no subsets.
    group_pattern : str, optional
        A regular expression that takes the group out of the name of a file.
    """
    folder = Path(folder)
    entries = folder.iterdir() if folder.is_dir() else []
    folders = sorted(entry.name for entry in entries if entry.is_dir())
    places = {"all": folder}
    if {"train", "test"} <= set(folders):
        valid = "valid" if "valid" in folders else "val"
        places = {"train": folder / "train", "valid": folder / valid, "test": folder / "test"}
    frames = {subset: _class_folders(place, classes) for subset, place in places.items()}
    frames = {
        subset: frame.assign(
            file=[str(places[subset].relative_to(folder) / file) for file in frame["file"]]
        )
        for subset, frame in frames.items()
    }
    if group_pattern is not None:
        frames = {
            subset: frame.assign(group=groups_of_names(frame["file"], group_pattern))
            for subset, frame in frames.items()
        }
    group = None if group_pattern is None else "group"
    return _images(
        folder.name, frames, folder, lambda f: f["file"], "rank", classes, seed, group=group
    )


def read_knees(folder: str | Path, *, seed: int = 0) -> Partition:
    """Radiographs of knees with the grades 0 to 4 of osteoarthritis, in their published subsets.

    Both knees of a patient are of one group.
    """
    read = read_class_folders(
        folder, tuple("01234"), seed=seed, group_pattern=KNEE_PATIENTS
    )  # folders are named, and grades are numbers
    return replace(read, name="knees", classes=tuple(range(5)))


def read_retina(path: str | Path) -> Partition:
    """Photographs of the retina with five grades, in their published subsets: RetinaMNIST."""
    subsets = read_medmnist(path)
    names = {"train": "train", "valid": "val", "test": "test"}
    grades = int(max(subset.labels.max() for subset in subsets.values())) + 1
    column = IMAGE.name
    return Partition(
        "retina",
        {
            name: pd.DataFrame({column: list(subsets[theirs].images)}, dtype=object)
            for name, theirs in names.items()
        },
        {name: subsets[theirs].labels for name, theirs in names.items()},
        tuple(range(grades)),
        {column: column},
    )


# ---- from lists to partitions --------------------------------------------------------------------


def _class_folders(folder: Path, classes: tuple[str, ...]) -> pd.DataFrame:
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
        if image.suffix.lower() in IMAGE_SUFFIXES and not image.name.startswith(".")
    ]
    listed: pd.DataFrame = pd.DataFrame(rows, columns=["file", "rank"])
    return listed


def _aged(
    name: str,
    frames: Mapping[str, pd.DataFrame],
    images: str | Path,
    names: "Callable[[pd.DataFrame], pd.Series[Any]]",
    ages: tuple[int, ...],
    seed: int,
    *,
    person: str | None = None,
    raw: bool | None = None,
) -> Partition:
    """Faces by age; a list whose ages are years is cut to `ages` and balanced in each subset."""
    if raw is None:
        lowest = min((frame["age"].min() for frame in frames.values() if len(frame)), default=0)
        raw = bool(lowest >= len(ages) or lowest >= ages[0] - 5)
    if raw:
        frames = {
            subset: frame[frame["age"].isin(ages)].assign(age=lambda f: f["age"] - ages[0])
            for subset, frame in frames.items()
        }
    partition = _images(name, frames, Path(images), names, "age", ages, seed, group=person)
    return partition.balanced(seed) if raw else partition


def _images(
    name: str,
    frames: Mapping[str, pd.DataFrame],
    images: Path,
    names: "Callable[[pd.DataFrame], pd.Series[Any]]",
    label: str,
    classes: tuple[Any, ...],
    seed: int,
    *,
    group: str | None = None,
) -> Partition:
    if not images.is_dir():
        raise ValueError(f"there is no folder of images {images}")
    features, ranks, groups = {}, {}, {}
    columns = {IMAGE.name: _PATH}
    for subset, frame in frames.items():
        features[subset] = pd.DataFrame({_PATH: [str(images / file) for file in names(frame)]})
        ranks[subset] = checked_ranks(frame[label], len(classes), label)
        if group is not None:
            groups[subset] = frame[group].to_numpy()
    if list(frames) == ["all"]:
        return divided(
            name, features["all"], ranks["all"], classes, columns, seed, groups.get("all")
        )
    return Partition(name, features, ranks, classes, columns, groups or None)


def _read_subsets(
    path: str | Path, prepare: "Callable[[pd.DataFrame], pd.DataFrame]"
) -> dict[str, pd.DataFrame]:
    """One file as "all", or a folder's files, whose names end in the names of the subsets."""
    path = Path(path)
    if not path.is_dir():
        return {"all": prepare(_read_any(path))}
    frames = {}
    for subset in SUBSETS:
        files = sorted(path.glob(f"*{subset}*.csv"))
        if len(files) != 1:
            raise ValueError(
                f"{path} must hold one CSV file for each of {', '.join(SUBSETS)}; for {subset} it "
                f"holds {len(files)}"
            )
        frames[subset] = prepare(_read_any(files[0]))
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
