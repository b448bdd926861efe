"""Time epochs on texts beside a padded-batch loop of coral-pytorch, and fit the reviews.

(a) An epoch of the one-layer LSTM on the training part of the Coursera reviews: echelon's loop,
whose batches hold texts of like length, and a plain loop of coral-pytorch whose random batches are
padded to their longest text; the same network, texts and batch size, best of several rounds in
turns. (b) With ``--fit``, whole fits with the defaults: seconds, and MAE and RMSE of the test part.
Needs ECHELON_DATA; without it (a) runs on generated reviews.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from coral_pytorch.losses import corn_loss
from lightning_fabric import Fabric
from torch import Tensor, nn

import echelon
from echelon.data import make_reviews
from echelon.data.inputs import Inputs
from echelon.data.kinds.text import TokenLists, WordTokenizer
from echelon.evaluation import metrics
from echelon.networks.joined import JoinedBackbone
from echelon.networks.network import OrdinalNetwork
from echelon.networks.text import LSTM
from echelon.paper.data import Partition, read_coursera
from echelon.training.loop import EncodedRows, train
from echelon.training.recipes import make_settings, make_spec
from page import environment_line, write_results, write_section

PREAMBLE = """\
Written by `python benchmarks/text.py --rounds 2 --markdown docs/benchmarks.md`. The ratio is to a
contestant in the same run, best of several rounds in turns.
"""

SPEC = make_spec("default", "corn", "lstm", ("text",), {})


def main() -> None:
    """Run, print the table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="of the training part, to be quicker")
    parser.add_argument("--fit", type=int, default=0, help="how many seeds to fit wholly")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/text.json"))
    parser.add_argument("--markdown", type=Path, help="write the table to this page, too")
    options = parser.parse_args()
    folder = os.environ.get("ECHELON_DATA")
    path = None if folder is None else Path(folder) / "text" / "coursera_balanced.csv"
    if path is None:
        generated = make_reviews(8_000)
        texts, ranks, name = generated.texts, generated.ranks, "generated reviews"
    else:
        part = read_coursera(path)
        texts, ranks = part.features["train"].iloc[:, 0].tolist(), part.ranks["train"]
        name = "Coursera"
    texts, ranks = texts[: options.rows], ranks[: options.rows]
    tokenizer = WordTokenizer.of(texts)
    tokens = tokenizer.encode(texts)
    seconds = time_epochs(tokens, torch.from_numpy(ranks), tokenizer.num_tokens, options.rounds)
    ratio = seconds["coral-pytorch"] / seconds["echelon"]
    lines = [
        environment_line(),
        "",
        f"| an epoch of the LSTM, {len(texts):,} texts of {name} | seconds | over echelon |",
        "| --- | ---: | ---: |",
        *(f"| {who} | {spent:.1f} | {spent / seconds['echelon']:.2f} times |"
          for who, spent in seconds.items()),
    ]  # fmt: skip
    results: dict[str, Any] = {"epoch": seconds, "coral-pytorch over echelon": ratio}
    if options.fit and path is not None:
        fits = [fit(read_coursera(path, seed=seed), seed) for seed in range(options.fit)]
        results["fits"] = fits
        lines += ["", "| seed | seconds | test MAE | test RMSE |", "| ---: | ---: | ---: | ---: |"]
        lines += [
            f"| {one['seed']} | {one['seconds']:.0f} | {one['mae']:.3f} | {one['rmse']:.3f} |"
            for one in fits
        ]
    print("\n".join(lines))
    write_results(options.json, results)
    if options.markdown:
        write_section(options.markdown, "Texts", PREAMBLE + "\n" + "\n".join(lines))


def time_epochs(
    tokens: TokenLists, ranks: Tensor, num_tokens: int, rounds: int
) -> dict[str, float]:
    """Seconds of the best epoch of each contestant."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, run in (("echelon", echelon_epoch), ("coral-pytorch", coral_epoch)):
            spent = run(tokens, ranks, num_tokens)
            best[name] = min(best.get(name, spent), spent)
    return best


def echelon_epoch(tokens: TokenLists, ranks: Tensor, num_tokens: int) -> float:
    torch.manual_seed(0)
    backbone = JoinedBackbone({"text": LSTM(num_tokens)})
    method = echelon.method("corn", 5)
    network = OrdinalNetwork(nn.Identity(), backbone, method, backbone.out_features)
    settings = make_settings("default", SPEC, len(ranks), {"max_epochs": 1})
    fabric = Fabric(accelerator="cpu", devices=1)
    start = time.perf_counter()
    train(
        network, EncodedRows(Inputs({"text": tokens}), ranks), None, settings, seed=0, fabric=fabric
    )
    return time.perf_counter() - start


def coral_epoch(tokens: TokenLists, ranks: Tensor, num_tokens: int) -> float:
    torch.manual_seed(0)
    network = nn.Sequential(LSTM(num_tokens), nn.Linear(128, 4))
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)
    size = make_settings("default", SPEC, len(ranks), {}).batch_size
    start = time.perf_counter()
    for rows in torch.randperm(len(ranks)).split(size):
        loss = corn_loss(network(tokens.take(rows.numpy())), ranks[rows], 5)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return time.perf_counter() - start


def fit(part: Partition, seed: int) -> dict[str, float]:
    """The default recipe on the paper's protocol; the test part is read once."""
    model = echelon.OrdinalClassifier(
        backbone="lstm", **part.columns_by_kind, random_state=seed, device="cpu"
    )
    start = time.perf_counter()
    model.fit(
        part.features["train"], part.labels("train"),
        X_val=part.features["valid"], y_val=part.labels("valid"),
    )  # fmt: skip
    spent = time.perf_counter() - start
    found = np.searchsorted(part.classes, model.predict(part.features["test"]))
    return {
        "seed": seed,
        "seconds": spent,
        "mae": metrics.mae(part.ranks["test"], found),
        "rmse": metrics.rmse(part.ranks["test"], found),
    }


if __name__ == "__main__":
    main()
