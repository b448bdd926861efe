"""Images as people have them: every kind is read by a rule, and broken ones are named."""

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from echelon.data.inputs import Inputs, prefetched
from echelon.data.kinds import image as image_kind
from echelon.data.kinds.image import (
    FORMATS,
    BrokenImageError,
    Images,
    ImageSettings,
    find_broken,
    open_image,
    paper_faces,
    paper_images,
    rebuild_images,
    small_images,
    timm_images,
)
from echelon.networks.image import Pixels

RED = (200, 30, 10)


def save(path: Path, image: Image.Image, **options) -> str:
    image.save(path, **options)
    return str(path)


def cells(*values) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@pytest.mark.parametrize(
    ("mode", "colour", "expected", "suffix"),
    [
        ("RGB", RED, RED, "png"),
        ("L", 90, (90, 90, 90), "png"),
        ("1", 1, (255, 255, 255), "png"),
        ("LA", (90, 0), (255, 255, 255), "png"),
        ("RGBA", (*RED, 255), RED, "png"),
        ("RGBA", (*RED, 0), (255, 255, 255), "png"),  # transparency lies on white
        ("I;16", 128 * 257, (128, 128, 128), "png"),
        ("CMYK", (0, 255, 255, 0), (254, 0, 0), "jpg"),
    ],
)
def test_every_kind_becomes_rgb(tmp_path: Path, mode, colour, expected, suffix: str) -> None:
    path = save(tmp_path / f"a.{suffix}", Image.new(mode, (12, 8), colour))
    found = open_image(path)
    assert (found.mode, found.size) == ("RGB", (12, 8))
    assert np.abs(np.subtract(found.getpixel((5, 4)), expected)).max() <= 3


def test_of_an_animation_the_first_frame_counts(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), colour).quantize() for colour in (RED, "blue")]
    path = save(tmp_path / "a.gif", frames[0], save_all=True, append_images=frames[1:])
    assert np.abs(np.subtract(open_image(path).getpixel((4, 4)), RED)).max() <= 3


def test_exif_orientation_is_followed(tmp_path: Path) -> None:
    image = Image.new("RGB", (30, 20), "white")
    image.paste(RED, (0, 0, 15, 20))  # the left half
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise
    path = save(tmp_path / "a.jpg", image, exif=exif, quality=100)
    found = open_image(path)
    assert found.size == (20, 30)
    assert found.getpixel((10, 5))[0] > found.getpixel((10, 5))[2] + 50  # red is at the top now
    assert min(found.getpixel((10, 25))) > 240


def broken_files(folder: Path) -> dict[str, str]:
    """A file of each kind that cannot be read, and what the error says of it."""
    whole = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(whole, "PNG")
    (folder / "cut.png").write_bytes(whole.getvalue()[:300])
    (folder / "text.jpg").write_text("no image")
    (folder / "empty.png").write_bytes(b"")
    Image.new("1", (10_000, 8_500)).save(folder / "huge.png")
    return {
        "cut.png": "cut.png cannot be read",
        "text.jpg": "text.jpg cannot be read",
        "empty.png": "empty.png cannot be read",
        "huge.png": r"huge.png has 10000 x 8500 pixels, more than 80,000,000",
        "missing.png": "there is no image .*missing.png",
    }


def test_broken_images_are_named(tmp_path: Path) -> None:
    for name, message in broken_files(tmp_path).items():
        with pytest.raises(BrokenImageError, match=message):
            open_image(str(tmp_path / name))
    good = save(tmp_path / "good.png", Image.new("L", (5, 5)))
    found = find_broken(cells(good, str(tmp_path / "missing.png"), good))
    assert list(found) == [1]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 2, 2), np.uint8), r"must be \(h, w\)"),
        (np.zeros(4, np.uint8), r"must be \(h, w\)"),
        (np.full((4, 4), 2.0), "must run from 0 to 1"),
        (np.full((4, 4), np.nan), "must run from 0 to 1"),
    ],
)
def test_arrays_that_are_refused(array, message: str) -> None:
    with pytest.raises(BrokenImageError, match=message):
        open_image(array)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.full((4, 4), 0.5), 128),
        (np.full((4, 4, 1), 7, np.uint8), 7),
        (np.full((4, 4, 3), 9, np.int64), 9),
        (np.ones((4, 4), bool), 255),
    ],
)
def test_arrays(array, expected: int) -> None:
    assert open_image(array).getpixel((0, 0)) == (expected,) * 3


def gradient(width: int = 20, height: int = 20) -> np.ndarray:
    return np.add.outer(np.arange(height) * 5, np.arange(width) * 5).astype(np.uint8)


def test_the_middle_without_a_seed_and_a_random_place_with_one() -> None:
    images = Images(cells(gradient()), ImageSettings(20, 16, flip=True))
    middle = images.take(np.array([0]))
    assert middle.shape == (1, 3, 16, 16)
    assert middle.dtype == torch.uint8
    assert middle[0, 0, 0, 0] == 20  # two pixels down and two to the right
    found = [images.take(np.array([0]), (seed, 0)) for seed in range(30)]
    corners = {int(one[0, 0, 0, 0]) for one in found}
    assert len(corners) > 5
    mirrored = [bool(one[0, 0, 0, 0] > one[0, 0, 0, 1]) for one in found]
    assert 5 < sum(mirrored) < 25
    padded = Images(cells(gradient()), ImageSettings(20, 20, pad=2))
    assert any(not torch.equal(padded.take(np.array([0]), (s, 0)), padded.take(np.array([0])))
               for s in range(3))  # fmt: skip


@pytest.mark.parametrize(("crop", "pad"), [(20, 2), (24, 2), (6, 9), (22, 3)])
def test_training_repeats_the_edge_around_an_image(crop: int, pad: int) -> None:
    image = np.random.default_rng(0).integers(256, size=(20, 20, 3), dtype=np.uint8)
    images = Images(cells(image), ImageSettings(20, crop, pad=pad))
    around = np.pad(image, ((pad, pad), (pad, pad), (0, 0)), mode="edge")
    for seed in range(20):
        generator = np.random.default_rng((seed, 0, 0))
        room = 20 + 2 * pad - crop + 1
        top, left = int(generator.integers(room)), int(generator.integers(room))
        expected = around[top : top + crop, left : left + crop]
        taken = images.take(np.array([0]), (seed, 0))[0].permute(1, 2, 0).numpy()
        np.testing.assert_array_equal(taken, expected)
    middle = pad + (20 - crop) // 2
    expected = around[middle : middle + crop, middle : middle + crop]
    np.testing.assert_array_equal(images.take(np.array([0]))[0].permute(1, 2, 0), expected)


def test_the_seed_the_epoch_and_the_row_decide() -> None:
    images = Images(cells(*[gradient()] * 8), ImageSettings(20, 10, flip=True))
    whole = images.take(np.arange(8), (3, 1))
    alone = torch.cat([images.take(np.array([row]), (3, 1)) for row in range(8)])
    assert torch.equal(whole, alone)  # whatever batch a row is in
    assert not torch.equal(whole, images.take(np.arange(8), (3, 2)))
    assert not torch.equal(whole, images.take(np.arange(8), (4, 1)))
    inputs = Inputs({"image": images})
    parts = [np.arange(0, 4), np.arange(4, 8)]
    for workers in (0, 1, 3):
        made = prefetched(lambda rows: inputs.take(rows, (3, 1))["image"], parts, workers)
        assert torch.equal(torch.cat(list(made)), whole)


def test_images_are_decoded_once_where_they_fit(monkeypatch) -> None:
    opened: list[int] = []
    monkeypatch.setattr(
        image_kind, "open_image", lambda cell: (opened.append(1), open_image(cell))[1]
    )
    whole = Images(cells(*[gradient()] * 4), ImageSettings(20, 10))
    for epoch in range(3):
        whole.take(np.arange(4), (0, epoch))
    assert len(opened) == 4
    opened.clear()
    monkeypatch.setattr(image_kind, "_KEPT_BYTES", 3 * 20 * 20 * 3)  # of three images
    most = Images(cells(*[gradient()] * 4), ImageSettings(20, 10))
    for epoch in range(3):
        most.take(np.arange(4), (0, epoch))
    assert len(opened) == 4 + 1 + 1


def test_shapes_that_are_kept_and_those_that_are_not() -> None:
    wide = cells(gradient(60, 20))
    assert Images(wide, ImageSettings(10, 8)).take(np.array([0])).shape == (1, 3, 8, 8)
    kept = Images(wide, ImageSettings(10, 8, keep_shape=True))
    assert kept._resized(0).shape == (10, 30, 3)
    endless = cells(np.zeros((2, 4000), np.uint8))
    assert Images(endless, ImageSettings(10, 8, keep_shape=True))._resized(0).shape[1] == 40


def test_named_preprocessing() -> None:
    paper = paper_images()
    assert (paper.resize, paper.crop, paper.flip, paper.keep_shape) == (256, 224, True, False)
    timm = timm_images("resnet34.a1_in1k")
    assert (timm.crop, timm.resize, timm.interpolation) == (224, 235, "bicubic")
    assert timm_images("resnet34", size=32).crop == 32
    small = small_images(cells(gradient(12, 10)))
    assert (small.resize, small.crop, small.flip) == (12, 12, False)
    assert small_images(cells(gradient(300, 300))).crop == 64
    assert rebuild_images(paper.describe()) == paper


def test_faces_of_the_paper_are_cut_from_the_middle_and_neither_mirrored_nor_scaled() -> None:
    faces = paper_faces()
    wide = np.zeros((240, 200, 3), np.uint8)
    wide[50:190, 30:170] = 255  # the middle 140 of an aligned face
    pixels = Images(cells(wide), faces).take(np.array([0]))
    assert pixels.shape == (1, 3, 120, 120)
    assert pixels.min() == 255
    small = np.full((100, 101, 3), 255, np.uint8)  # smaller than 140: black around it
    resized = Images(cells(small), ImageSettings(140, 140, centre=140))._resized(0)
    assert resized[:20].max() == 0
    assert resized[20:120, 19:120].min() == 255
    assert resized[:, 120:].max() == 0
    half = wide.copy()
    half[:, :100] = 0  # bright on the right alone: a mirrored one would be bright on the left
    for seed in range(20):
        assert Images(cells(half), faces).take(np.array([0]), (seed, 0))[..., :40].max() == 0
    assert rebuild_images(faces.describe()) == faces
    scaled = Pixels(faces.mean, faces.std)(pixels)
    assert (float(scaled.min()), float(scaled.max())) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"crop": 300}, "crop must lie between 1 and"),
        ({"centre": 0}, "centre must be a whole number from 1"),
        ({"interpolation": "best"}, "interpolation must be one of"),
        ({"colour": 1}, "images do not take these options"),
    ],
)
def test_settings_that_are_refused(options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paper_images(**options)


def test_an_error_in_a_worker_is_raised_where_it_is_awaited() -> None:
    def fail(number: int) -> int:
        if number == 2:
            raise BrokenImageError("number 2")
        return number

    made = prefetched(fail, range(10), workers=2)
    assert [next(made), next(made)] == [0, 1]
    with pytest.raises(BrokenImageError, match="number 2"):
        next(made)


def test_sixteen_bits_have_one_scale(tmp_path: Path) -> None:
    for top in (200, 255, 256, 65_535):
        grey = np.full((4, 4), top, dtype=np.uint16)
        Image.fromarray(grey).save(tmp_path / f"{top}.png")
        expected = round(top / 65_535 * 255)
        for cell in (str(tmp_path / f"{top}.png"), grey):
            assert np.asarray(open_image(cell)).max() == expected
    Image.fromarray(np.full((3, 3), 0.5, dtype=np.float32)).save(tmp_path / "f.tiff")
    assert np.asarray(open_image(tmp_path / "f.tiff")).max() == 128


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (np.array([[0, 300]]), "from 0 to 255 .* got 0 to 300"),
        (np.array([[-1, 3]]), "got -1 to 3"),
        (np.zeros((0, 3)), r"must hold numbers; got \(0, 3\)"),
        (np.array([["a"]]), "must hold numbers"),
        (3, "of type int is no path"),
    ],
)
def test_cells_that_are_broken(cell, message: str) -> None:
    with pytest.raises(BrokenImageError, match=message):
        open_image(cell)


def test_the_usual_size_decides_and_not_that_of_the_first() -> None:
    cells = np.empty(5, dtype=object)
    cells[:] = [np.zeros((n, n), dtype=np.uint8) for n in (2, 20, 20, 24, 20)]
    assert small_images(cells).resize == 20


# ---- files that others made ----------------------------------------------------------------------

EPS = (
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n0 0 9 9 rectfill\nshowpage\n"
)


def test_only_the_named_formats_are_opened(tmp_path: Path, monkeypatch) -> None:
    """Under any name: EPS, for one, is drawn by another program."""

    def started(*args, **options):
        pytest.fail("a program was started")

    monkeypatch.setattr("subprocess.Popen", started)
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", started)
    monkeypatch.setattr("PIL.EpsImagePlugin.has_ghostscript", lambda: True)
    (tmp_path / "a.png").write_bytes(EPS)
    Image.new("RGB", (9, 9)).save(tmp_path / "b.png", "ICO")
    (tmp_path / "c.png").write_bytes(b"#define x_width 9\n#define x_height 9\nstatic char x[]={0};")
    for name in ("a.png", "b.png", "c.png"):
        with pytest.raises(BrokenImageError, match=rf"{name} cannot be read: it is none of JPEG"):
            open_image(tmp_path / name)
    for name in FORMATS:
        Image.new("RGB", (9, 7), RED).save(tmp_path / "named.otherwise", name)
        assert open_image(tmp_path / "named.otherwise").size == (9, 7)


def png_of(width: int, height: int) -> bytes:
    """A whole PNG file whose header says a size; its pixels are a few zeros."""

    def chunk(name: bytes, content: bytes) -> bytes:
        sum_ = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", sum_)

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    content = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(99)))
    return b"\x89PNG\r\n\x1a\n" + content + chunk(b"IEND", b"")


@pytest.mark.parametrize(("width", "height"), [(1, 79_000_000), (79_000_000, 1), (65_501, 2)])
def test_a_side_has_a_limit_of_its_own(
    tmp_path: Path, monkeypatch, width: int, height: int
) -> None:
    """A row of one pixel takes memory too: 79 million of them took 2.9 GB."""
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda self: pytest.fail("was decoded"))
    (tmp_path / "a.png").write_bytes(png_of(width, height))
    with pytest.raises(BrokenImageError, match=r"more than 65,500 on a side; cut it"):
        open_image(tmp_path / "a.png")


def test_a_large_image_is_converted_in_bands(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("echelon.data.kinds.image._BAND_PIXELS", 40)
    generator = np.random.default_rng(0)
    values = generator.integers(0, 256, size=(17, 13, 4)).astype(np.uint8)
    Image.fromarray(values).save(tmp_path / "a.png")
    opaque = values[..., 3:] / 255.0
    expected = values[..., :3] * opaque + 255 * (1 - opaque)
    assert np.abs(np.asarray(open_image(tmp_path / "a.png")) - expected).max() <= 1
    grey = generator.integers(0, 65_536, size=(17, 13)).astype(np.uint16)
    Image.fromarray(grey).save(tmp_path / "b.png")
    found = np.asarray(open_image(tmp_path / "b.png"))
    np.testing.assert_array_equal(found[..., 1], np.round(grey / 257))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.timeout(20)
def test_pipes_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    for path, kind in ((tmp_path / "pipe.png", "pipe"), ("/dev/zero", "device"),
                       (tmp_path, "folder")):  # fmt: skip
        with pytest.raises(BrokenImageError, match=f"is a {kind}, not a file"):
            open_image(path)


@pytest.mark.parametrize(
    "changed",
    [
        {"resize": 10**9}, {"crop": 10**9}, {"pad": -1}, {"resize": 20.5}, {"crop": True},
        {"mean": (0.5,)}, {"std": ("a", "b", "c")}, {"mean": (float("nan"),) * 3},
    ],
    ids=str,
)  # fmt: skip
def test_settings_of_a_forged_model(changed) -> None:
    with pytest.raises(ValueError, match=r"must be (a whole number|three numbers)"):
        rebuild_images({**ImageSettings(20, 16).describe(), **changed})
