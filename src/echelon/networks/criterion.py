"""A method's loss as a module, for training loops that want one."""

from typing import Any

from torch import Tensor, nn

from echelon.curve import RankCurve
from echelon.methods import Method
from echelon.methods import method as make_method


class OrdinalLoss(nn.Module):
    """The loss of a method, called with logits and ranks, as skorch, ignite and fastai want it.

    Parameters
    ----------
    method : str or Method
        A name of ``echelon.METHODS``, or a method.
    num_classes : int, optional
        K; a `Method` knows it already.
    dim : int
        The dimension of the logits that has the size J: 1 of a dense output (N, J, height, width).
    ignore_index : int, optional
        What stands for "no label"; such rows do not count.
    **options
        Options of the method.

    Examples
    --------
    >>> import torch
    >>> criterion = OrdinalLoss("corn", num_classes=5)
    >>> criterion(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor(0.6931)
    >>> criterion.probabilities(torch.zeros(1, 4))
    tensor([[0.5000, 0.2500, 0.1250, 0.0625, 0.0625]])
    """

    def __init__(
        self,
        method: str | Method = "corn",
        num_classes: int | None = None,
        *,
        dim: int = -1,
        ignore_index: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if isinstance(method, str):
            if num_classes is None:
                raise ValueError(f"num_classes must be given with the method {method!r}; got None")
            method = make_method(method, num_classes, **options)
        elif options or num_classes not in (None, method.num_classes):
            raise ValueError(
                f"{method!r} already has its number of classes and its options; got "
                f"num_classes={num_classes} and options {options} beside it"
            )
        self.method = method
        self.dim = dim
        self.ignore_index = ignore_index

    def forward(self, logits: Tensor, ranks: Tensor) -> Tensor:
        """The mean loss of logits (..., J) for ranks (...)."""
        return self.method.loss(logits, ranks, dim=self.dim, ignore_index=self.ignore_index)

    def curve(self, logits: Tensor) -> RankCurve:
        """The distribution over ranks that logits stand for.

        Parameters
        ----------
        logits : Tensor, shape (..., J)
            What the method's head gives.
        """
        return self.method.curve(logits, dim=self.dim)

    def probabilities(self, logits: Tensor) -> Tensor:
        """P(y = k), (..., K), of logits: what a classifier of another library calls its output.

        Parameters
        ----------
        logits : Tensor, shape (..., J)
            What the method's head gives.
        """
        return self.curve(logits).probabilities

    def extra_repr(self) -> str:
        """The method."""
        return repr(self.method)
