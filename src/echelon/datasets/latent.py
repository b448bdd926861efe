"""A signal with normal noise that is cut into ordered classes: what every generator shares.

As the signal, the noise and the cuts are known, so is P(y = k) of every row, which no model beats.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray


class LatentRanks:
    """Rows whose rank is a signal with noise, cut at boundaries.

    A subclass has the fields `boundaries` (K-1,) and `noise`, and says what its `signal` (n,) is.
    """

    boundaries: NDArray[np.float64]
    noise: float

    @property
    def signal(self) -> NDArray[np.float64]:
        """What the rank of each row would be cut from without noise, (n,)."""
        raise NotImplementedError

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.boundaries) + 1

    @property
    def bayes_probabilities(self) -> NDArray[np.float64]:
        """The true P(y = k) of each row, (n, K): what no model can beat. Computed when asked."""
        return rank_probabilities(self.signal, self.boundaries, self.noise)


def require_latent(n: int, num_classes: int, noise: float, *, noiseless: bool = False) -> None:
    """Refuse numbers from which no rows can be made; `noiseless` allows a noise of 0."""
    if n < 1:
        raise ValueError(f"n must be at least 1; got {n}")
    if num_classes < 2:
        raise ValueError(f"num_classes must be at least 2; got {num_classes}")
    if not (math.isfinite(noise) and (noise > 0 or (noiseless and noise == 0))):
        least = "of at least 0" if noiseless else "greater than 0"
        raise ValueError(f"noise must be a finite number {least}; got {noise}")


def draw_ranks(
    signal: NDArray[np.float64],
    boundaries: NDArray[np.float64],
    noise: float,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """The ranks (n,) of a signal (n,) to which normal noise is added.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> draw_ranks(np.array([-5.0, 5.0]), np.array([0.0]), 1.0, generator).tolist()
    [0, 1]
    """
    response = signal + noise * generator.standard_normal(len(signal))
    return np.searchsorted(boundaries, response, side="right")


def rank_probabilities(
    signal: NDArray[np.float64], boundaries: NDArray[np.float64], noise: float
) -> NDArray[np.float64]:
    """P(y = k), (n, K), of a signal (n,) with normal noise that is cut at boundaries (K-1,).

    Examples
    --------
    >>> rank_probabilities(np.array([0.0, 3.0]), np.array([0.0]), 1.0).round(3).tolist()
    [[0.5, 0.5], [0.001, 0.999]]
    """
    if noise == 0:
        return np.eye(len(boundaries) + 1)[np.searchsorted(boundaries, signal, side="right")]
    below = normal_cdf((boundaries - signal[:, None]) / noise)  # P(y <= k), (n, K-1)
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def normal_cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard normal distribution function, of the shape of x."""
    cdf: NDArray[np.float64] = torch.special.ndtr(torch.from_numpy(np.ascontiguousarray(x))).numpy()
    return cdf
