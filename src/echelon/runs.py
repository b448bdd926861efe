"""The run folder: the one place that knows its format.

A run is a folder with what was asked (`config.json`), where (`environment.json`), how it went
(`history.json`), what came out (`metrics.json`, `outcome.json`, `predictions.npz`) and a file
`DONE` with the checksums of the others. It is made beside its place and then moved there, so that a
folder with `DONE` is whole and is never rewritten. Its name ends in a hash of the configuration:
whoever asks for the same thing twice finds it done.
"""

import hashlib
import json
import math
import os
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from echelon._version import __version__
from echelon.data.texts import plain_text
from echelon.processes import world_size

_DOCUMENTS = ("config", "environment", "history", "metrics", "outcome")
_ARRAYS = "predictions.npz"
_TEXT_LENGTH = 600  # characters of a text that are kept to be shown
_ROLES = ("method", "baseline", "floor")


@dataclass(frozen=True)
class RunConfig:
    """What was asked of a run: everything that decides its result.

    Parameters
    ----------
    method : str
        What a table calls it: a name of ``echelon.METHODS``, with its options where they differ
        from the defaults (``corn_without_subsets:mask=published``), or that of a baseline.
    data : str
        The name of the data.
    command : str
        The protocol that asked.
    role : {"method", "baseline", "floor"}
    seed : int, optional
    part : {"test", "valid"}
        The rows that were scored.
    split : int
        Which random division into training and test rows.
    fingerprint : str
        A hash of the rows and labels.
    classes : list
        The labels in rank order.
    rows : mapping
        How many there are in each part.
    parameters : mapping
        Of :class:`echelon.OrdinalClassifier`.
    threads : int, optional
        That the arithmetic of the run used; another number rounds differently.
    details : mapping
        Further choices of the protocol.
    """

    method: str
    data: str
    command: str = "compare"
    role: str = "method"
    seed: int | None = None
    part: str = "test"
    split: int = 0
    fingerprint: str = ""
    classes: list[Any] = field(default_factory=list)
    rows: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    threads: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise ValueError(f"role must be one of {', '.join(_ROLES)}; got {self.role!r}")

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "RunConfig":
        """A configuration from its document; unknown keys are refused.

        Examples
        --------
        >>> RunConfig.of({"method": "corn", "data": "wine.csv", "sed": 1})
        Traceback (most recent call last):
        ...
        ValueError: a run's configuration has no key 'sed'; it has: method, data, command, role,
        seed, part, split, fingerprint, classes, rows, parameters, threads, details
        """
        known = [one.name for one in fields(cls)]
        unknown = sorted(set(document) - set(known))
        if unknown:
            raise ValueError(
                f"a run's configuration has no key {unknown[0]!r}; it has: {', '.join(known)}"
            )
        return cls(**document)

    def document(self) -> dict[str, Any]:
        """As it is written: JSON values only."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    @property
    def name(self) -> str:
        """Of the run's folder: readable, and one for each configuration.

        Examples
        --------
        >>> RunConfig("corn", "wine.csv", seed=3).name[:11]
        'corn-seed3-'
        """
        text = json.dumps(self.document(), sort_keys=True, allow_nan=False)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        readable = re.sub(r"[^\w.=-]+", "-", self.method)
        seed = "" if self.seed is None else f"-seed{self.seed}"
        return f"{readable}{seed}-{digest}"


@dataclass(frozen=True)
class Run:
    """What a run folder holds; `predictions` are arrays by name, `outcome` what else came out."""

    config: RunConfig
    history: Sequence[Mapping[str, float]]
    metrics: Mapping[str, float]
    predictions: Mapping[str, NDArray[Any]]
    outcome: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)


def write_run(folder: str | Path, run: Run) -> None:
    """Write a finished run; refuses a folder that already holds something."""
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"the folder {folder} is not empty; a finished run is never rewritten")
    documents = {
        "config": run.config.document(),
        "environment": run.environment or environment(),
        "history": run.history,
        "metrics": run.metrics,
        "outcome": run.outcome,
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    try:
        partial.mkdir()
        for name in _DOCUMENTS:
            text = json.dumps(_plain(documents[name]), indent=2, allow_nan=False)
            (partial / f"{name}.json").write_text(text + "\n")
        arrays: dict[str, Any] = dict(run.predictions)
        np.savez_compressed(partial / _ARRAYS, **arrays)
        sums = {place.name: _checksum(place) for place in sorted(partial.iterdir())}
        (partial / "DONE").write_text(json.dumps(sums, indent=2) + "\n")
        if folder.exists():
            folder.rmdir()
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def is_done(folder: str | Path) -> bool:
    """Whether a folder says that its run has finished."""
    return (Path(folder) / "DONE").is_file()


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
    if not is_done(folder):
        raise ValueError(f"{folder} is not a finished run: it has no file DONE")
    try:
        sums = json.loads((folder / "DONE").read_text())
        for name in (*(f"{one}.json" for one in _DOCUMENTS), _ARRAYS):
            if _checksum(folder / name) != sums[name]:
                raise ValueError(f"{name} is not what was written")
        documents = {name: json.loads((folder / f"{name}.json").read_text()) for name in _DOCUMENTS}
        with np.load(folder / _ARRAYS, allow_pickle=False) as opened:
            predictions = {name: opened[name] for name in opened.files}
        config = RunConfig.of(documents.pop("config"))
    except Exception as error:
        raise ValueError(f"the run {folder} is damaged: {error}") from None
    return Run(config=config, predictions=predictions, **documents)


def read_runs(folder: str | Path) -> list[Run]:
    """The finished runs of a folder: itself if it is one, or those in it, sorted by name."""
    folder = Path(folder)
    if is_done(folder):
        return [read_run(folder)]
    places = [place.parent for place in folder.glob("*/DONE")]
    # hidden folders are unfinished, or were set aside
    places = sorted(place for place in places if not place.name.startswith("."))
    if not places:
        raise ValueError(
            f"{folder} has no finished run: give a folder that `echelon evaluate --out`, "
            f"`echelon compare --out` or `echelon reproduce --out` wrote"
        )
    return [read_run(place) for place in places]


def set_aside(folder: str | Path) -> Path:
    """Move a damaged folder out of the way, and say where it is now."""
    folder = Path(folder)
    number = 1
    while (place := folder.with_name(f".damaged-{number}-{folder.name}")).exists():
        number += 1
    os.replace(folder, place)
    return place


def sweep(folder: str | Path) -> None:
    """Remove what killed processes left half written in a folder of runs."""
    for partial in Path(folder).glob(".*.partial"):
        number = partial.name.removesuffix(".partial").rpartition(".")[2]
        if not number.isdigit() or _is_alive(int(number)):
            continue
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def row_cells(frame: Any, text: str | None, image: str | None) -> dict[str, NDArray[Any]]:
    """Texts and images of tested rows as arrays, for whoever shows single rows.

    Texts are cut, images are paths, or pixels where the cells are arrays of one shape.
    """
    cells: dict[str, NDArray[Any]] = {}
    if text is not None and text in frame:
        cells["text"] = np.array(
            [plain_text(cell)[:_TEXT_LENGTH] for cell in frame[text]], dtype=np.str_
        )
    if image is not None and image in frame:
        pictures = list(frame[image])
        if all(isinstance(cell, (str, Path)) for cell in pictures):
            cells["image"] = np.array([str(cell) for cell in pictures], dtype=np.str_)
        elif len({getattr(cell, "shape", None) for cell in pictures}) == 1 and len(pictures):
            cells["image"] = np.stack([np.asarray(cell) for cell in pictures])
    return cells


def environment() -> dict[str, Any]:
    """What a result may depend on beyond the configuration."""
    return {
        "echelon": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "processes": world_size(),
    }


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # where there is no signal that does nothing
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _plain(value: Any) -> Any:
    """For JSON, which has no infinities: they become null, as missing values do."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
