"""Ordinal regression: CORN and every method it is compared with, on one curve.

>>> import torch, echelon
>>> corn = echelon.method("corn", num_classes=5)
>>> network = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), corn.head(32))
>>> logits = network(torch.randn(8, 10))
>>> corn.loss(logits, torch.randint(5, (8,))).backward()
>>> corn.curve(logits).median().shape
torch.Size([8])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from echelon import data, evaluation, functional, heads
from echelon._version import __version__
from echelon.conversion import OrdinalModel, convert
from echelon.curve import RankCurve
from echelon.methods import METHODS, Method, method

if TYPE_CHECKING:
    from echelon.bundle import load
    from echelon.cross_validation import cross_val_curve
    from echelon.estimators import OrdinalClassifier

__all__ = [
    "METHODS",
    "Method",
    "OrdinalClassifier",
    "OrdinalModel",
    "RankCurve",
    "__version__",
    "convert",
    "cross_val_curve",
    "data",
    "evaluation",
    "functional",
    "heads",
    "load",
    "method",
]

# What needs pandas and scikit-learn is imported when it is first used.
_LAZY = {
    "OrdinalClassifier": "echelon.estimators",
    "cross_val_curve": "echelon.cross_validation",
    "load": "echelon.bundle",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'echelon' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_LAZY]
