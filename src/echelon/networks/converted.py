"""A network that ends in a method's head, as other libraries' training loops want to call it."""

import inspect
from collections.abc import Mapping
from types import MethodType
from typing import Any

from numpy.typing import NDArray
from torch import Tensor, nn

from echelon.curve import RankCurve
from echelon.functional import LossParts
from echelon.methods import Method
from echelon.networks.network import OrdinalModule

# Under which name a network that gives several things gives its logits: transformers and the
# classifiers of torchvision, and torchvision's networks for segmentation.
_LOGITS = ("logits", "out")
_AUXILIARY = "aux"
# What stands for "no label" in the batches of transformers, and in torch's own losses.
_NO_LABEL = -100


class OrdinalOutput(dict[str, Tensor]):
    """What a converted network gives beside its logits: a dictionary, read by names too.

    ``logits`` are always there, ``loss`` where labels were given, and the logits of auxiliary
    heads, under the names that the network has for them, while it is trained.

    Examples
    --------
    >>> import torch
    >>> OrdinalOutput(logits=torch.zeros(2, 4)).logits.shape
    torch.Size([2, 4])
    """

    def __getattr__(self, name: str) -> Tensor:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"this output has no {name!r}; it has {', '.join(self) or 'nothing'}"
            ) from None

    def auxiliary(self) -> dict[str, Tensor]:
        """The logits of auxiliary heads, by name."""
        return {name: value for name, value in self.items() if name.startswith(_AUXILIARY)}


class OrdinalModel(OrdinalModule):
    """A network that ends in a method's head.

    Where the network gives a tensor, calling it gives logits (..., J); where it gives an object or
    a dictionary, as those of transformers do, it gives an :class:`OrdinalOutput`. :meth:`loss` and
    :meth:`curve` take both. With ``labels=`` the output holds the loss too, so that a loop which
    expects networks to know their loss, such as the Trainer of transformers, can train it.

    Parameters
    ----------
    network : nn.Module
        It must end in the head of `method`.
    method : Method
        The method whose head the network ends in.
    dim : int
        The dimension of the logits that has the size J: 1 of a dense output (N, J, height, width).
    auxiliary_weight : float
        What the loss of each auxiliary head counts beside that of the logits.

    Examples
    --------
    :func:`echelon.convert` makes one of a classifier; a network of your own goes in as it is:

    >>> import torch, echelon
    >>> corn = echelon.method("corn", num_classes=5)
    >>> network = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), corn.head(32))
    >>> model = OrdinalModel(network, corn)
    >>> model(torch.zeros(2, 10), labels=torch.tensor([0, 4])).logits.shape
    torch.Size([2, 4])
    """

    # The loss is a mean over what the method counts, not over what a loop has counted.
    accepts_loss_kwargs = False

    def __init__(
        self, network: nn.Module, method: Method, *, dim: int = -1, auxiliary_weight: float = 0.4
    ) -> None:
        super().__init__()
        if not auxiliary_weight >= 0:
            raise ValueError(f"auxiliary_weight must be at least 0; got {auxiliary_weight}")
        self.network = network
        self.method = method
        self.dim = dim
        self.auxiliary_weight = auxiliary_weight
        # Loops read the names of the inputs off `forward`, and drop the columns that it lacks.
        self.__dict__["forward"] = MethodType(_called_like(network), self)

    def forward(
        self, *inputs: Any, labels: Tensor | None = None, **named_inputs: Any
    ) -> Tensor | OrdinalOutput:
        """Logits of whatever the network takes.

        Parameters
        ----------
        *inputs, **named_inputs
            What the network takes.
        labels : Tensor, shape (...), optional
            Ranks, or soft labels. The output is then an :class:`OrdinalOutput` with the loss.
            Rows with the label -100 do not count.
        """
        output = _opened(self.network(*inputs, **named_inputs), self.dim)
        if labels is None:
            return output
        soft = labels.is_floating_point()
        loss = self.loss(output, labels, ignore_index=None if soft else _NO_LABEL)
        values = output if isinstance(output, OrdinalOutput) else {"logits": output}
        return OrdinalOutput({"loss": loss, **values})

    def loss(
        self,
        logits: Tensor | OrdinalOutput,
        ranks: Tensor,
        sample_weight: Tensor | None = None,
        **options: Any,
    ) -> Tensor:
        """The method's loss of an output for ranks (...); see :meth:`Method.loss`.

        Auxiliary heads of the output count with the `auxiliary_weight`.

        Parameters
        ----------
        logits : Tensor or output of the network
            What the network gave.
        ranks : Tensor, shape (...)
            The true ranks, 0..K-1.
        sample_weight : Tensor, shape (...), optional
            What each row counts for; without it, each counts alike.
        **options
            Other arguments of :meth:`Method.loss`, such as `ignore_index`.
        """
        options = {"sample_weight": sample_weight, "dim": self.dim, **options}
        if isinstance(logits, Tensor):
            return self.method.loss(logits, ranks, **options)
        loss = self.method.loss(logits.logits, ranks, **options)
        for values in logits.auxiliary().values():
            loss = loss + self.auxiliary_weight * self.method.loss(values, ranks, **options)
        return loss

    def loss_parts(
        self,
        logits: Tensor | OrdinalOutput,
        ranks: Tensor,
        sample_weight: Tensor | None = None,
        **options: Any,
    ) -> LossParts:
        """Sum and count of the loss; see :meth:`Method.loss_parts`.

        Parameters
        ----------
        logits, ranks, sample_weight, **options
            As for :meth:`loss`.
        """
        options = {"sample_weight": sample_weight, "dim": self.dim, **options}
        if isinstance(logits, Tensor):
            return self.method.loss_parts(logits, ranks, **options)
        parts = self.method.loss_parts(logits.logits, ranks, **options)
        for values in logits.auxiliary().values():  # of the same rows, and so of the same count
            more = self.method.loss_parts(values, ranks, **options)
            parts = LossParts(parts.total + self.auxiliary_weight * more.total, parts.count)
        return parts

    def curve(self, logits: Tensor | NDArray[Any] | OrdinalOutput) -> RankCurve:
        """The distribution over ranks that an output, or its logits, stands for.

        Parameters
        ----------
        logits : Tensor, array or output of the network
            What the network gave.
        """
        return self.method.curve(
            logits.logits if isinstance(logits, OrdinalOutput) else logits, dim=self.dim
        )

    def extra_repr(self) -> str:
        """The method, shown beside the network."""
        return repr(self.method)


def _called_like(network: nn.Module) -> Any:
    """A function `forward` that says it takes what the network takes, and labels."""

    def forward(model: OrdinalModel, *inputs: Any, **named_inputs: Any) -> Tensor | OrdinalOutput:
        return type(model).forward(model, *inputs, **named_inputs)

    taken = list(inspect.signature(network.forward).parameters.values())
    if all(parameter.name != "labels" for parameter in taken):
        labels = inspect.Parameter("labels", inspect.Parameter.KEYWORD_ONLY, default=None)
        has_others = bool(taken) and taken[-1].kind is inspect.Parameter.VAR_KEYWORD
        taken.insert(len(taken) - has_others, labels)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    forward.__signature__ = inspect.Signature([itself, *taken])  # type: ignore[attr-defined]
    return forward


def _opened(output: Any, dim: int) -> Tensor | OrdinalOutput:
    """The logits, and those of auxiliary heads, out of whatever a network gives."""
    if isinstance(output, Tensor):
        return output
    if hasattr(output, "_asdict"):
        output = output._asdict()
    if isinstance(output, Mapping):
        given = {name: value for name, value in output.items() if isinstance(value, Tensor)}
    else:
        given = {"logits": output.logits} if hasattr(output, "logits") else {}
    name = next((name for name in _LOGITS if name in given), None)
    if name is None:
        raise ValueError(
            f"the network must return logits, an object with `.logits` or a dictionary with "
            f"'logits' or 'out'; got {type(output).__name__}"
        )
    logits = given[name]
    auxiliary = {
        name: value
        for name, value in given.items()
        # a network may call a loss auxiliary, too
        if name.startswith(_AUXILIARY)
        and value.dim() == logits.dim()
        and value.shape[dim] == logits.shape[dim]
    }
    return OrdinalOutput({"logits": logits, **auxiliary})
