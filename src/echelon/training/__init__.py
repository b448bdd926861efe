"""Training: the recipes, the loop and its checkpoints."""

from echelon.training.recipes import RECIPES, Settings, make_settings

__all__ = ["RECIPES", "Settings", "make_settings"]
