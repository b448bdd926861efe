"""The table of images that are freely had: networks, methods and baselines side by side."""

from collections.abc import Mapping, Sequence

import numpy as np

from echelon.paper.figures import METHODS
from echelon.paper.results import Result, Table, mean_and_deviation

IMAGE_SETS: Mapping[str, str] = {"retina": "RetinaMNIST", "knees": "Knees", "faces": "Faces"}
SMALL_NETWORK = "small ResNet"
_BASELINES = ("constant", "linear on encodings")
_RETINA_PUBLISHED = (
    "MedMNIST's published ResNet-18 has an accuracy of 0.524 on the test subset of RetinaMNIST "
    "(standard error 0.025 for its 400 rows)."
)


def images_table(results: Sequence[Result]) -> Table:
    """Every run on images that are freely had, baselines first, and what the tests say."""
    rows, notes = [], []
    for result in results:
        network = f"{result.backbone}, frozen" if _is_frozen(result) else SMALL_NETWORK
        title = IMAGE_SETS[result.dataset]
        names = [*_BASELINES, *METHODS]
        for name in names:
            errors = result.values(name, "mae")
            if not errors:
                continue
            by_mode = result.document["experiment"].get("accuracy_by_mode", {}).get(name, [])
            rows.append(
                [title, network, METHODS.get(name, name), str(len(errors)),
                 mean_and_deviation(errors, 3),
                 mean_and_deviation(result.values(name, "rmse"), 3),
                 mean_and_deviation(dict(enumerate(by_mode)), 3),
                 result.longest_run(name)]
            )  # fmt: skip
        notes += [f"{title}, {network}: {words}" for words in _against_corn(result)]
        if result.dataset == "retina" and not _is_frozen(result):
            notes.append(_RETINA_PUBLISHED + _retina_verdict(result))
    columns = [
        "data",
        "network",
        "method",
        "seeds",
        "MAE",
        "RMSE",
        "accuracy (mode)",
        "longest run",
    ]
    return Table("Images that are freely had", columns, rows, notes)


def _is_frozen(result: Result) -> bool:
    return ", frozen" in result.name


def _against_corn(result: Result) -> list[str]:
    """What the tests say about CORN and each other method."""
    return [
        f"{difference['sentence']}."
        for difference in result.document.get("differences", ())
        if "corn" in (difference["first"], difference["second"])
    ]


def _retina_verdict(result: Result) -> str:
    by_mode = result.document["experiment"].get("accuracy_by_mode", {}).get("corn", [])
    return f" CORN has {np.mean(by_mode):.3f} here, over {len(by_mode)} seeds." if by_mode else ""
