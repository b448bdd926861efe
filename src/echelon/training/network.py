"""An encoder, a backbone and a head: everything from raw columns to logits."""

from torch import Tensor, nn

from echelon.curve import RankCurve
from echelon.functional import LossParts
from echelon.methods import Method


class OrdinalNetwork(nn.Module):
    """From raw columns to logits, and from logits to loss and curve.

    Logits are (n, J), or (n, k, J) where the backbone is an ensemble of k members: the members are
    trained side by side, and the curve is the mean of theirs.

    Parameters
    ----------
    encoder : nn.Module
        From numbers (n, p) and codes (n, q) to features (n, d).
    backbone : nn.Module
        From features (n, d), or from a tensor for each part of a row, to (n, out) or (n, k, out).
    method : Method
    out_features : int
        Of the backbone.
    """

    def __init__(
        self, encoder: nn.Module, backbone: nn.Module, method: Method, out_features: int
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.backbone = backbone
        self.head = method.head(out_features)
        self.method = method

    def forward(self, features: Tensor | dict[str, Tensor]) -> Tensor:
        """Logits (n, J) or (n, k, J) of encoded features (n, d), or of a tensor for each part."""
        logits: Tensor = self.head(self.backbone(features))
        return logits

    def learning_rates(self) -> dict[str, float]:
        """The share of the learning rate of each parameter that has one of its own, by name."""
        own = getattr(self.backbone, "learning_rates", None)
        return {} if own is None else {f"backbone.{name}": share for name, share in own().items()}

    def loss_parts(self, logits: Tensor, ranks: Tensor, weight: Tensor | None) -> LossParts:
        """Sum of the loss over rows and members, and the count that an average batch has.

        `weight` (n,) has a mean of 1 over all rows that are trained on. The count does not know it:
        a heavy row makes its batch heavy, and not all rows of its batch light.
        """
        logits, ranks, spread = self._spread(logits, ranks, weight)
        return self.method.loss_parts(logits, ranks, sample_weight=spread, weigh_count=False)

    def loss(self, logits: Tensor, ranks: Tensor, weight: Tensor | None) -> Tensor:
        """Mean loss over rows and members."""
        if weight is not None:
            return self.loss_parts(logits, ranks, weight).mean()
        logits, ranks, _ = self._spread(logits, ranks, None)
        return self.method.loss(logits, ranks)

    def _spread(
        self, logits: Tensor, ranks: Tensor, weight: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        if logits.dim() == 2:
            return logits, ranks, weight
        shape = logits.shape[:-1]
        ranks = ranks.unsqueeze(-1).expand(shape)
        return logits, ranks, None if weight is None else weight.unsqueeze(-1).expand(shape)

    def curve(self, logits: Tensor) -> RankCurve:
        """The curve of each row; that of an ensemble is the mean over its members."""
        curve = self.method.curve(logits)
        return curve.mixture() if logits.dim() == 3 else curve
