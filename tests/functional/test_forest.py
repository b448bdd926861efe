"""The forest against trees that are known, and its leaf update against its promise."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import echelon
from echelon.functional import (
    ce_loss,
    forest_loss,
    forest_raw_exceedance,
    grown_shares,
    leaf_routes,
    log_mixture,
)


def test_routes_are_products_along_the_way() -> None:
    units = torch.tensor([[0.3, -1.0, 2.0]])
    d = torch.sigmoid(units[0]).tolist()
    expected = [d[0] * d[1], d[0] * (1 - d[1]), (1 - d[0]) * d[2], (1 - d[0]) * (1 - d[2])]
    torch.testing.assert_close(leaf_routes(units)[0], torch.tensor(expected))
    assert leaf_routes(torch.zeros(4, 2, 0)).tolist() == [[[1.0], [1.0]]] * 4


@given(depth=st.integers(0, 5), size=st.sampled_from([1.0, 1e2, 1e4]), seed=st.integers(0, 999))
def test_the_routes_of_a_row_sum_to_1(depth: int, size: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    routes = leaf_routes(size * torch.randn(6, 3, 2**depth - 1, generator=generator))
    assert routes.shape == (6, 3, 2**depth)
    torch.testing.assert_close(routes.sum(-1), torch.ones(6, 3))


def test_the_mixture_is_the_mean_of_the_trees() -> None:
    torch.manual_seed(0)
    routes = leaf_routes(torch.randn(7, 4, 3))
    shares = torch.randn(4, 4, 5).softmax(-1)
    each = torch.stack([routes[:, t] @ shares[t] for t in range(4)])
    torch.testing.assert_close(log_mixture(routes, shares).exp().float(), each.mean(0))


def test_without_splits_the_likelihood_is_cross_entropy_without_features() -> None:
    torch.manual_seed(0)
    logits, ranks = torch.randn(5), torch.randint(5, (30,))
    given = logits.log_softmax(-1).expand(30, 5)
    found = forest_loss(given, ranks, num_classes=5, criterion="nll")
    torch.testing.assert_close(found, ce_loss(logits.expand(30, 5), ranks))


def loss_of(routes: Tensor, shares: Tensor, ranks: Tensor, k: int, **options: object) -> Tensor:
    logits = log_mixture(routes, shares)
    return forest_loss(logits, ranks, num_classes=k, reduction="sum", **options)


@pytest.mark.parametrize(
    "options", [{"criterion": "nll"}, {"criterion": "exceedance"}, {"leaves": "bernoulli"}], ids=str
)
def test_the_leaf_update_never_raises_the_loss(options: dict[str, str]) -> None:
    """60 forests, 10 updates each; the paper's rule is that of Bernoulli leaves."""
    for seed in range(60):
        torch.manual_seed(seed)
        k, trees = 2 + seed % 6, 1 + seed % 3
        routes = leaf_routes(3 * torch.randn(20, trees, 7).double())
        ranks = torch.randint(k, (20,))
        if "leaves" in options:
            above = torch.full((trees, 8, k - 1), 0.5).double()  # where the papers start
            shares = torch.cat([above, 1 - above], -1)
        else:
            shares = torch.randn(trees, 8, k).double().softmax(-1)
        before = float("inf")
        for _ in range(10):
            shares.requires_grad_()
            loss = loss_of(routes, shares, ranks, k, **options)
            assert loss <= before + 1e-9
            before = loss.item()
            (slopes,) = torch.autograd.grad(loss, shares)
            with torch.no_grad():
                if "leaves" in options:
                    pairs = (one.unflatten(-1, (2, -1)) for one in (shares, slopes))
                    shares = grown_shares(*pairs, -2).flatten(-2)
                else:
                    shares = grown_shares(shares, slopes, -1)
        sums = shares.unflatten(-1, (2, -1)).sum(-2) if "leaves" in options else shares.sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))


def test_the_update_of_bernoulli_leaves_is_the_papers_formula() -> None:
    torch.manual_seed(1)
    routes, ranks = leaf_routes(torch.randn(9, 1, 3).double()), torch.randint(4, (9,))
    above = torch.rand(1, 4, 3).double()
    shares = torch.cat([above, 1 - above], -1).requires_grad_()
    (slopes,) = torch.autograd.grad(loss_of(routes, shares, ranks, 4, leaves="bernoulli"), shares)
    found = grown_shares(shares.detach().unflatten(-1, (2, -1)), slopes.unflatten(-1, (2, -1)), -2)[
        :, :, 0
    ]
    p = routes[:, 0] @ above[0]
    for leaf in range(4):
        for k in range(3):
            is_above = ranks > k
            a = above[0, leaf, k] * (routes[:, 0, leaf] / p[:, k])[is_above].sum()
            b = (1 - above[0, leaf, k]) * (routes[:, 0, leaf] / (1 - p[:, k]))[~is_above].sum()
            torch.testing.assert_close(found[0, leaf, k], a / (a + b))


@pytest.mark.parametrize("criterion", ["nll", "exceedance"])
def test_without_splits_the_best_leaf_holds_the_class_shares(criterion: str) -> None:
    ranks = torch.tensor([0] * 2 + [1] * 4 + [2] + [3] * 3)
    shares = torch.full((1, 1, 4), 0.25).double()
    for _ in range(300):
        shares.requires_grad_()
        loss = loss_of(torch.ones(10, 1, 1).double(), shares, ranks, 4, criterion=criterion)
        (slopes,) = torch.autograd.grad(loss, shares)
        shares = grown_shares(shares.detach(), slopes, -1)
    expected = torch.tensor([0.2, 0.4, 0.1, 0.3]).double()
    torch.testing.assert_close(shares[0, 0], expected, rtol=0, atol=1e-6)


def test_bernoulli_leaves_may_cross_and_are_sorted() -> None:
    above = torch.tensor([[0.3, 0.8]])
    logits = torch.cat([above, 1 - above], -1).log()
    method = echelon.method("forest", 3, leaves="bernoulli")
    assert method.can_cross
    assert not echelon.method("forest", 3).can_cross
    torch.testing.assert_close(forest_raw_exceedance(logits), above)
    curve = method.curve(logits)
    assert curve.crossings().item() > 0
    torch.testing.assert_close(curve.exceedance, torch.tensor([[0.8, 0.3]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trees": 0}, "trees must be a whole number of at least 1; got 0"),
        ({"trees": True}, "trees must be a whole number of at least 1; got True"),
        ({"depth": 11}, "depth must be a whole number from 0 to 10; got 11"),
        ({"trees": 1000, "depth": 10}, "at most 65,536 leaves; 1000 trees of depth 10 have 1,024,"),
        ({"units": 0}, "units must be a whole number of at least 1, or None; got 0"),
        ({"leaves": "beta"}, "leaves must be one of 'softmax', 'bernoulli'; got 'beta'"),
        ({"leaf_update": "sgd"}, "leaf_update must be one of 'gradient', 'em'; got 'sgd'"),
        ({"criterion": "crps"}, "criterion must be one of 'exceedance', 'nll'; got 'crps'"),
        ({"leaves": "bernoulli", "criterion": "nll"}, "'nll' needs a distribution over the ranks"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        echelon.method("forest", 4, **options)


def test_wrong_logits_are_named() -> None:
    with pytest.raises(ValueError, match=r"4 classes needs logits \(\.\.\., 6\).*got \(2, 4\)"):
        forest_loss(torch.zeros(2, 4), torch.tensor([0, 1]), num_classes=4, leaves="bernoulli")
