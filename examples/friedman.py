"""Train four methods with a plain PyTorch loop on generated data, and compare them with the floor.

The data are Friedman's function cut into 16 equally likely classes, so the best possible predictor
is known: its error is the floor that no method can beat.
"""

import argparse
import time

import numpy as np
import torch
from torch import Tensor, nn

import echelon
from echelon.data import Friedman, make_friedman
from echelon.evaluation.metrics import mae, rmse


def main() -> None:
    """Train, test and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default="corn,coral,ornn,ce", help="names, with commas")
    parser.add_argument("--rows", type=int, default=30_000, help="training rows")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    train = make_friedman(options.rows, seed=options.seed)
    test = make_friedman(20_000, seed=options.seed + 1)
    floor = test.bayes_probabilities
    floor_median = (floor.cumsum(axis=1) < 0.5).sum(axis=1)
    floor_mean = np.rint(floor @ np.arange(test.num_classes))

    print(f"{options.rows:,} training rows, {len(test.ranks):,} test rows, 16 classes\n")
    print(f"{'method':<24}{'MAE':>8}{'RMSE':>8}{'seconds':>10}")
    for name in options.methods.split(","):
        method = echelon.method(name, num_classes=train.num_classes)
        start = time.perf_counter()
        network = fit(method, train, epochs=options.epochs, seed=options.seed)
        seconds = time.perf_counter() - start
        prediction = predict(method, network, test)
        errors = f"{mae(test.ranks, prediction):8.3f}{rmse(test.ranks, prediction):8.3f}"
        print(f"{name:<24}{errors}{seconds:>10.1f}", flush=True)
    # The median is the best label for the MAE, the mean for the RMSE: each gets its own floor.
    best = f"{mae(test.ranks, floor_median):8.3f}{rmse(test.ranks, floor_mean):8.3f}"
    print(f"{'the best possible':<24}{best}")


def fit(method: echelon.Method, data: Friedman, *, epochs: int, seed: int) -> nn.Module:
    """Train a small MLP; a method is its head and its loss, the loop is yours."""
    torch.manual_seed(seed)
    features, ranks = torch.from_numpy(data.features), torch.from_numpy(data.ranks)
    network = nn.Sequential(
        nn.Linear(features.shape[1], 128), nn.ReLU(),
        nn.Linear(128, 128), nn.ReLU(),
        method.head(128),
    )  # fmt: skip
    batch_size = 128
    steps = epochs * -(-len(ranks) // batch_size)
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=3e-3, total_steps=steps)
    for _ in range(epochs):
        for batch in torch.randperm(len(ranks)).split(batch_size):
            optimiser.zero_grad()
            method.loss(network(features[batch]), ranks[batch]).backward()
            optimiser.step()
            schedule.step()
    return network


@torch.no_grad()
def predict(method: echelon.Method, network: nn.Module, data: Friedman) -> Tensor:
    """The median of each row's curve, as ranks."""
    return method.curve(network(torch.from_numpy(data.features))).median()


if __name__ == "__main__":
    main()
