"""Files of models that a hostile author might write."""

from pathlib import Path
from typing import Any

from echelon.storage.bundle import read_bundle, write_bundle


def network_of(document: dict[str, Any]) -> dict[str, Any]:
    return document["model"]["network"]


def encodings_of(document: dict[str, Any]) -> dict[str, Any]:
    return document["model"]["readers"]["encodings"]


def rewrite(saved: Path, path: Path, change) -> None:
    """An edited document with a checksum that fits, as a hostile author would write it."""
    found = read_bundle(saved, "echelon_model")
    change(found.document, found.tensors)
    write_bundle(path, found.tensors, "echelon_model", found.document)
