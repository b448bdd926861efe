"""The head of a forest of soft trees."""

import numpy as np
import torch
from torch import Tensor, nn

from echelon.functional import (
    LeafUpdate,
    Leaves,
    grown_shares,
    leaf_routes,
    log_mixture,
    num_forest_logits,
    updates_leaves,
)
from echelon.heads.layers import in_full_precision

_STEEPNESS_AT_START = 8.0  # of a leaf's logits over the whole scale of ranks
_NOISE_AT_START = 0.1  # by which trees differ
_MEMORY = 0.95  # what an update by expectation maximisation keeps of the batches before


class ForestHead(nn.Module):
    """Trees whose splits are sigmoids of linear units, and leaves that hold probabilities.

    With ``leaf_update="em"`` the leaves do not learn by gradient. While the network trains, each
    backward pass gives what every leaf is expected to hold of the batch; the head keeps a running
    mean of that, and the leaves are its shares (expectation maximisation online, Cappé and
    Moulines 2009). The papers collect batches and then iterate; on one batch without a memory both
    are the same step, which never raises the loss. This works on one device alone.

    Parameters
    ----------
    in_features, num_classes : int
        The size of the features, and the number of classes K.
    trees, depth, units, leaves, leaf_update
        As for :func:`echelon.functional.forest_loss`.
    device, dtype : optional
        As for :class:`torch.nn.Linear`.

    Examples
    --------
    >>> head = ForestHead(8, num_classes=5, trees=2, depth=3)
    >>> head(torch.zeros(4, 8)).shape
    torch.Size([4, 5])
    """

    thresholds = ("leaves", "split.bias")  # their size is part of the scale
    read: Tensor
    expected: Tensor

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        trees: int = 5,
        depth: int = 5,
        units: int | None = None,
        leaves: Leaves = "softmax",
        leaf_update: LeafUpdate | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.num_classes = num_classes
        self.trees, self.depth, self.kind = trees, depth, leaves
        self.updates_leaves = updates_leaves(leaves=leaves, leaf_update=leaf_update)
        splits = trees * (2**depth - 1)
        # a tree without splits reads no unit, but a layer has one
        outputs = max(1, splits if units is None else min(units, splits))
        self.split = nn.Linear(in_features, outputs, device=device, dtype=dtype)
        read = torch.from_numpy(_units_of_splits(splits, outputs)).to(self.split.weight.device)
        self.register_buffer("read", read, persistent=False)
        # their logits or, where they update themselves, what they hold: probabilities
        held = num_forest_logits(num_classes, leaves=leaves)
        if leaves == "bernoulli" and not self.updates_leaves:
            held //= 2
        start = torch.empty(trees, 2**depth, held, device=device, dtype=dtype)
        self.leaves = nn.Parameter(start)
        self._watched = 0
        if self.updates_leaves:
            self.register_buffer("expected", torch.empty_like(start))
            self._watch()
        self._start()

    def reset_parameters(self) -> None:
        """Draw new splits and new leaves."""
        self.split.reset_parameters()
        self._start()

    @torch.no_grad()
    def _start(self) -> None:
        """Leaves from the top rank to the lowest, each a wide peak, and a little noise.

        From leaves without an order a fit ends with half as large an error again: the splits must
        find first what their sides mean.
        """
        trees, leaves, _ = self.leaves.shape
        steepness = _STEEPNESS_AT_START if leaves > 1 else 0.0
        places = torch.linspace(1, 0, leaves, device=self.leaves.device)
        ranks = torch.linspace(0, 1, self.num_classes, device=self.leaves.device)
        peaks = -steepness * (places.unsqueeze(-1) - ranks).abs()  # (leaves, K)
        noise = torch.randn(trees, leaves, self.num_classes, device=self.leaves.device)
        logits = peaks + _NOISE_AT_START * noise
        shares = torch.softmax(logits, -1)
        if self.kind == "bernoulli":
            above = shares.flip(-1).cumsum(-1).flip(-1)[..., 1:]
            below = shares.cumsum(-1)[..., :-1]
            logits, shares = above.log() - below.log(), torch.cat([above, below], -1)
        self.leaves.copy_(shares if self.updates_leaves else logits)
        if self.updates_leaves:  # as if every leaf had seen its share of one row
            self.expected.copy_(self.leaves / (trees * leaves))

    def forward(self, features: Tensor) -> Tensor:
        """Logits (..., J) of features (..., in_features): logarithms of probabilities."""
        if self.updates_leaves and not torch.compiler.is_compiling():
            self._watch()
        units = in_full_precision(self.split, features)
        if units.dtype in (torch.float16, torch.bfloat16):
            units = units.float()
        splits = units.index_select(-1, self.read) if len(self.read) else units[..., :0]
        routes = leaf_routes(splits.reshape(*splits.shape[:-1], self.trees, 2**self.depth - 1))
        return log_mixture(routes, self._shares()).to(self.leaves.dtype)

    def _shares(self) -> Tensor:
        """What the leaves hold, (trees, leaves, J)."""
        leaves = self.leaves.float() if self.leaves.dtype.itemsize < 4 else self.leaves
        if self.updates_leaves:
            return leaves
        if self.kind == "softmax":
            return torch.softmax(leaves, -1)
        return torch.cat([torch.sigmoid(leaves), torch.sigmoid(-leaves)], -1)

    def _watch(self) -> None:
        """Update the leaves whenever a backward pass has reached them; a copy of a head, too."""
        if self._watched != id(self.leaves) and self.leaves.requires_grad:
            self.leaves.register_post_accumulate_grad_hook(self._update)  # type: ignore[no-untyped-call]
            self._watched = id(self.leaves)

    @torch.no_grad()
    def _update(self, leaves: Tensor) -> None:
        """Take in what a batch says of the leaves, whose gradients are then no optimiser's."""
        assert leaves.grad is not None
        self.expected.lerp_(leaves * -leaves.grad, 1 - _MEMORY)
        leaves.grad = None
        ones = -torch.ones_like(self.expected)
        if self.kind == "softmax":
            leaves.copy_(grown_shares(self.expected, ones, -1))
        else:  # P(y > k) and P(y <= k) of a threshold belong together
            pairs, slopes = (
                torch.stack(values.chunk(2, -1), -2) for values in (self.expected, ones)
            )
            leaves.copy_(grown_shares(pairs, slopes, -2).flatten(-2))


def _units_of_splits(splits: int, units: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Which unit each split reads: as evenly as can be, in an order drawn once and for all.

    A legacy generator, because its draws are promised never to change: what is read is not saved.
    """
    if units >= splits:
        return np.arange(splits)
    drawn = np.random.RandomState(0).permutation(splits)
    return (drawn % units).astype(np.int64)
