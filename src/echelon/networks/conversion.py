"""Turning an existing classifier into an ordinal model: a head in place of its last layer."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from echelon.heads import (
    CutpointHead,
    DenseHead,
    ForestHead,
    RegressionHead,
    SharedWeightHead,
    UnimodalHead,
)
from echelon.methods import Method, method
from echelon.networks.converted import OrdinalModel
from echelon.networks.tracing import ACTIVATIONS, trace_outputs

# Names under which torchvision, timm and transformers keep the output layer of a classifier.
_OUTPUT_NAMES = frozenset(
    {
        "classification_head",
        "classifier",
        "decode_head",
        "fc",
        "head",
        "heads",
        "logits_proj",
        "out_proj",
        "output",
        "score",
    }
)
# Under which names a network that gives several outputs gives the one that counts.
_MAIN_OUTPUTS = ("", "logits", "out")
_AUXILIARY = "aux"
_HEADS = (SharedWeightHead, CutpointHead, RegressionHead, UnimodalHead, ForestHead, DenseHead)
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_REPLACEABLE = (nn.Linear, *_CONVOLUTIONS, *_HEADS)
_LISTED = 12


def convert(
    model: nn.Module,
    num_classes: int,
    method: str | Method = "corn",
    *,
    layer: str | Sequence[str] | None = None,
    auxiliary_weight: float = 0.4,
    **options: Any,
) -> OrdinalModel:
    """Put an ordinal head in the place of a classifier's last layer.

    The model is changed in place, on its own device and in its own dtype; everything but the last
    layer keeps its weights. A last convolution, as a network for segmentation has it, becomes the
    method's head at every place, and auxiliary heads are replaced with the main one. Where no layer
    is clearly the last one, nothing is changed and the error lists the candidates.

    Parameters
    ----------
    model : nn.Module
        From torchvision, timm, transformers, a plain nn.Sequential, or your own.
    num_classes : int
        K, the number of ranks.
    method : str or Method
        A name of ``echelon.METHODS``, or a method.
    layer : str or sequence of str, optional
        Name of the layer to replace, as in ``model.named_modules()``; several names where a
        network puts several heads together or has auxiliary ones.
    auxiliary_weight : float
        What the loss of each auxiliary head counts, where a network has them (Inception and
        GoogLeNet, and those for segmentation).
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
    names = _find_output_layers(model) if layer is None else _named_layers(model, layer)
    # All heads are made before the first is put in its place: an error changes nothing.
    heads = {name: _head_for(model.get_submodule(name), chosen, name) for name in names}
    for name, head in heads.items():
        old = model.get_submodule(name)
        if old is model:
            model = head
        else:
            _replace(model, old, head)
    is_dense = isinstance(heads[names[0]], DenseHead)
    return OrdinalModel(model, chosen, dim=1 if is_dense else -1, auxiliary_weight=auxiliary_weight)


def _head_for(old: nn.Module, chosen: Method, name: str) -> nn.Module:
    if isinstance(old, nn.LazyLinear):
        raise ValueError(
            f"layer {name!r} does not know its size yet; run the model once on a batch first"
        )
    assert isinstance(old, _REPLACEABLE)
    like = next(old.parameters())

    def make(in_features: int) -> nn.Module:
        return chosen.head(in_features, device=like.device, dtype=like.dtype)

    if isinstance(old, (*_CONVOLUTIONS, DenseHead)):
        return DenseHead.like(old, make, name).train(old.training)
    return make(old.in_features).train(old.training)


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
            raise ValueError(
                f"the model has no linear layer or convolution {name!r}; it has: {_listed(known)}"
            )
    for origin in trace_outputs(model, _REPLACEABLE).values():
        if origin.activation is not None:
            _refuse_activation(origin.activation)
    return names


def _find_output_layers(model: nn.Module) -> list[str]:
    """The name of the last layer, and then those of auxiliary heads."""
    known = _replaceable_layers(model)
    if not known:
        raise ValueError(
            "the model has no nn.Linear layer or convolution to replace; build one with "
            "echelon.method(...).head(in_features) and put it on the features"
        )
    # What the forward pass does is the best evidence; what layers are called is the next best.
    traced = trace_outputs(model, _REPLACEABLE)
    outputs = {
        name: origin
        for name, origin in traced.items()
        if name in _MAIN_OUTPUTS or name.startswith(_AUXILIARY)
    }
    for origin in outputs.values():
        if origin.activation is not None:
            _refuse_activation(origin.activation)
    layers = [origin.layer for origin in outputs.values()]
    ends = [layer for layer in layers if layer is not None]
    if ends and len(ends) == len(layers):
        main = next((outputs[name].layer for name in _MAIN_OUTPUTS if name in outputs), None)
        if main is not None:
            return [main, *dict.fromkeys(layer for layer in ends if layer != main)]
    declared = _declared_classifier(model)
    candidates = declared or ([] if traced else _last_layers(model))
    if len(candidates) == 1:
        return candidates
    raise ValueError(
        f"it is not clear which layer of {type(model).__name__} is its last one; say it with "
        f"layer=..., one of: {_listed(candidates or known)}"
    )


def _refuse_activation(name: str) -> None:
    raise ValueError(f"the model ends in {name}, and a head gives logits; remove that first")


def _replaceable_layers(model: nn.Module) -> list[str]:
    """Names of linear layers, convolutions and heads; what is inside a head does not count."""
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
        if any(model.get_submodule(name) is layer for layer in layers)
    ]


def _last_layers(module: nn.Module, prefix: str = "") -> list[str]:
    """Layers that may be the last, going down by order and by name.

    Outside an nn.Sequential the order of registration need not be the order of use, so a child
    is taken only if it has the name of an output layer and was registered last.
    """
    if isinstance(module, _REPLACEABLE):
        return [prefix]
    if isinstance(module, nn.MultiheadAttention):
        return []
    children = list(module.named_children())
    for name, child in children:
        if type(child).__name__.lower() in ACTIVATIONS - {"relu", "gelu", "silu", "tanh"}:
            _refuse_activation(f"{type(child).__name__} (layer {name!r})")
    trained = [pair for pair in children if next(pair[1].parameters(), None) is not None]
    if not trained:
        return []
    name, child = trained[-1]
    if len(trained) > 1 and not isinstance(module, nn.Sequential) and name not in _OUTPUT_NAMES:
        return []
    return _last_layers(child, f"{prefix}.{name}" if prefix else name)


def _listed(names: list[str]) -> str:
    hidden = len(names) - _LISTED
    shown = ", ".join(repr(name) for name in names[-_LISTED:]) or "none"
    return f"{shown} (and {hidden} earlier ones)" if hidden > 0 else shown
