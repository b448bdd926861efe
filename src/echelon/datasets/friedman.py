"""Friedman's function cut into ordered classes, with everything about it known.

The Fireman data of the CORN paper are of this kind: ten uniform features of which five matter, a
response with normal noise, and classes that are equally likely in the population. So data of any
size can be generated, and the best possible predictor is known exactly.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from echelon.datasets.latent import LatentRanks, draw_ranks, normal_cdf, require_latent

NUM_FEATURES = 10

_GRID_STEP = 1e-3
_CHUNK = 65_536  # rows whose float64 intermediates are held at once


@dataclass(frozen=True)
class Friedman(LatentRanks):
    """Rows of Friedman's function, their ranks, and the truth behind them.

    Parameters
    ----------
    features : array of float32, shape (n, 10)
        Uniform on [0, 1); the last five have no influence.
    ranks : array of int64, shape (n,)
        The rank of each row, 0..K-1.
    boundaries : array of float64, shape (K-1,)
        Population quantiles of the response at 1/K, 2/K, ...: the same for every n and seed.
    noise : float
        Standard deviation of the noise in the response.

    Examples
    --------
    >>> data = make_friedman(4, num_classes=5)
    >>> data.features.shape, data.bayes_probabilities.shape
    ((4, 10), (4, 5))
    """

    features: NDArray[np.float32]
    ranks: NDArray[np.int64]
    boundaries: NDArray[np.float64]
    noise: float

    @property
    def signal(self) -> NDArray[np.float64]:
        """Friedman's function of each row, (n,)."""
        return friedman_function(self.features)


def make_friedman(
    n: int, num_classes: int = 16, noise: float = 1.0, seed: int | None = 0
) -> Friedman:
    """Generate ordinal data from Friedman's function.

    The response is ``10 sin(pi x1 x2) + 20 (x3 - 0.5)^2 + 10 x4 + 5 x5`` plus normal noise, cut at
    its population quantiles into equally likely classes.

    Parameters
    ----------
    n : int
        Number of rows.
    num_classes : int
        K, at least 2.
    noise : float
        Standard deviation of the noise.
    seed : int or None
        Data of different seeds are of the same population: fit on one, test on another. None
        draws a new one every time.

    Examples
    --------
    >>> data = make_friedman(1000, num_classes=5, seed=3)
    >>> data.features.shape, data.bayes_probabilities.shape
    ((1000, 10), (1000, 5))
    >>> sorted(set(data.ranks.tolist()))
    [0, 1, 2, 3, 4]
    """
    require_latent(n, num_classes, noise, noiseless=True)
    generator = np.random.default_rng(seed)
    features = generator.random((n, NUM_FEATURES), dtype=np.float32)
    boundaries = np.array(_population_quantiles(num_classes, float(noise)))
    ranks = draw_ranks(friedman_function(features), boundaries, noise, generator)
    return Friedman(features, ranks, boundaries, float(noise))


def fitted_probabilities(
    features: NDArray[np.floating], ranks: NDArray[np.int64], new: NDArray[np.floating]
) -> NDArray[np.float64]:
    """P(y = k) of new rows (n, K) where the function is Friedman's and the cuts are not known.

    For data of this kind that somebody else generated: the boundaries and the noise are fitted to
    rows (m, 10) and their ranks (m,) by maximum likelihood. With thousands of rows for these few
    numbers that is the best possible predictor, to the third decimal.
    """
    signal = torch.from_numpy(friedman_function(features))
    truth = torch.from_numpy(ranks.astype(np.int64))
    num_classes = int(ranks.max()) + 1
    order = np.sort(signal.numpy() + np.random.default_rng(0).standard_normal(len(signal)))
    first = np.quantile(order, np.arange(1, num_classes) / num_classes)
    # the first boundary, the logarithms of the gaps between them, and that of the noise
    numbers = torch.from_numpy(
        np.concatenate([first[:1], np.log(np.maximum(np.diff(first), 1e-3)), [0.0]])
    ).requires_grad_()

    def unpack() -> tuple[torch.Tensor, torch.Tensor]:
        gaps = torch.cat([numbers[:1], numbers[1:-1].exp()])
        return gaps.cumsum(0), numbers[-1].exp()

    optimiser = torch.optim.LBFGS([numbers], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        boundaries, noise = unpack()
        far = torch.full((1,), 1e6, dtype=torch.float64)
        ends = torch.cat([-far, boundaries, far])
        upper, lower = (torch.special.ndtr((ends[i] - signal) / noise) for i in (truth + 1, truth))
        loss: torch.Tensor = -(upper - lower).clamp(min=1e-300).log().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    boundaries, noise = (tensor.detach().numpy() for tensor in unpack())
    fitted = Friedman(np.asarray(new, np.float32), np.zeros(0, np.int64), boundaries, float(noise))
    return fitted.bayes_probabilities


def friedman_function(features: NDArray[np.floating]) -> NDArray[np.float64]:
    """The response without noise, (n,), of features (n, 10)."""
    result = np.empty(len(features))
    for start in range(0, len(features), _CHUNK):
        x1, x2, x3, x4, x5 = features[start : start + _CHUNK, :5].T.astype(np.float64)
        result[start : start + _CHUNK] = (
            10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5
        )
    return result


@lru_cache(maxsize=64)
def _population_quantiles(num_classes: int, noise: float) -> tuple[float, ...]:
    """Quantiles of the response at 1/K, 2/K, .. by convolving its five independent parts.

    Each part is laid on a grid by differences of its own distribution function, which is known in
    closed form; what the grid blurs is of the order of its step squared, 1e-6.
    """
    reach = 10 * noise
    step = _GRID_STEP * max(1.0, noise)
    num_cells = math.ceil((10 + 5 + 10 + 5 + 2 * reach) / step) + 8
    edges = np.arange(num_cells + 1, dtype=np.float64) * step
    parts = [_sine_cdf(edges), _square_cdf(edges), edges / 10, edges / 5]
    if noise > 0:
        parts.append(normal_cdf((edges - reach) / noise))
    size = 2 ** math.ceil(math.log2(num_cells))
    spectrum = np.ones(size // 2 + 1, dtype=complex)
    for cdf in parts:
        spectrum *= np.fft.rfft(np.diff(cdf.clip(0, 1)), size)
    masses = np.fft.irfft(spectrum, size).clip(0)
    cumulative = np.cumsum(masses)
    cumulative /= cumulative[-1]
    # A mass in cell i sits in the middle of the sum of cells, len(parts) half steps on.
    positions = (np.arange(size) + len(parts) / 2 + 0.5) * step
    shares = np.arange(1, num_classes) / num_classes
    offset = reach if noise > 0 else 0.0
    return tuple((np.interp(shares, cumulative, positions) - offset).tolist())


def _sine_cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distribution function of 10 sin(pi u v): that of a product of uniforms is p - p log p."""
    p = np.arcsin(np.clip(x / 10, 0, 1)) / np.pi

    def product_cdf(q: NDArray[np.float64]) -> NDArray[np.float64]:
        positive = np.maximum(q, np.finfo(float).tiny)
        return q - q * np.log(positive)

    cdf: NDArray[np.float64] = product_cdf(p) + 1 - product_cdf(1 - p)
    return cdf


def _square_cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distribution function of 20 (u - 0.5)^2."""
    cdf: NDArray[np.float64] = 2 * np.sqrt(np.clip(x / 20, 0, 0.25))
    return cdf
