"""MedMNIST's files: images, labels and their published subsets in one archive of arrays.

A file `NAME.npz` holds `train_images`, (n, h, w) or (n, h, w, 3) of whole numbers 0..255, and
`train_labels`, (n, 1), and the same for `val` and `test`. Nothing in it is run: arrays of Python
objects are refused, and an array that says it is larger than the file holds is, too.
"""

import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echelon.storage.regular import open_regular

SUBSETS = ("train", "val", "test")
_LABEL = "class"
_SAID = "MedMNIST's files hold train_images, train_labels and the same for val and test"


class MedSubset(NamedTuple):
    """Images (n, h, w) or (n, h, w, 3) of a subset, and their labels (n,)."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


def read_medmnist(path: str | Path) -> dict[str, MedSubset]:
    """The subsets of a file, by their names: train, val and test.

    Parameters
    ----------
    path : str or Path
        Of a `.npz` file of flat images with one label each.
    """
    names = [f"{subset}_{what}" for subset in SUBSETS for what in ("images", "labels")]
    try:
        with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
            members = {info.filename: info for info in archive.infolist()}
            missing = [name for name in names if f"{name}.npy" not in members]
            if missing:
                raise ValueError(f"{path} has no {missing[0]}; {_SAID}")
            arrays = {name: _array(archive, members[f"{name}.npy"], path) for name in names}
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, FileNotFoundError):
            raise ValueError(f"there is no file {path}") from None
        raise ValueError(f"{path} is not a readable .npz file: {error}") from None
    return {
        subset: _checked(path, subset, arrays[f"{subset}_images"], arrays[f"{subset}_labels"])
        for subset in SUBSETS
    }


def medmnist_table(path: str | Path, subset: str | None = None) -> pd.DataFrame:
    """The images and labels of a file as a table with the columns `image` and `class`.

    Parameters
    ----------
    path : str or Path
    subset : {"train", "val", "test"}, optional
        All of them, one after the other, without it.
    """
    if subset is not None and subset not in SUBSETS:
        raise ValueError(
            f"--sheet names a subset of {path}, which must be one of {', '.join(SUBSETS)}; got "
            f"{subset!r}"
        )
    from echelon.data.kinds.image import IMAGE

    read = read_medmnist(path)
    chosen = [read[name] for name in SUBSETS if subset in (None, name)]
    images = [image for each in chosen for image in each.images]
    cells = np.empty(len(images), dtype=object)
    cells[:] = images
    labels = np.concatenate([each.labels for each in chosen])
    table: pd.DataFrame = pd.DataFrame({IMAGE.name: cells, _LABEL: labels})
    return table


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str | Path) -> NDArray[Any]:
    """An array of an archive, as large as its bytes say."""
    format_ = np.lib.format
    with archive.open(member) as stream:
        try:
            version = format_.read_magic(stream)
            read_header = (
                format_.read_array_header_1_0
                if version == (1, 0)
                else format_.read_array_header_2_0
            )
            shape, _, dtype = read_header(stream)
        except ValueError as error:
            raise ValueError(f"{path} is not a readable .npz file: {error}") from None
        if dtype.hasobject:
            raise ValueError(
                f"{path} must hold arrays of numbers; {member.filename} holds Python objects, "
                f"which are not read"
            )
        said = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if said > member.file_size:
            raise ValueError(
                f"{path} is damaged: {member.filename} says that it has {said:,} bytes, and there "
                f"are {member.file_size:,}"
            )
    with archive.open(member) as stream:
        array: NDArray[Any] = format_.read_array(stream, allow_pickle=False)
    return array


def _checked(
    path: str | Path, subset: str, images: NDArray[Any], labels: NDArray[Any]
) -> MedSubset:
    is_flat = images.ndim == 3 or (images.ndim == 4 and images.shape[3] in (1, 3))
    if not is_flat or images.dtype != np.uint8:
        raise ValueError(
            f"{path} must hold flat images, (n, h, w) or (n, h, w, 3) of whole numbers 0..255; "
            f"{subset}_images is {images.shape} of {images.dtype}"
        )
    if labels.shape not in ((len(images),), (len(images), 1)) or labels.dtype.kind not in "iub":
        raise ValueError(
            f"{path} must hold one whole number as the label of each image; {subset}_labels is "
            f"{labels.shape} of {labels.dtype} for {len(images):,} images: a set with several "
            f"labels an image has no order"
        )
    return MedSubset(images, labels.reshape(-1).astype(np.int64))
