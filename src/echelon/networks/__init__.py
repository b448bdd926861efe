"""Networks without heads: from features to what a head reads."""

from echelon.networks.tabular import BACKBONES, MLP, LinearBackbone, PaperMLP, TabM, make_backbone

__all__ = ["BACKBONES", "MLP", "LinearBackbone", "PaperMLP", "TabM", "make_backbone"]
