"""Every method with its options, and logits that come through its own head."""

import os
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

import echelon

IN_FEATURES = 3


@dataclass(frozen=True)
class Case:
    """A method and options to test it with."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.name, *map(str, self.options.values())])

    def method(self, num_classes: int) -> echelon.Method:
        return echelon.method(self.name, num_classes, **self.options)

    @property
    def is_flat(self) -> bool:
        """Whether the rows of a batch are coupled."""
        return self.name == "cnnpor"


THOROUGH = bool(os.environ.get("ECHELON_THOROUGH"))  # as in `make test-slow`

CASES = [
    *(Case(name) for name in echelon.METHODS),
    Case("ornn", {"normaliser": "rows"}),
    Case("corn", {"normaliser": "per_task"}),
    Case("corn_without_subsets", {"mask": "published"}),
    Case("sord", {"distance": "squared", "temperature": 0.7}),
    Case("cnnpor", {"pair_weight": 0.3}),
    Case("clm", {"link": "probit"}),
    Case("clm", {"link": "cloglog"}),
]
if THOROUGH:  # what shares all of its code with one above
    CASES += [
        Case("coral", {"normaliser": "per_task"}),
        Case("corn", {"normaliser": "rows"}),
    ]

# Of those that differ in nothing but their loss, one is enough where only the curve is looked at.
CURVE_CASES = [case for case in CASES if set(case.options) <= {"link"}]


@dataclass
class Batch:
    """Features, the head that reads them, its logits, and ranks."""

    method: echelon.Method
    head: nn.Module
    features: Tensor
    logits: Tensor
    ranks: Tensor


def make_batch(
    case: Case,
    *,
    num_classes: int = 5,
    shape: tuple[int, ...] = (12,),
    magnitude: float = 3.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Batch:
    """A random batch whose logits move by `magnitude` around what the head starts with."""
    torch.manual_seed(seed)
    method = case.method(num_classes)
    head = method.head(IN_FEATURES, dtype=dtype)
    features = torch.randn(*shape, IN_FEATURES, dtype=dtype)
    with torch.no_grad():
        moved = (head(features) - head(torch.zeros_like(features))).abs().max()
        features *= magnitude / moved
    features.requires_grad_()
    ranks = torch.randint(num_classes, shape)
    return Batch(method, head, features, head(features), ranks)


def oracle_logits(method: echelon.Method, ranks: Tensor, sure: float = 20.0) -> Tensor:
    """Logits that put nearly all probability on each rank."""
    num_classes, ranks = method.num_classes, ranks.unsqueeze(-1)
    tasks, classes = torch.arange(num_classes - 1), torch.arange(num_classes)
    if method.name == "regression":
        return torch.cat([ranks.float(), torch.full(ranks.shape, -2.0)], -1)
    if method.name == "clm":
        steps = torch.full((*ranks.shape[:-1], num_classes - 2), 2 * sure)
        return torch.cat([sure - 2 * sure * ranks.float(), steps], -1)
    if method.num_logits == num_classes:
        return torch.where(classes == ranks, sure, 0.0)
    return torch.where(tasks < ranks, sure, -sure)
