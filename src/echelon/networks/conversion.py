"""Turning an existing classifier into an ordinal model: a head in place of its last layer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor, fx, nn

from echelon.heads import (
    CutpointHead,
    ForestHead,
    RegressionHead,
    SharedWeightHead,
    UnimodalHead,
)
from echelon.methods import Method, method
from echelon.networks.network import OrdinalModule

# Names under which torchvision, timm and transformers keep the output layer of a classifier.
_OUTPUT_NAMES = frozenset(
    {
        "classification_head",
        "classifier",
        "fc",
        "head",
        "heads",
        "logits_proj",
        "out_proj",
        "output",
        "score",
    }
)
_HEADS = (SharedWeightHead, CutpointHead, RegressionHead, UnimodalHead, ForestHead)
_REPLACEABLE = (nn.Linear, *_HEADS)
_TRANSPARENT = (nn.Dropout, nn.Identity, nn.Flatten)
_TRANSPARENT_CALLS = frozenset({"dropout", "flatten", "squeeze", "view", "reshape", "contiguous"})
# What turns logits into something else.
_ACTIVATIONS = frozenset(
    {"softmax", "logsoftmax", "softmin", "sigmoid", "logsigmoid", "relu", "tanh", "softplus",
     "gelu", "silu", "elu", "leakyrelu", "hardtanh", "hardsigmoid", "softmax2d", "relu6"}
)  # fmt: skip
_LISTED = 12


class OrdinalModel(OrdinalModule):
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

    def extra_repr(self) -> str:
        """The method, shown beside the network."""
        return repr(self.method)


def convert(
    model: nn.Module,
    num_classes: int,
    method: str | Method = "corn",
    *,
    layer: str | Sequence[str] | None = None,
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
    layer : str or sequence of str, optional
        Name of the layer to replace, as in ``model.named_modules()``; several names where a
        network puts several heads together.
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
    if isinstance(model, OrdinalModel):
        model = model.network
    names = [_find_output_layer(model)] if layer is None else _named_layers(model, layer)
    for name in names:
        old = model.get_submodule(name)
        head = _head_for(old, chosen, name)
        if old is model:
            return OrdinalModel(head, chosen)
        _replace(model, old, head)
    return OrdinalModel(model, chosen)


def _head_for(old: nn.Module, chosen: Method, name: str) -> nn.Module:
    if isinstance(old, nn.LazyLinear):
        raise ValueError(
            f"layer {name!r} does not know its size yet; run the model once on a batch first"
        )
    assert isinstance(old, _REPLACEABLE)
    like = next(old.parameters())
    return chosen.head(old.in_features, device=like.device, dtype=like.dtype).train(old.training)


def _replace(model: nn.Module, old: nn.Module, head: nn.Module) -> None:
    # A layer may be registered in several places: it is replaced in all of them.
    for parent in list(model.modules()):
        for child_name, child in list(parent._modules.items()):  # named_children drops repeats
            if child is old:
                setattr(parent, child_name, head)


def _as_method(given: str | Method, num_classes: int, options: dict[str, Any]) -> Method:
    if isinstance(given, str):
        return method(given, num_classes, **options)
    if options or given.num_classes != num_classes:
        raise ValueError(
            f"{given!r} already has its number of classes and its options; got "
            f"num_classes={num_classes} and options {options} beside it"
        )
    return given


def _named_layers(model: nn.Module, layer: str | Sequence[str]) -> list[str]:
    names = [layer] if isinstance(layer, str) else list(layer)
    known = _replaceable_layers(model)
    for name in names:
        if name not in known:
            raise ValueError(f"the model has no linear layer {name!r}; it has: {_listed(known)}")
    traced = _trace_output(model)
    if traced is not None and traced.activation is not None:
        _refuse_activation(traced.activation)
    return names


def _find_output_layer(model: nn.Module) -> str:
    known = _replaceable_layers(model)
    if not known:
        raise ValueError(
            "the model has no nn.Linear layer to replace; build one with "
            "echelon.method(...).head(in_features) and put it on the features"
        )
    # What the forward pass does is the best evidence; what layers are called is the next best.
    traced = _trace_output(model)
    if traced is not None and traced.activation is not None:
        _refuse_activation(traced.activation)
    if traced is not None and traced.layer is not None:
        return traced.layer
    declared = _declared_classifier(model)
    candidates = declared or ([] if traced is not None else _last_layers(model))
    if len(candidates) == 1:
        return candidates[0]
    raise ValueError(
        f"it is not clear which layer of {type(model).__name__} is its last one; say it with "
        f"layer=..., one of: {_listed(candidates or known)}"
    )


def _refuse_activation(name: str) -> None:
    raise ValueError(f"the model ends in {name}, and a head gives logits; remove that first")


def _replaceable_layers(model: nn.Module) -> list[str]:
    """Names of linear layers and heads; the layers inside a head do not count."""
    names: list[str] = []
    heads: list[str] = []
    for name, module in model.named_modules():
        if any(name.startswith(f"{head}.") or not head for head in heads):
            continue
        if isinstance(module, _HEADS):
            heads.append(name)
        if isinstance(module, _REPLACEABLE):
            names.append(name)
    return names


def _declared_classifier(model: nn.Module) -> list[str]:
    """Where the model says itself which layers classify, as those of timm do."""
    get_classifier = getattr(model, "get_classifier", None)
    if not callable(get_classifier):
        return []
    classifier = get_classifier()
    layers = classifier if isinstance(classifier, (tuple, list)) else (classifier,)
    return [
        name
        for name in _replaceable_layers(model)
        if any(model.get_submodule(name) is one for one in layers)
    ]


def _last_layers(module: nn.Module, prefix: str = "") -> list[str]:
    """Linear layers that may be the last, going down by order and by name.

    Outside an nn.Sequential the order of registration need not be the order of use, so a child
    is taken only if it has the name of an output layer and was registered last.
    """
    if isinstance(module, _REPLACEABLE):
        return [prefix]
    if isinstance(module, nn.MultiheadAttention):
        return []
    children = list(module.named_children())
    for name, child in children:
        if type(child).__name__.lower() in _ACTIVATIONS - {"relu", "gelu", "silu", "tanh"}:
            _refuse_activation(f"{type(child).__name__} (layer {name!r})")
    trained = [pair for pair in children if next(pair[1].parameters(), None) is not None]
    if not trained:
        return []
    name, child = trained[-1]
    if len(trained) > 1 and not isinstance(module, nn.Sequential) and name not in _OUTPUT_NAMES:
        return []
    return _last_layers(child, f"{prefix}.{name}" if prefix else name)


class _Output(NamedTuple):
    """What a traced forward pass returns: a layer's result, an activation's, or something else."""

    layer: str | None
    activation: str | None


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, _REPLACEABLE) or super().is_leaf_module(m, module_qualified_name)


def _trace_output(model: nn.Module) -> _Output | None:
    """Follow the result of the forward pass back to where it comes from; None if untraceable."""
    try:
        graph = _Tracer().trace(nn.Sequential(model))
    except Exception:  # tracing runs the model's own code, which may fail in any way
        return None
    (output,) = (node for node in graph.nodes if node.op == "output")
    node = output.args[0]
    while isinstance(node, fx.Node):
        if node.op == "call_module":
            name = str(node.target).removeprefix("0").removeprefix(".")
            module = model.get_submodule(name)
            if isinstance(module, _REPLACEABLE):
                return _Output(name, None)
            if not isinstance(module, _TRANSPARENT):
                kind = type(module).__name__
                return _Output(None, kind if kind.lower() in _ACTIVATIONS else None)
        elif node.op in ("call_function", "call_method"):
            kind = str(getattr(node.target, "__name__", node.target))
            if kind not in _TRANSPARENT_CALLS:
                plain = kind.replace("_", "").lower()
                return _Output(None, kind if plain in _ACTIVATIONS else None)
        else:
            break
        node = node.args[0]
    return _Output(None, None)


def _listed(names: list[str]) -> str:
    hidden = len(names) - _LISTED
    shown = ", ".join(repr(name) for name in names[-_LISTED:]) or "none"
    return f"{shown} (and {hidden} earlier ones)" if hidden > 0 else shown
