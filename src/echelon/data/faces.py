"""Faces that are moved and scaled so that their eyes lie at the same places.

The rule is that of the CORN paper's data (the preprocessing of CORAL): the 68 landmarks of a face,
as whole numbers; an eye is the mean of its six. The target is the mean shape of all images, as if
each had the target's size (those with another aspect ratio are left out of the mean). An image is
scaled by the ratio of eye distances, moved by whole pixels so that the midpoints of the eyes
agree, and not rotated; what lies outside it is black.

Landmarks come from dlib (extra `faces`) with a predictor file that the user gives, or as arrays.
No file is ever fetched.
"""

import hashlib
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from echelon.data.files import IMAGE_SUFFIXES
from echelon.data.kinds.image import BrokenImageError, open_image
from echelon.extras import require
from echelon.storage.atomic import sweep, write_bytes, write_text

SIZE = (200, 240)  # width and height of an aligned face
NUM_LANDMARKS = 68
_LEFT_EYE, _RIGHT_EYE, _NOSE = slice(36, 42), slice(42, 48), 33
_FORMAT = 1
_KEPT = "landmarks.json"
_LEFT_OUT = "left_out.csv"
_TARGET = "target.json"
_SAVE_EVERY = 200  # images
_NO_FACE = "no face"
_JPEG = {".jpg", ".jpeg"}

Centre = Literal["eyes", "nose"]
Points = NDArray[np.int64]  # (68, 2), x and y
Report = Callable[[str], None]


@dataclass(frozen=True)
class FaceTarget:
    """Where the eyes of every aligned face lie.

    Parameters
    ----------
    distance : float
        Pixels between the eyes.
    midpoint : tuple of 2 floats
        x and y of the point between them.
    size : tuple of 2 ints
        Width and height of the aligned image.
    """

    distance: float
    midpoint: tuple[float, float]
    size: tuple[int, int] = SIZE


@dataclass(frozen=True)
class Alignment:
    """What became of a folder of faces.

    Parameters
    ----------
    target : FaceTarget
    aligned : list of str
        The images that were written, by their paths inside the folder.
    left_out : dict from str to str
        The others, and why.
    """

    target: FaceTarget
    aligned: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def eye_points(landmarks: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The middle of the left and of the right eye, (2,) each, of landmarks (68, 2)."""
    points = _checked(landmarks)
    return points[_LEFT_EYE].mean(0), points[_RIGHT_EYE].mean(0)


def face_target(
    shapes: Sequence[Any], *, centre: Centre = "eyes", size: tuple[int, int] = SIZE
) -> FaceTarget:
    """The target of landmarks (68, 2) that all belong to images of the target's size.

    Parameters
    ----------
    shapes : sequence of arrays, each of shape (68, 2)
    centre : {"eyes", "nose"}
        Where the mean shape stays: as it is, or moved so that the tip of its nose lies in the
        middle. The published script computes the second and uses the first.
    size : tuple of 2 ints
        Width and height.

    Examples
    --------
    >>> points = np.zeros((68, 2))
    >>> points[36:42], points[42:48] = (70, 100), (130, 100)
    >>> face_target([points])
    FaceTarget(distance=60.0, midpoint=(100.0, 100.0), size=(200, 240))
    """
    if centre not in ("eyes", "nose"):
        raise ValueError(f"centre must be eyes or nose; got {centre!r}")
    if not shapes:
        raise ValueError(
            f"the target is the mean of faces on images of the aspect ratio {size[0]}:{size[1]}, "
            f"and there is none; give the width and height of your images as the size"
        )
    mean = np.mean([_checked(shape) for shape in shapes], 0)
    if centre == "nose":
        mean = mean + (np.array(size) / 2 - mean[_NOSE])
    left, right = mean[_LEFT_EYE].mean(0), mean[_RIGHT_EYE].mean(0)
    middle = (left + right) / 2
    return FaceTarget(
        float(np.linalg.norm(left - right)), (float(middle[0]), float(middle[1])), size
    )


def alignment_of(landmarks: Any, target: FaceTarget) -> tuple[float, tuple[int, int]]:
    """The scale s and the shift t by which a face is moved: x becomes s x + t."""
    left, right = eye_points(landmarks)
    distance = float(np.linalg.norm(left - right))
    if not distance > 0:
        raise ValueError("the eyes of a face must lie apart; these landmarks have one place")
    scale = target.distance / distance
    middle = (left + right) / 2
    right_by, down_by = (
        int(wanted - scale * here)
        for wanted, here in zip(target.midpoint, middle.tolist(), strict=True)
    )
    return scale, (right_by, down_by)


def align_image(image: Any, landmarks: Any, target: FaceTarget) -> NDArray[np.uint8]:
    """An aligned face, (height, width, 3), of an image and its landmarks (68, 2).

    Parameters
    ----------
    image : path, PIL image, or array
    landmarks : array, shape (68, 2)
        x and y of each point, in pixels of the image.
    target : FaceTarget
    """
    from PIL import Image

    scale, (right, down) = alignment_of(landmarks, target)
    # Pillow asks where the middle of a pixel comes from, and counts from its corner.
    places = [0.5 - (shift + 0.5) / scale for shift in (right, down)]
    matrix = (1 / scale, 0, places[0], 0, 1 / scale, places[1])
    moved = open_image(image).transform(
        target.size, Image.Transform.AFFINE, matrix, resample=Image.Resampling.BILINEAR
    )
    return np.asarray(moved, dtype=np.uint8)


def find_landmarks(image: Any, predictor: str | Path) -> Points | None:
    """The landmarks (68, 2) of the first face that dlib detects; None where there is none.

    Parameters
    ----------
    image : path, PIL image, or array
    predictor : path
        dlib's file of the 68-point shape predictor.
    """
    pixels = np.asarray(open_image(image), dtype=np.uint8)
    detector, shapes = _dlib_models(str(predictor))
    faces = detector(pixels, 1)  # the image is doubled once
    if not len(faces):
        return None
    shape = shapes(pixels, faces[0])
    if shape.num_parts != NUM_LANDMARKS:
        raise ValueError(
            f"the predictor must have {NUM_LANDMARKS} points; {predictor} has {shape.num_parts}"
        )
    return np.array([(point.x, point.y) for point in shape.parts()], dtype=np.int64)


@lru_cache(maxsize=1)
def _dlib_models(predictor: str) -> tuple[Any, Any]:
    dlib = require("dlib", "faces")
    if not Path(predictor).is_file():
        raise ValueError(f"there is no file {predictor} of dlib's shape predictor")
    try:
        shapes = dlib.shape_predictor(predictor)  # which may fail, and soon
        return dlib.get_frontal_face_detector(), shapes
    except RuntimeError as error:
        raise ValueError(f"{predictor} is no shape predictor of dlib: {error}") from None


# ---- a folder of faces ---------------------------------------------------------------------------


def align(
    folder: str | Path,
    out: str | Path,
    *,
    predictor: str | Path | None = None,
    landmarks: Mapping[str, Any] | None = None,
    centre: Centre = "eyes",
    size: tuple[int, int] = SIZE,
    workers: int = 1,
    on_image: Report | None = None,
) -> Alignment:
    """Align all faces in a folder and write them, under the same names, into another.

    It goes on where it was ended: landmarks that were found and images that were written are kept.
    Images without a face, and those that cannot be read, are left out and listed in
    `left_out.csv`.

    Parameters
    ----------
    folder, out : path
    predictor : path, optional
        dlib's 68-point shape predictor.
    landmarks : mapping from str to array of shape (68, 2), or None
        Instead of a predictor: of each image by its path inside the folder; None is no face.
    centre : {"eyes", "nose"}
        As for :func:`face_target`.
    size : tuple of 2 ints
        Width and height of what is written.
    workers : int
        Processes that look for landmarks.
    on_image : callable, optional
        Called with the name of each image that was looked at, where a predictor is given, and of
        each that was written or left out.
    """
    folder, out = Path(folder), Path(out)
    on_image = on_image or (lambda name: None)
    if (predictor is None) == (landmarks is None):
        raise ValueError("give a predictor, a file of dlib's, or the landmarks, and not both")
    if out.resolve() == folder.resolve() or folder.resolve() in out.resolve().parents:
        raise ValueError(f"{out} must not lie in {folder}, whose images are read: name another")
    names = image_names(folder)
    _refuse_foreign(out, names)
    out.mkdir(parents=True, exist_ok=True)
    sweep(out)
    if landmarks is not None:
        points = {name: _given(landmarks, name, folder) for name in names}
    else:
        assert predictor is not None
        points = _looked_for(folder, out, names, Path(predictor), workers, on_image)
    shapes = []
    for each in points.values():
        if each.points is not None and each.size[0] * size[1] == each.size[1] * size[0]:
            shapes.append(each.points * (np.array(size) / each.size))
    target = face_target(shapes, centre=centre, size=size)
    if _read_target(out) != target:  # what is there was aligned to other eyes, or not at all
        for name in names:
            (out / name).unlink(missing_ok=True)
        _write_target(out, target)
    result = Alignment(target)
    for name in names:
        shape = points[name].points
        if shape is None:
            result.left_out[name] = points[name].reason
            (out / name).unlink(missing_ok=True)
        else:
            if not (out / name).is_file():
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                pixels = align_image(folder / name, shape, target)
                write_bytes(out / name, _encoded(pixels, out / name))
            result.aligned.append(name)
        on_image(name)
    lines = ["file,reason", *(f'"{name}","{why}"' for name, why in result.left_out.items())]
    write_text(out / _LEFT_OUT, "\n".join(lines) + "\n")
    return result


def image_names(folder: Path) -> list[str]:
    """The images in a folder and in those inside it, by their paths inside it."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder of images {folder}")
    names = sorted(
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.suffix.lower() in IMAGE_SUFFIXES and not file.name.startswith(".")
    )
    if not names:
        raise ValueError(
            f"the folder {folder} holds no images; their names must end in one of "
            f"{', '.join(IMAGE_SUFFIXES)}"
        )
    return names


@dataclass(frozen=True)
class _Looked:
    """What was found on an image: landmarks, or why there are none."""

    size: tuple[int, int]
    points: Points | None
    reason: str = _NO_FACE

    def document(self) -> dict[str, Any]:
        points = None if self.points is None else self.points.tolist()
        return {"size": list(self.size), "points": points, "reason": self.reason}

    @classmethod
    def of(cls, document: Any) -> "_Looked":
        points = document["points"]
        width, height = document["size"]
        checked = None if points is None else _checked(points)
        return cls((int(width), int(height)), checked, str(document["reason"]))


def _given(landmarks: Mapping[str, Any], name: str, folder: Path) -> _Looked:
    if name not in landmarks:
        raise ValueError(
            f"landmarks must be given for every image, None for no face; {name} has none"
        )
    size = open_image(folder / name).size
    given = landmarks[name]
    return _Looked(size, None if given is None else _checked(given))


def _looked_for(
    folder: Path, out: Path, names: list[str], predictor: Path, workers: int, on_image: Report
) -> dict[str, _Looked]:
    """The landmarks of all images, those of an earlier turn with the same predictor among them."""
    require("dlib", "faces")
    if not predictor.is_file():
        raise ValueError(f"there is no file {predictor} of dlib's shape predictor")
    mark = hashlib.sha256(predictor.read_bytes()).hexdigest()
    kept = _read_kept(out / _KEPT, mark)
    stamps = {name: _stamp(folder / name) for name in names}
    points = {name: kept[name][1] for name in names if kept.get(name, ("",))[0] == stamps[name]}
    waiting = [name for name in names if name not in points]
    for name in points:
        on_image(name)
    for number, (name, looked) in enumerate(_in_processes(folder, waiting, predictor, workers), 1):
        points[name] = looked
        on_image(name)
        if number % _SAVE_EVERY == 0 or number == len(waiting):
            documents = {
                name: {"stamp": stamps[name], **each.document()} for name, each in points.items()
            }
            document = {"format": _FORMAT, "predictor": mark, "images": documents}
            write_text(out / _KEPT, json.dumps(document))
    return points


def _in_processes(
    folder: Path, names: list[str], predictor: Path, workers: int
) -> Iterator[tuple[str, _Looked]]:
    if workers <= 1 or len(names) < 2:
        yield from (_look(folder, name, predictor) for name in names)
        return
    from joblib import Parallel, delayed

    calls = (delayed(_look)(folder, name, predictor) for name in names)
    yield from Parallel(n_jobs=workers, return_as="generator_unordered")(calls)


def _look(folder: Path, name: str, predictor: Path) -> tuple[str, _Looked]:
    try:
        image = open_image(folder / name)
    except BrokenImageError as error:
        return name, _Looked((0, 0), None, str(error))
    return name, _Looked(image.size, find_landmarks(image, predictor))


def _stamp(path: Path) -> str:
    """What changes when a file does."""
    status = path.stat()
    return f"{status.st_size}-{status.st_mtime_ns}"


def _read_kept(path: Path, mark: str) -> dict[str, tuple[str, _Looked]]:
    """What an earlier turn found; nothing where the file is another's, or damaged."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != _FORMAT or document["predictor"] != mark:
            return {}
        return {
            name: (str(each["stamp"]), _Looked.of(each))
            for name, each in document["images"].items()
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _refuse_foreign(out: Path, names: list[str]) -> None:
    """Raise where a folder holds images that were not written here: they would be replaced."""
    is_ours = (out / _TARGET).exists() or (out / _KEPT).exists()
    if not is_ours and any((out / name).exists() for name in names):
        raise ValueError(f"{out} holds images of these names that are not aligned: name another")


def _write_target(out: Path, target: FaceTarget) -> None:
    document = {
        "format": _FORMAT, "distance": target.distance, "midpoint": target.midpoint,
        "size": target.size,
    }  # fmt: skip
    write_text(out / _TARGET, json.dumps(document) + "\n")


def _read_target(out: Path) -> FaceTarget | None:
    """The target that the images of a folder were aligned to; None where that is not known."""
    try:
        document = json.loads((out / _TARGET).read_text(encoding="utf-8"))
        (x, y), (width, height) = document["midpoint"], document["size"]
        return FaceTarget(float(document["distance"]), (x, y), (width, height))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _encoded(pixels: NDArray[np.uint8], place: Path) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    image = Image.fromarray(pixels)
    if place.suffix.lower() in _JPEG:
        image.save(stream, "JPEG", quality=95)
    else:
        image.save(stream, Image.registered_extensions()[place.suffix.lower()])
    return stream.getvalue()


def _checked(landmarks: Any) -> Points:
    points = np.asarray(landmarks)
    if points.shape != (NUM_LANDMARKS, 2) or points.dtype.kind not in "iuf":
        raise ValueError(
            f"landmarks must be {NUM_LANDMARKS} points, x and y of each; got an array of shape "
            f"{points.shape}"
        )
    if not all(map(math.isfinite, points.ravel().tolist())):
        raise ValueError("landmarks must be finite numbers")
    return points.astype(np.int64)  # cut, as in the published script
