"""Sealed files: what is written comes back, and what is not whole is never believed."""

import json
import os
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from echelon.storage.bundle import DamagedFileError, checksum, read_bundle, sealed

TENSORS = {
    "half": torch.ones(3, dtype=torch.bfloat16),
    "flags": torch.tensor([True, False, True]),
    "none": torch.zeros(0, 3),
    "one": torch.tensor(2.5, dtype=torch.float64),
    "many": torch.arange(12.0).reshape(3, 4),
}


def entry(dtype: str, shape: object, start: object, end: object) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def write(path: Path, header: object, content: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)
    return path


def test_what_safetensors_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    document = sealed(TENSORS, {"format": 1, "name": "ä"})
    save_file(TENSORS, path, metadata={"key": json.dumps(document)})
    found = read_bundle(path, "key")
    found.require_whole()
    assert found.document == {"format": 1, "name": "ä"}
    assert found.tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name], tensor)
    with pytest.raises(DamagedFileError, match="not one of echelon's"):
        read_bundle(path, "other")


def test_the_seal_covers_everything(tmp_path: Path) -> None:
    document = sealed(TENSORS, {"n": 1})
    changes = [
        {**TENSORS, "one": torch.tensor(2.0, dtype=torch.float64)},
        {**TENSORS, "many": TENSORS["many"].reshape(4, 3)},
        {name: tensor for name, tensor in TENSORS.items() if name != "none"},
        {("renamed" if name == "one" else name): tensor for name, tensor in TENSORS.items()},
    ]
    for i, tensors in enumerate(changes):
        save_file(tensors, tmp_path / str(i), metadata={"key": json.dumps(document)})
        with pytest.raises(DamagedFileError, match="its checksum does not fit"):
            read_bundle(tmp_path / str(i), "key").require_whole()
    assert checksum(TENSORS, {"n": 1}) != checksum(TENSORS, {"n": 2})
    save_file(TENSORS, tmp_path / "open", metadata={"key": "{}"})
    with pytest.raises(DamagedFileError, match="its checksum does not fit"):
        read_bundle(tmp_path / "open", "key").require_whole()


METADATA = {"__metadata__": {"key": "{}"}}


@pytest.mark.parametrize(
    ("header", "content"),
    [
        (b"", b""),
        (b"[]", b""),
        (b"\xff\xfe", b""),
        (b"[" * 100_000, b""),
        ({"__metadata__": {"key": 3}}, b""),
        ({"__metadata__": {"key": "{"}}, b""),
        ({"__metadata__": {"key": "NaN"}}, b""),
        ({"__metadata__": {"key": "[" * 100_000}}, b""),
        (b'{"__metadata__":{"key":"{}"},"a":1,"a":1}', b""),
        ({**METADATA, "a": entry("F32", [2], 0, 8)}, bytes(7)),
        ({**METADATA, "a": entry("F32", [2], 0, 8)}, bytes(9)),
        ({**METADATA, "a": entry("F32", [10**9], 0, 4 * 10**9)}, bytes(8)),
        ({**METADATA, "a": entry("F32", [2], 1, 9)}, bytes(9)),
        ({**METADATA, "a": entry("F32", [3], 0, 8)}, bytes(8)),
        ({**METADATA, "a": entry("F32", [-2], 0, 8)}, bytes(8)),
        ({**METADATA, "a": entry("F32", [True, 2], 0, 8)}, bytes(8)),
        ({**METADATA, "a": entry("F32", [2.0], 0, 8)}, bytes(8)),
        ({**METADATA, "a": entry("F32", [1] * 99 + [2], 0, 8)}, bytes(8)),
        ({**METADATA, "a": entry("F32", [0, 2**40, 2**40, 2**40], 0, 0)}, b""),
        ({**METADATA, "a": entry("F32", [2], 8, 0)}, bytes(8)),
        ({**METADATA, "a": entry("object", [2], 0, 8)}, bytes(8)),
        ({**METADATA, "a": entry("BOOL", [2], 0, 2)}, b"\1\7"),
        ({**METADATA, "a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 4, 12)}, bytes(12)),
        ({**METADATA, "a": {"dtype": "F32"}}, b""),
        ({**METADATA, "a": None}, b""),
    ],
    ids=range(25),
)
def test_headers_that_are_refused(tmp_path: Path, header: object, content: bytes) -> None:
    """Whatever the header says, nothing is made that the file does not hold."""
    with pytest.raises(DamagedFileError, match="is damaged or not a file of echelon's"):
        read_bundle(write(tmp_path / "a", header, content), "key")


def test_a_header_longer_than_the_file(tmp_path: Path) -> None:
    for length in (3, 2**40, 2**64 - 1):
        (tmp_path / "a").write_bytes(struct.pack("<Q", length) + b"{}")
        with pytest.raises(DamagedFileError, match="its header would have"):
            read_bundle(tmp_path / "a", "key")


def test_what_is_read_is_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "a"
    save_file(TENSORS, path, metadata={"key": json.dumps(sealed(TENSORS, {}))})
    found = read_bundle(path, "key")
    path.write_bytes(b"\xff" * path.stat().st_size)
    os.truncate(path, 3)
    found.require_whole()
    assert os.fspath(path) not in Path("/proc/self/maps").read_text()
