"""The recipe `paper` for each data set and method, field by field.

Each line of the table was written from the paper's tables and the notes on its published code, and
not from the program: what is trained, how images are read, and every setting of the training.
"""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from echelon import OrdinalClassifier
from echelon.data.kinds.image import IMAGE
from echelon.paper.experiments import Experiment
from echelon.paper.sets import SETS

# What holds for all texts and images: Adam with default settings, 200 epochs, the best epoch by
# validation RMSE, no schedule, no clipping, no early end, no weight decay, full precision.
MEDIA = {
    "max_epochs": 200, "weight_decay": 0.0, "metric": "rmse", "patience": None, "clip_norm": None,
    "schedule": "constant", "batches": "shuffled", "precision": "32-true", "refit": False,
    "average": 0.0,
}  # fmt: skip
# The MLP: AdamW with a decay of 0.2, which reaches the biases, too.
TABLE = {**MEDIA, "weight_decay": 0.2, "batches": "published", "decay_thresholds": True}
# CE and the softmax methods are decoded by argmax, the binary ones by the count above 0.5.
DECISIONS = {
    "ce": "mode", "sord": "mode", "cnnpor": "mode", "ornn": "median", "coral": "median",
    "corn": "median", "corn_without_subsets": "median",
}  # fmt: skip
MLP_NORMALISER = {
    "ornn": "rows", "coral": "rows", "corn": "per_task", "corn_without_subsets": "per_task",
}  # fmt: skip
MEDIA_NORMALISER = {"ornn": "rows", "coral": "rows"}  # CORN divides by all active pairs
LSTM = {"embedding": 128, "hidden": 256, "pooling": "last", "dropout": 0.0, "word_dropout": 0.0}
RESNET34 = {"zero_init_last": False}
VGG16 = {"drop_rate": 0.5}
FACES = {
    "resize": 128, "crop": 120, "flip": False, "pad": 0, "keep_shape": False,
    "interpolation": "bilinear", "mean": (0.0,) * 3, "std": (1.0,) * 3, "centre": 140,
}  # fmt: skip
PHOTOGRAPHS = {
    "resize": 256, "crop": 224, "flip": True, "pad": 0, "keep_shape": False,
    "interpolation": "bilinear", "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225),
    "centre": None,
}  # fmt: skip

# data set, category, backbone and its options, images, and of each method the rate and batch size
PROTOCOL = [
    ("fireman", None, "paper", None, None, {
        "ce": (5e-4, 64, (300, 200)), "ornn": (5e-4, 128, (300, 300)),
        "coral": (5e-4, 64, (300, 200)), "corn": (1e-3, 128, (300, 300)),
        "corn_without_subsets": (1e-3, 128, (300, 300)),
    }),
    ("coursera", None, "lstm", LSTM, None, {
        "ce": (1e-4, 64), "ornn": (5e-3, 32), "coral": (5e-3, 32), "corn": (1e-3, 16),
    }),
    ("tripadvisor", None, "lstm", LSTM, None, {
        "ce": (5e-5, 64), "ornn": (5e-3, 64), "coral": (5e-3, 16), "corn": (5e-4, 16),
    }),
    *[(name, None, "timm:resnet34", RESNET34, FACES, {
        "ce": (5e-4, 256), "ornn": (5e-4, 256), "coral": (5e-4, 256), "corn": (5e-4, 16),
        "corn_without_subsets": (5e-4, 16),
    }) for name in ("morph2", "afad")],
    ("aes", "nature", "timm:vgg16_bn", VGG16, PHOTOGRAPHS, {
        "ce": (5e-5, 32), "ornn": (1e-4, 32), "coral": (5e-4, 16), "corn": (5e-5, 64),
        "sord": (5e-5, 32), "cnnpor": (5e-5, 32),
    }),
    ("aes", "animals", "timm:vgg16_bn", VGG16, PHOTOGRAPHS, {
        "ce": (5e-5, 32), "ornn": (1e-4, 32), "coral": (1e-3, 16), "corn": (5e-5, 64),
        "sord": (5e-5, 32), "cnnpor": (5e-5, 32),
    }),
    ("aes", "urban", "timm:vgg16_bn", VGG16, PHOTOGRAPHS, {
        "ce": (5e-5, 32), "ornn": (1e-4, 16), "coral": (1e-3, 16), "corn": (5e-5, 64),
        "sord": (5e-5, 32), "cnnpor": (5e-5, 32),
    }),
    ("aes", "people", "timm:vgg16_bn", VGG16, PHOTOGRAPHS, {
        "ce": (5e-5, 16), "ornn": (5e-4, 16), "coral": (5e-4, 32), "corn": (5e-5, 32),
        "sord": (5e-5, 16), "cnnpor": (5e-5, 16),
    }),
    *[(name, None, "timm:resnet34", RESNET34, PHOTOGRAPHS, {
        "corn": (5e-4, 16), "corn_without_subsets": (5e-4, 16), "ce": (5e-4, 256),
    }) for name in ("aes-resnet34", "aes-balanced")],
]  # fmt: skip

CASES = [
    pytest.param(*line[:5], method, values, id=f"{line[0]}-{line[1] or 'all'}-{method}")
    for line in PROTOCOL
    for method, values in line[5].items()
]


def small_data(folder: Path, dataset: str) -> dict[str, Path]:
    """A few rows in the published form of a data set."""
    rows, numbers = 330, np.arange(330)
    names = [f"{i}.jpg" for i in range(rows)]
    tables = {
        "coursera": {"TEXT_COLUMN_NAME": [f"t {i}" for i in numbers],
                     "LABEL_COLUMN_NAME": numbers % 5 + 1},
        "tripadvisor": {"Review": [f"t {i}" for i in numbers], "Rating": numbers % 5 + 1},
        "morph2": {"": names, "age": numbers % 33},
        "afad": {"path": names, "age": numbers % 13},
    }  # fmt: skip
    photographs = {"": names, "category": "people", "beauty_scores": numbers % 5}
    frame = pd.DataFrame(tables.get(dataset, photographs))
    if dataset.startswith("aes") and dataset != "aes-balanced":
        categories = ["nature", "animals", "urban", "people"]
        frame["category"] = [categories[i % 4] for i in numbers]
    frame.to_csv(folder / "data.csv", index=False)
    return {"data": folder / "data.csv", "images": folder}


@pytest.mark.parametrize(
    ("dataset", "category", "backbone", "options", "images", "method", "values"), CASES
)
def test_the_recipe_of_the_paper_is_the_papers(
    tmp_path: Path, dataset, category, backbone, options, images, method, values
) -> None:
    given = {} if dataset == "fireman" else small_data(tmp_path, dataset)
    if dataset == "fireman":  # its generated stand-in is as large as the published one
        frame = pd.DataFrame({f"V{i}": np.arange(30.0) for i in range(1, 11)})
        columns: dict[str, str] = {}
    asked = Experiment(dataset, category=category, recipe="paper", methods=[method], **given)
    if dataset != "fireman":
        task = asked.task()
        frame, columns = task.features, dict(task.columns_by_kind)
    model = OrdinalClassifier(method=method, **asked.parameters_of(method), **columns)
    spec, settings = model.network_spec(frame), asdict(model.training_settings(frame))
    kind = SETS[dataset].kind
    rate, batch_size, *hidden = values
    expected = {
        **(TABLE if kind == "table" else MEDIA), "learning_rate": rate, "batch_size": batch_size,
        "decision": DECISIONS[method], "drop_last": kind != "text", "even_start": False,
    }  # fmt: skip
    assert {name: settings[name] for name in expected} == expected
    # with a constant rate there is no warming up, and without decay nothing to spare from it
    assert set(settings) - set(expected) <= {"warm_up", "decay_thresholds"}
    assert spec.backbones == {kind: backbone}
    assert spec.options_of(kind) == (options or {"hidden": hidden[0]})
    normaliser = (MLP_NORMALISER if kind == "table" else MEDIA_NORMALISER).get(method)
    assert spec.method_options == ({} if normaliser is None else {"normaliser": normaliser})
    if kind == "table":
        assert spec.scaling == "none"  # features as they are
    if images is not None:
        cells = np.array([np.zeros((10, 10, 3), np.uint8)])
        learnt = IMAGE.learn(cells, "timm", "resnet34", spec.input_options["image"])
        assert asdict(learnt) == images


def test_every_published_set_is_in_the_table() -> None:
    assert {line[0] for line in PROTOCOL} == {name for name, row in SETS.items() if row.log}


def test_the_printed_vgg_is_the_plain_one(tmp_path: Path) -> None:
    """The paper's words name it; the published code has batch normalisation."""
    given = small_data(tmp_path, "aes")
    asked = Experiment("aes", category="urban", recipe="paper", backbone="timm:vgg16", **given)
    model = OrdinalClassifier(**asked.parameters_of("corn"), image="path")
    spec = model.network_spec(asked.task().features)
    assert (spec.backbones, spec.options_of("image")) == ({"image": "timm:vgg16"}, VGG16)
    assert model.training_settings(asked.task().features).batch_size == 64


def test_a_last_norm_starts_at_one_in_the_papers_network_only() -> None:
    from echelon.networks.image import TimmBackbone

    scale = {"mean": (0.5,) * 3, "std": (0.25,) * 3}
    papers, usual = (TimmBackbone("resnet34", **scale, **options) for options in (RESNET34, {}))
    assert papers.network.layer1[0].bn2.weight.tolist()[0] == 1
    assert usual.network.layer1[0].bn2.weight.tolist()[0] == 0


def test_sets_without_a_stand_in_ask_for_their_data() -> None:
    for name in ("retina", "knees", "faces"):
        with pytest.raises(ValueError, match=f"{name} needs its data: give --data PATH"):
            Experiment(name, recipe="default").task()


def test_rows_are_of_sets_that_can_be_had_somehow() -> None:
    for name, row in SETS.items():
        assert row.read is not None or row.make is not None, name
        assert row.stands_in is None or SETS[row.stands_in].make is not None, name
