"""Valid files that the attacks start from: tables, images, models, a checkpoint and run folders.

It also knows how each is sealed, so that a forged file can be one whose seal fits.
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

MODELS = (
    "table",
    "calibrated",
    "tabm",
    "cumulative",
    "boosting",
    "svm",
    "prank",
    "neighbors",
    "reduction",
    "reduced trees",
    "forest",
    "blend",
    "text",
    "encoder",
    "image",
    "timm",
)
MODEL_KEY = "echelon_model"
CHECKPOINT_KEY = "echelon_checkpoint"
CHECKPOINT_ROWS = 48
FIT = ("--target", "y", "--classes", "lo,mid,hi", "--max-epochs", "3", "--device", "cpu", "--json")
QUICK = {
    "settings": {"max_epochs": 1},
    "random_state": 0,
    "device": "cpu",
    "classes": ["lo", "mid", "hi"],
}
_BUNDLE = "/* the charts' own script takes seconds to put together, and is the same each time */"


def import_everything() -> None:
    """Import once what the cases need, so that forks share it."""
    import altair  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import vl_convert

    import echelon.cli.main
    import echelon.experiments
    import echelon.models.onnx
    import echelon.paper.tables
    import echelon.report
    from echelon.extras import require

    echelon.load  # noqa: B018 (names of echelon may be lazy)
    require("timm", "attacks")
    transformers = require("transformers", "attacks")
    transformers.BertModel  # noqa: B018
    vl_convert.javascript_bundle = lambda *_: _BUNDLE


def table(rows: int = 40, seed: int = 0) -> pd.DataFrame:
    """Numbers, a category and a label."""
    generator = np.random.default_rng(seed)
    size = generator.normal(size=rows)
    ranks = np.digitize(size + 0.3 * generator.normal(size=rows), [-0.5, 0.5])
    ranks[:6] = [0, 1, 2, 0, 1, 2]
    return pd.DataFrame(
        {
            "size": size.round(3),
            "weight": generator.integers(1, 9, size=rows),
            "kind": np.where(generator.random(rows) < 0.5, "big", "small"),
            "y": np.array(["lo", "mid", "hi"])[ranks],
        }
    )


def make(folder: Path) -> None:
    """Write everything; a model NAME.echelon has its rows in NAME.csv, its answer in NAME.npy."""
    folder.mkdir(parents=True)
    frame = table()
    frame.to_csv(folder / "data.csv", index=False)
    frame.to_parquet(folder / "data.parquet")
    table(CHECKPOINT_ROWS, 5).to_csv(folder / "fit.csv", index=False)
    _make_images(folder / "images", frame)
    _make_models(folder, frame)
    _make_checkpoint(folder)
    _make_runs(folder / "runs")


def _make_images(folder: Path, frame: pd.DataFrame) -> None:
    from PIL import Image

    generator = np.random.default_rng(1)
    for i, label in enumerate(frame["y"][:15]):
        shade = 60 * ["lo", "mid", "hi"].index(label) + generator.integers(0, 60, (12, 12))
        place = folder / str(label)
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(shade.astype(np.uint8)).save(place / f"{i}.png")


def _make_models(folder: Path, frame: pd.DataFrame) -> None:
    from lightgbm import LGBMClassifier
    from sklearn.linear_model import LogisticRegression

    from echelon import (
        CumulativeLinkModel,
        MetricNeighbors,
        OrdinalBlend,
        OrdinalBoosting,
        OrdinalClassifier,
        OrdinalReduction,
        OrdinalSVM,
        PRank,
    )
    from tests.media import save_tiny_encoder

    features, y = frame.drop(columns="y"), frame["y"].to_numpy()
    known = {"classes": ["lo", "mid", "hi"]}
    small = {"backbone_options": {"hidden": (16,)}}
    encoder = save_tiny_encoder(folder / "tiny-encoder")
    texts = pd.DataFrame({"review": [f"the course was {label}" for label in y]})
    paths = sorted(folder.glob("images/*/*.png"))
    images = pd.DataFrame({"image": [str(path) for path in paths]})
    shown = np.array([path.parent.name for path in paths])
    made = {
        "table": (OrdinalClassifier(backbone="mlp", **small, **QUICK), features, y),
        "calibrated": (OrdinalClassifier("ce", "mlp", **small, **QUICK), features, y),
        "tabm": (
            OrdinalClassifier(
                "clm", "tabm", backbone_options={"members": 2, "hidden": (8,)}, **QUICK
            ),
            features, y,
        ),
        "cumulative": (CumulativeLinkModel(**known), features, y),
        "boosting": (OrdinalBoosting(rounds=4, random_state=0, **known), features, y),
        "svm": (OrdinalSVM(random_state=0, **known), features, y),
        "prank": (PRank(random_state=0, **known), features, y),
        "neighbors": (MetricNeighbors(random_state=0, **known), features, y),
        "reduction": (OrdinalReduction(LogisticRegression(), **known), features, y),
        "reduced trees": (
            OrdinalReduction(
                LGBMClassifier(n_estimators=3, min_child_samples=2, verbose=-1), **known
            ),
            features, y,
        ),
        "forest": (OrdinalClassifier("forest", "mlp", **small, **QUICK), features, y),
        "blend": (
            OrdinalBlend(
                [CumulativeLinkModel(), OrdinalBoosting(rounds=3)], folds=2, random_state=0, **known
            ),
            features, y,
        ),
        "text": (
            OrdinalClassifier(
                backbone="lstm", text="review",
                backbone_options={"hidden": 8, "embedding": 8}, **QUICK,
            ),
            texts, y,
        ),
        "encoder": (OrdinalClassifier(backbone=f"hf:{encoder}", text="review", **QUICK), texts, y),
        "image": (
            OrdinalClassifier(
                backbone="resnet", image="image",
                backbone_options={"widths": (16,), "blocks": 1}, **QUICK,
            ),
            images, shown,
        ),
        "timm": (
            OrdinalClassifier(
                backbone="timm:test_resnet", image="image", inputs={"image": {"size": 32}}, **QUICK
            ),
            images, shown,
        ),
    }  # fmt: skip
    for name in MODELS:
        model, rows, labels = made[name]
        model.fit(rows, labels)
        if name == "calibrated":
            model.calibrate(rows, labels, kind="isotonic")
            model.conformalize(rows, labels)
        model.save(folder / f"{name}.echelon")
        rows.to_csv(folder / f"{name}.csv", index=False)
        np.save(folder / f"{name}.npy", _answer(folder, name, folder / f"{name}.echelon"))


def _answer(folder: Path, name: str, path: Path) -> Any:
    return predict_with(path, folder / f"{name}.csv")


def predict_with(path: Path, rows: Path) -> Any:
    """Load a model and give the probabilities of its rows, and the ends of intervals."""
    import echelon

    model = echelon.load(path)
    frame = pd.read_csv(rows)
    model.predict(frame)
    found = model.predict_proba(frame)
    if getattr(model, "conformal_", None) is not None:
        model.predict_interval(frame)
    return found


def not_probabilities(found: Any) -> str | None:
    """What is wrong with probabilities, if anything."""
    if found.ndim != 2 or not np.isfinite(found).all():
        return f"probabilities that are no numbers, of shape {found.shape}"
    if (found < -1e-6).any() or abs(found.sum(axis=1) - 1).max() > 1e-3:
        return "probabilities that do not add up to 1"
    return None


class _Stopped(BaseException):
    pass


def _make_checkpoint(folder: Path) -> None:
    """A fit that was interrupted in its second epoch, and the model that it leads to."""
    from echelon.cli.main import app
    from echelon.training import checkpoints, loop

    save, defaults = checkpoints.CheckpointFolder.save, loop.train.__kwdefaults__
    seconds = defaults["checkpoint_seconds"]
    counted = []

    def save_and_stop(self: Any, *state: Any, **more: Any) -> Any:
        written = save(self, *state, **more)
        counted.append(1)
        if len(counted) == 2:
            raise _Stopped
        return written

    arguments = ["fit", str(folder / "fit.csv"), *FIT, "--resume"]
    defaults["checkpoint_seconds"] = 0.0
    checkpoints.CheckpointFolder.save = save_and_stop
    try:
        app([*arguments, "--out", str(folder / "m")], standalone_mode=False)
    except _Stopped:
        pass
    finally:
        checkpoints.CheckpointFolder.save = save
        defaults["checkpoint_seconds"] = seconds
    found = next((folder / "m.checkpoints").rglob("checkpoint.safetensors"))
    found.replace(folder / "checkpoint.safetensors")
    shutil.rmtree(folder / "m.checkpoints")
    app([*arguments, "--out", str(folder / "finished.echelon")], standalone_mode=False)


def _make_runs(folder: Path) -> None:
    from tests.made_runs import write_made_runs

    write_made_runs(folder, rows=50, num_classes=3, seeds=1)
    for place in folder.glob("c*"):  # two are enough: a baseline and a method
        if place.name not in ("constant", "corn-seed0"):
            shutil.rmtree(place)
    for place in (*folder.glob("ornn*"), *folder.glob("best*")):
        shutil.rmtree(place)


# ---- forging -------------------------------------------------------------------------------------


def read_model(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors of a model or checkpoint as they are, and its document without the seal."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as opened:
        metadata = opened.metadata()
        tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
    key = MODEL_KEY if MODEL_KEY in metadata else CHECKPOINT_KEY
    document = json.loads(metadata[key])
    document.pop("checksum", None)
    return tensors, document


def write_forged(path: Path, tensors: dict[str, Any], document: Any, key: str) -> None:
    """A file whose seal fits, whatever stands in it."""
    from safetensors.torch import save

    if isinstance(document, dict):
        document = {**document, "checksum": seal(tensors, document)}
    plain = {name: tensor.contiguous() for name, tensor in tensors.items()}
    path.write_bytes(save(plain, metadata={key: json.dumps(document)}))


def seal(tensors: dict[str, Any], document: dict[str, Any]) -> str:
    """The checksum that echelon expects, computed as anybody can who has read how."""
    import torch

    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def reseal_run(folder: Path) -> None:
    """Write the checksums of a run folder anew."""
    sums = {
        place.name: hashlib.sha256(place.read_bytes()).hexdigest()
        for place in sorted(folder.iterdir())
        if place.is_file() and place.name != "DONE"
    }
    (folder / "DONE").write_text(json.dumps(sums, indent=2) + "\n")


def nodes(document: Any, around: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of a document, each as the keys that lead there; of lists the first three."""
    found = [around] if around else []
    if isinstance(document, dict):
        for key, value in document.items():
            found += nodes(value, (*around, key))
    elif isinstance(document, list):
        for i, value in enumerate(document[:3]):
            found += nodes(value, (*around, i))
    return found


REMOVED = object()


def replaced(document: Any, keys: tuple[Any, ...], value: Any) -> Any:
    """A copy of a document with another value at a place, or without that place."""
    copy = json.loads(json.dumps(document))
    inner = copy
    for key in keys[:-1]:
        inner = inner[key]
    if value is REMOVED:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = value
    return copy


def _deep(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


# Values that do not belong where they are put, by a name for each.
ODD_VALUES: dict[str, Any] = {
    "removed": REMOVED, "null": None, "true": True, "minus-one": -1, "zero": 0, "half": 0.5,
    "billion": 10**9, "huge": 10**30, "large-float": 1e308, "nan": float("nan"),
    "minus-infinity": float("-inf"), "2**31": 2**31, "2**63": 2**63, "empty": "", "word": "zyx",
    "path": "../../../etc/passwd", "device": "/dev/zero", "url": "http://127.0.0.1:9/x",
    "hub": "hf-hub:someone/network", "script": "<script>alert(1)</script>", "escape": "\x1b[31mred",
    "null-byte": "a\0b", "long": "x" * 100_000, "list": [], "object": {}, "list-of-lists": [[]],
    "words": ["a", "b", "c"], "numbers": [1.5, -2.0, 3.0], "many": [0] * 10_000, "deep": _deep(90),
    "inner": {"a": {"b": 1}}, "surrogate": "\ud800",
}  # fmt: skip

Change = Callable[[dict[str, Any], dict[str, Any]], Any]

if __name__ == "__main__":
    import_everything()
    make(Path(sys.argv[1]))
