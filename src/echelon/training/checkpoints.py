"""Checkpoints of a run: everything that decides how it goes on, and nothing that could run code.

A checkpoint is one sealed safetensors file whose header holds a JSON document. It is written beside
the old one and then takes its place, so that a run killed at any moment leaves a whole one. One
that was damaged all the same is never gone on from: it is set aside, and the run begins anew.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from echelon.storage.atomic import move
from echelon.storage.bundle import DamagedFileError, read_bundle, write_bundle
from echelon.storage.regular import NotRegularError

_NAME = "checkpoint.safetensors"
_KEY = "echelon_checkpoint"


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
        document = {"fingerprint": self.fingerprint, "state": dict(state)}
        write_bundle(self.path, tensors, _KEY, document)

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The newest checkpoint, or None where there is none yet or it was damaged."""
        if not self.path.exists():
            return None
        try:
            bundle = read_bundle(self.path, _KEY)
            bundle.require_whole()
        except FileNotFoundError:  # another process of this run has set it aside
            return None
        except NotRegularError as error:
            raise ValueError(f"{error}; give another checkpoint_dir, or remove it") from None
        except DamagedFileError as error:
            self.set_aside(str(error))
            return None
        document = bundle.document
        if not isinstance(document, dict) or document.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"the checkpoint {self.path} is of another run, with other data or settings; give "
                f"another checkpoint_dir, or remove it"
            )
        if not isinstance(document.get("state"), dict):
            self.set_aside(f"{self.path} does not say where the run was")
            return None
        return bundle.tensors, document["state"]

    def set_aside(self, reason: str) -> None:
        """Keep a checkpoint that cannot be used under another name, and say so."""
        place = self.path.with_name(f"{self.path.name}.damaged")
        try:
            move(self.path, place)
        except FileNotFoundError:  # another process of this run was faster, and said it
            return
        except OSError as error:
            raise ValueError(
                f"{reason}, and it cannot be moved out of the way ({error}); remove it"
            ) from None
        warnings.warn(
            f"{reason}; the checkpoint is kept as {place.name}, and the fit begins anew",
            stacklevel=2,
        )
