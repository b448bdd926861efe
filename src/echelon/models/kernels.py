"""Kernels of rows, the features that stand for them, and scores that are sums of kernels."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from echelon.models.links import Array

KERNELS = ("rbf", "linear", "poly")
_LEAST = 1e-12  # eigenvalue in units of the largest, below which it is rounding


def kernel_matrix(x: Tensor, z: Tensor, kernel: str, gamma: float, degree: int) -> Tensor:
    """K(x, z) of rows (n, d) and (m, d), (n, m).

    exp(-gamma |x - z|^2), x.z, or (gamma x.z + 1)^degree.

    Examples
    --------
    >>> x = torch.tensor([[0.0, 1.0], [2.0, 1.0]], dtype=torch.float64)
    >>> kernel_matrix(x, x[:1], "rbf", 0.5, 3)
    tensor([[1.0000],
            [0.1353]], dtype=torch.float64)
    """
    products = x @ z.T
    if kernel == "linear":
        return products
    if kernel == "poly":
        return (gamma * products + 1) ** degree
    squares = x.square().sum(1, keepdim=True) + z.square().sum(1) - 2 * products
    return torch.exp(-gamma * squares.clamp(min=0))


def read_gamma(gamma: Any, features: Array) -> float:
    """The width of a kernel: a number, "auto" (1/d), or "scale" (1/d over the mean variance).

    Examples
    --------
    >>> read_gamma("scale", np.array([[0.0, 2.0], [0.0, 2.0]]))
    0.5
    """
    if isinstance(gamma, str) and gamma in ("scale", "auto"):
        variance = float(features.var()) if gamma == "scale" else 1.0
        return 1.0 / (features.shape[1] * variance) if variance > 0 else 1.0
    if type(gamma) in (int, float) and 0 < gamma < np.inf:
        return float(gamma)
    raise ValueError(f"gamma must be 'scale', 'auto' or a number above 0; got {gamma!r}")


class KernelFeatures(NamedTuple):
    """Features (n, r) whose products are those of the kernel, and the map (m, r) that makes them.

    Features are K(x, z) times the map, for the landmarks z (m, d).
    """

    features: Array
    to_features: Array


def kernel_features(
    x: Array, landmarks: Array, kernel: str, gamma: float, degree: int
) -> KernelFeatures:
    """Features of rows by landmarks (Nystroem): exact where the landmarks are the rows themselves.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(20, 2))
    >>> made = kernel_features(x, x, "rbf", 0.5, 3).features
    >>> exact = kernel_matrix(torch.from_numpy(x), torch.from_numpy(x), "rbf", 0.5, 3).numpy()
    >>> bool(np.allclose(made @ made.T, exact))
    True
    """
    rows, chosen = torch.from_numpy(x), torch.from_numpy(landmarks)
    among = kernel_matrix(chosen, chosen, kernel, gamma, degree).numpy()
    values, vectors = np.linalg.eigh((among + among.T) / 2)
    kept = values > _LEAST * values[-1]
    to_features = vectors[:, kept] / np.sqrt(values[kept])
    return KernelFeatures(
        kernel_matrix(rows, chosen, kernel, gamma, degree).numpy() @ to_features, to_features
    )


class KernelScore(nn.Module):
    """The score of rows, the sum of coefficients times kernels of landmarks.

    Parameters
    ----------
    num_landmarks, num_features : int
        m and d.
    kernel : {"rbf", "linear", "poly"}
    gamma : float
    degree : int
    """

    landmarks: Tensor
    coefficients: Tensor

    def __init__(
        self, num_landmarks: int, num_features: int, kernel: str, gamma: float, degree: int
    ) -> None:
        super().__init__()
        self.kernel, self.gamma, self.degree = kernel, gamma, degree
        zeros = torch.zeros(num_landmarks, num_features, dtype=torch.float64)
        self.register_buffer("landmarks", zeros)
        self.register_buffer("coefficients", torch.zeros(num_landmarks, dtype=torch.float64))

    @classmethod
    def of(
        cls, landmarks: Array, coefficients: Array, kernel: str, gamma: float, degree: int
    ) -> "KernelScore":
        """With these landmarks (m, d) and coefficients (m,)."""
        number, width = landmarks.shape
        made = cls(number, width, kernel, gamma, degree)
        made.landmarks.copy_(torch.from_numpy(landmarks))
        made.coefficients.copy_(torch.from_numpy(coefficients))
        return made

    def forward(self, features: Tensor) -> Tensor:
        """(n,) of features (n, d) in float64."""
        values = kernel_matrix(features, self.landmarks, self.kernel, self.gamma, self.degree)
        return values @ self.coefficients


class LinearScore(nn.Module):
    """The score x.w of rows.

    Parameters
    ----------
    num_features : int
    """

    coefficients: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.register_buffer("coefficients", torch.zeros(num_features, dtype=torch.float64))

    @classmethod
    def of(cls, coefficients: Array) -> "LinearScore":
        """With these coefficients (d,)."""
        made = cls(len(coefficients))
        made.coefficients.copy_(torch.from_numpy(coefficients))
        return made

    def forward(self, features: Tensor) -> Tensor:
        """(n,) of features (n, d) in float64."""
        return features @ self.coefficients
