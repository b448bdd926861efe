"""Attacks through images: odd formats, bombs, damaged files, and what is no image at all."""

import io
import os
import random
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.attacks.harness import Case, Place
from tests.attacks.models import DAMAGES

_EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"
_SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><image href='http://127.0.0.1:9/x'/></svg>"


def images(material: Path) -> list[Case]:
    """Every file as the image of a row, and some as files in a class folder."""
    files = contents()
    cases = [_as_cell(material, name, make) for name, make in files.items()]
    cases += [_as_cell(material, name, make) for name, make in _no_files().items()]
    in_folder = (*list(files)[:12], "bomb-long", "eps", "empty")
    both = {**files, **_no_files()}
    for name in dict.fromkeys((*in_folder, "fifo", "folder", "loop")):
        cases.append(_in_folder(material, name, both[name]))
    return cases


def _as_cell(material: Path, name: str, make: Any) -> Case:
    def prepare(place: Place) -> None:
        _write(place.given / "x.png", make)
        whole = next(iter(sorted(material.glob("images/*/*.png"))))
        shutil.copy(whole, place.given / "whole.png")
        pd.DataFrame({"image": ["whole.png", "x.png"]}).to_csv(
            place.given / "rows.csv", index=False
        )

    always = name in ("eps", "bomb-long", "fifo", "bomb-square", "jpeg", "empty", "loop", "svg")
    return Case(
        f"image {name}", prepare, command=_predict(material, "rows.csv"), always=always,
        whole=name == "jpeg",
    )  # fmt: skip


def _in_folder(material: Path, name: str, make: Any) -> Case:
    def prepare(place: Place) -> None:
        shutil.copytree(material / "images", place.given / "images")
        _write(place.given / "images" / "mid" / "x.png", make)

    def command(place: Place) -> list[str]:
        return [
            "fit", str(place.given / "images"), "--target", "class", "--image", "image",
            "--classes", "lo,mid,hi", "--max-epochs", "1", "--device", "cpu", "--json",
            "--out", str(place.out / "m.echelon"),
        ]  # fmt: skip

    return Case(f"image folder {name}", prepare, command=command)


def _predict(material: Path, rows: str) -> Callable[[Place], list[str]]:
    return lambda place: [
        "predict", str(material / "image.echelon"), str(place.given / rows),
        "--out", str(place.out / "p.csv"), "--json",
    ]  # fmt: skip


def _write(path: Path, make: Any) -> None:
    made = make(path) if callable(make) else make
    if isinstance(made, bytes):
        path.write_bytes(made)


def _png(width: int, height: int, *, data: bytes | None = None, more: bytes = b"") -> bytes:
    """A PNG of one bit a pixel whose rows are all empty, written by hand as it may be huge."""
    if data is None:
        packed = zlib.compressobj(9)
        row = b"\0" * (1 + (width + 7) // 8)
        pieces = []
        per_piece = max(1, 2**20 // len(row))
        left = height
        while left > 0:
            pieces.append(packed.compress(row * min(per_piece, left)))
            left -= per_piece
        data = b"".join(pieces) + packed.flush()
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + more + _chunk(b"IDAT", data)
        + _chunk(b"IEND", b"")
    )  # fmt: skip


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def _saved(kind: str, mode: str = "RGB", **options: Any) -> Callable[[Path], bytes]:
    def make(path: Path) -> bytes:
        from PIL import Image

        values = np.random.default_rng(3).integers(0, 255, (20, 24, 3), dtype=np.uint8)
        image = Image.fromarray(values).convert("RGB")
        image = image.convert("L").convert(mode) if mode in ("I", "F", "1") else (
            image.convert(mode)
        )  # fmt: skip
        buffer = io.BytesIO()
        image.save(buffer, kind, **options)
        return buffer.getvalue()

    return make


def _animated(kind: str) -> Callable[[Path], bytes]:
    def make(path: Path) -> bytes:
        from PIL import Image

        frames = [Image.new("RGB", (16, 16), (i * 40, 0, 0)) for i in range(5)]
        buffer = io.BytesIO()
        frames[0].save(buffer, kind, save_all=True, append_images=frames[1:])
        return buffer.getvalue()

    return make


def _deep_grey(path: Path) -> bytes:
    from PIL import Image

    values = np.linspace(0, 65535, 400).reshape(20, 20).astype(np.uint16)
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, "PNG")
    return buffer.getvalue()


def _transparent(path: Path) -> bytes:
    return _saved("PNG", "RGBA")(path)


def _damaged(kind: str, damage: Any, number: int) -> Callable[[Path], bytes]:
    def make(path: Path) -> bytes:
        chance = random.Random(f"{kind} {damage.__name__} {number}")
        return damage(_saved(kind)(path), chance)

    return make


def contents() -> dict[str, Any]:
    """Names and contents of files that may stand where an image should."""
    text_bomb = _chunk(b"zTXt", b"a\0\0" + zlib.compress(b"\0" * 60_000_000, 9))
    profile_bomb = _chunk(b"iCCP", b"a\0\0" + zlib.compress(b"\0" * 60_000_000, 9))
    found: dict[str, Any] = {
        "bomb-long": lambda path: _png(1, 79_000_000),
        "bomb-wide": lambda path: _png(79_000_000, 1),
        "bomb-square": lambda path: _png(8_900, 8_900),
        "bomb-larger": lambda path: _png(30_000, 30_000),
        "bomb-header-only": _png(2**31 - 1, 2**31 - 1, data=b""),
        "bomb-text": _png(8, 8, more=text_bomb),
        "bomb-profile": _png(8, 8, more=profile_bomb),
        "no-size": _png(0, 0, data=zlib.compress(b"")),
        "no-data": _png(16, 16, data=b""),
        "eps": _EPS,
        "eps-binary": b"\xc5\xd0\xd3\xc6" + struct.pack("<II", 32, len(_EPS)) + b"\0" * 20 + _EPS,
        "svg": _SVG,
        "html": b"<html><img src='http://127.0.0.1:9/x'><script>alert(1)</script></html>",
        "pdf": b"%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF",
        "xpm": b'/* XPM */\nstatic char *a[] = {"1 1 1 1", "a c #000000", "a"};\n',
        "xbm": b"#define a_width 8\n#define a_height 8\nstatic char a_bits[] = {0,0,0,0,0,0,0,0};",
        "fits": (b"SIMPLE  =                    T".ljust(80) + b"END".ljust(80)).ljust(2880),
        "wmf": b"\xd7\xcd\xc6\x9a" + b"\0" * 60,
        "psd": b"8BPS\0\1" + b"\0" * 6 + struct.pack(">HIIHH", 3, 10, 10, 8, 3) + b"\0" * 40,
        "gribberish": b"GRIB\0\0\0\1" + b"\0" * 60,
        "hdf5": b"\x89HDF\r\n\x1a\n" + b"\0" * 60,
        "empty": b"",
        "one-byte": b"\x89",
        "text": b"this is no image",
        "zeros": b"\0" * 5000,
        "zip": b"PK\x03\x04" + b"\0" * 60,
        "pickle": b"cos\nsystem\n(S'true'\ntR.",
        "jpeg": _saved("JPEG"),
        "jpeg-cmyk": _saved("JPEG", "CMYK"),
        "jpeg-grey": _saved("JPEG", "L"),
        "gif": _saved("GIF"),
        "gif-animated": _animated("GIF"),
        "webp": _saved("WEBP"),
        "webp-animated": _animated("WEBP"),
        "tiff": _saved("TIFF"),
        "tiff-pages": _animated("TIFF"),
        "tiff-float": _saved("TIFF", "F"),
        "tiff-deflated": _saved("TIFF", compression="tiff_deflate"),
        "bmp": _saved("BMP"),
        "ico": _saved("ICO"),
        "ppm": _saved("PPM"),
        "tga": _saved("TGA"),
        "jpeg2000": _saved("JPEG2000"),
        "pcx": _saved("PCX"),
        "png-16-bit": _deep_grey,
        "png-palette": _saved("PNG", "P"),
        "png-alpha": _transparent,
        "png-grey-alpha": _saved("PNG", "LA"),
        "png-one-bit": _saved("PNG", "1"),
        "png-animated": _animated("PNG"),
        "ppm-huge": b"P6 100000 100000 255\n" + b"\0" * 100,
        "ppm-of-digits": b"P3 100000 100000 255\n" + b"1 " * 100,
    }
    for kind in ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP"):
        for number, damage in enumerate(DAMAGES[:8]):
            found[f"{kind.lower()}-{damage.__name__}"] = _damaged(kind, damage, number)
    return found


def _no_files() -> dict[str, Any]:
    """What is no regular file."""

    def loop(path: Path) -> None:
        path.symlink_to(path)

    def link(path: Path) -> None:
        path.symlink_to("/etc/passwd")

    return {
        "fifo": lambda path: os.mkfifo(path),
        "folder": lambda path: path.mkdir(),
        "loop": loop,
        "link-to-a-text": link,
        "link-to-zeros": lambda path: path.symlink_to("/dev/zero"),
        "link-to-nothing": lambda path: path.symlink_to("/no/such/file"),
        "link-to-terminal": lambda path: path.symlink_to("/dev/stdin"),
        "unreadable": lambda path: (path.write_bytes(b"x"), path.chmod(0))[0] and None,
    }
