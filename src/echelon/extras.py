"""Packages that an installation may lack: what imports one asks here, and is told what to install.

Invariant: nothing else in echelon catches an ImportError. A package that is there but cannot be
imported gets a sentence of its own, as installing it once more would not help.
"""

import importlib
import importlib.util
import os
import sys
from typing import Any

# What brings each package: the extra of echelon.
_EXTRAS = {
    "PIL": "vision",
    "altair": "report",
    "dlib": "faces",
    "fastapi": "serve",
    "formulaic": "formula",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "optuna": "tune",
    "openpyxl": "excel",
    "pyarrow": "parquet",
    "pydantic_core": "serve",
    "ray": "ray",
    "timm": "vision",
    "tokenizers": "text",
    "torchmetrics": "metrics",
    "torchvision": "dev",
    "transformers": "text",
    "uvicorn": "serve",
    "vl_convert": "report",
}
# What keeps a package from sending reports of its own, before it is imported: the variable that it
# reads. Whoever has set it, or imported the package before, has decided for themselves.
_SILENCED = {"onnxruntime": "ORT_DISABLE_TELEMETRY"}
_USING_TORCHVISION = ("lightning", "timm", "torchmetrics", "transformers")
_OPERATOR = "operator torchvision::nms does not exist"
_schemas: list[Any] = []  # kept, as what they declare goes with them


def require(module: str, purpose: str) -> Any:
    """Import a module of an extra, or raise an error that says what to install.

    Parameters
    ----------
    module : str
        Its full name, such as ``"timm"`` or ``"ray.util.joblib"``.
    purpose : str
        What needs it, in the plural: the error begins with it.

    Examples
    --------
    >>> require("json", "tests").loads("1")
    1
    """
    package = module.partition(".")[0]
    try:
        return _imported(module)
    except ImportError as error:
        missing = (error.name or "").partition(".")[0] in (package, "")
        extra = _EXTRAS[package]
        reason = "" if missing else f" ({error})"
        raise ValueError(
            f"{purpose} need the extra `{extra}`: pip install 'echelon[{extra}]'{reason}"
        ) from None
    except (OSError, RuntimeError) as error:
        first_line = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{purpose} need {package}, which is installed but cannot be imported: {first_line}. "
            f"{_advice(first_line)}"
        ) from None


def _imported(module: str) -> Any:
    package = module.partition(".")[0]
    if package in _SILENCED:
        os.environ.setdefault(_SILENCED[package], "1")
    # A torchvision that was built for another torch, or without its compiled half, fails at its own
    # import; with it fail timm, torchmetrics, lightning and, when their parts are first used,
    # transformers. None of them needs anything of that half.
    first = "torchvision" if package in _USING_TORCHVISION and _is_there("torchvision") else module
    try:
        importlib.import_module(first)
    except RuntimeError as error:
        if _OPERATOR not in str(error) or _schemas:
            raise
        _declare_operators()
        _forget("torchvision", package)
    return importlib.import_module(module)


def _is_there(package: str) -> bool:
    return package in sys.modules or importlib.util.find_spec(package) is not None


def _declare_operators() -> None:
    """Declare the two operators that torchvision asks torch for when it is imported."""
    import torch

    library: Any = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _schemas.append(library)


def _forget(*packages: str) -> None:
    """Drop what a failed import left half done; None stands for what must not be imported."""
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        if sys.modules[name] is not None:
            del sys.modules[name]


def _advice(reason: str) -> str:
    if "torchvision" not in reason:
        return "Install it once more, for the torch that is here"
    from importlib.metadata import version

    return (
        f"Install the torchvision that belongs to torch {version('torch')}: "
        f"pip install --force-reinstall torchvision"
    )
