"""Networks for encoded tables: features (n, d) in, (n, out) or, for an ensemble, (n, k, out) out.

Invariant: a backbone has `out_features`, and is rebuilt exactly from its name, the number of
features and its options, which is what a saved model stores of it.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from echelon.networks.dropout import Dropout


class LinearBackbone(nn.Identity):
    """No hidden layer: the head sees the features.

    Parameters
    ----------
    num_features : int
        The number of features, d.
    num_scaled : int
        How many of the features, the first ones, are scaled numbers.
    """

    def __init__(self, num_features: int, num_scaled: int) -> None:
        super().__init__()
        self.out_features = num_features


class MLP(nn.Sequential):
    """Hidden layers with SiLU, which fits smooth functions better than ReLU.

    Parameters
    ----------
    num_features : int
        The number of features, d.
    num_scaled : int
        How many of the features, the first ones, are scaled numbers.
    hidden : sequence of int
        The width of each hidden layer.
    dropout : float
        The share of what each hidden layer gives that is left out in training.
    num_frequencies : int
        Periodic embeddings of each number; 0 for none.
    """

    def __init__(
        self,
        num_features: int,
        num_scaled: int,
        *,
        hidden: tuple[int, ...] = (192, 192, 192),
        dropout: float = 0.0,
        num_frequencies: int = 0,
    ) -> None:
        layers: list[nn.Module] = []
        size = num_features
        if num_frequencies and num_scaled:
            embedding = NumberEmbedding(num_features, num_scaled, num_frequencies)
            layers.append(embedding)
            size = embedding.out_features
        for width in hidden:
            layers += [nn.Linear(size, width), nn.SiLU()]
            if dropout:
                layers.append(Dropout(dropout))
            size = width
        super().__init__(*layers)
        self.out_features = size


class NumberEmbedding(nn.Module):
    """Periodic embeddings of the scaled numbers, beside all features as they are."""

    WIDTH = 8

    def __init__(self, num_features: int, num_scaled: int, num_frequencies: int) -> None:
        super().__init__()
        from rtdl_num_embeddings import PeriodicEmbeddings

        self.num_scaled = num_scaled
        self.periodic = PeriodicEmbeddings(
            num_scaled,
            self.WIDTH,
            n_frequencies=num_frequencies,
            frequency_init_scale=0.1,
            lite=True,
        )
        self.out_features = num_features + num_scaled * self.WIDTH

    def forward(self, features: Tensor) -> Tensor:
        """(n, d + 8 * scaled) of features (n, d)."""
        embedded = self.periodic(features[:, : self.num_scaled])  # (n, scaled, 8)
        return torch.cat([features, embedded.flatten(1)], -1)


class PiecewiseLinear(nn.Module):
    """Piecewise-linear embeddings of the scaled numbers, beside all features as they are.

    Quantile scaling makes a number uniform, so even pieces hold about equally many rows each.
    """

    PIECES = 16
    WIDTH = 8
    left: Tensor
    column: Tensor

    def __init__(self, num_features: int, num_scaled: int) -> None:
        super().__init__()
        edges = torch.linspace(-math.sqrt(3), math.sqrt(3), self.PIECES + 1)
        column = torch.arange(num_scaled).repeat_interleave(self.PIECES)
        self.register_buffer("left", edges[:-1].repeat(num_scaled), persistent=False)
        self.register_buffer("column", column, persistent=False)
        self.step = 2 * math.sqrt(3) / self.PIECES
        bound = 1 / math.sqrt(self.PIECES)
        self.weight = nn.Parameter(
            torch.empty(num_scaled, self.PIECES, self.WIDTH).uniform_(-bound, bound)
        )
        self.bias = nn.Parameter(torch.zeros(num_scaled, self.WIDTH))
        self.out_features = num_features + num_scaled * self.WIDTH

    def forward(self, features: Tensor) -> Tensor:
        """(n, d + 8 * scaled) of features (n, d)."""
        # Matrices only: an exporter takes the number of rows in a reshaping for a constant.
        filled = ((features[:, self.column] - self.left) / self.step).clamp(0, 1)
        blocks: Tensor = torch.block_diag(*self.weight)  # type: ignore[no-untyped-call]
        embedded = filled @ blocks + self.bias.reshape(-1)
        return torch.cat([features, embedded], -1)


class TabM(nn.Module):
    """An ensemble of `members` MLPs that share most of their weights (Gorishniy et al. 2024).

    Half of them are smooth, with SiLU on the features; the others, with ReLU on piecewise-linear
    embeddings, follow jumps and kinks as trees do. Where either kind is at home, the mean of
    their curves is near the better one.

    Parameters
    ----------
    num_features : int
        The number of features, d.
    num_scaled : int
        How many of the features, the first ones, are scaled numbers.
    hidden : tuple of int
        The width of each hidden layer.
    dropout : float
        The share of what each hidden layer gives that is left out in training.
    members : int
        The number of MLPs.
    """

    def __init__(
        self,
        num_features: int,
        num_scaled: int,
        *,
        hidden: tuple[int, ...] = (192, 192, 192),
        dropout: float = 0.0,
        members: int = 8,
    ) -> None:
        super().__init__()
        if len(set(hidden)) != 1:
            raise ValueError(f"tabm needs hidden layers of one width; got {hidden}")
        if members < 2:
            raise ValueError(f"tabm needs at least 2 members; got {members}")
        import tabm

        shared = {
            "d_out": None, "n_blocks": len(hidden), "d_block": hidden[0], "dropout": dropout,
        }  # fmt: skip
        self.smooth = tabm.TabM.make(
            n_num_features=num_features, activation="SiLU", k=(members + 1) // 2, **shared
        )
        self.embedding = PiecewiseLinear(num_features, num_scaled) if num_scaled else nn.Identity()
        size = self.embedding.out_features if num_scaled else num_features
        self.kinked = tabm.TabM.make(
            n_num_features=size, activation="ReLU", k=members // 2, **shared
        )
        self.out_features = hidden[0]

    def forward(self, features: Tensor) -> Tensor:
        """(n, members, out) of features (n, d)."""
        members = ((self.smooth, features), (self.kinked, self.embedding(features)))
        if _is_plain_inference(self):
            return torch.cat([_inferred(half, x) for half, x in members], 1)
        # Not by their own `forward`, whose checks make an exporter take the rows for a constant.
        return torch.cat([half.backbone(half.ensemble_view(x)) for half, x in members], 1)


def _inferred(half: Any, features: Tensor) -> Tensor:
    """What the layers of half of the members give, to the last bit, for half of the time of a row.

    Calling a module takes as long as what it does to one row, and so does memory for each step.
    """
    x = features.unsqueeze(1)  # (n, 1, d), of which every member gets its own by the first scales
    for linear, activation, *_ in half.backbone.blocks:
        x = ((x * linear.r) @ linear.weight.T).mul_(linear.s).add_(linear.bias)
        x = activation.forward(x)
    return x


def _is_plain_inference(module: nn.Module) -> bool:
    """Whether nothing is trained, compiled or exported."""
    return not (module.training or torch.is_grad_enabled() or torch.compiler.is_compiling())


class PaperMLP(nn.Sequential):
    """The MLP of the CORN paper as its published code has it.

    Linear layers without bias, leaky ReLU 0.01, dropout 0.2, and BatchNorm after the dropout.

    Parameters
    ----------
    num_features : int
        The number of features, d.
    num_scaled : int
        How many of the features, the first ones, are scaled numbers.
    hidden : tuple of int
        The width of each hidden layer.
    """

    def __init__(
        self, num_features: int, num_scaled: int, *, hidden: tuple[int, ...] = (300, 300)
    ) -> None:
        layers: list[nn.Module] = []
        size = num_features
        for width in hidden:
            layers += [
                nn.Linear(size, width, bias=False),
                nn.LeakyReLU(0.01),
                Dropout(0.2),
                nn.BatchNorm1d(width),
            ]
            size = width
        super().__init__(*layers)
        self.out_features = size


def output_size(
    backbone: nn.Module, num_features: int = 0, *, example: Tensor | None = None
) -> int:
    """How many features a backbone of the user's gives, tried out on two rows.

    They are rows of a table with so many features, or the example (2, ...) of other inputs.
    """
    given = torch.zeros(2, num_features) if example is None else example
    shape = ", ".join(["n", *map(str, given.shape[1:])])
    training = backbone.training
    parameter = next(backbone.parameters(), torch.zeros(0))
    backbone.eval()
    try:
        with torch.no_grad():
            tried = backbone(given.to(parameter.device))
    except Exception as error:
        raise ValueError(
            f"the backbone must take features of the shape ({shape}); it raised "
            f"{type(error).__name__}: {error}"
        ) from None
    finally:
        backbone.train(training)
    if not isinstance(tried, Tensor) or tried.dim() not in (2, 3) or len(tried) != 2:
        output = tuple(tried.shape) if isinstance(tried, Tensor) else type(tried).__name__
        raise ValueError(f"the backbone must give a tensor (n, out); for 2 rows it gave {output}")
    return int(tried.shape[-1])
