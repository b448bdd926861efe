"""Whether reading images keeps the network waiting.

JPEG files of 320 by 280 pixels are written to a temporary folder and read as in the CORN paper
(resize 256, random crop 224, flip) by 0, 1 and 2 threads while a ResNet34 of timm trains on them.
The share of the step time that is spent waiting for a batch is the figure. No image is kept
between the epochs of a run, of which there is one.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import echelon
from echelon.data.inputs import Inputs
from echelon.data.kinds.image import Images, paper_images
from echelon.networks.image import TimmBackbone
from echelon.training.batches import EncodedRows
from page import environment_line, write_results, write_section

BATCH = 16

PREAMBLE = """\
Written by `python benchmarks/images.py --batches 8 --markdown docs/benchmarks.md`.
"""


def main() -> None:
    """Run, print the table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="resnet34")
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/images.json"))
    parser.add_argument("--markdown", type=Path, help="write the table to this page, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cells = write_images(Path(folder), options.batches * BATCH)
        found = [measure(cells, options.network, workers) for workers in (0, 1, 2)]
    lines = [
        environment_line(),
        "",
        f"| {options.network}, batches of {BATCH} | a step | waiting for data |",
        "| --- | ---: | ---: |",
        *(f"| {one['workers']} threads | {one['step']:.2f} s | {one['wait share']:.1%} |"
          for one in found),
    ]  # fmt: skip
    print("\n".join(lines))
    write_results(options.json, found)
    if options.markdown:
        write_section(options.markdown, "Images", PREAMBLE + "\n" + "\n".join(lines))


def write_images(folder: Path, n: int) -> Any:
    """Paths (n,) of JPEG files with smooth structure, which compress as photographs do."""
    generator = np.random.default_rng(0)
    paths = np.empty(n, dtype=object)
    for i in range(n):
        coarse = generator.integers(256, size=(10, 12, 3), dtype=np.uint8)
        image = Image.fromarray(coarse).resize((320, 280), Image.Resampling.BICUBIC)
        paths[i] = str(folder / f"{i}.jpg")
        image.save(paths[i], quality=90)
    return paths


def measure(cells: Any, name: str, workers: int) -> dict[str, float]:
    """Seconds of a step, and the share of them that waits for a batch."""
    settings = paper_images()
    rows = EncodedRows(
        Inputs({"image": Images(cells, settings)}), torch.zeros(len(cells), dtype=torch.long)
    )
    torch.manual_seed(0)
    method = echelon.method("corn", 5)
    backbone = TimmBackbone(name, mean=settings.mean, std=settings.std)
    network = torch.nn.Sequential(backbone, method.head(backbone.out_features))
    optimiser = torch.optim.AdamW(network.parameters())
    order = list(torch.randperm(len(cells)).split(BATCH))
    waited = 0.0
    start = asked = time.perf_counter()
    for batch, features in rows.batches(order, (0, 0), workers):
        waited += time.perf_counter() - asked
        assert isinstance(features, dict)
        loss = method.loss(network(features["image"]), rows.ranks[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        asked = time.perf_counter()
    total = time.perf_counter() - start
    return {"workers": workers, "step": total / len(order), "wait share": waited / total}


if __name__ == "__main__":
    main()
