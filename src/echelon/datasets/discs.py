"""Generated images whose rank is a measurable quantity, with everything about it known.

An image shows a disc, somewhere and of some size, of which a sector is filled, on a noisy ground.
The rank is the filled share with normal noise, cut at population quantiles. A predictor that
measured the share without error would have the probabilities that are given: none does better.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from echelon.datasets.latent import LatentRanks, draw_ranks, require_latent

_FILLED, _EMPTY, _GROUND = 200, 110, 40  # grey values


@dataclass(frozen=True)
class Discs(LatentRanks):
    """Generated images, their ranks, and the truth behind them.

    Parameters
    ----------
    images : array of uint8, shape (n, size, size)
        Grey images, 0 to 255.
    ranks : array of int64, shape (n,)
        The rank of each row, 0..K-1.
    shares : array of float64, shape (n,)
        The filled share of each disc, 0 to 1.
    boundaries : array of float64, shape (K-1,)
        Population quantiles at 1/K, 2/K, ..: the same for every n and seed.
    noise : float
        Standard deviation of the noise in the rank.

    Examples
    --------
    >>> discs = make_discs(4, num_classes=5, size=16)
    >>> discs.images.shape, discs.bayes_probabilities.shape
    ((4, 16, 16), (4, 5))
    """

    images: NDArray[np.uint8]
    ranks: NDArray[np.int64]
    shares: NDArray[np.float64]
    boundaries: NDArray[np.float64]
    noise: float

    @property
    def signal(self) -> NDArray[np.float64]:
        """The filled share of each disc, (n,)."""
        return self.shares


def make_discs(
    n: int, num_classes: int = 5, *, size: int = 24, noise: float = 0.1, seed: int = 0
) -> Discs:
    """Generate images of partly filled discs.

    Parameters
    ----------
    n : int
        Number of images.
    num_classes : int
        K, at least 2.
    size : int
        Pixels a side, at least 16.
    noise : float
        Standard deviation of the noise in the rank, greater than 0, as a share of the disc.
    seed : int
        Images of different seeds are of the same population: fit on one, test on another.

    Examples
    --------
    >>> discs = make_discs(10, seed=1)
    >>> discs.images.shape, discs.bayes_probabilities.shape
    ((10, 24, 24), (10, 5))
    """
    require_latent(n, num_classes, noise)
    if size < 16:
        raise ValueError(f"size must be at least 16 pixels; got {size}")
    generator = np.random.default_rng(seed)
    shares = generator.random(n)
    images = np.stack([_draw(float(share), size, generator) for share in shares])
    boundaries = np.array(_population_quantiles(num_classes, float(noise)))
    ranks = draw_ranks(shares, boundaries, noise, generator)
    return Discs(images, ranks, shares, boundaries, float(noise))


def _draw(share: float, size: int, generator: np.random.Generator) -> NDArray[np.uint8]:
    fine = 4  # points a pixel and side, so that edges are smooth
    radius = size * generator.uniform(0.32, 0.45)
    room = size / 2 - radius
    x0, y0 = size / 2 + generator.uniform(-room, room, size=2)
    points = (np.arange(size * fine) + 0.5) / fine
    x, y = points[None] - x0, points[:, None] - y0
    turned = (np.arctan2(y, x) / (2 * np.pi) - generator.random()) % 1.0
    inside = x**2 + y**2 <= radius**2
    values = np.where(inside, np.where(turned < share, _FILLED, _EMPTY), _GROUND)
    pixels = values.reshape(size, fine, size, fine).mean((1, 3))
    noisy = pixels + generator.normal(scale=8.0, size=pixels.shape)
    drawn: NDArray[np.uint8] = noisy.round().clip(0, 255).astype(np.uint8)
    return drawn


@lru_cache(maxsize=16)
def _population_quantiles(num_classes: int, noise: float) -> tuple[float, ...]:
    """Where a uniform share with normal noise is cut: its distribution function is integrated."""
    points = torch.linspace(-8 * noise, 1 + 8 * noise, 200_001, dtype=torch.float64)
    # P(share + noise <= t) is the mean of ndtr((t - s) / noise) over s in 0..1, in closed form
    below = noise * (_ndtr_integral(points / noise) - _ndtr_integral((points - 1) / noise))
    shares = np.arange(1, num_classes) / num_classes
    return tuple(np.interp(shares, below.numpy(), points.numpy()).tolist())


def _ndtr_integral(z: torch.Tensor) -> torch.Tensor:
    """The integral of the normal distribution function up to z."""
    density = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    integral: torch.Tensor = z * torch.special.ndtr(z) + density
    return integral
