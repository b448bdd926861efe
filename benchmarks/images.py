"""Whether reading images keeps the network waiting, and what training costs beyond a bare loop.

An epoch of echelon's training is put beside one of a plain loop over tensors that lie in memory,
with the same network, batches, augmentation and optimiser: both take turns in one process, and the
ratio is that of their shortest epochs, in seconds of the processor, which others on the machine
disturb the least.

JPEG files of 320 by 280 pixels are written to a temporary folder and read as in the CORN paper
(resize 256, random crop 224, flip) by 0, 1 and 2 threads while a ResNet34 of timm trains on them.
The share of the step time that is spent waiting for a batch is the figure. No image is kept
between the epochs of a run, of which there is one.
"""

import argparse
import copy
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from torch import nn

import echelon
from echelon.data.inputs import Inputs
from echelon.data.kinds.image import Images, paper_images, small_images
from echelon.networks.assembly import Readers, make_network
from echelon.networks.image import TimmBackbone
from echelon.training.batches import EncodedRows
from echelon.training.devices import make_fabric
from echelon.training.loop import train
from echelon.training.recipes import make_settings, make_spec
from page import environment_line, write_results, write_section

BATCH = 16
# Networks, the side of their images and how many there are: so few that an epoch takes a second or
# three, of which some are undisturbed.
EPOCHS = (("resnet", 28, 1024), ("timm:resnet18", 64, 256))

PREAMBLE = """\
Written by `python benchmarks/images.py --batches 8 --markdown docs/benchmarks.md`.
"""


def main() -> None:
    """Run, print the table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="resnet34")
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=12, help="epochs of each kind")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/images.json"))
    parser.add_argument("--markdown", type=Path, help="write the table to this page, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cells = write_images(Path(folder), options.batches * BATCH)
        waits = [measure(cells, options.network, workers) for workers in (0, 1, 2)]
    ratios = [beside_bare(name, size, rows, options.repeats) for name, size, rows in EPOCHS]
    lines = [
        environment_line(),
        "",
        "| an epoch | a bare loop | echelon | ratio |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {row['network']}, {row['rows']:,} images of {row['size']} x {row['size']} | "
          f"{row['bare']:.2f} s | "
          f"{row['echelon']:.2f} s | {row['ratio']:.2f} |" for row in ratios),
        "",
        f"| {options.network}, batches of {BATCH} | a step | waiting for data |",
        "| --- | ---: | ---: |",
        *(f"| {row['workers']} threads | {row['step']:.2f} s | {row['wait share']:.1%} |"
          for row in waits),
    ]  # fmt: skip
    print("\n".join(lines))
    write_results(options.json, [*ratios, *waits])
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


def beside_bare(name: str, size: int, n: int, repeats: int) -> dict[str, Any]:
    """Seconds of an epoch of echelon's training and of a bare loop, and their ratio."""
    generator = np.random.default_rng(0)
    images = generator.integers(256, size=(n, size, size, 3), dtype=np.uint8)
    cells = np.empty(n, dtype=object)
    cells[:] = list(images)
    ranks = torch.from_numpy(generator.integers(5, size=n))
    spec = make_spec("default", "corn", {"image": name}, ("image",), {})
    encoding = small_images(cells)
    settings = make_settings("default", spec, n, {"max_epochs": repeats, "patience": None})
    method = echelon.method("corn", 5)
    torch.manual_seed(0)
    encoder = nn.Module()  # there is no table
    readers = Readers({"image": encoding})
    network = make_network(cast(Any, encoder), readers, spec, method)
    rows = EncodedRows(Inputs({"image": encoding.encode(cells)}), ranks)
    times: dict[str, list[float]] = {"echelon": [], "bare": []}
    bare = BareLoop(images, ranks, copy.deepcopy(network), settings.batch_size, encoding.pad)
    last = time.process_time()

    def on_epoch(_: dict[str, float]) -> None:
        nonlocal last
        times["echelon"].append(time.process_time() - last)
        start = time.process_time()
        bare.epoch()
        last = time.process_time()
        times["bare"].append(last - start)

    train(network, rows, None, settings, seed=0, fabric=make_fabric("cpu", settings.precision),
          on_epoch=on_epoch)  # fmt: skip
    best = {kind: min(values) for kind, values in times.items()}
    return {
        "network": name,
        "size": size,
        "rows": n,
        **best,
        "ratio": best["echelon"] / best["bare"],
    }


class BareLoop:
    """What one would write by hand: pixels in one tensor, random crops, AdamW, a clipped step."""

    def __init__(
        self, images: Any, ranks: torch.Tensor, network: nn.Module, batch_size: int, pad: int
    ) -> None:
        pixels = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
        self.pixels = nn.functional.pad(pixels.float(), (pad,) * 4, mode="replicate").byte()
        self.size, self.pad, self.ranks = pixels.shape[-1], pad, ranks
        self.network, self.batch_size = network.train(), batch_size
        self.optimiser = torch.optim.AdamW(network.parameters(), fused=True)

    def epoch(self) -> None:
        """Pass over all rows once."""
        for rows in torch.randperm(len(self.ranks)).split(self.batch_size):
            places = torch.randint(2 * self.pad + 1, (len(rows), 2)).tolist()
            pixels = torch.stack(
                [
                    self.pixels[row, :, y : y + self.size, x : x + self.size]
                    for row, (y, x) in zip(rows.tolist(), places, strict=True)
                ]
            )
            loss = self.network.loss(self.network({"image": pixels}), self.ranks[rows])
            self.optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self.optimiser.step()


if __name__ == "__main__":
    main()
