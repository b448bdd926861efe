"""The public names: what the rooms of the package list, and what is called by its full name."""

import importlib
from types import ModuleType
from typing import Any

ROOMS = (
    "echelon",
    "echelon.data",
    "echelon.evaluation",
    "echelon.evaluation.metrics",
    "echelon.evaluation.scorers",
    "echelon.evaluation.torchmetrics",
    "echelon.functional",
    "echelon.heads",
)


def public_names() -> dict[str, Any]:
    """Every public name by its full name, with what it names; no modules."""
    names = {}
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, ModuleType):
                assert value.__name__ in ROOMS, f"{value.__name__} is public and not in ROOMS"
            elif name != "__version__":
                names[f"{room}.{name}"] = value
    return names
