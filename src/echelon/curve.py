"""The curve that every method ends in, and what is read off it.

Invariant: a curve holds log-probabilities that a method computed by its own stable formula;
nothing here subtracts exceedances but an isotonic map, whose outcome they are. Labels are ranks,
0..K-1.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from echelon.functional import without_autocast

DECISIONS = ("median", "mean", "mode")
Numbers: TypeAlias = Tensor | NDArray[Any] | Sequence[Any]


class CalibrationMap(NamedTuple):
    """A map that mends probabilities; :mod:`echelon.evaluation.calibration` fits it.

    Either every log-probability is divided by `temperature`, (), or, where `rise` (K-1, m) has
    columns, P(y > k) is mapped: the map starts at ``base[k]``, (K-1,), and rises by ``rise[k, j]``
    from ``left[k, j]`` on, at ``steepness[k, j]`` times that, (K-1, m) each. Then the share
    `smoothing`, (), of the unmapped distribution is mixed in.
    """

    temperature: Tensor
    base: Tensor
    left: Tensor
    steepness: Tensor
    rise: Tensor
    smoothing: Tensor

    def increasing(self, exceedance: Tensor) -> Tensor:
        """P(y > k) (..., K-1) mapped, threshold by threshold."""
        maps = CalibrationMap(*(values.to(exceedance) for values in self))
        if torch.compiler.is_exporting():  # ONNX cannot search, so every step is looked at
            share = (exceedance.unsqueeze(-1) - maps.left) * maps.steepness  # (..., K-1, m)
            return maps.base + (share.clamp(0, 1) * maps.rise).sum(-1)
        columns = exceedance.reshape(-1, exceedance.shape[-1]).T.contiguous()  # (K-1, n)
        step = (torch.searchsorted(maps.left, columns) - 1).clamp(min=0)
        before = maps.rise.cumsum(-1) - maps.rise  # what has risen before each step
        left, steepness, rise, risen = (
            values.gather(1, step) for values in (maps.left, maps.steepness, maps.rise, before)
        )
        share = ((columns - left) * steepness).clamp(0, 1)
        mapped = maps.base.unsqueeze(-1) + risen + share * rise
        return mapped.T.reshape(exceedance.shape)


class RankCurve:
    """A distribution over K ranks for each row, read as the exceedance curve P(y > k).

    Parameters
    ----------
    log_probabilities : Tensor or array, shape (..., K)
        The logarithm of P(y = k) for each rank k.
    raw_exceedance : Tensor, shape (..., K-1), optional
        P(y > k) as the network gave it, where that may contradict itself and
        `log_probabilities` are its repair; only :meth:`crossings` reads it.

    Examples
    --------
    >>> curve = RankCurve(torch.tensor([[0.2, 0.5, 0.3]]).log())
    >>> curve.exceedance
    tensor([[0.8000, 0.3000]])
    >>> curve.median(), curve.mean()
    (tensor([1]), tensor([1.1000]))
    """

    def __init__(
        self, log_probabilities: Tensor | NDArray[Any], *, raw_exceedance: Tensor | None = None
    ) -> None:
        self.log_probabilities = _as_tensor(log_probabilities)
        self._raw_exceedance = raw_exceedance

    def __repr__(self) -> str:
        rows = tuple(self.log_probabilities.shape[:-1])
        return f"RankCurve(rows={rows}, num_classes={self.num_classes})"

    @property
    def num_classes(self) -> int:
        """The number of ranks, K."""
        return self.log_probabilities.shape[-1]

    @property
    def probabilities(self) -> Tensor:
        """P(y = k), (..., K)."""
        return self.log_probabilities.exp()

    @property
    def exceedance(self) -> Tensor:
        """P(y > k), (..., K-1): never rising with k."""
        above = self.probabilities[..., 1:].flip(-1).cumsum(-1).flip(-1)
        return above.clamp(max=1.0)

    @property
    def is_defined(self) -> Tensor:
        """Whether each row has a distribution, (...): not where a network gave NaN."""
        return ~torch.isnan(self.log_probabilities).any(-1)

    def median(self, *, missing: int | None = None) -> Tensor:
        """The lowest rank with P(y <= k) >= 0.5, (...); it minimises the expected absolute error.

        This is the papers' rule, the number of exceedances above 0.5. An exceedance of exactly
        0.5 does not count, and rounding does not decide it: 0.5 means 0.5 within 4 epsilon of the
        dtype, 5e-7 in float32.

        Parameters
        ----------
        missing : int, optional
            What stands for the rank of a row without a distribution (NaN), such as -1; without it
            such a row is an error, for this and for every other decision.
        """
        exceedance = self.exceedance
        tolerance = 4 * torch.finfo(exceedance.dtype).eps
        return self._decided((exceedance > 0.5 + tolerance).sum(-1), missing)

    def mean(self) -> Tensor:
        """The expected rank, (...), a real number; rounded, it minimises the squared error."""
        return self.exceedance.sum(-1)

    def mode(self, *, missing: int | None = None) -> Tensor:
        """The most probable rank, (...); the lowest of equals. It maximises the accuracy.

        Parameters
        ----------
        missing : int, optional
            As for :meth:`median`.
        """
        return self._decided(self.log_probabilities.argmax(-1), missing)

    def label(self, decision: str | Numbers, *, missing: int | None = None) -> Tensor:
        """The rank that a decision picks, (...).

        Parameters
        ----------
        decision : {"median", "mean", "mode"}, or numbers of shape (K, K) or (K-1,)
            The mean is rounded; a matrix holds costs for :meth:`decide`, a vector cut-points for
            :meth:`cut`.
        missing : int, optional
            As for :meth:`median`.

        Examples
        --------
        >>> curve = RankCurve(torch.tensor([[0.2, 0.8], [float("nan"), 0.5]]).log())
        >>> curve.label("mode", missing=-1)
        tensor([ 1, -1])
        """
        if not isinstance(decision, str):
            numbers = _as_tensor(decision)
            decide = self.cut if numbers.dim() == 1 else self.decide
            return decide(numbers, missing=missing)
        if decision not in DECISIONS:
            raise ValueError(
                f"decision must be one of {', '.join(map(repr, DECISIONS))}, or a matrix of costs; "
                f"got {decision!r}"
            )
        if decision == "mean":
            return self._decided(self.mean().round().nan_to_num().long(), missing)
        return self.median(missing=missing) if decision == "median" else self.mode(missing=missing)

    def _decided(self, ranks: Tensor, missing: int | None) -> Tensor:
        """Ranks (...), where every row has a distribution or something stands for its rank."""
        if missing is not None:
            return ranks.masked_fill(~self.is_defined, missing)
        if not torch.compiler.is_compiling() and not bool(self.is_defined.all()):
            undefined = (~self.is_defined).reshape(-1).nonzero().reshape(-1)
            raise ValueError(
                f"{len(undefined)} of {self.is_defined.numel()} rows have no distribution, but "
                f"NaN, the first being row {int(undefined[0])}: no rank can be picked. Look for "
                f"extreme numbers in it, or pass missing=-1 for a rank of -1"
            )
        return ranks

    def cut(self, cutpoints: Numbers, *, missing: int | None = None) -> Tensor:
        """The number of cut-points below the expected rank, (...).

        Parameters
        ----------
        cutpoints : Tensor, array or sequence, shape (K-1,)
            Numbers on the scale of ranks, in rising order.
        missing : int, optional
            As for :meth:`median`.

        Examples
        --------
        >>> curve = RankCurve(torch.tensor([[0.5, 0.2, 0.3]]).log())  # its mean is 0.8
        >>> curve.cut(torch.tensor([0.7, 1.2])), curve.cut(torch.tensor([0.9, 1.2]))
        (tensor([1]), tensor([0]))
        """
        expected, points = (self.num_classes - 1,), _as_tensor(cutpoints)
        if points.shape != expected:
            raise ValueError(f"cutpoints must have the shape {expected}; got {tuple(points.shape)}")
        mean = self.mean()
        return self._decided((mean.unsqueeze(-1) > points.to(mean)).sum(-1), missing)

    def decide(self, cost_matrix: Numbers, *, missing: int | None = None) -> Tensor:
        """The rank with the lowest expected cost, (...); the lowest of equals.

        Parameters
        ----------
        cost_matrix : Tensor, array or sequence of rows, shape (K, K)
            Cost of predicting rank j (column) when rank i (row) is true.
        missing : int, optional
            As for :meth:`median`.

        Examples
        --------
        >>> curve = RankCurve(torch.tensor([[0.6, 0.0, 0.4]]).log())
        >>> missing_the_top_is_bad = torch.tensor([[0.0, 1, 2], [1, 0, 1], [9, 9, 0]])
        >>> curve.decide(missing_the_top_is_bad)
        tensor([2])
        """
        num_classes = self.num_classes
        costs = _as_tensor(cost_matrix).to(self.log_probabilities)
        if costs.shape != (num_classes, num_classes):
            raise ValueError(
                f"cost_matrix must have the shape {(num_classes, num_classes)}, true rank by "
                f"predicted rank; got {tuple(costs.shape)}"
            )
        if not torch.compiler.is_compiling() and not bool(torch.isfinite(costs).all()):
            raise ValueError("cost_matrix must be finite; got an infinity or NaN in it")
        with without_autocast(costs.device):
            expected = self.probabilities @ costs  # (..., K)
        # Equal costs are equal but for rounding, which must not choose between them.
        rounding = 8 * torch.finfo(expected.dtype).eps * costs.abs().max()
        as_good = expected <= expected.amin(-1, keepdim=True) + rounding
        return self._decided(as_good.int().argmax(-1), missing)  # the first of them

    def calibrated(self, calibration: CalibrationMap) -> "RankCurve":
        """The curve with a map applied; crossings stay those of the raw curve.

        Parameters
        ----------
        calibration : CalibrationMap
            The map, such as the `calibration_` of a model that was calibrated.
        """
        logs = self.log_probabilities
        if not calibration.rise.shape[-1]:
            scaled = torch.log_softmax(logs / calibration.temperature.to(logs), -1)
            return RankCurve(scaled, raw_exceedance=self._raw_exceedance)
        mapped = calibration.increasing(self.exceedance)
        # Each threshold has a map of its own, so the results may cross: sorting repairs that.
        ordered = mapped.sort(-1, descending=True).values
        ends = torch.ones_like(ordered[..., :1])
        mended = torch.cat([ends, ordered], -1) - torch.cat([ordered, 0 * ends], -1)
        share = calibration.smoothing.to(logs)
        mixed = (1 - share) * mended + share * self.probabilities
        smallest = torch.finfo(mixed.dtype).tiny
        return RankCurve(mixed.clamp(min=smallest).log(), raw_exceedance=self._raw_exceedance)

    def rows(self, places: Numbers) -> "RankCurve":
        """The curves at some places of the first dimension, in their order.

        Parameters
        ----------
        places : Tensor, array or sequence of integers
            Which of the first dimension, in the order that they shall have.
        """
        raw, places = self._raw_exceedance, _as_tensor(places).to(self.log_probabilities.device)
        return RankCurve(
            self.log_probabilities[places], raw_exceedance=None if raw is None else raw[places]
        )

    def to(self, *args: Any, **options: Any) -> "RankCurve":
        """The same curve on a device or in a dtype.

        Parameters
        ----------
        *args, **options
            As :meth:`torch.Tensor.to` takes them.
        """
        raw = self._raw_exceedance
        return RankCurve(
            self.log_probabilities.to(*args, **options),
            raw_exceedance=None if raw is None else raw.to(*args, **options),
        )

    @staticmethod
    def concatenate(curves: Sequence["RankCurve"]) -> "RankCurve":
        """Curves of one number of classes, one after the other, as one.

        Parameters
        ----------
        curves : sequence of RankCurve
            The curves, in the order that their rows shall have.
        """
        raws = [curve._raw_exceedance for curve in curves]
        whole = [raw for raw in raws if raw is not None]
        return RankCurve(
            torch.cat([curve.log_probabilities for curve in curves]),
            raw_exceedance=torch.cat(whole) if len(whole) == len(curves) else None,
        )

    def mixture(self) -> "RankCurve":
        """The mean of curves (..., members, K) over their members, as curves (..., K)."""
        members = self.log_probabilities.shape[-2]
        log_probabilities = torch.logsumexp(self.log_probabilities, -2) - math.log(members)
        raw = self._raw_exceedance
        return RankCurve(log_probabilities, raw_exceedance=None if raw is None else raw.mean(-2))

    def crossings(self) -> Tensor:
        """How far the raw curve contradicted itself, (...).

        The largest rise P(y > j) - P(y > i) with j > i of the exceedances as the network gave
        them; 0 where they never rise, and always for methods that cannot contradict themselves.
        """
        raw = self._raw_exceedance
        if raw is None or raw.shape[-1] < 2:
            return torch.zeros_like(self.log_probabilities[..., 0])
        lowest_before = raw.cummin(-1).values
        return (raw - lowest_before).amax(-1)


def _as_tensor(numbers: Numbers) -> Tensor:
    if isinstance(numbers, Tensor):
        return numbers
    # a copy, as an array that nobody may write to would be warned of
    return torch.as_tensor(np.array(numbers))
