"""Checkpoints of a run: everything that decides how it goes on, and nothing that could run code.

A checkpoint is one safetensors file whose header holds a JSON document. It is written beside the
old one and then takes its place, so that a run killed at any moment leaves a whole one.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from echelon.storage.atomic import WriteFailed, write_bytes

_NAME = "checkpoint.safetensors"
_KEY = "echelon_checkpoint"


def write_atomically(path: Path, tensors: Mapping[str, Tensor], key: str, document: Any) -> None:
    """Write tensors and a JSON document to one safetensors file, wholly or not at all."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = save(plain, metadata={key: json.dumps(document, allow_nan=False)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteFailed.of(path, error) from None
    write_bytes(path, content)


def read_whole(path: Path, key: str) -> tuple[dict[str, Tensor], Any]:
    """Read all tensors and the JSON document of a safetensors file, or raise a ValueError."""
    try:
        with safe_open(path, framework="pt") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        return tensors, json.loads(metadata[key])
    except KeyError:
        raise ValueError(f"{path} is a safetensors file but not one of echelon's") from None
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged or not a file of echelon's: {error}") from None


class CheckpointFolder:
    """The one newest checkpoint of a run.

    Parameters
    ----------
    folder : Path
    fingerprint : str
        Of the configuration and the data; a checkpoint of another run is refused.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.path = folder / _NAME
        self.fingerprint = fingerprint

    def save(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Replace the newest checkpoint."""
        write_atomically(
            self.path, tensors, _KEY, {"fingerprint": self.fingerprint, "state": dict(state)}
        )

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The newest checkpoint, or None where there is none yet."""
        if not self.path.is_file():
            return None
        tensors, document = read_whole(self.path, _KEY)
        if not isinstance(document, dict) or document.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"the checkpoint {self.path} is of another run, with other data or settings; give "
                f"another checkpoint_dir, or remove it"
            )
        return tensors, document["state"]
