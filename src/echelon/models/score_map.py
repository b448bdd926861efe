"""From the scores of a fitted model among its own cutpoints to a curve.

The map is that of the method `margin`, P(y <= k) = F(a (b_k - f)): its median is the number of
cutpoints below the score, which is the model's own rule, and only the scale a is left to be fitted,
on rows whose scores were made without them.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from echelon.functional import margin_log_probabilities
from echelon.models.links import Array

# Cutpoints that coincide are drawn apart by this share of their size, so that a rank that has no
# room keeps a probability.
_NARROWEST = 1e-6
_STEEPEST = 1e4  # the scale in units of the spread of scores lies between this and its inverse
_MOST_ROWS = 20_000  # which are enough for one number


class ScoreCurve(nn.Module):
    """log P(y = k) of scores, for cutpoints and a scale that were fitted.

    Parameters
    ----------
    cutpoints : array, shape (K-1,)
        Ascending.
    scale : float
        a, above 0.

    Examples
    --------
    >>> curve = ScoreCurve(np.array([0.0, 1.0]), 2.0)
    >>> curve(torch.tensor([0.5], dtype=torch.float64)).exp().numpy().round(3)
    array([[0.269, 0.462, 0.269]])
    """

    steps: Tensor
    lowest: Tensor
    raw_scale: Tensor

    def __init__(self, cutpoints: Array, scale: float) -> None:
        super().__init__()
        lowest, steps = _read(cutpoints)
        self.register_buffer("lowest", torch.tensor([lowest], dtype=torch.float64))
        self.register_buffer("steps", torch.from_numpy(steps))
        self.register_buffer("raw_scale", torch.from_numpy(_inverse_softplus(np.array([scale]))))

    def forward(self, scores: Tensor) -> Tensor:
        """(n, K) of scores (n,) in float64."""
        first = self.lowest - scores.unsqueeze(-1)  # (n, 1)
        rest = torch.cat([self.steps, self.raw_scale]).expand(first.shape[0], -1)  # (n, K-1)
        return margin_log_probabilities(torch.cat([first, rest], -1))


def fit_scale(
    scored: Sequence[tuple[Array, Array]],
    ranks: NDArray[np.int64],
    weight: Array | None = None,
) -> float:
    """The scale a of the largest likelihood, for rows that the scores have not seen.

    As if one row more of unknown rank had been seen, so that no scale is infinite.

    Parameters
    ----------
    scored : sequence of (scores, cutpoints)
        Of one fit after the other: scores (m,) of rows that it has not seen, and its cutpoints
        (K-1,).
    ranks : array, shape (n,)
        Of all these rows, in their order.
    weight : array, shape (n,), optional

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=4000)
    >>> noisy = scores + rng.logistic(scale=0.5, size=4000)
    >>> found = fit_scale([(scores, np.array([-1.0, 1.0]))], np.digitize(noisy, [-1.0, 1.0]))
    >>> round(found)  # one over the scale of the noise
    2
    """
    logits = torch.from_numpy(np.concatenate([_logits(*each) for each in scored]))
    labels = torch.from_numpy(ranks)
    weights = torch.ones(len(labels), dtype=torch.float64)
    if weight is not None and weight.any():
        weights = torch.from_numpy(weight / weight.mean())
    if len(labels) > _MOST_ROWS:
        some = torch.linspace(0, len(labels) - 1, _MOST_ROWS).long()
        logits, labels, weights = logits[some], labels[some], weights[some]
    spread = float((logits[:, 0] - logits[:, 0].mean()).abs().mean())
    unit = spread if spread > 0 else 1.0

    def loss(log_scale: float) -> float:
        scale = _inverse_softplus(np.array([np.exp(log_scale)]))
        last = torch.from_numpy(scale).expand(len(labels), 1)
        logs = margin_log_probabilities(torch.cat([logits, last], -1))
        seen = float(weights @ logs.gather(1, labels.unsqueeze(1)).squeeze(1))
        return -(seen + float(logs.mean()))

    reach = np.log(_STEEPEST)
    found = minimize_scalar(
        loss,
        bounds=(-reach - np.log(unit), reach - np.log(unit)),
        method="bounded",
        options={"xatol": 1e-4},
    )
    return float(np.exp(found.x))


def _logits(scores: Array, cutpoints: Array) -> Array:
    """What the map takes but for the scale, (n, K-1)."""
    lowest, steps = _read(cutpoints)
    return np.concatenate([lowest - scores[:, None], np.tile(steps, (len(scores), 1))], axis=1)


def _read(cutpoints: Array) -> tuple[float, Array]:
    """The lowest cutpoint, and K-2 numbers whose softplus is the distance to the next."""
    least = _NARROWEST * max(1.0, float(np.abs(cutpoints).max()))
    return float(cutpoints[0]), _inverse_softplus(np.maximum(np.diff(cutpoints), least))


def _inverse_softplus(values: Array) -> Array:
    return values + np.log(-np.expm1(-values))
