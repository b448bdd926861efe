"""What frozen encoders give, computed once: a cache by the content of inputs and encoders.

A key is a hash of the encoder (what it is, its weights) and of what it takes of one row, so that
nothing can be stale: another image, another size, other weights are another key. A folder holds a
folder for each encoder, and that one files of some rows each, whole or not there. Every file may
be deleted at any time; one that is damaged is not read, and its rows are encoded again. Processes
that fill the same folder take turns where the system has locks, and without them do some work
twice and no harm.
"""

import hashlib
import inspect
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from echelon.networks.frozen import AfterFrozen
from echelon.storage.atomic import WriteFailed, write_bytes
from echelon.storage.locks import locked

VARIABLE = "ECHELON_CACHE"
_FORMAT = b"1"
_KEY_BYTES = 32
_SUFFIX = ".safetensors"
_chosen = threading.local()


@contextmanager
def encodings_in(folder: Path) -> Iterator[None]:
    """Keep what frozen encoders give in this folder, in this thread, while the block runs.

    The environment variable ``ECHELON_CACHE`` has precedence: it names a folder that everything on
    a machine shares.
    """
    before = getattr(_chosen, "folder", None)
    _chosen.folder = folder
    try:
        yield
    finally:
        _chosen.folder = before


def cache_folder() -> Path | None:
    """Where encodings are kept; None where they are not."""
    named = os.environ.get(VARIABLE, "").strip()
    folder: Path | None = Path(named) if named else getattr(_chosen, "folder", None)
    return folder


def encoder_digest(encoder: nn.Module) -> str:
    """A hash of what an encoder is: its layers, the code of those that torch has not, its weights.

    Examples
    --------
    >>> torch.manual_seed(0) and encoder_digest(nn.Linear(2, 2)) == encoder_digest(nn.Linear(2, 2))
    False
    """
    digest = hashlib.sha256(_FORMAT)
    # what follows the encoding is trained, and no part of it
    parts = [(name, m) for name, m in encoder.named_children() if not isinstance(m, AfterFrozen)]
    modules = [encoder, *(module for _, part in parts for module in part.modules())]
    digest.update(repr(parts).encode())
    for kind in sorted({type(module) for module in modules}, key=_name):
        digest.update(_name(kind).encode())
        if not kind.__module__.startswith("torch."):
            with suppress(OSError, TypeError):  # typed in, or compiled: its name must do
                digest.update(inspect.getsource(kind).encode())
    for name, option in sorted(vars(encoder).items()):
        if isinstance(option, (str, int, float, bool, tuple)) and name != "training":
            digest.update(f"{name}={option!r};".encode())
    direct = [*encoder.named_parameters(recurse=False), *encoder.named_buffers(recurse=False)]
    for name, tensor in [*direct, *(p for _, part in parts for p in part.state_dict().items())]:
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype};".encode())
        digest.update(_bytes(tensor))
    return digest.hexdigest()


def row_key(row: Tensor) -> bytes:
    """A hash of what an encoder takes of one row."""
    digest = hashlib.sha256(f"{tuple(row.shape)}{row.dtype};".encode())
    digest.update(_bytes(row))
    return digest.digest()


class Encodings:
    """The encodings of one encoder in a folder.

    Parameters
    ----------
    folder : Path
        Of the cache.
    encoder : str
        The digest of the encoder.
    size : int
        Numbers in an encoding.
    """

    def __init__(self, folder: Path, encoder: str, size: int) -> None:
        self.folder = folder / encoder[:_KEY_BYTES]
        self.size = size

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Tensor]:
        """The encodings (size,) that are there, by their keys."""
        wanted, kept = set(keys), {}
        if not self.folder.is_dir():
            return {}
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            # what is damaged, or deleted in this moment, is not there
            with suppress(OSError, SafetensorError, KeyError, ValueError):
                kept.update(self._read(path, wanted))
        return kept

    def add(self, keys: Sequence[bytes], encodings: Tensor) -> None:
        """Write encodings (n, size) of keys; a folder that cannot be written keeps none."""
        content = save(
            {
                "keys": torch.frombuffer(bytearray(b"".join(keys)), dtype=torch.uint8),
                "encodings": encodings.contiguous(),
            }
        )
        name = hashlib.sha256(b"".join(sorted(keys))).hexdigest()[:_KEY_BYTES]
        with suppress(OSError, WriteFailed):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_bytes(self.folder / f"{name}{_SUFFIX}", content)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until no other process fills this folder."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            yield
            return
        with locked(self.folder / "lock"):
            yield

    def _read(self, path: Path, wanted: set[bytes]) -> dict[bytes, Tensor]:
        with safe_open(path, framework="pt") as opened:
            flat = opened.get_tensor("keys").numpy().tobytes()
            keys = [flat[i : i + _KEY_BYTES] for i in range(0, len(flat), _KEY_BYTES)]
            places = [i for i, key in enumerate(keys) if key in wanted]
            if not places:
                return {}
            encodings = opened.get_tensor("encodings")
        if tuple(encodings.shape) != (len(keys), self.size) or encodings.dtype != torch.float32:
            return {}
        if not bool(torch.isfinite(encodings).all()):
            return {}
        return {keys[i]: encodings[i] for i in places}


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _bytes(tensor: Tensor) -> bytes:
    plain = tensor.detach().cpu().contiguous()
    return plain.view(torch.uint8).numpy().tobytes() if plain.dim() else repr(plain.item()).encode()
