"""Fitted cumulative link models as data, and as a module that ONNX can hold."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from echelon.data.kinds.base import TABLE
from echelon.functional import clm_log_probabilities
from echelon.models.cumulative import CumulativeFit
from echelon.models.design import Design
from echelon.models.document import Described, typed
from echelon.models.links import Array, link_of
from echelon.models.partial import PartialFit, slope_places

_NARROWEST = 1e-30  # distance of two cut-points in a graph
_SERIES = 1e-6  # below which log(1 - exp(-w)) is log(w) - w / 2
_SHARED = (
    "link", "log_likelihood", "null_log_likelihood", "iterations", "converged", "aliased",
    "separated", "num_rows",
)  # fmt: skip


def describe_fit(fit: CumulativeFit | PartialFit) -> Described:
    """The fields of a fit as values of JSON and tensors."""
    is_partial = isinstance(fit, PartialFit)
    names = (*_SHARED, *(("free", "crossed") if is_partial else ("ridge", "smoothing")))
    arrays = ("slopes" if is_partial else "coefficients", "centre", "centred_cutpoints")
    tensors = {name: torch.from_numpy(getattr(fit, name)) for name in (*arrays, "covariance")}
    return Described({name: getattr(fit, name) for name in names}, tensors)


def rebuild_fit(
    described: Described, num_features: int, num_classes: int
) -> CumulativeFit | PartialFit:
    """The fit that a file describes, which is not trusted."""
    document, tensors = described
    is_partial = "free" in document
    num_cuts = num_classes - 1
    free = _places(document["free"], num_features) if is_partial else ()
    size = int(slope_places(num_features, free, num_classes).max(initial=-1)) + num_classes
    shapes: dict[str, tuple[int, ...]] = {
        "slopes" if is_partial else "coefficients": (
            (num_cuts, num_features) if is_partial else (num_features,)
        ),
        "centre": (num_features,),
        "centred_cutpoints": (num_cuts,),
    }
    if set(tensors) != {*shapes, "covariance"}:
        raise ValueError("it has tensors that have no place in a cumulative link model")
    arrays = {name: _array(tensors[name], shape, name) for name, shape in shapes.items()}
    if not is_partial and (np.diff(arrays["centred_cutpoints"]) < 0).any():
        raise ValueError("its cut-points do not fit its classes")
    covariance = tensors["covariance"]
    if covariance.dtype != torch.float64 or covariance.shape != (size, size):
        raise ValueError("its covariance does not fit its coefficients")
    link_of(typed(document["link"], str, "link"))
    fields: dict[str, Any] = {
        **arrays,
        "link": document["link"],
        "covariance": covariance.numpy(),
        "aliased": _places(document["aliased"], num_features),
        "log_likelihood": float(document["log_likelihood"]),
        "null_log_likelihood": float(document["null_log_likelihood"]),
        "iterations": typed(document["iterations"], int, "iterations"),
        "converged": typed(document["converged"], bool, "converged"),
        "separated": typed(document["separated"], bool, "separated"),
        "num_rows": typed(document["num_rows"], int, "num_rows"),
    }
    if is_partial:
        return PartialFit(**fields, free=free, crossed=typed(document["crossed"], int, "crossed"))
    return CumulativeFit(
        **fields, ridge=float(document["ridge"]), smoothing=float(document["smoothing"])
    )


def _places(listed: Any, size: int) -> tuple[int, ...]:
    places = tuple(typed(place, int, "column") for place in listed)
    if any(not 0 <= place < size for place in places) or len(set(places)) != len(places):
        raise ValueError("it names columns that it has not")
    return places


def _array(tensor: Tensor, shape: tuple[int, ...], name: str) -> Array:
    if tensor.dtype != torch.float64 or not bool(tensor.isfinite().all()):
        raise ValueError(f"its {name} must be a vector of numbers")
    if tuple(tensor.shape) != shape:
        raise ValueError(f"its {name} must be of the shape {shape}; it is {tuple(tensor.shape)}")
    array: Array = tensor.numpy()
    return array


class LinkProbabilities(nn.Module):
    """From numbers and codes to log-probabilities, in float64 where ONNX has it."""

    def __init__(self, design: Design, fit: CumulativeFit | PartialFit) -> None:
        super().__init__()
        self.design = design
        self.link: Any = fit.link
        self.is_partial = isinstance(fit, PartialFit)
        self.register_buffer("centre", torch.from_numpy(fit.centre))
        slopes = fit.slopes if isinstance(fit, PartialFit) else fit.coefficients
        self.register_buffer("slopes", torch.from_numpy(slopes))
        cuts = fit.centred_cutpoints
        self.register_buffer("cuts", torch.from_numpy(cuts))
        if not self.is_partial:
            widths = np.maximum(np.diff(cuts), _NARROWEST)
            # the number whose softplus is the width
            steps = widths + np.log(-np.expm1(-widths))
            self.register_buffer("steps", torch.from_numpy(steps))

    def forward(self, cells: dict[str, tuple[Tensor, Tensor]]) -> Tensor:
        """log P(y = k) of each row, (n, K)."""
        centred = self.design(*cells[TABLE]) - self.get_buffer("centre")
        if self.is_partial:
            first, steps = self._crossing(centred)
        else:
            score = centred @ self.get_buffer("slopes")
            first = self.get_buffer("cuts")[:1] - score.unsqueeze(-1)  # (n, 1)
            steps = self.get_buffer("steps").expand(first.shape[0], -1)  # (n, K-2)
        logits = torch.cat([first, steps], -1)
        if self.link == "probit":  # onnxruntime knows its distribution function in float32 alone
            logits = logits.float()
        return clm_log_probabilities(logits, link=self.link)

    def _crossing(self, centred: Tensor) -> tuple[Tensor, Tensor]:
        """The first threshold and the steps to the next ones, put in order."""
        ends = self.get_buffer("cuts") - centred @ self.get_buffer("slopes").T  # (n, K-1)
        ends = torch.sort(ends, -1).values
        widths = (ends[:, 1:] - ends[:, :-1]).clamp(min=_NARROWEST)
        is_small = widths < _SERIES
        wide = torch.log(1 - torch.exp(-torch.where(is_small, 1.0, widths)))
        logs = torch.where(is_small, torch.log(widths) - widths / 2, wide)
        return ends[:, :1], widths + logs
