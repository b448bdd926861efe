"""Each extra by itself: it brings all that its job needs, with every package of the others hidden.

A fresh environment for each extra would take an hour to install. What such an environment holds is
known, though: the core, the extra and what these require. Everything else cannot be imported here.
"""

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOR_DEVELOPERS = {"dev", "docs", "bench"}

# Shows of what is installed no other packages than those that are kept; workers inherit it.
HIDING = """
import json, os, re, sys, sysconfig
from importlib.machinery import PathFinder

hidden, kept = map(frozenset, json.loads(os.environ["HIDDEN_AND_KEPT"]))

class Showing(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target)
        if spec is None or name not in hidden:
            return spec
        place = next(iter(spec.submodule_search_locations or [spec.origin]))
        # A package may carry a copy of another one in a folder of its own.
        return None if os.path.dirname(place) == sysconfig.get_path("purelib") else spec
    @classmethod
    def find_distributions(cls, *context):
        for found in super().find_distributions(*context):
            if re.sub("[-_.]+", "-", found.metadata["Name"] or "").lower() in kept:
                yield found

sys.meta_path[sys.meta_path.index(PathFinder)] = Showing
"""

START = """
import numpy as np, pandas as pd, echelon
from echelon.cli.main import main
data = echelon.data.make_friedman(200, num_classes=3)
frame = pd.DataFrame(data.features[:, :4], columns=list("abcd")).assign(rank=data.ranks)
frame.to_csv("table.csv", index=False)
linear = echelon.CumulativeLinkModel().fit(frame[list("abcd")], data.ranks)
linear.save("m.echelon")

def run(*arguments):
    import sys
    sys.argv = ["echelon", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (arguments, end.code)
"""

JOBS = {
    "formula": """
run("fit", "table.csv", "--target", "rank", "--model", "cumulative_link", "--formula", "rank ~ a",
    "--out", "f.echelon")
""",
    "report": """
run("evaluate", "m.echelon", "table.csv", "--target", "rank", "--out", "run")
run("report", "run", "--out", "page.html")
assert "vega" in open("page.html", encoding="utf-8").read()
""",
    "onnx": """
run("export", "m.echelon", "--onnx", "m.onnx")
network = echelon.OrdinalClassifier(settings={"max_epochs": 1}, random_state=0)
network.fit(data.features, data.ranks).export_onnx("n.onnx")
import onnxruntime
assert onnxruntime.InferenceSession("n.onnx").get_outputs()
""",
    "excel": """
frame.to_excel("table.xlsx", index=False)
run("fit", "table.xlsx", "--target", "rank", "--model", "boosting", "--out", "x.echelon")
""",
    "parquet": """
frame.to_parquet("table.parquet")
run("predict", "m.echelon", "table.parquet", "--out", "predictions.parquet")
assert len(pd.read_parquet("predictions.parquet")) == 200
""",
    "ray": """
frame.to_parquet("table.parquet")
run("predict", "m.echelon", "table.parquet", "--cluster", "local", "--out", "predictions")
assert len(pd.read_parquet("predictions")) == 200
""",
    "serve": """
import socket, subprocess, sys, time, urllib.request
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
command = ["-m", "echelon", "serve", "m.echelon", "--port", str(port)]
server = subprocess.Popen([sys.executable, *command])
try:
    for _ in range(300):
        try:
            assert urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5).status == 200
            break
        except OSError:
            assert server.poll() is None
            time.sleep(0.2)
    else:
        raise AssertionError("it never was ready")
finally:
    server.terminate()
    server.wait(30)
""",
    "tune": """
run("tune", "table.csv", "--target", "rank", "--model", "boosting", "--trials", "2", "--workers",
    "1", "--out", "tuned")
""",
    "metrics": """
import torch
from echelon.evaluation.torchmetrics import CurveMetric
metric = CurveMetric("mae", num_classes=3)
metric.update(linear.curve(frame[list("abcd")]), torch.from_numpy(data.ranks))
assert 0 <= float(metric.compute()) <= 2
""",
    "faces": """
import dlib
from PIL import Image
dlib.get_frontal_face_detector()
from echelon.data import faces
""",
    "text": """
words = np.array(["bad", "fair", "good"])[data.ranks]
texts = pd.DataFrame({"review": [f"a {word} one" for word in words]})
echelon.OrdinalClassifier(text="review", settings={"max_epochs": 1}).fit(texts, data.ranks)
from transformers import BertConfig, BertModel
BertModel(BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2))
""",
    "vision": """
images = [np.full((32, 32, 3), 80 * rank, np.uint8) for rank in data.ranks[:60]]
photos = pd.DataFrame({"photo": images})
for backbone in ("resnet", "timm:resnet10t"):
    echelon.OrdinalClassifier(
        image="photo", backbone=backbone, settings={"max_epochs": 1}
    ).fit(photos, data.ranks[:60])
""",
}


def brought(extra: str) -> set[str]:
    """The distributions of an environment with echelon and one extra."""
    seen: set[tuple[str, str]] = set()
    waiting = [("echelon", ""), ("echelon", extra)]
    while waiting:
        name, of = waiting.pop()
        if (name, of) in seen:
            continue
        try:
            needed = requires(name) or []
        except PackageNotFoundError:  # for another system
            continue
        seen.add((name, of))
        for text in needed:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": of}):
                dependency = canonicalize_name(requirement.name)
                waiting += [(dependency, each) for each in ("", *requirement.extras)]
    return {name for name, _ in seen}


@pytest.mark.parametrize("extra", JOBS)
def test_an_extra_needs_no_other(extra: str, tmp_path: Path) -> None:
    kept = brought(extra) | {"pip", "setuptools"}
    hidden = [
        package
        for package, names in packages_distributions().items()
        if not {canonicalize_name(name) for name in names} & kept
    ]
    assert "pytest" in hidden  # else nothing would be hidden
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide" / "sitecustomize.py").write_text(HIDING)
    path = os.pathsep.join([str(tmp_path / "hide"), os.environ.get("PYTHONPATH", "")])
    script = tmp_path / "job.py"
    script.write_text(START + JOBS[extra])
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=600,
        env={**os.environ, "PYTHONPATH": path, "HIDDEN_AND_KEPT": json.dumps([hidden, [*kept]])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_extra_for_users_has_a_job() -> None:
    from importlib.metadata import metadata

    assert {*metadata("echelon").get_all("Provides-Extra")} - FOR_DEVELOPERS == {*JOBS}
