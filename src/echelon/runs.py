"""The run folder: the one place that knows its format.

A run is a folder with what was asked (`config.json`), where (`environment.json`), how it went
(`history.json`), what came out (`metrics.json`, `predictions.npz`) and an empty file `DONE`. It is
made beside its place and then moved there, so that a folder with `DONE` is whole and is never
rewritten.
"""

import json
import math
import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from echelon._version import __version__

_DOCUMENTS = ("config", "environment", "history", "metrics")


@dataclass(frozen=True)
class Run:
    """What a run folder holds; `predictions` are arrays by name."""

    config: dict[str, Any]
    history: list[dict[str, float]]
    metrics: dict[str, float]
    predictions: dict[str, NDArray[Any]]
    environment: dict[str, Any]


def write_run(
    folder: str | Path,
    *,
    config: Mapping[str, Any],
    history: list[dict[str, float]],
    metrics: Mapping[str, float],
    predictions: Mapping[str, NDArray[Any]],
) -> None:
    """Write a finished run; refuses a folder that already holds something."""
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"the folder {folder} is not empty; a finished run is never rewritten")
    documents = {
        "config": dict(config),
        "environment": environment(),
        "history": history,
        "metrics": dict(metrics),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    try:
        partial.mkdir()
        for name in _DOCUMENTS:
            text = json.dumps(_plain(documents[name]), indent=2, allow_nan=False)
            (partial / f"{name}.json").write_text(text + "\n")
        arrays: dict[str, Any] = dict(predictions)
        np.savez_compressed(partial / "predictions.npz", **arrays)
        (partial / "DONE").touch()
        if folder.exists():
            folder.rmdir()
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _plain(value: Any) -> Any:
    """For JSON, which has no infinities: they become null, as missing values do."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_run(folder: str | Path) -> Run:
    """Read a finished run.

    Examples
    --------
    >>> read_run("no-such-folder")
    Traceback (most recent call last):
    ...
    ValueError: no-such-folder is not a finished run: it has no file DONE
    """
    folder = Path(folder)
    if not (folder / "DONE").is_file():
        raise ValueError(f"{folder} is not a finished run: it has no file DONE")
    try:
        documents = {name: json.loads((folder / f"{name}.json").read_text()) for name in _DOCUMENTS}
        with np.load(folder / "predictions.npz", allow_pickle=False) as opened:
            predictions = {name: opened[name] for name in opened.files}
    except Exception as error:
        raise ValueError(f"the run {folder} is damaged: {error}") from None
    return Run(predictions=predictions, **documents)


def read_runs(folder: str | Path) -> list[Run]:
    """The finished runs of a folder: itself if it is one, or those in it, sorted by name."""
    folder = Path(folder)
    if (folder / "DONE").is_file():
        return [read_run(folder)]
    places = sorted(place.parent for place in folder.glob("*/DONE"))
    if not places:
        raise ValueError(
            f"{folder} has no finished run: give a folder that `echelon evaluate --out` or "
            f"`echelon compare --out` wrote"
        )
    return [read_run(place) for place in places]


def environment() -> dict[str, Any]:
    """What a result may depend on beyond the configuration."""
    return {
        "echelon": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }
