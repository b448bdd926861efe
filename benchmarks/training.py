"""Time training and prediction beside a bare loop and beside coral-pytorch, in one process.

Training: an epoch of the CORN paper's MLP on 30,922 generated rows (the size of Fireman's training
part), with echelon's loop, with a bare loop over preloaded tensors, and with coral-pytorch in a
plain DataLoader loop; the same network and batch size, best of several rounds in turns.
Prediction: 1,000,000 rows through the estimator and through a bare forward pass.
"""

import argparse
import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import echelon
from echelon.backbones import PaperMLP
from echelon.data import make_friedman
from echelon.training.loop import Rows, train
from echelon.training.network import OrdinalNetwork
from echelon.training.recipes import make_settings

ROWS = 30_922
NUM_CLASSES = 16


def main() -> None:
    """Run, print the tables and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/training.json"))
    options = parser.parse_args()
    results = {
        "epoch": [time_epochs(size, options.rounds) for size in (128, 16)],
        "prediction": time_prediction(options.rounds),
    }
    print("\n| an epoch, batch | echelon | over a bare loop | coral-pytorch over echelon |")
    print("| --- | ---: | ---: | ---: |")
    for row in results["epoch"]:
        ours = row["echelon"]
        print(
            f"| {row['batch_size']} | {ours:.2f} s | {ours / row['bare']:.2f} times | "
            f"{row['coral-pytorch'] / ours:.2f} times |"
        )
    row = results["prediction"]
    print("\n| 1,000,000 rows | echelon | over a bare forward pass |")
    print("| --- | ---: | ---: |")
    print(f"| predict_proba | {row['echelon']:.2f} s | {row['echelon'] / row['bare']:.2f} times |")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=2) + "\n")
    print(f"wrote {options.json}")


def time_epochs(batch_size: int, rounds: int) -> dict[str, float]:
    """Seconds of an epoch of each contestant, the best over the rounds."""
    data = make_friedman(ROWS, NUM_CLASSES)
    features, ranks = torch.from_numpy(data.features), torch.from_numpy(data.ranks)
    features = (features - 0.5) * 12**0.5
    contestants: dict[str, Callable[[], None]] = {
        "echelon": lambda: with_echelon(features, ranks, batch_size),
        "bare": lambda: bare_loop(features, ranks, batch_size),
        "coral-pytorch": lambda: with_coral_pytorch(features, ranks, batch_size),
    }
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
            print(f"  batch {batch_size}, {name}: {best[name]:.2f} s", flush=True)
    return {"batch_size": batch_size, **best}


def make_network() -> tuple[echelon.Method, nn.Sequential]:
    """The paper's MLP for CORN, with its head."""
    torch.manual_seed(0)
    method = echelon.method("corn", NUM_CLASSES)
    backbone = PaperMLP(10, 10)
    return method, nn.Sequential(backbone, method.head(backbone.out_features))


def with_echelon(features: Tensor, ranks: Tensor, batch_size: int) -> None:
    torch.manual_seed(0)
    method = echelon.method("corn", NUM_CLASSES)
    network = OrdinalNetwork(nn.Identity(), PaperMLP(10, 10), method, 300)
    settings = make_settings(
        "paper", "corn", "paper", ROWS, {"max_epochs": 1, "batch_size": batch_size}
    )
    fabric = Fabric(accelerator="cpu", devices=1)
    train(network, Rows(features, ranks), None, settings, seed=0, fabric=fabric)


def bare_loop(features: Tensor, ranks: Tensor, batch_size: int) -> None:
    method, network = make_network()
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.2, fused=True)
    batches = torch.split(torch.randperm(ROWS), batch_size)[: ROWS // batch_size]
    for batch in batches:
        method.loss(network(features[batch]), ranks[batch]).backward()
        optimiser.step()
        optimiser.zero_grad()


def with_coral_pytorch(features: Tensor, ranks: Tensor, batch_size: int) -> None:
    corn_loss = importlib.import_module("coral_pytorch.losses").corn_loss
    _, network = make_network()
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.2)
    loader = DataLoader(
        TensorDataset(features, ranks), batch_size=batch_size, shuffle=True, drop_last=True
    )
    for some_features, some_ranks in loader:
        loss = corn_loss(network(some_features), some_ranks, NUM_CLASSES)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def time_prediction(rounds: int) -> dict[str, float]:
    """Seconds for a million rows, through the estimator and through its bare network."""
    small, large = make_friedman(2000, NUM_CLASSES), make_friedman(1_000_000, NUM_CLASSES, seed=1)
    model = echelon.OrdinalClassifier(max_epochs=1, random_state=0, device="cpu")
    model.fit(small.features, small.ranks)
    features = torch.from_numpy(large.features)
    best = {"echelon": float("inf"), "bare": float("inf")}
    for _ in range(rounds):
        start = time.perf_counter()
        model.predict_proba(large.features)
        best["echelon"] = min(best["echelon"], time.perf_counter() - start)
        start = time.perf_counter()
        with torch.no_grad():
            for part in torch.split(features, 16_384):
                torch.sigmoid(model.network_(part))
        best["bare"] = min(best["bare"], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
