"""Faces are aligned by their eyes: drawn ones, whose eyes lie at known places."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from echelon.data.faces import (
    FaceTarget,
    _dlib_models,
    align,
    align_image,
    alignment_of,
    eye_points,
    face_target,
    find_landmarks,
)

TARGET = FaceTarget(60.0, (100.0, 110.0))


def drawn(
    left: tuple[int, int], right: tuple[int, int], size: tuple[int, int] = (200, 240)
) -> tuple[np.ndarray, np.ndarray]:
    """A grey image with two bright eyes, and its landmarks: each eye's six in its middle."""
    image = Image.new("RGB", size, (60, 60, 60))
    draw = ImageDraw.Draw(image)
    for x, y in (left, right):
        draw.ellipse((x - 4, y - 4, x + 4, y + 4), fill=(255, 255, 255))
    landmarks = np.zeros((68, 2), dtype=np.int64)
    landmarks[36:42], landmarks[42:48] = left, right
    landmarks[33] = ((left[0] + right[0]) // 2, left[1] + 40)
    return np.asarray(image), landmarks


def bright_places(pixels: np.ndarray) -> list[tuple[float, float]]:
    """The middles of the left and of the right eye."""
    y, x = np.nonzero(pixels[..., 0] > 200)
    middle = (x.min() + x.max()) / 2
    return [(x[side].mean(), y[side].mean()) for side in (x < middle, x > middle)]


@pytest.mark.parametrize(
    ("left", "right", "size"),
    [
        ((70, 110), (130, 110), (200, 240)),  # there already
        ((40, 60), (80, 60), (200, 240)),
        ((150, 300), (270, 300), (400, 480)),
        ((90, 100), (123, 100), (200, 240)),
        ((100, 90), (148, 90), (333, 200)),  # another shape
    ],
)
def test_eyes_land_within_a_pixel_of_the_target(left, right, size) -> None:
    image, landmarks = drawn(left, right, size)
    aligned = align_image(image, landmarks, TARGET)
    assert aligned.shape == (240, 200, 3)
    for (x, y), (wanted_x, wanted_y) in zip(
        bright_places(aligned), [(70, 110), (130, 110)], strict=True
    ):
        assert abs(x - wanted_x) <= 1
        assert abs(y - wanted_y) <= 1


def test_scale_and_shift_are_exact_and_nothing_is_rotated() -> None:
    image, landmarks = drawn((40, 60), (80, 60))
    assert alignment_of(landmarks, TARGET) == (1.5, (10, 20))  # x becomes 1.5 x + 10
    tilted = landmarks.copy()
    tilted[42:48] = (76, 87)  # 36 to the right and 27 down: a distance of 45
    scale, shift = alignment_of(tilted, TARGET)
    assert scale == pytest.approx(60 / 45)
    assert shift == (int(100 - scale * 58), int(110 - scale * 73.5))
    still = align_image(image, landmarks, FaceTarget(40.0, (60.0, 60.0)))
    np.testing.assert_array_equal(still, image)  # a scale of 1 and no shift: the same pixels
    moved = align_image(image, landmarks, FaceTarget(40.0, (67.0, 55.0)))
    np.testing.assert_array_equal(moved[:-5, 7:], image[5:, :-7])
    assert moved[:, :7].max() == 0  # black where there is no image
    assert moved[-5:].max() == 0


def test_doubling_is_what_bilinear_interpolation_says() -> None:
    generator = np.random.default_rng(0)
    image = generator.integers(256, size=(240, 200, 3), dtype=np.uint8)
    _, landmarks = drawn((40, 50), (70, 50))
    doubled = align_image(image, landmarks, FaceTarget(60.0, (110.0, 100.0)))
    np.testing.assert_array_equal(doubled[0:200:2, 0:200:2], image[:100, :100])
    between = (image[:99, :99].astype(float) + image[:99, 1:100]) / 2
    assert np.abs(doubled[0:198:2, 1:199:2] - between).max() <= 1


def test_the_target_is_the_mean_of_the_shapes() -> None:
    shapes = [drawn((60, 100), (140, 100))[1], drawn((80, 120), (120, 120))[1]]
    target = face_target(shapes)
    assert (target.distance, target.midpoint) == (60.0, (100.0, 110.0))
    by_nose = face_target(shapes, centre="nose")  # the tip, at (100, 150), goes to (100, 120)
    assert (by_nose.distance, by_nose.midpoint) == (60.0, (100.0, 80.0))
    left, right = eye_points(shapes[0])
    assert (left.tolist(), right.tolist()) == ([60, 100], [140, 100])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: face_target([]), "aspect ratio 200:240, and there is none; give the width"),
        (lambda: face_target([np.zeros((5, 2))]), r"must be 68 points.* got .*\(5, 2\)"),
        (lambda: face_target([np.full((68, 2), np.nan)]), "must be finite"),
        (lambda: face_target([np.zeros((68, 2))], centre="mouth"), "centre must be eyes or nose"),
        (lambda: alignment_of(np.zeros((68, 2)), TARGET), "eyes of a face must lie apart"),
    ],
)
def test_what_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# ---- folders -------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> tuple[Path, dict]:
    landmarks = {}
    (tmp_path / "in" / "more").mkdir(parents=True)
    for number in range(4):
        name = f"more/{number}.png" if number % 2 else f"{number}.png"
        image, points = drawn((50 + number, 100), (110 + 3 * number, 100))
        Image.fromarray(image).save(tmp_path / "in" / name)
        landmarks[name] = points
    Image.new("RGB", (200, 240)).save(tmp_path / "in" / "empty.png")
    landmarks["empty.png"] = None
    return tmp_path / "in", landmarks


def test_a_folder_is_aligned_to_its_mean_and_faceless_images_are_listed(folder, tmp_path) -> None:
    place, landmarks = folder
    seen = []
    result = align(place, tmp_path / "out", landmarks=landmarks, on_image=seen.append)
    assert result.aligned == ["0.png", "2.png", "more/1.png", "more/3.png"]
    assert result.left_out == {"empty.png": "no face"}
    assert seen == ["0.png", "2.png", "empty.png", "more/1.png", "more/3.png"]
    assert (tmp_path / "out" / "left_out.csv").read_text() == 'file,reason\n"empty.png","no face"\n'
    assert not (tmp_path / "out" / "empty.png").exists()
    (x, y) = result.target.midpoint
    for name in result.aligned:
        (left, height), (right, _) = bright_places(np.asarray(Image.open(tmp_path / "out" / name)))
        assert abs((left + right) / 2 - x) <= 1
        assert abs(height - y) <= 1
        assert abs(right - left - result.target.distance) <= 1


def test_it_goes_on_where_it_was_ended(folder, tmp_path: Path, monkeypatch) -> None:
    place, landmarks = folder

    def end(name: str) -> None:
        if name == "2.png":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        align(place, tmp_path / "out", landmarks=landmarks, on_image=end)
    first = (tmp_path / "out" / "0.png").stat().st_mtime_ns
    align(place, tmp_path / "out", landmarks=landmarks)
    assert (tmp_path / "out" / "0.png").stat().st_mtime_ns == first  # kept
    assert len(list((tmp_path / "out").rglob("*.png"))) == 4
    landmarks["0.png"] = landmarks["0.png"] + 10  # another mean: all are made anew
    align(place, tmp_path / "out", landmarks=landmarks)
    assert (tmp_path / "out" / "0.png").stat().st_mtime_ns != first


def test_folders_that_are_refused(folder, tmp_path: Path) -> None:
    place, landmarks = folder
    with pytest.raises(ValueError, match="a predictor, a file of dlib's, or the landmarks"):
        align(place, tmp_path / "out")
    with pytest.raises(ValueError, match="must not lie in"):
        align(place, place / "out", landmarks=landmarks)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "0.png").write_bytes(b"mine")
    with pytest.raises(ValueError, match="not aligned: name another"):
        align(place, tmp_path / "other", landmarks=landmarks)
    assert (tmp_path / "other" / "0.png").read_bytes() == b"mine"
    with pytest.raises(ValueError, match=r"for every image, None for no face; 0\.png has none"):
        align(place, tmp_path / "out", landmarks={})
    (tmp_path / "nothing").mkdir()
    with pytest.raises(ValueError, match="holds no images"):
        align(tmp_path / "nothing", tmp_path / "out", landmarks={})


def test_dlib_is_asked_with_the_users_predictor(folder, tmp_path: Path) -> None:
    """What is no predictor is named before anything is written."""
    pytest.importorskip("dlib")
    place, _ = folder
    (tmp_path / "wrong.dat").write_bytes(b"no model")
    with pytest.raises(ValueError, match="is no shape predictor of dlib"):
        find_landmarks(place / "0.png", tmp_path / "wrong.dat")
    with pytest.raises(ValueError, match="there is no file"):
        align(place, tmp_path / "out", predictor=tmp_path / "none.dat")


def test_dlibs_own_path(folder, tmp_path: Path, monkeypatch) -> None:
    """A predictor that is trained here on drawn faces; its detector knows real ones only."""
    dlib = pytest.importorskip("dlib")
    place, landmarks = folder
    options = dlib.shape_predictor_training_options()
    options.num_trees_per_cascade_level, options.cascade_depth, options.tree_depth = 5, 3, 2
    options.num_threads, options.be_verbose, options.oversampling_amount = 1, False, 5
    box = dlib.rectangle(20, 60, 180, 200)
    images, faces = [], []
    for name, points in landmarks.items():
        if points is not None:
            images.append(np.asarray(Image.open(place / name)))
            parts = dlib.points([dlib.point(int(x), int(y)) for x, y in points])
            faces.append([dlib.full_object_detection(box, parts)])
    dlib.train_shape_predictor(images, faces, options).save(str(tmp_path / "own.dat"))
    seen = []
    with pytest.raises(ValueError, match="and there is none"):  # no real face among them
        align(place, tmp_path / "out", predictor=tmp_path / "own.dat", on_image=seen.append)
    assert len(seen) == 5
    _dlib_models.cache_clear()
    monkeypatch.setattr(dlib, "get_frontal_face_detector", lambda: lambda pixels, times: [box])
    points = find_landmarks(place / "0.png", tmp_path / "own.dat")
    assert points.shape == (68, 2)
    assert points.dtype == np.int64
    assert np.abs(points - landmarks["0.png"]).max() < 12
    out = tmp_path / "again"
    result = align(place, out, predictor=tmp_path / "own.dat")
    assert len(result.aligned) == 5  # the empty one, too, as every image has this box
    monkeypatch.setattr(dlib, "get_frontal_face_detector", None)
    _dlib_models.cache_clear()
    assert align(place, out, predictor=tmp_path / "own.dat") == result  # nothing is looked at again
    _dlib_models.cache_clear()
