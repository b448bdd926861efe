"""Sealed files: tensors and one JSON document, with a checksum over both.

The layout is that of safetensors: eight bytes that say how long the header is, a header in JSON,
and the tensors one after the other. The document is a string in the header's metadata, under a key
that says whose file it is, and its entry `checksum` is the seal.

Invariants: a file is read once, through one descriptor, into memory of its own, so that whatever
happens to it afterwards changes nothing. Nothing is allocated that the file does not hold: the
header is checked against the size of the file before the first tensor is made. What a file says is
data; nothing in it is looked up, imported or run here.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from echelon.storage.atomic import WriteFailed, write_bytes
from echelon.storage.regular import NotRegularError, open_regular

_SEAL = "checksum"
_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100_000_000  # as safetensors itself has it
_MAX_DIMENSIONS = 16
_MAX_SIDE = 2**40  # of a shape; only an empty tensor could have a longer one
_DTYPES: Mapping[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


class DamagedFileError(ValueError):
    """A file that is not whole, or not what it should be; the message names it and says why."""


@dataclass(frozen=True)
class Bundle:
    """What a file holds.

    Attributes
    ----------
    path : Path
    tensors : dict from name to Tensor
        Each in memory of its own.
    document : Any
        What the JSON says, without the seal.
    seal : Any
        What the file says its checksum is; None where it says nothing.
    """

    path: Path
    tensors: dict[str, Tensor]
    document: Any
    seal: Any

    def require_whole(self) -> None:
        """Raise where the content is not what was sealed."""
        if self.seal != checksum(self.tensors, self.document):
            raise DamagedFileError(
                f"{self.path} was damaged or edited: its checksum does not fit; use another copy"
            )


def sealed(tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> dict[str, Any]:
    """A document with a checksum over itself and the tensors that stand beside it.

    Parameters
    ----------
    tensors : mapping from name to Tensor
    document : mapping
        Of what JSON knows.

    Examples
    --------
    >>> one, other = (sealed({"x": torch.tensor(x)}, {"n": 1})["checksum"] for x in (1.0, 2.0))
    >>> len(one), one == other
    (64, False)
    """
    plain = {name: value for name, value in document.items() if name != _SEAL}
    return {**plain, _SEAL: checksum(tensors, plain)}


def checksum(tensors: Mapping[str, Tensor], document: Any) -> str:
    """The checksum of tensors, their names, types and shapes, and a document."""
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(_bytes_of(tensor))
    return digest.hexdigest()


def write_bundle(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Tensor],
    key: str,
    document: Mapping[str, Any],
) -> None:
    """Write tensors and a document to one sealed file, wholly or not at all.

    Parameters
    ----------
    path : path
        Its folder is made if it is not there.
    tensors : mapping from name to Tensor
    key : str
        Whose file it is; :func:`read_bundle` asks for it.
    document : mapping
        Of what JSON knows.
    """
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    whole = json.dumps(sealed(plain, document), allow_nan=False)
    content = save(plain, metadata={key: whole})
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteFailed.of(str(path), error) from None
    write_bytes(Path(path), content)


def read_bundle(path: str | os.PathLike[str], key: str) -> Bundle:
    """Read a file wholly; the seal is left to :meth:`Bundle.require_whole`.

    Parameters
    ----------
    path : path
        A regular file; a pipe or a device is refused at once.
    key : str
        Under which the metadata of the file holds the document: whose file it is.
    """
    path = Path(path)
    try:
        with open_regular(path) as stream:
            tensors, metadata = _read(stream, os.fstat(stream.fileno()).st_size)
        if key not in metadata:
            raise DamagedFileError(f"{path} is a safetensors file but not one of echelon's")
        document = _parsed(metadata[key])
    except (DamagedFileError, NotRegularError, FileNotFoundError):
        raise
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RuntimeError, RecursionError, MemoryError) as error:
        raise DamagedFileError(
            f"{path} is damaged or not a file of echelon's: {error or type(error).__name__}"
        ) from None
    seal = document.pop(_SEAL, None) if isinstance(document, dict) else None
    return Bundle(path, tensors, document, seal)


def _read(stream: BufferedReader, size: int) -> tuple[dict[str, Tensor], dict[str, str]]:
    if size < _LENGTH_BYTES:
        raise ValueError(f"it has {size} bytes, too few for any")
    length = int.from_bytes(_take(stream, _LENGTH_BYTES), "little")
    if length > min(size - _LENGTH_BYTES, _MAX_HEADER_BYTES):
        raise ValueError(
            f"its header would have {length} bytes, and the file has {size}; is it a table, in the "
            f"place of a model?"
        )
    header = _parsed(_take(stream, length).decode("utf-8"))
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError("its metadata are not texts")
    entries = [_entry(name, said) for name, said in header.items()]
    entries.sort(key=lambda entry: (entry.start, entry.end))  # an empty one before its neighbour
    end = 0
    for entry in entries:  # they must tile what follows the header
        if entry.start != end:
            raise ValueError(f"its tensor {entry.name!r} does not begin where the last one ends")
        end = entry.end
    if _LENGTH_BYTES + length + end != size:
        raise ValueError(f"its tensors have {end} bytes, and {size - 8 - length} follow the header")
    return {entry.name: _tensor(stream, entry) for entry in entries}, metadata


@dataclass(frozen=True)
class _Entry:
    """Where a tensor stands, in bytes after the header, and what it is."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    end: int


def _entry(name: str, said: Any) -> _Entry:
    if not isinstance(said, dict) or set(said) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"its header does not describe the tensor {name!r}")
    kind, shape, places = said["dtype"], said["shape"], said["data_offsets"]
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise ValueError(f"its tensor {name!r} is of an unknown type")
    if not _are_sizes(shape) or len(shape) > _MAX_DIMENSIONS:
        raise ValueError(f"its tensor {name!r} has no shape")
    if not _are_sizes(places) or len(places) != 2 or places[0] > places[1]:
        raise ValueError(f"its tensor {name!r} has no place in the file")
    dtype = _DTYPES[kind]
    count = 1
    for side in shape:
        count *= side
    if count * dtype.itemsize != places[1] - places[0]:
        raise ValueError(f"its tensor {name!r} of the shape {tuple(shape)} has other bytes")
    return _Entry(name, dtype, tuple(shape), places[0], places[1])


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(
        isinstance(side, int) and not isinstance(side, bool) and 0 <= side <= _MAX_SIDE
        for side in values
    )


def _tensor(stream: BufferedReader, entry: _Entry) -> Tensor:
    tensor = torch.empty(entry.shape, dtype=entry.dtype, device="cpu")
    _fill(stream, _bytes_of(tensor))
    if entry.dtype == torch.bool and bool((tensor.view(torch.uint8) > 1).any()):
        raise ValueError(f"its tensor {entry.name!r} holds what is neither true nor false")
    return tensor


def _bytes_of(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor on the processor, as bytes."""
    values: Any = tensor.reshape(-1).view(torch.uint8).numpy()
    return memoryview(values)


def _take(stream: BufferedReader, count: int) -> bytes:
    content = bytearray(count)
    _fill(stream, memoryview(content))
    return bytes(content)


def _fill(stream: BufferedReader, place: memoryview) -> None:
    """Fill memory from a stream, which may give less at a time."""
    filled = 0
    while filled < len(place):
        count = stream.readinto(place[filled:])
        if not count:
            raise ValueError("it ends too early")
        filled += count


def _parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_without_twins, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"it says {name}, which is no number of JSON")


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("it says something twice")
    return document
