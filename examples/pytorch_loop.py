"""A loop of your own in PyTorch: a method is a head, a loss and a curve, and nothing else."""

import torch

import echelon
from echelon.evaluation.metrics import mae

torch.manual_seed(0)
data = echelon.data.make_friedman(2000, num_classes=6)
features, ranks = torch.from_numpy(data.features), torch.from_numpy(data.ranks)
train, test = slice(0, 1500), slice(1500, 2000)

for name in ("ce", "corn"):
    method = echelon.method(name, num_classes=6)
    network = torch.nn.Sequential(torch.nn.Linear(10, 64), torch.nn.SiLU(), method.head(64))
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for _ in range(12):
        for batch in torch.randperm(1500).split(128):
            optimiser.zero_grad()
            method.loss(network(features[batch]), ranks[batch]).backward()
            optimiser.step()
    with torch.no_grad():
        curve = method.curve(network(features[test]))
    median, mode = mae(ranks[test], curve.median()), mae(ranks[test], curve.mode())
    print(f"{name}: mean absolute error {median:.3f} by the median, {mode:.3f} by the mode")

print(f"the first row: P(y > k) = {[round(p, 2) for p in curve.exceedance[0].tolist()]}")
