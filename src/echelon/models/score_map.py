"""From the scores of a fitted model among its own cutpoints to a curve.

The map is that of the method `margin`, P(y <= k) = F(a (b_k - f)): its median is the number of
cutpoints below the score, which is the model's own rule, and only the scale a is left to be fitted,
on rows whose scores were made without them.
"""

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
        self.register_buffer("lowest", torch.from_numpy(cutpoints[:1].copy()))
        steps = _steps(cutpoints, float(np.abs(cutpoints).max()))
        self.register_buffer("steps", torch.from_numpy(steps))
        self.register_buffer("raw_scale", torch.from_numpy(_inverse_softplus(np.array([scale]))))

    def forward(self, scores: Tensor) -> Tensor:
        """(n, K) of scores (n,) in float64."""
        first = self.lowest - scores.unsqueeze(-1)  # (n, 1)
        rest = torch.cat([self.steps, self.raw_scale]).expand(first.shape[0], -1)  # (n, K-1)
        return margin_log_probabilities(torch.cat([first, rest], -1))


def fit_scale(distances: Array, ranks: NDArray[np.int64], weight: Array | None = None) -> float:
    """The scale a of the largest likelihood, for rows that the scores have not seen.

    As if one row more of unknown rank had been seen, so that no scale is infinite; 1 without rows.

    Parameters
    ----------
    distances : array, shape (n, K-1)
        b_k - f: the cutpoints, which may be those of several fits, minus the score of each row.
    ranks : array, shape (n,)
    weight : array, shape (n,), optional

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores, cutpoints = rng.normal(size=4000), np.array([-1.0, 1.0])
    >>> ranks = np.digitize(scores + rng.logistic(scale=0.5, size=4000), cutpoints)
    >>> round(fit_scale(cutpoints - scores[:, None], ranks))  # one over the scale of the noise
    2
    """
    if len(ranks) == 0:
        return 1.0
    weights = np.ones(len(ranks))
    if weight is not None and weight.any():
        weights = weight / weight.mean()
    if len(ranks) > _MOST_ROWS:
        some = np.linspace(0, len(ranks) - 1, _MOST_ROWS).astype(np.int64)
        distances, ranks, weights = distances[some], ranks[some], weights[some]
    first = distances[:, :1]
    steps = _steps(distances, float(np.abs(distances).mean()))
    logits = torch.from_numpy(np.concatenate([first, steps], axis=1))  # (n, K-1)
    labels, counted = torch.from_numpy(ranks).unsqueeze(1), torch.from_numpy(weights)
    spread = float(np.abs(first - first.mean()).mean())
    unit = spread if spread > 0 else 1.0

    def loss(log_scale: float) -> float:
        scale = torch.from_numpy(_inverse_softplus(np.array([np.exp(log_scale)])))
        logs = margin_log_probabilities(torch.cat([logits, scale.expand(len(labels), 1)], -1))
        return -float(counted @ logs.gather(1, labels).squeeze(1)) - float(logs.mean())

    reach = np.log(_STEEPEST)
    minimum = minimize_scalar(
        loss,
        bounds=(-reach - np.log(unit), reach - np.log(unit)),
        method="bounded",
        options={"xatol": 1e-4},
    )
    return float(np.exp(minimum.x))


def _steps(cutpoints: Array, size: float) -> Array:
    """Numbers whose softplus is the distance to the next of cutpoints, (..., K-2)."""
    least = _NARROWEST * max(1.0, size)
    return _inverse_softplus(np.maximum(np.diff(cutpoints, axis=-1), least))


def _inverse_softplus(values: Array) -> Array:
    return values + np.log(-np.expm1(-values))
