"""Run two states of echelon on the same machine and compare what they compute to the last bit.

A change of structure must not change a result: the same random draws, parameters and groups of the
optimiser in the same order. `python benchmarks/same_results.py --before COMMIT` checks the commit
out beside the working copy, runs every case below with both, one thread each, and lists what
differs: probabilities, labels, histories, divisions, fingerprints, exported graphs. What the two
states call differently is translated in `model`; nothing else may know which of them runs.
"""

import argparse
import hashlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HOME = Path(__file__).resolve().parent.parent
BACKBONES = ("mlp", "tabm", "linear")
Results = dict[str, Any]

# ---- cases ---------------------------------------------------------------------------------------


def model(method: str = "corn", backbone: Any = None, **choices: Any) -> Any:
    """A classifier by parameters of either state: what is no parameter of its own is a setting."""
    import echelon

    if backbone is None and "text" not in choices and choices.get("recipe") != "paper":
        backbone = "mlp"  # which network stands for "the default" may change on purpose
    known = inspect.signature(echelon.OrdinalClassifier).parameters
    own = {name: value for name, value in choices.items() if name in known}
    moved = {name: value for name, value in choices.items() if name not in known}
    if "inputs" in known:  # options of texts and images by kind
        kinds = {name: moved.pop(f"{name}_options", None) for name in ("text", "image")}
        given = {name: value for name, value in kinds.items() if value is not None}
        if given:
            own["inputs"] = given
    if moved:
        own["settings"] = {**(own.get("settings") or {}), **moved}
    return (
        echelon.OrdinalClassifier(
            method, backbone, **{"max_epochs": 3, "random_state": 5, "device": "cpu", **own}
        )
        if "max_epochs" in known
        else echelon.OrdinalClassifier(
            method,
            backbone,
            **{
                "random_state": 5,
                "device": "cpu",
                **own,
                "settings": {"max_epochs": 3, **(own.get("settings") or {})},
            },
        )
    )


def curve_of(fitted: Any, rows: Any) -> Any:
    """The curve of rows by either name of the method."""
    return (
        getattr(fitted, "curve", None)(rows)
        if hasattr(fitted, "curve")
        else fitted.predict_curve(rows)
    )


def outputs(fitted: Any, rows: Any) -> Results:
    """What a fitted model says of rows."""
    curve = curve_of(fitted, rows)
    return {
        "probabilities": fitted.predict_proba(rows),
        "exceedance": fitted.predict_exceedance(rows),
        "crossings": np.asarray(curve.crossings()),
        "labels": fitted.predict(rows).astype(str),
        "history": json.dumps(fitted.history_, sort_keys=True, default=str),
    }


def images_of(discs: Any) -> Any:
    """The images of generated discs by either name."""
    return discs.images if hasattr(discs, "images") else discs.pictures


def numbers(n: int = 240, seed: int = 0) -> tuple[Any, Any]:
    """A generated table of five classes."""
    from echelon.data import make_friedman

    data = make_friedman(n, num_classes=5, seed=seed)
    return data.features, data.ranks


def mixed(n: int = 240) -> tuple[pd.DataFrame, Any]:
    """A table with categories, booleans, missing cells, twins and labels in words."""
    features, ranks = numbers(n)
    generator = np.random.default_rng(1)
    frame = pd.DataFrame(features, columns=[f"V{i}" for i in range(1, features.shape[1] + 1)])
    frame["colour"] = generator.choice(["red", "green", "blue"], n)
    frame["code"] = generator.choice(["7", "8", "x"], n)
    frame["flag"] = generator.random(n) < 0.5
    frame.loc[generator.random(n) < 0.2, "V2"] = np.nan
    frame.loc[generator.random(n) < 0.1, "colour"] = None
    frame.iloc[10:14] = frame.iloc[20:24].to_numpy()
    frame = frame.infer_objects()
    return frame, np.array(["a", "b", "c", "d", "e"])[ranks]


def every_method() -> Iterator[tuple[str, Callable[[], Results]]]:
    """Each method on each backbone of tables."""
    from echelon import METHODS

    for method in METHODS:
        for backbone in BACKBONES:

            def case(method: str = method, backbone: str = backbone) -> Results:
                rows, ranks = numbers()
                return outputs(model(method, backbone, max_epochs=2).fit(rows, ranks), rows)

            yield f"{method} on {backbone}", case


def text_network() -> Results:
    from echelon.data import make_reviews

    data = make_reviews(160, seed=2)
    fitted = model("corn", "lstm", text_options={"max_words": 200}, backbone_options={"hidden": 16})
    return outputs(fitted.fit(list(data.texts), data.ranks), list(data.texts))


def image_network() -> Results:
    from echelon.data import make_discs

    data = make_discs(96, size=16, seed=2)
    fitted = model("coral", "resnet", max_epochs=2)
    images = list(images_of(data))
    return outputs(fitted.fit(images, data.ranks), images)


def text_beside_table() -> Results:
    from echelon.data import make_reviews

    frame, labels = mixed(160)
    frame["words"] = make_reviews(160, seed=3).texts
    fitted = model("corn", text="words", classes=list("abcde"))
    return outputs(fitted.fit(frame, labels), frame)


def mixed_table() -> Results:
    frame, labels = mixed()
    return outputs(model("corn", classes=list("abcde")).fit(frame, labels), frame)


def paper_recipe() -> Results:
    rows, ranks = numbers()
    return outputs(model("corn", recipe="paper").fit(rows, ranks), rows)


def trained_again_on_all_rows() -> Results:
    rows, ranks = numbers()
    return outputs(model("corn", settings={"refit": True}).fit(rows, ranks), rows)


def weights() -> Results:
    frame, labels = mixed()
    weight = np.random.default_rng(3).uniform(0, 4, len(frame))
    fitted = model("corn", classes=list("abcde"), class_weight="balanced")
    return outputs(fitted.fit(frame, labels, sample_weight=weight), frame)


def groups() -> Results:
    frame, labels = mixed()
    group = np.random.default_rng(4).integers(0, 40, len(frame))
    return outputs(model("ce", classes=list("abcde")).fit(frame, labels, groups=group), frame)


def validation_rows() -> Results:
    rows, ranks = numbers()
    fitted = model("clm").fit(rows[:180], ranks[:180], X_val=rows[180:], y_val=ranks[180:])
    return outputs(fitted, rows)


def calibrated(kind: str) -> Callable[[], Results]:
    def case() -> Results:
        rows, ranks = numbers(600)
        fitted = model("corn").fit(rows[:300], ranks[:300]).calibrate(rows[300:], ranks[300:], kind)
        summary = json.dumps(fitted.calibration_summary_, sort_keys=True)
        return {**outputs(fitted, rows), "summary": summary}

    return case


def intervals() -> Results:
    rows, ranks = numbers(600)
    fitted = model("corn").fit(rows[:300], ranks[:300]).conformalize(rows[300:], ranks[300:])
    return {
        "wide": fitted.predict_interval(rows, 0.9),
        "by class": fitted.predict_interval(rows, 0.8, per_class=True),
    }


def kappa() -> Results:
    rows, ranks = numbers()
    fitted = model("rps", decision="kappa").fit(rows, ranks)
    return {**outputs(fitted, rows), "cutpoints": fitted.cutpoints_}


def saved_and_loaded() -> Results:
    import echelon

    frame, labels = mixed()
    fitted = model("corn", "tabm", classes=list("abcde"), decision="mode").fit(frame, labels)
    fitted.calibrate(frame, labels).conformalize(frame, labels)
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        loaded = echelon.load(Path(folder) / "model")
    return {
        "probabilities": loaded.predict_proba(frame),
        "labels": loaded.predict(frame).astype(str),
        "intervals": loaded.predict_interval(frame).astype(str),
        "same": bool((loaded.predict_proba(frame) == fitted.predict_proba(frame)).all()),
    }


def resumed() -> Results:
    """A fit that is interrupted after its second checkpoint and goes on."""
    from echelon.training.checkpoints import CheckpointFolder

    rows, ranks = numbers()
    saves, save = [0], CheckpointFolder.save

    def failing(self: Any, *given: Any, **named: Any) -> None:
        save(self, *given, **named)
        saves[0] += 1
        if saves[0] == 2:
            raise KeyboardInterrupt

    with tempfile.TemporaryDirectory() as folder:
        fitted = model("corn", checkpoint_dir=folder)
        CheckpointFolder.save = failing  # type: ignore[method-assign]
        try:
            fitted.fit(rows, ranks)
        except KeyboardInterrupt:
            pass
        finally:
            CheckpointFolder.save = save  # type: ignore[method-assign]
        return outputs(fitted.fit(rows, ranks), rows)


def folds() -> Results:
    import echelon

    frame, labels = mixed(120)
    quick = model("corn", "linear", classes=list("abcde"), max_epochs=1)
    curve = echelon.cross_val_curve(quick, frame, labels, folds=3)
    return {"probabilities": np.asarray(curve.probabilities)}


def converted() -> Results:
    import torch

    import echelon

    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 10))
    ordinal = echelon.convert(network, 4, "corn")
    rows = torch.linspace(-1, 1, 40).reshape(10, 4)
    logits = ordinal(rows)
    return {
        "logits": logits.detach().numpy(),
        "loss": ordinal.loss(logits, torch.arange(10) % 4).detach().numpy(),
    }


def graph() -> Results:
    """What onnxruntime computes from an exported model."""
    import onnxruntime

    frame, labels = mixed(120)
    fitted = model("corn", classes=list("abcde"), max_epochs=1).fit(frame, labels)
    fitted.calibrate(frame, labels)
    with tempfile.TemporaryDirectory() as folder:
        fitted.export_onnx(Path(folder) / "model.onnx")
        session = onnxruntime.InferenceSession(str(Path(folder) / "model.onnx"))
    given = {}
    for asked in session.get_inputs():
        cells = frame[asked.name]
        if "string" in asked.type:
            text = cells.astype(object).where(cells.notna(), "").astype(str)
            given[asked.name] = text.to_numpy(dtype=object)
        else:
            given[asked.name] = cells.astype(float).to_numpy()
    names = [result.name for result in session.get_outputs()]
    return dict(zip(names, (np.asarray(x) for x in session.run(None, given)), strict=True))


def command(*arguments: str, folder: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "echelon.cli.main", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr[-2000:]}")


def two_processes() -> Results:
    import echelon

    frame, labels = mixed()
    with tempfile.TemporaryDirectory() as folder:
        frame.assign(grade=labels).to_csv(Path(folder) / "table.csv", index=False)
        command(
            "fit", "table.csv", "--target", "grade", "--classes", "a,b,c,d,e", "--out", "model",
            "--devices", "2", "--device", "cpu", "--max-epochs", "2", "--seed", "3", folder=folder,
        )  # fmt: skip
        return {"probabilities": echelon.load(Path(folder) / "model").predict_proba(frame)}


def command_line() -> Results:
    """`fit`, `predict` and `compare` with their files: divisions and predictions of every run."""
    frame, labels = mixed()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        frame.assign(grade=labels).to_csv(path / "table.csv", index=False)
        fixed = ("--target", "grade", "--classes", "a,b,c,d,e", "--max-epochs", "2")
        command(
            "fit", "table.csv", *fixed, "--out", "model", "--conformal", "0.2", "--seed", "3",
            folder=folder,
        )  # fmt: skip
        command("predict", "model", "table.csv", "--out", "out.csv", folder=folder)
        predicted = pd.read_csv(path / "out.csv").to_csv()
        command(
            "compare", "table.csv", *fixed, "--methods", "corn,ce", "--seeds", "2", "--workers",
            "1", "--out", "runs", folder=folder,
        )  # fmt: skip
        runs: Results = {"predicted": predicted}
        for run in sorted((path / "runs").iterdir()):
            if not (run / "DONE").exists():
                continue
            name = run.name.rsplit("-", 1)[0]
            with np.load(run / "predictions.npz") as arrays:
                for key in ("truth", "prediction", "probabilities", "crossings"):
                    runs[f"{name} {key}"] = arrays[key]
            runs[f"{name} metrics"] = (run / "metrics.json").read_text()
            config = json.loads((run / "config.json").read_text())
            runs[f"{name} fingerprint"] = config["fingerprint"]
        return runs


def embedded_data() -> Results:
    from echelon.data import load_digits, make_discs, make_friedman, make_reviews

    friedman, discs, reviews = make_friedman(200), make_discs(20, size=16), make_reviews(100)
    images, digits = load_digits()
    return {
        "friedman": friedman.features,
        "friedman probabilities": friedman.bayes_probabilities,
        "boundaries": np.asarray(friedman.boundaries),
        "discs": np.stack(images_of(discs)),
        "discs probabilities": discs.bayes_probabilities,
        "reviews": "\n".join(reviews.texts),
        "reviews probabilities": reviews.bayes_probabilities,
        "digits": images,
        "digit ranks": digits,
    }


def cases() -> dict[str, Callable[[], Results]]:
    """Every case by its name."""
    plain = (
        text_network, image_network, text_beside_table, mixed_table, paper_recipe,
        trained_again_on_all_rows, weights, groups, validation_rows, intervals, kappa,
        saved_and_loaded, resumed, folds, converted, graph, two_processes, command_line,
        embedded_data,
    )  # fmt: skip
    return {
        **dict(every_method()),
        **{case.__name__.replace("_", " "): case for case in plain},
        **{f"calibrated by {kind}": calibrated(kind) for kind in ("temperature", "isotonic")},
    }


# ---- both states ---------------------------------------------------------------------------------


def digest(value: Any) -> str:
    """A short mark of a result, of every bit of it."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        content = f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
    elif isinstance(value, np.ndarray):
        content = json.dumps(value.tolist(), default=str).encode()
    else:
        content = json.dumps(value, default=str).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def record(wanted: str) -> dict[str, dict[str, str]]:
    """The marks of each case whose name holds the word, by the echelon that can be imported."""
    marks = {}
    for name, case in cases().items():
        if wanted not in name:
            continue
        try:
            marks[name] = {key: digest(value) for key, value in case().items()}
        except Exception as error:
            # A refusal is a result as well.
            marks[name] = {"error": f"{type(error).__name__}: {error}"}
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return marks


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A folder with the files of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "before"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(place), commit],
            cwd=HOME, check=True,
        )  # fmt: skip
        try:
            yield place
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(place)], cwd=HOME, check=True
            )


def recorded(source: Path, wanted: str) -> dict[str, dict[str, str]]:
    """The marks by the echelon in a folder, from a process of its own."""
    environment = {
        **os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
        "PYTHONWARNINGS": "ignore",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, __file__, "--record", "--only", wanted],
        env=environment, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    marks: dict[str, dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return marks


def main() -> None:
    """Compare, and end with 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", help="the commit to compare the working copy with")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--keep", type=Path, help="a file that keeps what the commit computed")
    parser.add_argument("--record", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.record:
        print(json.dumps(record(arguments.only)))
        return
    if arguments.before is None:
        parser.error("--before COMMIT is required")
    if arguments.keep is not None and arguments.keep.exists():
        before = json.loads(arguments.keep.read_text())
    else:
        with checked_out(arguments.before) as place:
            before = recorded(place / "src", arguments.only)
        if arguments.keep is not None:
            arguments.keep.write_text(json.dumps(before))
    after = recorded(HOME / "src", arguments.only)
    different = 0
    for name, marks in after.items():
        earlier = before.get(name, {})
        changed = [key for key in marks if marks[key] != earlier.get(key)]
        if changed:
            different += 1
            reasons = [state["error"] for state in (earlier, marks) if "error" in state]
            print(f"{name}: {', '.join(changed)}" + "".join(f"\n    {why}" for why in reasons))
    print(f"{len(after) - different} of {len(after)} cases are the same to the last bit")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
