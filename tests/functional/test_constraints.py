"""CNNPOR as a family: every setting against all pairs written out."""

import itertools

import pytest
import torch
from torch import Tensor
from torch.nn.functional import margin_ranking_loss
from torch.utils._python_dispatch import TorchDispatchMode

from echelon.functional import ce_loss, cnnpor_loss

SETTINGS = list(
    itertools.product(
        ("step", "upper", "lower", "expected"), ("neighbours", "all"), ("mean", "sum")
    )
)


def written_out(
    z: Tensor, ranks: Tensor, weight: Tensor, score: str, pairs: str, pair_reduction: str
) -> Tensor:
    """Two loops over the rows."""
    expected = (z.softmax(-1) * torch.arange(z.shape[1])).sum(-1)
    total, count = z.sum() * 0, torch.tensor(0.0, dtype=z.dtype)
    for i, j in itertools.product(range(len(z)), repeat=2):
        k, above = int(ranks[i]), int(ranks[j])
        if above <= k or (pairs == "neighbours" and above != k + 1):
            continue
        g = {
            "step": lambda n, k=k: z[n, k + 1] - z[n, k],
            "upper": lambda n, k=k: z[n, k + 1],
            "lower": lambda n, k=k: -z[n, k],
            "expected": lambda n: expected[n],
        }[score]
        total = total + weight[i] * weight[j] * (1 - (g(j) - g(i))).clamp(min=0)
        count = count + weight[i] * weight[j]
    rows = (torch.nn.functional.cross_entropy(z, ranks, reduction="none") * weight).sum()
    divisor = count if pair_reduction == "mean" else weight.sum()
    return rows / weight.sum() + 0.7 * total / divisor


@pytest.mark.parametrize(("score", "pairs", "pair_reduction"), SETTINGS)
@pytest.mark.parametrize("num_classes", [2, 4])
def test_equals_two_loops(score: str, pairs: str, pair_reduction: str, num_classes: int) -> None:
    torch.manual_seed(num_classes)
    z = (2 * torch.randn(14, num_classes)).double().requires_grad_()
    ranks, weight = torch.randint(num_classes, (14,)), torch.rand(14).double()
    options = {"score": score, "pairs": pairs, "pair_reduction": pair_reduction}
    found = cnnpor_loss(z, ranks, pair_weight=0.7, sample_weight=weight, **options)
    expected = written_out(z, ranks, weight, **options)
    torch.testing.assert_close(found, expected)
    slopes = [torch.autograd.grad(loss, z)[0] for loss in (found, expected)]
    torch.testing.assert_close(*slopes)


def test_two_classes_are_a_margin_ranking_loss() -> None:
    torch.manual_seed(0)
    z, ranks = torch.randn(20, 2), torch.randint(2, (20,))
    step = z[:, 1] - z[:, 0]
    upper, lower = torch.cartesian_prod(step[ranks == 1], step[ranks == 0]).T
    expected = ce_loss(z, ranks) + margin_ranking_loss(
        upper, lower, torch.ones_like(upper), margin=1
    )
    for pairs in ("neighbours", "all"):
        torch.testing.assert_close(cnnpor_loss(z, ranks, pairs=pairs), expected)


class Largest(TorchDispatchMode):
    """Notes how many numbers the largest tensor holds."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for one in result if isinstance(result, tuple | list) else [result]:
            if isinstance(one, Tensor):
                self.numbers = max(self.numbers, one.numel())
        return result


@pytest.mark.parametrize("pairs", ["neighbours", "all"])
def test_no_array_holds_all_pairs_of_a_large_batch(pairs: str) -> None:
    z, ranks = torch.randn(4096, 9, requires_grad=True), torch.randint(9, (4096,))
    with Largest() as largest:
        cnnpor_loss(z, ranks, pairs=pairs).backward()
    assert 0 < largest.numbers <= 4096 * 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "middle"}, "score must be one of 'step', 'upper', 'lower', 'expected'; got 'mi"),
        ({"pairs": "some"}, "pairs must be one of 'neighbours', 'all'; got 'some'"),
        ({"pair_reduction": "max"}, "pair_reduction must be one of 'mean', 'sum'; got 'max'"),
        ({"pair_weight": -1.0}, "pair_weight must be a number of at least 0; got -1.0"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cnnpor_loss(torch.zeros(2, 3), torch.tensor([0, 1]), **options)
