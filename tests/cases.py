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
        return echelon.METHODS[self.name].couples_rows

    @property
    def cuts_lists(self) -> bool:
        """Whether a row is compared only with those next to it."""
        return echelon.METHODS[self.name].cuts_lists

    @property
    def is_unimodal(self) -> bool:
        """Whether the curve has one mode by construction."""
        return echelon.METHODS[self.name].is_unimodal

    @property
    def borrows(self) -> bool:
        """Whether the curve is fitted beside the loss, by a term without a value."""
        return echelon.METHODS[self.name].borrows_probabilities


THOROUGH = bool(os.environ.get("ECHELON_THOROUGH"))  # as in `make test-slow`

CASES = [
    *(Case(name) for name in echelon.METHODS),
    Case("ornn", {"normaliser": "rows"}),
    Case("corn", {"normaliser": "per_task"}),
    Case("corn_without_subsets", {"mask": "published"}),
    Case("sord", {"distance": "squared", "temperature": 0.7}),
    Case("cnnpor", {"pair_weight": 0.3, "score": "upper", "pairs": "all"}),
    Case("clm", {"link": "probit"}),
    Case("clm", {"link": "cloglog"}),
    Case("margin", {"thresholds": "immediate", "penalty": "smooth_hinge"}),
    Case("margin", {"penalty": "logistic"}),
    Case("ranking", {"penalty": "logistic", "gap_weight": True}),
    Case("ranking", {"penalty": "listnet", "temperature": 2.0}),
    Case("diffsort", {"network": "bitonic", "distribution": "logistic", "list_size": 4}),
    Case("sord", {"density": "beta"}),
    Case("oll", {"power": 1.0, "ce_share": 0.3}),
    Case("unimodal", {"form": "binomial"}),
    Case("unimodal", {"form": "poisson"}),
    Case("forest", {"leaves": "bernoulli"}),
    Case("forest", {"criterion": "nll", "leaf_update": "em", "units": 7}),
]
if THOROUGH:  # what shares all of its code with one above
    CASES += [
        Case("coral", {"normaliser": "per_task"}),
        Case("corn", {"normaliser": "rows"}),
        Case("margin", {"penalty": "squared_hinge", "normaliser": "rows"}),
        Case("ranking", {"gap_weight": True}),
        Case("diffsort", {"distribution": "optimal"}),
        Case("sord", {"density": "triangular"}),
        Case("cnnpor", {"score": "expected", "pairs": "all", "pair_reduction": "sum"}),
        Case("forest", {"leaves": "bernoulli", "leaf_update": "gradient", "depth": 2}),
        Case("oll", {"margin": 0.05}),
    ]

# Of those that differ in nothing but their loss, one is enough where only the curve is looked at.
CURVE_CASES = [case for case in CASES if set(case.options) <= {"link", "form", "leaves"}]


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


def task_costs(case: Case, logits: Tensor, targets: Tensor) -> Tensor:
    """What each binary task costs, (..., K-1), by the formula in words."""
    margins = logits
    if case.name == "margin":
        steps = torch.nn.functional.softplus(logits[..., 1:-1]).cumsum(-1)
        margins = -torch.cat([logits[..., :1], logits[..., :1] + steps], -1)
    z = torch.where(targets, margins, -margins)
    parabola = torch.where(z > 0, (1 - z).square() / 2, 0.5 - z)
    return {
        "logistic": torch.nn.functional.softplus(-z),
        "hinge": (1 - z).clamp(min=0),
        "smooth_hinge": torch.where(z < 1, parabola, 0.0),
        "squared_hinge": (1 - z).clamp(min=0).square(),
    }[case.options.get("penalty", "hinge" if case.name == "margin" else "logistic")]


def oracle_logits(method: echelon.Method, ranks: Tensor, sure: float = 20.0) -> Tensor:
    """Logits that put nearly all probability on each rank."""
    num_classes, ranks = method.num_classes, ranks.unsqueeze(-1)
    tasks, classes = torch.arange(num_classes - 1), torch.arange(num_classes)
    if method.spec.couples_rows and method.spec.borrows_probabilities:
        cutpoints = oracle_logits(echelon.method("clm", num_classes), ranks.squeeze(-1))
        return torch.cat([ranks.float(), cutpoints], -1)
    if method.name == "unimodal" and "form" in method.options:
        log_temperature = torch.full(ranks.shape, -4.0)
        if method.options.get("form") == "binomial":
            share = (ranks + 0.5) / num_classes
            return torch.cat([torch.logit(share), log_temperature], -1)
        return torch.cat([(ranks + 0.5).expm1().log(), log_temperature], -1)
    if method.name == "unimodal":
        # the slopes before a place hold what those after it hold, where both meet
        return _slopes_with_mode(ranks, classes, sure)
    if method.name == "regression":
        return torch.cat([ranks.float(), torch.full(ranks.shape, -2.0)], -1)
    if method.name in ("clm", "margin"):
        steps = torch.full((*ranks.shape[:-1], num_classes - 2), 2 * sure)
        cutpoints = torch.cat([sure - 2 * sure * ranks.float(), steps], -1)
        scale = torch.ones(*ranks.shape[:-1], method.num_logits - num_classes + 1)
        return torch.cat([cutpoints, scale], -1)
    if method.options.get("leaves") == "bernoulli":
        logits = torch.where(tasks < ranks, sure, -sure)
        return torch.nn.functional.logsigmoid(torch.cat([logits, -logits], -1))
    if method.num_logits == num_classes:
        return torch.where(classes == ranks, sure, 0.0)
    return torch.where(tasks < ranks, sure, -sure)


def _slopes_with_mode(ranks: Tensor, classes: Tensor, sure: float) -> Tensor:
    """Logits whose softplus is `sure` at the mode and nearly 0 elsewhere."""
    return torch.where(classes == ranks, sure, -sure)
