"""Output layers: from features (..., in_features) to a method's logits (..., J).

Invariants: what a method promises of its curve is built into the parameters here (ordered
cutpoints, one shared weight), never repaired by training code. A head in which one number carries
the whole prediction computes it in float32 also under autocast: bfloat16 cannot tell rank 200 from
rank 201.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from echelon.functional import Link, UnimodalForm, link_quantile, without_autocast

_NAMES_OF_CORAL_PYTORCH = {"coral_weights.weight": "score.weight", "coral_bias": "bias"}


class LinearHead(nn.Linear):
    """A linear layer with `num_logits` outputs, for CE, OR-NN, CORN, SORD, OLL, CNNPOR and RPS.

    Parameters
    ----------
    in_features, num_logits : int
        The sizes of the features and of the logits.
    device, dtype : optional
        As for :class:`torch.nn.Linear`.

    Examples
    --------
    >>> LinearHead(8, 4)(torch.zeros(2, 8)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        in_features: int,
        num_logits: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, num_logits, device=device, dtype=dtype)


class SharedWeightHead(nn.Module):
    """One weight vector for all K-1 tasks, and a bias for each (CORAL).

    The biases start descending, at the log-odds of y > k when all K ranks are equally likely, so
    that the curve does not contradict itself before training. ``load_state_dict`` takes the
    parameters of the ``CoralLayer`` of coral-pytorch as well.

    Parameters
    ----------
    in_features, num_classes : int
        The size of the features, and the number of classes K.
    device, dtype : optional
        As for :class:`torch.nn.Linear`.

    Examples
    --------
    >>> SharedWeightHead(8, num_classes=5)(torch.zeros(2, 8))[0]
    tensor([ 1.3863,  0.4055, -0.4055, -1.3863], grad_fn=<SelectBackward0>)
    """

    thresholds = ("bias",)  # parameters whose size is part of the scale, not of the complexity

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.score = nn.Linear(in_features, 1, bias=False, device=device, dtype=dtype)
        self.bias = nn.Parameter(torch.empty(num_classes - 1, device=device, dtype=dtype))
        self._start()

    def reset_parameters(self) -> None:
        """Draw a new weight and put the biases back to their start."""
        self.score.reset_parameters()
        self._start()

    def _start(self) -> None:
        with torch.no_grad():
            self.bias.copy_(-_equally_likely_cutpoints(self.bias.numel() + 1, "logit"))

    def forward(self, features: Tensor) -> Tensor:
        """Logits (..., K-1) of features (..., in_features)."""
        return in_full_precision(self.score, features) + self.bias

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **options: Any
    ) -> None:
        """Take the parameters of coral-pytorch's layer too, which are the same by other names."""
        for theirs, ours in _NAMES_OF_CORAL_PYTORCH.items():
            if prefix + theirs in state_dict:
                state_dict[prefix + ours] = state_dict.pop(prefix + theirs)
        super()._load_from_state_dict(state_dict, prefix, *args, **options)


class CutpointHead(nn.Module):
    """One score and K-1 cutpoints that are ordered by construction (cumulative link model).

    The cutpoints start where all K ranks are equally likely at a score of 0.

    Parameters
    ----------
    in_features, num_classes : int
        The size of the features, and the number of classes K.
    link : {"logit", "probit", "cloglog"}
        Only decides where the cutpoints start.
    device, dtype : optional
        As for :class:`torch.nn.Linear`.

    Examples
    --------
    >>> head = CutpointHead(8, num_classes=4)
    >>> head.cutpoints.detach()
    tensor([-1.0986,  0.0000,  1.0986])
    """

    thresholds: tuple[str, ...] = ("first_cutpoint", "steps")

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        link: Link = "logit",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.link: Link = link
        self.score = nn.Linear(in_features, 1, bias=False, device=device, dtype=dtype)
        self.first_cutpoint = nn.Parameter(torch.empty(1, device=device, dtype=dtype))
        # softplus of a step is the distance to the next cutpoint
        self.steps = nn.Parameter(torch.empty(num_classes - 2, device=device, dtype=dtype))
        self._start()

    def reset_parameters(self) -> None:
        """Draw a new weight and put the cutpoints back to their start."""
        self.score.reset_parameters()
        self._start()

    def _start(self) -> None:
        cutpoints = _equally_likely_cutpoints(self.steps.numel() + 2, self.link)
        with torch.no_grad():
            self.first_cutpoint.copy_(cutpoints[:1])
            self.steps.copy_(cutpoints.diff().expm1().log())

    @property
    def cutpoints(self) -> Tensor:
        """The ordered cutpoints, (K-1,)."""
        distances = nn.functional.softplus(self.steps).cumsum(0)
        return torch.cat([self.first_cutpoint, self.first_cutpoint + distances])

    def forward(self, features: Tensor) -> Tensor:
        """Logits (..., K-1) of features (..., in_features): first cutpoint - score, then steps."""
        first = self.first_cutpoint - in_full_precision(self.score, features)  # (..., 1)
        steps = self.steps.expand(*first.shape[:-1], -1)  # (..., K-2)
        return torch.cat([first, steps], -1)


class _ScaledCutpointHead(CutpointHead):
    """Ordered cutpoints, a score, and a scale above 0 that starts at 1."""

    thresholds = ("first_cutpoint", "steps", "raw_scale")

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, num_classes, device=device, dtype=dtype)
        # softplus of it is the scale
        self.raw_scale = nn.Parameter(torch.empty(1, device=device, dtype=dtype))
        self._start_scale()

    def reset_parameters(self) -> None:
        """Draw a new weight; put the cutpoints and the scale back to their start."""
        super().reset_parameters()
        self._start_scale()

    def _start_scale(self) -> None:
        with torch.no_grad():
            self.raw_scale.fill_(_raw_of(1.0))


class MarginHead(_ScaledCutpointHead):
    """One score among ordered cutpoints, and a scale that only the curve reads (large margins).

    The scale starts at 1. The score is not normalised: a margin of 1 must be able to grow.

    Parameters
    ----------
    in_features, num_classes : int
        The size of the features, and the number of classes K.
    device, dtype : optional
        As for :class:`torch.nn.Linear`.

    Examples
    --------
    >>> MarginHead(8, num_classes=4)(torch.zeros(2, 8)).shape
    torch.Size([2, 4])
    """

    def forward(self, features: Tensor) -> Tensor:
        """Logits (..., K) of features: first cutpoint - score, then steps, then the raw scale."""
        logits = super().forward(features)
        return torch.cat([logits, self.raw_scale.expand_as(logits[..., :1])], -1)


class ScoreHead(_ScaledCutpointHead):
    """One score for a loss that compares rows, and a map from it to the curve that learns aside.

    The map is P(y <= k) = F(c_k - a f) with ordered c and a > 0; no gradient of it reaches the
    score. It starts with a = 1 and equally likely ranks at a score of 0.

    Parameters
    ----------
    in_features, num_classes : int
        The size of the features, and the number of classes K.
    device, dtype : optional
        As for :class:`torch.nn.Linear`.

    Examples
    --------
    >>> ScoreHead(8, num_classes=4)(torch.zeros(2, 8)).shape
    torch.Size([2, 4])
    """

    def forward(self, features: Tensor) -> Tensor:
        """Logits (..., K) of features: the score, then first cutpoint - a score, then steps."""
        score = in_full_precision(self.score, features)  # (..., 1)
        scale = nn.functional.softplus(self.raw_scale)
        first = self.first_cutpoint - scale * score.detach()
        return torch.cat([score, first, self.steps.expand(*first.shape[:-1], -1)], -1)


class RegressionHead(nn.Module):
    """One value on the scale of ranks, and a spread that belongs to the head.

    The value starts around the middle rank, the spread at that of equally likely ranks.

    Parameters
    ----------
    in_features, num_classes : int
        The size of the features, and the number of classes K.
    device, dtype : optional
        As for :class:`torch.nn.Linear`.

    Examples
    --------
    >>> RegressionHead(8, num_classes=5)(torch.zeros(2, 8))[0]
    tensor([2.0000, 0.3466], grad_fn=<SelectBackward0>)
    """

    thresholds = ("value.bias", "log_sigma")

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.num_classes = num_classes
        self.value = nn.Linear(in_features, 1, device=device, dtype=dtype)
        self.log_sigma = nn.Parameter(torch.empty(1, device=device, dtype=dtype))
        self._start()

    def reset_parameters(self) -> None:
        """Draw a new weight; put the value and the spread back to their start."""
        self.value.reset_parameters()
        self._start()

    def _start(self) -> None:
        variance = (self.num_classes**2 - 1) / 12
        with torch.no_grad():
            self.value.bias.fill_((self.num_classes - 1) / 2)
            self.log_sigma.fill_(math.log(variance) / 2)

    def forward(self, features: Tensor) -> Tensor:
        """Logits (..., 2) of features (..., in_features): the value and log_sigma."""
        value = in_full_precision(self.value, features)  # (..., 1)
        return torch.cat([value, self.log_sigma.expand_as(value)], -1)


class UnimodalHead(nn.Module):
    """What a distribution with one mode is made of; see the forms of `unimodal_log_probabilities`.

    ``"slopes"`` is a linear layer with K outputs. The other forms are one value, which starts
    where the mode is the middle rank, and a temperature that belongs to the head and starts at 1.

    Parameters
    ----------
    in_features, num_classes : int
        The size of the features, and the number of classes K.
    form : {"slopes", "binomial", "poisson"}
        How a distribution with one mode is made.
    device, dtype : optional
        As for :class:`torch.nn.Linear`.

    Examples
    --------
    >>> UnimodalHead(8, num_classes=5)(torch.zeros(2, 8)).shape
    torch.Size([2, 5])
    """

    thresholds = ("value.bias", "log_temperature")

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        form: UnimodalForm = "slopes",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.num_classes = num_classes
        self.form: UnimodalForm = form
        outputs = num_classes if form == "slopes" else 1
        self.value = nn.Linear(in_features, outputs, device=device, dtype=dtype)
        if form != "slopes":
            self.log_temperature = nn.Parameter(torch.empty(1, device=device, dtype=dtype))
        self._start()

    def reset_parameters(self) -> None:
        """Draw a new weight; put the bias and the temperature back to their start."""
        self.value.reset_parameters()
        self._start()

    def _start(self) -> None:
        if self.form == "slopes":
            return  # its own bias: equal slopes have their mode in the middle
        middle = (self.num_classes - 1) / 2
        with torch.no_grad():
            self.value.bias.fill_(0.0 if self.form == "binomial" else _raw_of(middle))
            self.log_temperature.zero_()

    def forward(self, features: Tensor) -> Tensor:
        """Logits (..., K), or (..., 2) of the value and the log-temperature."""
        if self.form == "slopes":
            slopes: Tensor = self.value(features)
            return slopes
        value = in_full_precision(self.value, features)
        return torch.cat([value, self.log_temperature.expand_as(value)], -1)


def _raw_of(value: float) -> float:
    """The number whose softplus is a value above 0."""
    return value + math.log(-math.expm1(-value))


def in_full_precision(layer: nn.Linear, features: Tensor) -> Tensor:
    """A layer's outputs in the precision of its own weights, whatever autocast says."""
    with without_autocast(features.device):
        return nn.functional.linear(features.to(layer.weight.dtype), layer.weight, layer.bias)


def _equally_likely_cutpoints(num_classes: int, link: Link) -> Tensor:
    """Where a link's distribution function is 1/K, 2/K, ..; in float64, for close cutpoints."""
    shares = torch.arange(1, num_classes, dtype=torch.float64) / num_classes
    return link_quantile(shares, link)
