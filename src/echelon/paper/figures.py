"""What the CORN paper and its training logs report, to stand beside what is measured.

`published_runs.csv` has a row for each run of the published logs. Where the printed tables differ
from them (the per-seed row of CORN on Fireman repeats OR-NN's, and two cells of AES), the logs
count. What was only printed is here.
"""

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources

DATASETS: Mapping[str, str] = {
    "morph2": "MORPH-2",
    "afad": "AFAD",
    "aes": "AES",
    "fireman": "Fireman",
    "tripadvisor": "TripAdvisor",
    "coursera": "Coursera",
}
METHODS: Mapping[str, str] = {
    "ce": "CE-NN",
    "ornn": "OR-NN",
    "coral": "CORAL",
    "corn": "CORN",
    "cnnpor": "CNNPOR",
    "sord": "SORD",
    "corn_without_subsets": "CORN without subsets",
    "corn_without_subsets:mask=published": "CORN without subsets, published mask",
}
CATEGORIES = ("nature", "animals", "urban", "people")

# Test MAE on AES with VGG16 as printed; the other four methods are in the logs.
_PRINTED_VGG16: Mapping[str, tuple[float, ...]] = {
    "cnnpor": (0.29, 0.32, 0.33, 0.32),
    "sord": (0.27, 0.31, 0.28, 0.31),
}
PRINTED_AES_CORN = (0.43, 0.01)  # mean and SD with ResNet34, in the ablation table; no log of it
HIDDEN: Mapping[str, str] = {
    "ce": "300 x 200",
    "ornn": "300 x 300",
    "coral": "300 x 200",
    "corn": "300 x 300",
}


@cache
def published_runs() -> tuple[Mapping[str, str], ...]:
    """Every run of the published logs."""
    source = resources.files("echelon.paper").joinpath("published_runs.csv")
    return tuple(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))


def published(dataset: str, method: str, category: str = "") -> dict[int, dict[str, float]]:
    """MAE and RMSE by seed; empty where there is no log.

    The published ablation is the one with the published mask, whatever the paper's words say.

    Examples
    --------
    >>> published("fireman", "corn")[2]
    {'mae': 0.77, 'rmse': 1.09}
    """
    if category and method in _PRINTED_VGG16:
        return {0: {"mae": _PRINTED_VGG16[method][CATEGORIES.index(category)]}}
    if method == "corn_without_subsets":
        return {}
    name = method.split(":")[0]
    return {
        int(run["seed"]): {"mae": float(run["mae"]), "rmse": float(run["rmse"])}
        for run in published_runs()
        if (run["dataset"], run["method"], run["category"]) == (dataset, name, category)
    }


def published_settings(dataset: str, method: str, category: str = "") -> tuple[str, str] | None:
    """The learning rate and the batch size of the published runs."""
    for run in published_runs():
        if (run["dataset"], run["method"], run["category"]) == (dataset, method, category):
            return run["learning_rate"], run["batch_size"]
    return None
