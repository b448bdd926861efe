"""Which layers a network's outputs come from, read off its forward pass."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import fx, nn

_TRANSPARENT = (nn.Dropout, nn.Dropout2d, nn.Identity, nn.Flatten, nn.Upsample)
_TRANSPARENT_CALLS = frozenset(
    {"dropout", "flatten", "squeeze", "view", "reshape", "contiguous", "interpolate"}
)
# What turns logits into something else.
ACTIVATIONS = frozenset(
    {"softmax", "logsoftmax", "softmin", "sigmoid", "logsigmoid", "relu", "tanh", "softplus",
     "gelu", "silu", "elu", "leakyrelu", "hardtanh", "hardsigmoid", "softmax2d", "relu6"}
)  # fmt: skip


class Origin(NamedTuple):
    """Where an output comes from: a layer, an activation, or something else."""

    layer: str | None
    activation: str | None


def trace_outputs(model: nn.Module, layers: tuple[type[nn.Module], ...]) -> dict[str, Origin]:
    """Follow the outputs of the forward pass back to where they come from.

    Parameters
    ----------
    model : nn.Module
    layers : tuple of classes
        What is being looked for.

    Returns
    -------
    dict
        By the names under which the network gives its outputs in training; that of a single one is
        "". Empty where the forward pass cannot be traced.

    Examples
    --------
    >>> network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 5))
    >>> trace_outputs(network, (nn.Linear,))
    {'': Origin(layer='2', activation=None)}
    """

    class Tracer(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return isinstance(m, layers) or super().is_leaf_module(m, module_qualified_name)

    try:
        with _in_training(model):  # auxiliary heads are there only then
            graph = Tracer().trace(nn.Sequential(model))
    except Exception:  # tracing runs the model's own code, which may fail in any way
        return {}
    (output,) = (node for node in graph.nodes if node.op == "output")
    return {name: _origin(given, model, layers) for name, given in _named(output.args[0]).items()}


@contextmanager
def _in_training(model: nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    model.train()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _named(output: Any) -> dict[str, Any]:
    """The outputs by name: of a dictionary, of a named tuple, or of a single thing."""
    if isinstance(output, dict):
        return {str(name): given for name, given in output.items()}
    if isinstance(output, fx.Node) and output.op == "call_function":
        fields = getattr(output.target, "_fields", None)
        if fields is not None:
            return dict(zip(fields, output.args, strict=False))
    return {"": output}


def _origin(node: Any, model: nn.Module, layers: tuple[type[nn.Module], ...]) -> Origin:
    while isinstance(node, fx.Node):
        if node.op == "call_module":
            name = str(node.target).removeprefix("0").removeprefix(".")
            module = model.get_submodule(name)
            if isinstance(module, layers):
                return Origin(name, None)
            if not isinstance(module, _TRANSPARENT):
                kind = type(module).__name__
                return Origin(None, kind if kind.lower() in ACTIVATIONS else None)
        elif node.op in ("call_function", "call_method"):
            kind = str(getattr(node.target, "__name__", node.target))
            if kind not in _TRANSPARENT_CALLS:
                plain = kind.replace("_", "").lower()
                return Origin(None, kind if plain in ACTIVATIONS else None)
        else:
            break
        node = node.args[0]
    return Origin(None, None)
