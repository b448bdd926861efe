"""The tables of the CORN paper, each cell beside the published figure.

They are made of results: the documents that `echelon reproduce` writes, one for each experiment. A
cell that was not run shows the published figure and says so.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from echelon.evaluation.metrics import METRICS
from echelon.paper import notes as said
from echelon.paper.figures import (
    CATEGORIES,
    DATASETS,
    HIDDEN,
    METHODS,
    PRINTED_AES_CORN,
    published,
    published_settings,
)
from echelon.paper.image_tables import IMAGE_SETS, images_table
from echelon.paper.results import Result, Table, mean_and_deviation
from echelon.storage.atomic import write_text

MAIN_METHODS = ("ce", "ornn", "coral", "corn")
PAPER_NETWORKS = {
    "tripadvisor": "LSTM",
    "coursera": "LSTM",
    "morph2": "ResNet34",
    "afad": "ResNet34",
}
EMBEDDED = {
    "reviews": "Generated reviews, LSTM",
    "discs": "Generated discs, small ResNet",
    "digits": "Digits, small ResNet",
}
WORDS, MASK = "corn_without_subsets", "corn_without_subsets:mask=published"
NOT_RUN = "not run"
_MISSING = "-"


def paper_tables(results: Sequence[Result]) -> dict[str, Table]:
    """All tables of the paper, by name, and one of the data that need no file, where they ran."""
    embedded = [r for r in results if r.dataset in EMBEDDED]
    extra = {"embedded": embedded_table(embedded)} if embedded else {}
    images = [r for r in results if r.dataset in IMAGE_SETS]
    if images:
        extra["images"] = images_table(images)
    if len(embedded) + len(images) == len(results) and extra:
        return extra
    media = [r for r in results if r.dataset in PAPER_NETWORKS]
    if media:
        extra["networks"] = networks_table(media)
    return {
        "main": main_table(results),
        "seeds": seeds_table(results),
        "ablation": ablation_table(results),
        "hyperparameters": hyperparameters_table(results),
        "aes": aes_table(results),
        "text": text_table(results),
        **extra,
    }


def write_tables(tables: Mapping[str, Table], folder: str | Path) -> list[Path]:
    """Each table as Markdown, CSV and LaTeX."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in tables.items():
        texts = {
            "md": f"## {table.title}\n\n{table.markdown()}\n",
            "csv": table.csv(),
            "tex": table.latex(),
        }
        for ending, text in texts.items():
            path = folder / f"{name}.{ending}"
            write_text(path, text)
            paths.append(path)
    return paths


# ---- the tables ----------------------------------------------------------------------------------


def main_table(results: Sequence[Result]) -> Table:
    """Mean ± SD of MAE and RMSE: methods by data."""
    places = _places(results, ("morph2", "afad", "fireman"))
    metrics = ("mae", "rmse")
    columns = [
        "method",
        *(f"{title} {METRICS[m].title}" for title, _, _ in places for m in metrics),
    ]
    rows = [
        [METHODS[method], *(_mean_cell(r, d, method, m) for _, d, r in places for m in metrics)]
        for method in MAIN_METHODS
    ]
    floor = [
        mean_and_deviation(r.values("best possible", m), 3) if r is not None else _MISSING
        for _, _, r in places
        for m in metrics
    ]
    if any(cell != _MISSING for cell in floor):
        rows.append(["best possible", *floor])
    notes = [
        "In brackets: the published logs, which print two decimals. Lower is better.",
        said.SWAPPED,
        said.EPOCHS,
        said.PERSONS,
        *(f"{r.name}: {words}" for _, _, r in places if r is not None for words in _verdicts(r)),
    ]
    return Table("Main results", columns, rows, notes)


def seeds_table(results: Sequence[Result]) -> Table:
    """MAE and RMSE of every seed."""
    places = _places(results, ("morph2", "afad", "fireman"))
    metrics = ("mae", "rmse")
    columns = [
        "method",
        "seed",
        *(f"{title} {METRICS[m].title}" for title, _, _ in places for m in metrics),
    ]
    rows = [
        [
            METHODS[method],
            str(seed),
            *(_seed_cell(r, d, method, m, seed) for _, d, r in places for m in metrics),
        ]
        for method in MAIN_METHODS
        for seed in range(5)
    ]
    return Table("Every seed", columns, rows, [said.COPIED_ROW, said.SWAPPED])


def ablation_table(results: Sequence[Result]) -> Table:
    """CORN, CORN without subsets as the paper words it, and with the mask of the published code."""
    rows = []
    for title, dataset, result in _places(results, ("morph2", "afad", "aes", "fireman")):
        cells = [_mean_cell(result, dataset, m, "mae") for m in ("corn", WORDS, MASK)]
        if dataset == "aes":
            mean, sd = PRINTED_AES_CORN
            cells[0] = f"{NOT_RUN} ({mean:.2f} ± {sd:.2f}, printed only)"
        rows.append([title, *cells])
    notes = [said.MASK, said.ABLATION_SUBSETS, said.ABLATION_AES]
    for _, _, result in _places(results, ("fireman",)):
        if result is not None and (gain := _difference(result, "corn", WORDS)) is not None:
            notes.append(
                f"{result.name}: CORN minus CORN without subsets (the paper's words) is "
                f"{gain['mean']:+.4f}, standard error {gain['se']:.4f}."
            )
    columns = ["MAE", "CORN", "CORN without subsets", "CORN without subsets, published mask"]
    return Table("Ablation: training subsets", columns, rows, notes)


def hyperparameters_table(results: Sequence[Result]) -> Table:
    """The settings that the paper found, and those of the runs here."""
    rows = []
    for dataset in ("morph2", "afad", "fireman"):
        ours = [r for r in results if r.dataset == dataset]
        for method in MAIN_METHODS:
            rate, batch = published_settings(dataset, method) or (_MISSING, _MISSING)
            hidden = HIDDEN[method] if dataset == "fireman" else _MISSING
            used = [
                f"{r.name}: {text}"
                for r in ours
                if (text := r.document["experiment"].get("settings", {}).get(method))
            ]
            rows.append(
                [DATASETS[dataset], METHODS[method], f"{float(rate):g}", batch, hidden,
                 "; ".join(used) or NOT_RUN]
            )  # fmt: skip
    columns = ["data", "method", "learning rate", "batch size", "hidden layers", "here"]
    note = (
        "Searched in the paper for the MLP: learning rates 1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3; "
        "batch sizes 16 to 512; one or two layers of 50, 100, 200 or 300 units "
        "(`experiments/paper-mlp-grid.toml`)."
    )
    others = (
        "The grids of its ResNet34 and of its LSTM are `experiments/paper-resnet34-grid.toml` and "
        "`experiments/paper-lstm-grid.toml`."
    )
    return Table("Hyperparameters", columns, rows, [note, others, said.HYPERPARAMETERS_AES])


def aes_table(results: Sequence[Result]) -> Table:
    """VGG16 on AES: six methods by four categories."""
    methods = ("ce", "ornn", "coral", "corn", "cnnpor", "sord")
    rows = []
    for category in CATEGORIES:
        ran: list[Result | None] = [r for r in results if r.dataset == f"aes-{category}"]
        ran = ran or [None]
        rows += [
            [_titled(category.capitalize(), r, len(ran)),
             *(_mean_cell(r, "aes", m, "mae", category) for m in methods)]
            for r in ran
        ]  # fmt: skip
    overall = []
    for method in methods:
        values = [published("aes", method, c)[0]["mae"] for c in CATEGORIES]
        overall.append(f"{NOT_RUN} ({np.mean(values):.2f})")
    rows.append(["Mean of the four", *overall])
    notes = [
        "One run each. CNNPOR and SORD are printed figures of their own papers.",
        said.AES_LOGS,
        said.VGG16,
    ]
    return Table("VGG16 on AES, MAE", ["category", *(METHODS[m] for m in methods)], rows, notes)


def text_table(results: Sequence[Result]) -> Table:
    """The LSTM on reviews, every seed and the mean."""
    places = _places([r for r in results if r.backbone is None], ("tripadvisor", "coursera"))
    metrics = ("mae", "rmse")
    rows = []
    for method in MAIN_METHODS:
        for seed in range(5):
            cells = [_seed_cell(r, d, method, m, seed) for _, d, r in places for m in metrics]
            rows.append([METHODS[method], str(seed), *cells])
        cells = [_mean_cell(r, d, method, m) for _, d, r in places for m in metrics]
        rows.append([METHODS[method], "mean", *cells])
    columns = [
        "method",
        "seed",
        *(f"{title} {METRICS[m].title}" for title, _, _ in places for m in metrics),
    ]
    notes = [
        said.SHUFFLED_RANKS,
        said.TEXT_DIVISIONS,
        *(words for _, d, r in places if r is not None and (words := _if_shuffled(r, d))),
        *(f"{title}: {words}" for title, _, r in places if r is not None for words in _verdicts(r)),
    ]
    return Table("LSTM on reviews", columns, rows, notes)


def networks_table(results: Sequence[Result]) -> Table:
    """Every network that was run on the paper's texts and images, its own and others."""
    rows = []
    for result in results:
        network = result.backbone or PAPER_NETWORKS[result.dataset]
        if result.document["experiment"].get("name", "").endswith(", frozen"):
            network += ", frozen"
        for method, title in METHODS.items():
            mae, rmse = (result.values(method, m) for m in ("mae", "rmse"))
            if not mae:
                continue
            rows.append(
                [DATASETS[result.dataset], network, title, str(len(mae)),
                 mean_and_deviation(mae, 3), mean_and_deviation(rmse, 3),
                 result.longest_run(method)]
            )  # fmt: skip
    columns = ["data", "network", "method", "seeds", "MAE", "RMSE", "longest run"]
    return Table("Networks on texts and images", columns, rows)


def _if_shuffled(result: Result, dataset: str) -> str | None:
    """What CE's errors would have cost, had the ranks been shuffled as in the published code."""
    num_classes = 5
    accuracy = list(result.values("ce", "accuracy").values())
    theirs = [run["mae"] for run in published(dataset, "ce").values()]
    if not accuracy or not theirs:
        return None
    # two different ranks of K, at random, lie (K + 1) / 3 apart on average
    shuffled = (1 - float(np.mean(accuracy))) * (num_classes + 1) / 3
    return (
        f"{result.name}: CE-NN is right in {np.mean(accuracy):.1%} of the rows here. With shuffled "
        f"ranks a wrong label is {(num_classes + 1) / 3:g} ranks off on average, whatever it is, "
        f"so the same predictions would have scored about {shuffled:.2f} (published: "
        f"{np.mean(theirs):.2f})."
    )


def embedded_table(results: Sequence[Result]) -> Table:
    """The paper's protocol on data that need no file: methods by data, and the best possible."""
    metrics = ("mae", "rmse")
    titles = [_titled(EMBEDDED[r.dataset], r, _count(results, r.dataset)) for r in results]
    columns = ["method", *(f"{title} {METRICS[m].title}" for title in titles for m in metrics)]
    rows = [
        [
            METHODS[method],
            *(mean_and_deviation(r.values(method, m), 3) for r in results for m in metrics),
        ]
        for method in MAIN_METHODS
    ]
    rows += [
        [name, *(mean_and_deviation(r.values(name, m), 3) for r in results for m in metrics)]
        for name in ("best possible", "constant")
    ]
    notes = [f"{title}: {words}" for title, r in zip(titles, results, strict=True)
             for words in _verdicts(r)]  # fmt: skip
    return Table("Data that need no file", columns, rows, notes)


def _count(results: Sequence[Result], dataset: str) -> int:
    return sum(r.dataset == dataset for r in results)


# ---- cells ---------------------------------------------------------------------------------------


def _places(
    results: Sequence[Result], datasets: Sequence[str]
) -> list[tuple[str, str, Result | None]]:
    """Title, data and result of each group of columns: one for each result, or one without."""
    places: list[tuple[str, str, Result | None]] = []
    for dataset in datasets:
        ran: list[Result | None] = [r for r in results if r.dataset == dataset]
        for result in ran or [None]:
            places.append((_titled(DATASETS[dataset], result, len(ran)), dataset, result))
    return places


def _titled(title: str, result: Result | None, count: int) -> str:
    return title if result is None or count < 2 else f"{title} ({result.name})"


def _mean_cell(
    result: Result | None, dataset: str, method: str, metric: str, category: str = ""
) -> str:
    runs = published(dataset, method, category)
    theirs = mean_and_deviation({s: run[metric] for s, run in runs.items() if metric in run}, 3)
    ours = result.values(method, metric) if result is not None else {}
    bracket = "" if theirs == _MISSING else f" ({theirs})"
    return (mean_and_deviation(ours, 3) if ours else NOT_RUN) + bracket


def _seed_cell(result: Result | None, dataset: str, method: str, metric: str, seed: int) -> str:
    theirs = published(dataset, method).get(seed, {}).get(metric)
    ours = None if result is None else result.values(method, metric).get(seed)
    bracket = "" if theirs is None else f" ({theirs:.2f})"
    return (NOT_RUN if ours is None else f"{ours:.3f}") + bracket


def _difference(result: Result, first: str, second: str) -> dict[str, Any] | None:
    for difference in result.document.get("differences", ()):
        pair = difference["first"], difference["second"]
        if pair == (first, second):
            return dict(difference)
        if pair == (second, first):
            return {**difference, "mean": -difference["mean"]}
    return None


def _verdicts(result: Result) -> list[str]:
    """What the tests say about each two of the four methods."""
    return [
        f"{difference['sentence']}."
        for difference in result.document.get("differences", ())
        if {difference["first"], difference["second"]} <= set(MAIN_METHODS)
    ]
