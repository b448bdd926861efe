"""Training: the network, the recipes, the loop and its checkpoints."""

from echelon.training.network import OrdinalNetwork
from echelon.training.recipes import RECIPES, Settings, make_settings

__all__ = ["RECIPES", "OrdinalNetwork", "Settings", "make_settings"]
