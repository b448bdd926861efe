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

from echelon._version import __version__

if TYPE_CHECKING:
    from echelon import data, evaluation, functional, heads
    from echelon.curve import RankCurve
    from echelon.data.labels import as_ranks
    from echelon.experiments.tuned import Tuned, tune
    from echelon.methods import METHODS, Method, method
    from echelon.models.blend import AutoOrdinal, OrdinalBlend
    from echelon.models.boosting import OrdinalBoosting
    from echelon.models.cross_validation import cross_val_curve
    from echelon.models.likelihood import CumulativeLinkModel
    from echelon.models.loading import load
    from echelon.models.margin import OrdinalSVM
    from echelon.models.neighbors import MetricNeighbors
    from echelon.models.network import OrdinalClassifier
    from echelon.models.perceptron import PRank
    from echelon.models.reduction import OrdinalReduction
    from echelon.models.table import MODELS
    from echelon.networks.conversion import convert
    from echelon.networks.converted import OrdinalModel
    from echelon.networks.criterion import OrdinalLoss

__all__ = [
    "METHODS",
    "MODELS",
    "AutoOrdinal",
    "CumulativeLinkModel",
    "Method",
    "MetricNeighbors",
    "OrdinalBlend",
    "OrdinalBoosting",
    "OrdinalClassifier",
    "OrdinalLoss",
    "OrdinalModel",
    "OrdinalReduction",
    "OrdinalSVM",
    "PRank",
    "RankCurve",
    "Tuned",
    "__version__",
    "as_ranks",
    "convert",
    "cross_val_curve",
    "data",
    "evaluation",
    "functional",
    "heads",
    "load",
    "method",
    "tune",
]

# Everything is imported when it is first used, so that `import echelon` costs nothing.
_ROOMS = ("data", "evaluation", "functional", "heads")
_PLACES = {
    "METHODS": "echelon.methods",
    "MODELS": "echelon.models.table",
    "AutoOrdinal": "echelon.models.blend",
    "CumulativeLinkModel": "echelon.models.likelihood",
    "Method": "echelon.methods",
    "MetricNeighbors": "echelon.models.neighbors",
    "OrdinalBlend": "echelon.models.blend",
    "OrdinalBoosting": "echelon.models.boosting",
    "OrdinalClassifier": "echelon.models.network",
    "OrdinalLoss": "echelon.networks.criterion",
    "OrdinalModel": "echelon.networks.converted",
    "OrdinalReduction": "echelon.models.reduction",
    "OrdinalSVM": "echelon.models.margin",
    "PRank": "echelon.models.perceptron",
    "RankCurve": "echelon.curve",
    "Tuned": "echelon.experiments.tuned",
    "as_ranks": "echelon.data.labels",
    "convert": "echelon.networks.conversion",
    "cross_val_curve": "echelon.models.cross_validation",
    "load": "echelon.models.loading",
    "method": "echelon.methods",
    "tune": "echelon.experiments.tuned",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"echelon.{name}")
    if name in _PLACES:
        value = getattr(import_module(_PLACES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'echelon' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
