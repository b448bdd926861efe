"""From image files, arrays and opened images to pixels of one size.

The rules:

- A image is turned as its EXIF orientation says, and becomes RGB with 8 bits: greyscale is
  repeated (16 bits are scaled down), CMYK is converted, transparency lies on white, of an
  animation the first frame counts.
- A file is opened as JPEG, PNG, GIF, BMP, TIFF, WebP or PPM (PGM, PBM), whatever its name ends in,
  and as nothing else: other formats of Pillow start other programs.
- A file that is missing, no regular file (a pipe, a device), no image, cut short, or has more
  than 80 million pixels or more than 65,500 on a side is broken; its size is looked at before
  anything is decoded. A broken image raises an error that names it; with ``on_broken="skip"`` a
  fit leaves its row out, and says how many there were.
- Pixels leave here as whole numbers 0..255; a network scales them itself, so that an exported
  graph takes them as they are.
"""

import base64
import io
import math
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon.data.kinds.base import CellKind, Encoding
from echelon.extras import require
from echelon.storage.regular import NotRegularError, open_regular

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")  # by their names in Pillow
MAX_PIXELS = 80_000_000  # below what makes Pillow itself warn
MAX_SIDE = 65_500  # as of JPEG; every row of a image takes memory of its own
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

_TOP_16 = 65_535
_MEASURED = 32  # images that decide on a size
_LARGEST_SMALL = 64  # pixels a side up to which images are taken as they are
_KEPT_BYTES = 512 * 2**20  # of decoded images that are kept between epochs
_LARGEST_RESIZED = 4096  # pixels a side of what a network sees
_BAND_PIXELS = 2**22  # that are converted at once
_LARGE_PIXELS = 2**24  # of a image that is opened while no other large one is
_PREPROCESSING = ("own", "paper", "paper_faces", "timm")
_RESAMPLING = ("nearest", "bilinear", "bicubic", "lanczos")

_one_large_image = threading.Lock()

OnBroken = Literal["raise", "skip"]


class BrokenImageError(ValueError):
    """A image that cannot be read; the message names it."""


@dataclass(frozen=True)
class ImageSettings:
    """How images become pixels, decided on the training rows and saved with a model.

    Parameters
    ----------
    resize : int
        Pixels a side after resizing, the shape of the image not kept: the paper's way.
    crop : int
        Pixels a side of what the network sees: the middle, in training a random place.
    flip : bool
        Whether training mirrors half of the images, left to right.
    pad : int
        Pixels of edge that training repeats around a image before it crops.
    keep_shape : bool
        Resize the shorter side instead, and crop the rest away: the way of timm.
    interpolation : {"nearest", "bilinear", "bicubic", "lanczos"}
        How pixels are put together when an image is resized.
    mean, std : tuple of 3 floats
        What the network subtracts from and divides its pixels (0..1) by.
    centre : int, optional
        Pixels a side of the middle that is cut out before resizing, with black around an image
        that is smaller; the whole image without it.
    """

    resize: int
    crop: int
    flip: bool = False
    pad: int = 0
    keep_shape: bool = False
    interpolation: str = "bilinear"
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.25, 0.25, 0.25)
    centre: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("resize", 1), ("crop", 1), ("pad", 0), ("centre", 1)):
            value = getattr(self, name)
            if name == "centre" and value is None:
                continue
            is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not is_whole or not least <= value <= _LARGEST_RESIZED:
                raise ValueError(
                    f"{name} must be a whole number from {least} to {_LARGEST_RESIZED:,}; got "
                    f"{value!r}"
                )
        for name in ("mean", "std"):
            value = getattr(self, name)
            if not (
                isinstance(value, (tuple, list))
                and len(value) == 3
                and all(isinstance(x, (int, float, np.number)) and math.isfinite(x) for x in value)
            ):
                raise ValueError(f"{name} must be three numbers; got {value!r}")
        if not 1 <= self.crop <= self.resize + 2 * self.pad:
            raise ValueError(
                f"crop must lie between 1 and resize + 2 * pad = {self.resize + 2 * self.pad}; "
                f"got {self.crop}"
            )
        if self.interpolation not in _RESAMPLING:
            raise ValueError(
                f"interpolation must be one of {', '.join(_RESAMPLING)}; got {self.interpolation!r}"
            )

    @property
    def sizes(self) -> dict[str, Any]:
        """What a backbone must know of its pixels."""
        return {"mean": self.mean, "std": self.std}

    @property
    def free(self) -> dict[int, tuple[str, int]]:
        """All images have one size."""
        return {}

    def encode(self, cells: NDArray[Any]) -> "Images":
        """The pixels of cells, read when they are taken."""
        return Images(cells, self)

    def example(self, rows: int) -> Tensor:
        """Black images, (rows, 3, crop, crop)."""
        return torch.zeros(rows, 3, self.crop, self.crop, dtype=torch.uint8)

    def made_up(self, rows: int, generator: np.random.Generator) -> list[Any]:
        """Noise."""
        shape = (rows, self.crop, self.crop, 3)
        return list(generator.integers(256, size=shape, dtype=np.uint8))

    def describe(self) -> dict[str, Any]:
        """What a saved model stores."""
        return asdict(self)


def rebuild_images(described: Mapping[str, Any]) -> ImageSettings:
    """Settings from what :meth:`ImageSettings.describe` gave."""
    plain: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in described.items()
    }
    return ImageSettings(**plain)


def paper_images(**changed: Any) -> ImageSettings:
    """The preprocessing of the CORN paper for photographs: resize 256, random crop 224, flip."""
    return _changed(
        ImageSettings(256, 224, flip=True, mean=IMAGENET_MEAN, std=IMAGENET_STD), changed
    )


def paper_faces(**changed: Any) -> ImageSettings:
    """The preprocessing of the CORN paper for faces: the middle 140, resize 128, random crop 120.

    They are neither mirrored nor scaled: pixels run from 0 to 1.
    """
    return _changed(
        ImageSettings(128, 120, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0), centre=140), changed
    )


def timm_images(name: str, **changed: Any) -> ImageSettings:
    """What timm's own configuration of a network says: size, crop, interpolation and scale."""
    config = require("timm.models", "networks of timm").get_pretrained_cfg(name)
    if config is None:
        return paper_images(**changed)
    crop = int(config.input_size[-1])
    return _changed(
        ImageSettings(
            max(crop, math.floor(crop / (config.crop_pct or 1.0))),
            crop,
            flip=True,
            keep_shape=True,
            interpolation=config.interpolation
            if config.interpolation in _RESAMPLING
            else "bicubic",
            mean=tuple(config.mean),
            std=tuple(config.std),
        ),
        changed,
    )


def small_images(cells: NDArray[Any], **changed: Any) -> ImageSettings:
    """Images at their usual size, up to 64 pixels a side, moved a little in training.

    They are not mirrored: what left and right mean is not known.
    """
    size = int(changed.pop("size", 0))
    if not size:
        some = cells[np.linspace(0, len(cells) - 1, min(_MEASURED, len(cells))).astype(int)]
        usual = int(np.median([max(open_image(cell).size) for cell in some]))
        size = min(_LARGEST_SMALL, usual)
    return _changed(ImageSettings(size, size, pad=max(1, size // 8)), changed)


def _changed(settings: ImageSettings, changed: Mapping[str, Any]) -> ImageSettings:
    changed = dict(changed)
    if "size" in changed:  # of what the network sees; the margin around it keeps its share
        size = int(changed.pop("size"))
        share = settings.resize / settings.crop
        changed = {"crop": size, "resize": round(size * share), **changed}
    try:
        return replace(settings, **changed)
    except TypeError as error:
        raise ValueError(f"images do not take these options: {error}") from None


# ---- reading -------------------------------------------------------------------------------------


def open_image(cell: Any) -> Any:
    """A cell as an RGB image (PIL) that is the right way up.

    Parameters
    ----------
    cell : path, bytes of a file, PIL image, or array (h, w) or (h, w, channels)
        Arrays of floats run from 0 to 1, those of whole numbers from 0 to 255.
    """
    require("PIL", "images")
    from PIL import Image, ImageOps, UnidentifiedImageError

    if isinstance(cell, np.ndarray):
        return _of_array(cell)
    try:
        if isinstance(cell, Image.Image):
            return _to_rgb(ImageOps.exif_transpose(_loaded(cell, cell)))
        if not isinstance(cell, (bytes, str, os.PathLike)):  # a number would be an open file's
            raise BrokenImageError(f"image {_named(cell)} is no path, array or image")
        source = io.BytesIO(cell) if isinstance(cell, bytes) else open_regular(cell)
        with source as stream, Image.open(stream, formats=FORMATS) as opened:
            is_large = opened.width * opened.height > _LARGE_PIXELS
            with _one_large_image if is_large else nullcontext():
                ImageOps.exif_transpose(_loaded(opened, cell), in_place=True)
                return _to_rgb(opened)
    except BrokenImageError:
        raise
    except NotRegularError as error:
        raise BrokenImageError(f"image {error}") from None
    except UnidentifiedImageError:
        raise BrokenImageError(
            f"image {_named(cell)} cannot be read: it is none of {', '.join(FORMATS)}"
        ) from None
    except FileNotFoundError:
        raise BrokenImageError(f"there is no image {_named(cell)}") from None
    except Image.DecompressionBombError as error:
        raise BrokenImageError(f"image {_named(cell)} is too large: {error}") from None
    except Exception as error:  # Pillow's readers raise almost anything on damaged files
        raise BrokenImageError(f"image {_named(cell)} cannot be read: {error}") from None


def _loaded(opened: Any, cell: Any) -> Any:
    if max(opened.size) > MAX_SIDE:
        raise BrokenImageError(
            f"image {_named(cell)} has {opened.width} x {opened.height} pixels, more than "
            f"{MAX_SIDE:,} on a side; cut it, or make it smaller"
        )
    if opened.width * opened.height > MAX_PIXELS:
        raise BrokenImageError(
            f"image {_named(cell)} has {opened.width} x {opened.height} pixels, more than "
            f"{MAX_PIXELS:,}; make it smaller"
        )
    opened.load()
    return opened


def _named(cell: Any) -> str:
    return str(cell) if isinstance(cell, (str, Path)) else f"of type {type(cell).__name__}"


def _to_rgb(image: Any) -> Any:
    """A image as RGB, converted a band at a time: large ones exist in few copies."""
    from PIL import Image

    if image.mode == "RGB" and "transparency" not in image.info:
        return image.copy()  # which no longer needs the file
    converted = Image.new("RGB", image.size)
    height = max(1, _BAND_PIXELS // max(1, image.width))
    for top in range(0, image.height, height):
        bottom = min(top + height, image.height)
        band = image.crop((0, top, image.width, bottom))
        converted.paste(_band_to_rgb(band), (0, top))
    return converted


def _band_to_rgb(image: Any) -> Any:
    from PIL import Image

    if image.mode == "F":
        return _of_array(np.asarray(image))
    if image.mode.startswith("I"):  # 16 bits of grey, also where Pillow opens them as 32
        values = np.asarray(image, dtype=np.float64)
        if values.size and not (values.min() >= 0 and values.max() <= _TOP_16):
            raise BrokenImageError("an image of 32 bits must run from 0 to 65,535")
        return Image.fromarray((values / _TOP_16 * 255).round().astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        opaque = image.convert("RGBA")
        white = Image.new("RGBA", opaque.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, opaque).convert("RGB")
    return image.convert("RGB")


def _of_array(array: NDArray[Any]) -> Any:
    from PIL import Image

    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise BrokenImageError(
            f"an image array must be (h, w), (h, w, 3) or (h, w, 4); got {array.shape}"
        )
    if array.size == 0 or array.dtype.kind not in "biuf":
        raise BrokenImageError(
            f"an image array must hold numbers; got {array.shape} of {array.dtype}"
        )
    if array.dtype.kind == "f":
        if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
            raise BrokenImageError("an image array of floats must run from 0 to 1")
        array = np.round(array * 255)
    elif array.dtype.kind == "b":
        array = array * 255
    elif array.dtype == np.uint16:
        array = np.round(array / (_TOP_16 / 255))
    elif array.min() < 0 or array.max() > 255:
        raise BrokenImageError(
            f"an image array of whole numbers must run from 0 to 255 (uint16: to 65,535); got "
            f"{array.min()} to {array.max()}"
        )
    values = array.astype(np.uint8)
    return _to_rgb(Image.fromarray(values[..., 0] if values.shape[2:] == (1,) else values))


def find_broken(cells: NDArray[Any], *, workers: int = 2) -> dict[int, str]:
    """Rows whose images cannot be read, and why; reads every one of them."""

    def why(cell: Any) -> str | None:
        try:
            open_image(cell)
        except BrokenImageError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(workers) as pool:
        return {i: reason for i, reason in enumerate(pool.map(why, cells)) if reason}


# ---- many images -------------------------------------------------------------------------------


class Images:
    """The images of many rows, read when they are taken.

    What is random in training is decided by the seed, the epoch and the row, and so neither by
    the number of workers nor by the batch a row is in.

    Parameters
    ----------
    cells : array of objects, shape (n,)
        Paths, arrays or opened images.
    settings : ImageSettings
    """

    is_slow: ClassVar[bool] = True
    lengths: ClassVar[None] = None  # all cost the same

    def __init__(self, cells: NDArray[Any], settings: ImageSettings) -> None:
        self.cells = cells
        self.settings = settings
        self._kept: dict[int, NDArray[np.uint8]] = {}
        self._room = _KEPT_BYTES // (3 * settings.resize**2)  # images

    def __len__(self) -> int:
        return len(self.cells)

    def take(self, rows: NDArray[np.int64], seed: tuple[int, ...] | None = None) -> Tensor:
        """Pixels of some rows, (rows, 3, crop, crop), of whole numbers 0..255.

        Parameters
        ----------
        rows : array of int, shape (rows,)
        seed : tuple of int, optional
            Of the crops and flips of training; without it, the middle is taken.
        """
        size = self.settings.crop
        pixels = np.empty((len(rows), size, size, 3), dtype=np.uint8)
        for i, row in enumerate(rows.tolist()):
            generator = None if seed is None else np.random.default_rng((*seed, row))
            pixels[i] = self._cropped(self._resized(row), generator)
        return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()

    def contents(self) -> Iterator[bytes]:
        """The pixels of arrays and opened images, and the paths of files."""
        for cell in self.cells:
            yield (cell.tobytes() if hasattr(cell, "tobytes") else str(cell).encode()) + b"\0"

    def _resized(self, row: int) -> NDArray[np.uint8]:
        kept = self._kept.get(row)
        if kept is not None:
            return kept
        resized = resize(open_image(self.cells[row]), self.settings)
        if len(self._kept) < self._room:
            self._kept[row] = resized
        return resized

    def _cropped(
        self, image: NDArray[np.uint8], generator: np.random.Generator | None
    ) -> NDArray[np.uint8]:
        settings, size = self.settings, self.settings.crop
        around = 0 if generator is None else settings.pad
        spare = (image.shape[0] + 2 * around - size, image.shape[1] + 2 * around - size)
        if generator is None:
            top, left = spare[0] // 2, spare[1] // 2
        else:
            top, left = (int(generator.integers(room + 1)) - around for room in spare)
        if around or min(spare) < 0:  # beyond the edge lies what is at the edge; np.pad is slower
            rows, columns = np.arange(top, top + size), np.arange(left, left + size)
            cropped = image.take(rows, 0, mode="clip").take(columns, 1, mode="clip")
        else:
            cropped = image[top : top + size, left : left + size]
        if generator is not None and settings.flip and generator.random() < 0.5:
            cropped = cropped[:, ::-1]
        return cropped


def resize(image: Any, settings: ImageSettings) -> NDArray[np.uint8]:
    """An RGB image as an array (h, w, 3), resized but not cropped."""
    from PIL import Image

    if settings.centre is not None:
        image = _middle(image, settings.centre)
    width = height = settings.resize
    if settings.keep_shape:
        scale = settings.resize / min(image.size)
        # a very long image would be blown up by this; what is cropped away need not exist
        longest = 4 * settings.resize
        width, height = (min(longest, max(settings.resize, round(s * scale))) for s in image.size)
    if image.size != (width, height):
        method = getattr(Image.Resampling, settings.interpolation.upper())
        image = image.resize((width, height), method, reducing_gap=3.0)
    return np.asarray(image, dtype=np.uint8)


def _middle(image: Any, size: int) -> Any:
    """The middle of an image, `size` pixels a side, black where the image has none.

    What is odd is rounded as torchvision does.
    """
    left, top = (
        round((side - size) / 2) if side >= size else -((size - side) // 2) for side in image.size
    )
    return image.crop((left, top, left + size, top + size))


# ---- the kind ------------------------------------------------------------------------------------


class ImageKind(CellKind):
    """Images: every cell is a path, an array or an opened image."""

    name = "image"
    reading_options = ("on_broken", "workers")

    def read(self, column: "pd.Series[Any]") -> NDArray[Any]:
        """The cells of a column, (n,), none of them missing."""
        cells = np.empty(len(column), dtype=object)
        for i, value in enumerate(column):
            if value is None or (isinstance(value, float) and value != value) or value is pd.NA:
                raise ValueError(
                    f"column {column.name!r} names no image in row {i + 1} of {len(column)}; give "
                    f"a path in every row, or remove those that have none"
                )
            cells[i] = value
        return cells

    def find_broken(self, cells: NDArray[Any]) -> dict[int, str]:
        """Rows whose images cannot be read, and why."""
        return find_broken(cells)

    def received(self, cell: Any) -> Any:
        """The bytes of an image file, which came as they are or in base64; never a path."""
        if isinstance(cell, str):
            try:
                cell = base64.b64decode(cell, validate=True)
            except ValueError:
                cell = None
        if not isinstance(cell, bytes) or not cell:
            raise ValueError("an image must be the bytes of its file, in JSON and CSV as base64")
        return cell

    def learn(
        self, cells: NDArray[Any], way: str, source: str, options: Mapping[str, Any]
    ) -> Encoding:
        """How images become pixels; the option `preprocessing` is another way."""
        options = dict(options)
        way = options.pop("preprocessing", way)
        if way not in _PREPROCESSING:
            listed = ", ".join(_PREPROCESSING)
            raise ValueError(f"preprocessing must be one of {listed}; got {way!r}")
        if way == "own":
            return small_images(cells, **options)
        if way == "timm":
            return timm_images(source, **options)
        return paper_images(**options) if way == "paper" else paper_faces(**options)

    def rebuild(self, described: Mapping[str, Any]) -> Encoding:
        """Settings from what they described."""
        return rebuild_images(described)


IMAGE = ImageKind()
