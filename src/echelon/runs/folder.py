"""The run folder: the one place that knows its format.

A run is a folder with what was asked (`config.json`), where (`environment.json`), how it went
(`history.json`), what came out (`metrics.json`, `outcome.json`, `predictions.npz`, and of a model
that has statistics `statistics.json`) and a file `DONE` with the checksums of the others. It is
made beside its place and then moved there, so that a folder with `DONE` is whole and is never
rewritten; what explains it, and how far its rows are from those of the fit, may be put beside it
later, in `explanation.json` and `drift.json`, with the checksum of `DONE` in them. Its name ends in
a hash of the configuration: whoever asks for the same thing twice finds it done.

A folder of runs that belong together has a file `comparison.json` with what they must share.
Both `config.json` and that file begin with the number of the format, so that what another echelon
wrote can be told from what was damaged.

A checksum says that a file is as it was written, not who wrote it: what is read is checked for its
types, its shapes and its ranges, and only regular files are opened.
"""

import hashlib
import io
import json
import math
import os
import platform
import re
import stat
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from echelon._version import __version__
from echelon.data.kinds.text import plain_text
from echelon.processes import world_size
from echelon.runs.drifted import check_drift
from echelon.runs.explained import check_explanation
from echelon.runs.rows import check_cells
from echelon.storage.atomic import move, new_folder, write_new, write_text

FORMAT = 2  # of run folders; those of format 1 have no number
_DOCUMENTS = ("config", "environment", "history", "metrics", "outcome")
_STATISTICS = "statistics"  # a key of the outcome that has a file of its own
_ARRAYS = "predictions.npz"
# What may stand beside a finished run, and what its fields must be.
_BESIDE: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    "explanation": check_explanation,
    "drift": check_drift,
}
_TEXT_LENGTH = 600  # characters of a text that are kept to be shown
_ROLES = ("method", "baseline", "floor")
_SUBSETS = ("test", "valid")
_MANIFEST = "comparison.json"
_MOST_CLASSES = 1_000_000
_MOST_BYTES = 4 << 30  # of the arrays of a run
# Predictions shrink to a half or a tenth; what shrinks to a thousandth is made to fill the memory.
_MOST_PER_BYTE = 100
_FREE_BYTES = 2**26


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
        for name in ("method", "data", "command", "part", "fingerprint"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a text; got {getattr(self, name)!r}")
        if self.part not in _SUBSETS:
            raise ValueError(f"part must be one of {', '.join(_SUBSETS)}; got {self.part!r}")
        for name, least in (("seed", 0), ("split", 0), ("threads", 1)):
            value = getattr(self, name)
            if not (_is_whole(value, least) or (value is None and name != "split")):
                raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}")
        for name in ("rows", "parameters", "details"):
            if not isinstance(getattr(self, name), Mapping):
                raise ValueError(f"{name} must be a mapping; got {getattr(self, name)!r}")
        for name, count in self.rows.items():
            if not _is_whole(count, 0):
                raise ValueError(f"rows.{name} must be an integer of at least 0; got {count!r}")
        if not isinstance(self.classes, (list, tuple)) or len(self.classes) > _MOST_CLASSES:
            raise ValueError(f"classes must be a list of labels; got {self.classes!r:.80}")
        if any(isinstance(label, (list, dict)) for label in self.classes):
            raise ValueError("classes must be a list of labels, of which none is itself a list")

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
        known = [key.name for key in fields(cls)]
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
    """What a run folder holds; `predictions` are arrays by name, `outcome` what else came out.

    Of the arrays, `row` has the number of each scored row in the file that it comes from, counted
    from 0 and without the header, as ``frame.iloc`` takes it. `explanation` and `drift`
    are what :func:`add_explanation` and :func:`add_drift` wrote beside a finished run.
    """

    config: RunConfig
    history: Sequence[Mapping[str, float]]
    metrics: Mapping[str, float]
    predictions: Mapping[str, NDArray[Any]]
    outcome: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    explanation: Mapping[str, Any] | None = None
    drift: Mapping[str, Any] | None = None


class OtherFormatError(ValueError):
    """A whole run, or a folder of runs, that an echelon of another format wrote."""


def write_run(folder: str | Path, run: Run) -> None:
    """Write a finished run; refuses a folder that already holds something."""
    documents = {
        "config": {"format": FORMAT, **run.config.document()},
        "environment": run.environment or environment(),
        "history": run.history,
        "metrics": run.metrics,
        "outcome": {name: each for name, each in run.outcome.items() if name != _STATISTICS},
    }
    if _STATISTICS in run.outcome:
        documents[_STATISTICS] = run.outcome[_STATISTICS]
    with new_folder(folder) as partial:
        for name in documents:
            text = json.dumps(_plain(documents[name]), indent=2, allow_nan=False)
            (partial / f"{name}.json").write_text(text + "\n")
        arrays: dict[str, Any] = dict(run.predictions)
        np.savez_compressed(partial / _ARRAYS, **arrays)
        sums = {place.name: _checksum(place) for place in sorted(partial.iterdir())}
        (partial / "DONE").write_text(json.dumps(sums, indent=2) + "\n")


def add_explanation(folder: str | Path, document: Mapping[str, Any]) -> None:
    """Write ``explanation.json`` beside a finished run, which itself stays as it is.

    Parameters
    ----------
    folder : path
    document : mapping
        As :meth:`echelon.evaluation.explanation.Explanation.document` gives it, its rows named as
        in the run. It replaces one that is there.
    """
    _add_beside(Path(folder), "explanation", document)


def add_drift(folder: str | Path, document: Mapping[str, Any]) -> None:
    """Write ``drift.json`` beside a finished run, which itself stays as it is.

    Parameters
    ----------
    folder : path
    document : mapping
        As :meth:`echelon.models.drifting.Drift.document` gives it. It replaces one that is there.
    """
    _add_beside(Path(folder), "drift", document)


def _add_beside(folder: Path, name: str, document: Mapping[str, Any]) -> None:
    if not is_done(folder):
        raise ValueError(f"{folder} is not a finished run: it has no file DONE")
    whole = {"format": FORMAT, "run": _checksum(folder / "DONE"), **document}
    _BESIDE[name](whole)
    write_text(folder / f"{name}.json", json.dumps(_plain(whole), allow_nan=False) + "\n")


def _read_beside(folder: Path, name: str) -> dict[str, Any] | None:
    """What stands beside a run under a name, where something does, and it is of this run."""
    file = f"{name}.json"
    if not os.path.lexists(folder / file):
        return None
    what = f"the {name} of {folder}"
    document = _of_this_format(_parsed(_content(folder / file)), file, what)
    if document.get("run") != _checksum(folder / "DONE"):
        raise ValueError(f"{file} is that of another run: remove it, or make that of this one")
    _BESIDE[name](document)
    return document


def is_done(folder: str | Path) -> bool:
    """Whether a folder says that its run has finished."""
    return (Path(folder) / "DONE").is_file()


def read_run(folder: str | Path) -> Run:
    """Read a finished run; one of another format raises an :class:`OtherFormatError`.

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
        sums = _object(_parsed(_content(folder / "DONE")), "DONE")

        def whole(name: str) -> bytes:
            content = _content(folder / name)
            if hashlib.sha256(content).hexdigest() != sums[name]:
                raise ValueError(f"{name} is not what was written")
            return content

        # First of all the format: of another one, nothing else is known.
        config = _of_this_format(_parsed(whole("config.json")), "config.json", f"the run {folder}")
        documents = {name: _parsed(whole(f"{name}.json")) for name in _DOCUMENTS[1:]}
        if f"{_STATISTICS}.json" in sums:
            statistics = _object(_parsed(whole(f"{_STATISTICS}.json")), f"{_STATISTICS}.json")
            _object(documents["outcome"], "outcome.json")[_STATISTICS] = statistics
        run = Run(
            config=RunConfig.of(config),
            history=_history(documents["history"]),
            metrics=_numbers(documents["metrics"], "metrics.json"),
            predictions=_read_arrays(whole(_ARRAYS)),
            outcome=_outcome(documents["outcome"]),
            environment=_object(documents["environment"], "environment.json"),
            explanation=_read_beside(folder, "explanation"),
            drift=_read_beside(folder, "drift"),
        )
        _check_arrays(run)
    except OtherFormatError:
        raise
    except KeyError as error:
        raise ValueError(f"the run {folder} is damaged: it has no {error}") from None
    except Exception as error:
        raise ValueError(f"the run {folder} is damaged: {error}") from None
    return run


def _of_this_format(document: Any, name: str, what: str) -> dict[str, Any]:
    """A document without the number of its format, which must be that of this echelon."""
    content = dict(_object(document, name))
    number = content.pop("format", 1)
    if not _is_whole(number, 1):
        raise ValueError(f"{name}: format must be an integer of at least 1; got {number!r:.80}")
    if number != FORMAT:
        raise OtherFormatError(
            f"{what} was written by {'an older' if number < FORMAT else 'a newer'} echelon, in "
            f"format {number}, and this one reads format {FORMAT}: make it anew in another folder, "
            f"or read it with the echelon that wrote it"
        )
    return content


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


def claim_folder(folder: str | Path, shared: Mapping[str, Any]) -> None:
    """Write down what all runs of a folder share, or raise where that is something else.

    Whoever comes first writes it, whole and only once, also of two that come at the same moment.

    Parameters
    ----------
    folder : path
        Made if it is not there.
    shared : mapping
        Values of JSON by name. Those of `divisions` are compared where both have them.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / _MANIFEST
    mine: dict[str, Any] = _plain(shared)
    text = json.dumps({"format": FORMAT, **mine}, indent=2, allow_nan=False)
    write_new(place, (text + "\n").encode("utf-8"))
    try:
        agreed = _of_this_format(_parsed(_content(place)), _MANIFEST, f"the folder {folder}")
    except OtherFormatError:
        raise
    except ValueError as error:
        raise ValueError(
            f"{place} does not say what the runs of the folder share ({error}); choose another "
            f"folder with --out"
        ) from None
    both = set(agreed.get("divisions") or {}) & set(mine.get("divisions") or {})
    for document in (agreed, mine):
        if isinstance(document.get("divisions"), dict):
            document["divisions"] = {name: document["divisions"][name] for name in sorted(both)}
    if (different := difference(agreed, mine)) is not None:
        name, before, now = different
        raise ValueError(
            f"{folder} is the folder of a comparison with {name} = {before} instead of {now}; "
            f"choose another folder with --out"
        )


def difference(before: Any, now: Any) -> tuple[str, str, str] | None:
    """The first place in which two documents differ, and what is there; None where they agree.

    Examples
    --------
    >>> difference({"data": "a", "parameters": {"recipe": "x"}}, {"data": "a", "parameters": {}})
    ('parameters.recipe', "'x'", 'nothing')
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for name in dict.fromkeys([*before, *now]):
            below = difference(before.get(name, _NOTHING), now.get(name, _NOTHING))
            if below is not None:
                inner, *both = below
                return ".".join(filter(None, (name, inner))), both[0], both[1]
        return None
    if type(before) is type(now) and before == now:
        return None
    return "", f"{before!r:.80}", f"{now!r:.80}"


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


_NOTHING = _Nothing()


def mixture(configs: Sequence[RunConfig]) -> str | None:
    """Why runs of some configurations cannot stand in one table; None where they can.

    They must be of the same data, the same classes and the same settings: those of a method over
    its seeds and divisions, and in a comparison also those that its methods share. No run may be
    there twice.
    """
    agreed: dict[tuple[Any, ...], tuple[RunConfig, dict[str, Any]]] = {}
    seen: dict[tuple[Any, ...], RunConfig] = {}
    for config in configs:
        for group, values in _must_agree(config):
            other, before = agreed.setdefault(group, (config, values))
            if (different := difference(before, values)) is not None:
                name, first, second = different
                both = dict.fromkeys((other.method, config.method))
                return f"runs of {' and of '.join(both)} have {name} = {first} and {second}"
        key = config.method, config.seed, config.split
        if (other := seen.setdefault(key, config)) is not config:
            different = difference(other.document(), config.document())
            name, first, second = different or ("everything", "the same", "the same")
            return (
                f"{config.method} with seed {config.seed} is there twice, with {name} = {first} "
                f"and {second}"
            )
    return None


def _must_agree(config: RunConfig) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """What a run shares with others: by the group of runs that must have it alike."""
    document = config.document()
    parameters = document["parameters"]
    everywhere = {name: document[name] for name in ("command", "data", "part", "classes")}
    shared = {k: v for k, v in parameters.items() if k not in ("method", "method_options")}
    groups: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("all",), everywhere),
        (("division", config.split), {"fingerprint": config.fingerprint}),
        (("method", config.method), {"role": config.role, "parameters": parameters}),
    ]
    if config.command == "compare" and config.role == "method":
        if "/" in config.method:  # its backbone is its own
            shared.pop("backbone", None)
        model = shared.pop("model", None)
        # Options in the name of a model are its own; networks have theirs under method_options.
        if model is None:
            groups.append((("compared", "/" in config.method), {"parameters": shared}))
    return groups


def set_aside(folder: str | Path) -> Path:
    """Move a damaged folder out of the way, and say where it is now."""
    folder = Path(folder)
    number = 1
    while (place := folder.with_name(f".damaged-{number}-{folder.name}")).exists():
        number += 1
    move(folder, place)
    return place


def row_cells(frame: Any, columns_by_kind: Mapping[str, str | None]) -> dict[str, NDArray[Any]]:
    """Texts and images of tested rows as arrays, for whoever shows single rows.

    Texts are cut, images are paths, or pixels where the cells are arrays of one shape.
    """
    cells: dict[str, NDArray[Any]] = {}
    text, image = columns_by_kind.get("text"), columns_by_kind.get("image")
    if text is not None and text in frame:
        cells["text"] = np.array(
            [plain_text(cell)[:_TEXT_LENGTH] for cell in frame[text]], dtype=np.str_
        )
    if image is not None and image in frame:
        images = list(frame[image])
        if all(isinstance(cell, (str, Path)) for cell in images):
            cells["image"] = np.array([str(cell) for cell in images], dtype=np.str_)
        elif len({getattr(cell, "shape", None) for cell in images}) == 1 and len(images):
            cells["image"] = np.stack([np.asarray(cell) for cell in images])
    return cells


def environment() -> dict[str, Any]:
    """What a result may depend on beyond the configuration."""
    return {
        "echelon": __version__,
        "date": datetime.now(timezone.utc).isoformat(timespec="minutes"),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "processes": world_size(),
    }


def _checksum(path: Path) -> str:
    return hashlib.sha256(_content(path)).hexdigest()


# ---- what is read is checked ---------------------------------------------------------------------


def _content(path: Path) -> bytes:
    """The bytes of a regular file; a pipe or a device would never end."""
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(opened, "rb") as stream:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise ValueError(f"{path.name} is not a regular file")
        return stream.read()


def _parsed(content: bytes) -> Any:
    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not a number of JSON")

    return json.loads(content.decode("utf-8"), parse_constant=refuse)


def _object(document: Any, name: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise ValueError(f"{name} must hold an object; got {document!r:.80}")
    return document


def _numbers(document: Any, name: str) -> dict[str, float]:
    """An object of finite numbers; null stands for one that JSON cannot write."""
    for key, value in _object(document, name).items():
        if value is not None and not _is_number(value):
            raise ValueError(f"{name}: {key} must be a number; got {value!r:.80}")
    numbers: dict[str, float] = document
    return numbers


def _history(document: Any) -> list[dict[str, float]]:
    if not isinstance(document, list):
        raise ValueError(f"history.json must hold a list of epochs; got {document!r:.80}")
    epochs = [_numbers(epoch, "history.json") for epoch in document]
    # Networks learn in epochs, trees in rounds.
    if any(not _is_whole(epoch.get("epoch", epoch.get("round")), 0) for epoch in epochs):
        raise ValueError("history.json: every epoch must have its number, `epoch` or `round`")
    return epochs


def _outcome(document: Any) -> dict[str, Any]:
    outcome = _object(document, "outcome.json")
    _numbers(outcome.get("coefficients", {}), "outcome.json, coefficients")
    board = outcome.get("leaderboard", [])
    if not isinstance(board, list):
        raise ValueError(f"outcome.json: leaderboard must be a list; got {board!r:.80}")
    for row in board:
        numbers = dict(_object(row, "outcome.json, leaderboard"))
        if not isinstance(numbers.pop("member", None), str):
            raise ValueError(f"outcome.json: leaderboard must name each member; got {row!r:.80}")
        _numbers(numbers, "outcome.json, leaderboard")
    _numbers(outcome.get("training", {}), "outcome.json, training")
    for name in ("best_epoch", "trees"):
        if outcome.get(name) is not None and not _is_whole(outcome[name], 0):
            raise ValueError(f"outcome.json: {name} must be an integer; got {outcome[name]!r:.80}")
    for name in ("seconds", "cpu_seconds"):
        if not _is_number(outcome.get(name, 0.0)):
            raise ValueError(f"outcome.json: {name} must be a number; got {outcome[name]!r:.80}")
    return outcome


def _read_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a file, none of them larger than what its place in the file holds."""
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        most = min(_MOST_BYTES, _FREE_BYTES + _MOST_PER_BYTE * len(content))
        if (told := sum(member.file_size for member in opened.infolist())) > most:
            raise ValueError(
                f"{_ARRAYS} of {len(content):,} bytes would take {told:,}, more than {most:,}"
            )
        for member in opened.infolist():
            with opened.open(member) as stream:
                version = np.lib.format.read_magic(stream)
                shape, _, dtype = _HEADERS[version](stream)
                told = math.prod(shape) * dtype.itemsize
                if dtype.hasobject or told > member.file_size:
                    raise ValueError(f"{_ARRAYS}: {member.filename} is not the array that it says")
            with opened.open(member) as stream:
                arrays[member.filename.removesuffix(".npy")] = np.lib.format.read_array(
                    stream, allow_pickle=False
                )
    return arrays


def _check_arrays(run: Run) -> None:
    """Raise where the arrays of a run are not those of one set of rows and classes."""
    arrays = run.predictions
    rows = len(arrays["truth"]) if "truth" in arrays and arrays["truth"].ndim else None
    labels, classes = len(run.config.classes), 0
    for name, dimensions in (("truth", 1), ("prediction", 1), ("probabilities", 2), *_PER_ROW):
        if name not in arrays:
            continue
        array = arrays[name]
        if array.ndim != dimensions or (rows is not None and len(array) != rows):
            raise ValueError(f"{name} has the shape {array.shape}, which does not fit the rows")
    if "probabilities" in arrays:
        p = arrays["probabilities"]
        if p.dtype.kind != "f" or p.shape[1] < 1:
            raise ValueError("probabilities must be numbers, with a column for each class")
        classes = p.shape[1]
        if labels and classes != labels:
            raise ValueError(f"probabilities of {classes} classes stand beside {labels} labels")
        # written in float32, so that a row adds up to 1 almost
        if not (np.isfinite(p).all() and (p >= 0).all()) or (abs(p.sum(axis=1) - 1) > 1e-2).any():
            raise ValueError("probabilities must be at least 0 and add up to 1 in every row")
    for name in ("truth", "prediction", "row"):
        if name not in arrays:
            continue
        ranks = arrays[name]
        if ranks.dtype.kind not in "iu":
            raise ValueError(f"{name} must be integers")
        most = classes if classes and name != "row" else None
        if len(ranks) and (ranks.min() < 0 or (most is not None and ranks.max() >= most)):
            raise ValueError(f"{name} must be from 0 on, and of ranks below the number of classes")
    for name in ("crossings", "conformal_scores"):
        if name in arrays:
            values = arrays[name]
            if values.ndim != 1 or values.dtype.kind != "f" or np.isnan(values).any():
                raise ValueError(f"{name} must be numbers")
            # The conformal score of a row whose truth is its mode is infinite.
            if name == "crossings" and np.isinf(values).any():
                raise ValueError(f"{name} must be finite numbers")
    check_cells(arrays, rows or 0)
    if "text" in arrays and arrays["text"].dtype.kind != "U":
        raise ValueError("text must be texts")
    if "image" in arrays:
        image = arrays["image"]
        paths = image.dtype.kind == "U" and image.ndim == 1
        if not (paths or (image.dtype.kind in "iuf" and image.ndim in (3, 4))) or (
            rows is not None and len(image) != rows
        ):
            raise ValueError("image must be the paths of images or their pixels, one for each row")


_PER_ROW = (("crossings", 1), ("text", 1), ("row", 1))
_HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63


def _plain(value: Any) -> Any:
    """For JSON, which has no infinities: they become null, as missing values do."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
