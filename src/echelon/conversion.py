"""Turning an existing classifier into an ordinal model: a head in place of its last layer."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, fx, nn

from echelon.curve import RankCurve
from echelon.functional import LossParts
from echelon.methods import Method, method

# Names under which torchvision, timm and transformers keep the output layer of a classifier.
_OUTPUT_NAMES = frozenset({"classifier", "fc", "head", "heads", "out_proj", "output", "score"})
_FINAL_ACTIVATIONS = (nn.Softmax, nn.LogSoftmax, nn.Sigmoid, nn.LogSigmoid, nn.Softmin)
_LISTED = 12


class OrdinalModel(nn.Module):
    """A network that ends in a method's head.

    Calling it gives logits (..., J), whatever the network itself wraps them in (the output objects
    of transformers are opened); :meth:`loss` and :meth:`curve` are the method's own.

    Parameters
    ----------
    network : nn.Module
        It must end in the head of `method`.
    method : Method
    """

    def __init__(self, network: nn.Module, method: Method) -> None:
        super().__init__()
        self.network = network
        self.method = method

    def forward(self, *inputs: Any, **named_inputs: Any) -> Tensor:
        """Logits (..., J) of whatever the network takes."""
        output = self.network(*inputs, **named_inputs)
        logits = getattr(output, "logits", output)
        if not isinstance(logits, Tensor):
            raise ValueError(
                f"the network must return logits or an object with `.logits`; got "
                f"{type(output).__name__}"
            )
        return logits

    def loss(self, logits: Tensor, ranks: Tensor, **options: Any) -> Tensor:
        """The method's loss of logits (..., J) for ranks (...); see :meth:`Method.loss`."""
        return self.method.loss(logits, ranks, **options)

    def loss_parts(self, logits: Tensor, ranks: Tensor, **options: Any) -> LossParts:
        """Sum and count of the loss; see :meth:`Method.loss_parts`."""
        return self.method.loss_parts(logits, ranks, **options)

    def curve(self, logits: Tensor) -> RankCurve:
        """The distribution over ranks that logits (..., J) stand for."""
        return self.method.curve(logits)

    def extra_repr(self) -> str:
        """The method, shown beside the network."""
        return repr(self.method)


def convert(
    model: nn.Module,
    num_classes: int,
    method: str | Method = "corn",
    *,
    layer: str | None = None,
    **options: Any,
) -> OrdinalModel:
    """Put an ordinal head in the place of a classifier's last linear layer.

    The model is changed in place, on its own device and in its own dtype; everything but the last
    layer keeps its weights. Where no layer is clearly the last one, nothing is changed and the
    error lists the candidates.

    Parameters
    ----------
    model : nn.Module
        From torchvision, timm, transformers, a plain nn.Sequential, or your own.
    num_classes : int
        K, the number of ranks.
    method : str or Method
    layer : str, optional
        Name of the layer to replace, as in ``model.named_modules()``.
    **options
        Options of the method.

    Examples
    --------
    >>> import torch
    >>> classifier = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
    >>> model = convert(classifier, num_classes=5)
    >>> logits = model(torch.randn(8, 10))
    >>> loss = model.loss(logits, torch.randint(5, (8,)))
    >>> model.curve(logits).median().shape
    torch.Size([8])
    """
    chosen = _as_method(method, num_classes, options)
    name = _named_layer(model, layer) if layer is not None else _find_output_layer(model)
    old = model.get_submodule(name)
    assert isinstance(old, nn.Linear)
    head = chosen.head(old.in_features, device=old.weight.device, dtype=old.weight.dtype)
    head.train(old.training)
    if old is model:
        return OrdinalModel(head, chosen)
    # A layer may be registered in several places: it is replaced in all of them.
    for parent in list(model.modules()):
        for child_name, child in list(parent._modules.items()):  # named_children drops repeats
            if child is old:
                setattr(parent, child_name, head)
    return OrdinalModel(model, chosen)


def _as_method(given: str | Method, num_classes: int, options: dict[str, Any]) -> Method:
    if isinstance(given, str):
        return method(given, num_classes, **options)
    if options or given.num_classes != num_classes:
        raise ValueError(
            f"{given!r} already has its number of classes and its options; got "
            f"num_classes={num_classes} and options {options} beside it"
        )
    return given


def _named_layer(model: nn.Module, name: str) -> str:
    linear = dict(_linear_layers(model))
    if name not in linear:
        raise ValueError(f"the model has no linear layer {name!r}; it has: {_listed(list(linear))}")
    return name


def _find_output_layer(model: nn.Module) -> str:
    everything = [name for name, _ in _linear_layers(model)]
    if not everything:
        raise ValueError(
            "the model has no nn.Linear layer to replace; build one with "
            "echelon.method(...).head(in_features) and put it on the features"
        )
    declared = _declared_classifier(model)
    candidates = declared or _last_layers(model)
    if len(candidates) != 1 and not declared:
        traced = _traced_output(model)
        candidates = [traced] if traced is not None else candidates
    if len(candidates) == 1:
        return candidates[0]
    raise ValueError(
        f"it is not clear which layer of {type(model).__name__} is its last one; say it with "
        f"layer=..., one of: {_listed(candidates or everything)}"
    )


def _linear_layers(model: nn.Module) -> Iterator[tuple[str, nn.Linear]]:
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            yield name, module


def _declared_classifier(model: nn.Module) -> list[str]:
    """Where the model says itself which layers classify, as those of timm do."""
    get_classifier = getattr(model, "get_classifier", None)
    if not callable(get_classifier):
        return []
    classifier = get_classifier()
    layers = classifier if isinstance(classifier, (tuple, list)) else (classifier,)
    return [name for name, module in _linear_layers(model) if any(module is one for one in layers)]


def _last_layers(module: nn.Module, prefix: str = "") -> list[str]:
    """Linear layers that may be the last, going down from the module by order and by name."""
    if isinstance(module, nn.Linear):
        return [prefix]
    children = [
        (name, child)
        for name, child in module.named_children()
        if isinstance(child, _FINAL_ACTIVATIONS) or next(child.parameters(), None) is not None
    ]
    if not isinstance(module, nn.Sequential):
        # Outside a Sequential the order of registration need not be the order of use.
        trained = [pair for pair in children if not isinstance(pair[1], _FINAL_ACTIVATIONS)]
        children = [(name, child) for name, child in trained if name in _OUTPUT_NAMES]
        if not children and len(trained) == 1:
            children = trained
    found: list[str] = []
    for name, child in children[-1:] if isinstance(module, nn.Sequential) else children:
        full_name = f"{prefix}.{name}" if prefix else name
        if isinstance(child, _FINAL_ACTIVATIONS):
            raise ValueError(
                f"the model ends in {type(child).__name__} (layer {full_name!r}), and a head gives "
                f"logits; remove that layer first"
            )
        found += _last_layers(child, full_name)
    return found


def _traced_output(model: nn.Module) -> str | None:
    """The linear layer whose result the model returns, where its forward can be traced."""
    try:
        graph = fx.Tracer().trace(model)
    except Exception:  # tracing runs the model's own code, which may fail in any way
        return None
    (output,) = (node for node in graph.nodes if node.op == "output")
    source = output.args[0]
    if isinstance(source, fx.Node) and source.op == "call_module":
        name = str(source.target)
        return name if isinstance(model.get_submodule(name), nn.Linear) else None
    return None


def _listed(names: list[str]) -> str:
    hidden = len(names) - _LISTED
    shown = ", ".join(repr(name) for name in names[-_LISTED:]) or "none"
    return f"{shown} (and {hidden} earlier ones)" if hidden > 0 else shown
