"""Ordinal regression: CORN and every method it is compared with, on one curve.

>>> import torch, echelon
>>> corn = echelon.method("corn", num_classes=5)
>>> network = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), corn.head(32))
>>> logits = network(torch.randn(8, 10))
>>> corn.loss(logits, torch.randint(5, (8,))).backward()
>>> corn.curve(logits).median().shape
torch.Size([8])
"""

from echelon import data, evaluation, functional, heads
from echelon._version import __version__
from echelon.conversion import OrdinalModel, convert
from echelon.curve import RankCurve
from echelon.methods import METHODS, Method, method

__all__ = [
    "METHODS",
    "Method",
    "OrdinalModel",
    "RankCurve",
    "__version__",
    "convert",
    "data",
    "evaluation",
    "functional",
    "heads",
    "method",
]
